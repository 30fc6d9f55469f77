// Matrix products of row-major matrices of float32 or float64.
#pragma once

#include <cstdint>

namespace nn_cpu {

/// A matrix in memory: rows `ld` elements apart; `transposed` means that it is read by columns.
template <class T>
struct MatrixOf {
  const T* data;
  int64_t ld;
  bool transposed = false;
};
using Matrix = MatrixOf<float>;

/// c (m, n) = a (m, k) b (k, n), plus c if `accumulate`, plus `bias` (n) in each row if it is given. Runs on several
/// threads when the work is worth it, and on the calling one inside a parallel region.
void gemm(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, bool accumulate, float* c, int64_t ldc,
          const float* bias = nullptr);
void gemm(int64_t m, int64_t n, int64_t k, MatrixOf<double> a, MatrixOf<double> b, bool accumulate, double* c,
          int64_t ldc, const double* bias = nullptr);

/// Whether this build has oneDNN.
bool has_onednn();

/// Whether oneDNN has primitives for bfloat16 on this machine, and a narrower instruction set was not selected.
bool multiplies_bfloat16();

/// Name of the instructions that run products of bfloat16: "AMX", "AVX512_BF16", "AVX-512, emulated" or "float32
/// copies".
const char* bfloat16_products();

/// Rough nanoseconds of a product.
inline double gemm_cost(int64_t m, int64_t n, int64_t k) {
  return 200.0 + static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / 100.0;
}

}  // namespace nn_cpu
