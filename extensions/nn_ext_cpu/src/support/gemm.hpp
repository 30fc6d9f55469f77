// Matrix product of row-major float32 matrices.
#pragma once

#include <cstdint>

namespace nn_cpu {

/// A matrix as it lies in memory: rows `ld` elements apart; `transposed` means that it is read by columns.
struct Matrix {
  const float* data;
  int64_t ld;
  bool transposed = false;
};

/// c (m, n) = a (m, k) b (k, n) + beta c. Runs on several threads when the work is worth it, and on the calling one
/// inside a parallel region.
void gemm(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, float beta, float* c, int64_t ldc);

/// Whether this build has a matrix product (that of oneDNN).
bool has_gemm();

/// Rough nanoseconds of a product.
inline double gemm_cost(int64_t m, int64_t n, int64_t k) {
  return 200.0 + static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / 100.0;
}

}  // namespace nn_cpu
