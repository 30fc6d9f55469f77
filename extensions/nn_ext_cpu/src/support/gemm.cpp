#include "support/gemm.hpp"

#include <string>

#include "support/blocked_product.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

#ifdef NN_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

namespace nn_cpu {
namespace {

/// A thread gets at least this many products of elements.
constexpr int64_t kGrain = 200'000;

/// A tile can be as high as so few rows, and b is read once then.
constexpr int64_t kFewRows = 16;

/// Shapes for which copies of the operands take longer than they save: few rows, short sums, or little work.
bool is_slender(int64_t m, int64_t n, int64_t k) { return m <= 32 || k <= 32 || n <= 16 || m * n * k <= 64 * 64 * 64; }

/// Splits columns or rows of c, whichever are more, between threads.
template <class Body>
void split(int64_t m, int64_t n, int64_t k, const Body& body) {
  const bool by_columns = n >= m;
  const int64_t lines = by_columns ? n : m, work = (by_columns ? m : n) * std::max<int64_t>(k, 1);
  parallel_for(
      lines, std::max<int64_t>(32, kGrain / std::max<int64_t>(work, 1)),
      [&](int64_t begin, int64_t end, int) {
        if (by_columns) {
          body(int64_t{0}, m, begin, end - begin);
        } else {
          body(begin, end - begin, int64_t{0}, n);
        }
      },
      32);
}

/// c = a b by a method for one piece, `multiply(p, depth, to, ld)`, which overwrites.
template <class T, class Multiply>
void by_pieces(int64_t m, int64_t n, int64_t k, bool accumulate, T* c, int64_t ldc, const T* bias,
               const Multiply& multiply) {
  const int64_t most = depth_of_pieces(k);
  const bool adds = k > most || accumulate || bias != nullptr;
  Scratch scratch(adds ? Scratch::bytes<T>(m * n) : 0);
  T* piece = adds ? scratch.template take<T>(m * n) : nullptr;
  for (int64_t p = 0; p < k; p += most) {
    const int64_t depth = std::min(most, k - p);
    const bool adds_to_c = accumulate || p > 0, adds_bias = p == 0 && bias != nullptr;
    if (!adds_to_c && !adds_bias) {
      multiply(p, depth, c, ldc);
      continue;
    }
    multiply(p, depth, piece, n);
    for (int64_t i = 0; i < m; ++i) {
      T* to = c + i * ldc;
      const T* from = piece + i * n;
      for (int64_t j = 0; adds_to_c && j < n; ++j) to[j] += from[j];
      for (int64_t j = 0; adds_bias && j < n; ++j) to[j] = (adds_to_c ? to[j] : from[j]) + bias[j];
    }
  }
}

/// Few rows, and a matrix that does not stay in the second-level cache.
bool is_streamed(int64_t m, int64_t n, int64_t k, bool turned) {
  return m <= kStreamedRows && n >= 128 && n * k >= 256 * 256 && !turned;
}

void slender(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, bool accumulate, float* c, int64_t ldc,
             const float* bias) {
  const int64_t a_row = a.transposed ? 1 : a.ld, a_col = a.transposed ? a.ld : 1;
  const VectorTable& table = vectors();
  if (b.transposed && !a.transposed && (k >= 256 || m <= 8) && bias == nullptr && !deterministic()) {
    split(m, n, k, [&](int64_t i, int64_t rows, int64_t j, int64_t columns) {
      table.dot_product(rows, columns, k, a.data + i * a_row, a.ld, b.data + j * b.ld, b.ld, accumulate,
                        c + i * ldc + j, ldc);
    });
    return;
  }
  Scratch scratch(b.transposed ? Scratch::bytes<float>(k * n) : 0);
  const float* by_rows = b.data;
  int64_t ldb = b.ld;
  if (b.transposed) {
    auto* turned = scratch.take<float>(k * n);
    table.transpose(b.data, n, k, b.ld, turned, n);
    by_rows = turned;
    ldb = n;
  }
  const bool streamed = is_streamed(m, n, k, b.transposed), in_pieces = m <= kFewRows && n >= 128 && k > kMaxDepth;
  split(m, n, k, [&](int64_t i, int64_t rows, int64_t j, int64_t columns) {
    const float *rows_of_a = a.data + i * a_row, *columns_of_b = by_rows + j, *added = bias ? bias + j : nullptr;
    float* to = c + i * ldc + j;
    if (streamed || in_pieces) {
      by_pieces(rows, columns, k, accumulate, to, ldc, added, [&](int64_t p, int64_t depth, float* piece, int64_t ld) {
        const float *from_a = rows_of_a + p * a_col, *from_b = columns_of_b + p * ldb;
        if (streamed) {
          table.streamed_product(rows, columns, depth, from_a, a_row, a_col, from_b, ldb, piece, ld);
        } else {
          table.product(rows, columns, depth, from_a, a_row, a_col, from_b, ldb, false, nullptr, piece, ld);
        }
      });
    } else {
      table.product(rows, columns, k, rows_of_a, a_row, a_col, columns_of_b, ldb, accumulate, added, to, ldc);
    }
  });
}

/// Computes products of few rows in place; false for others.
bool few_rows(int64_t m, int64_t n, int64_t k, MatrixOf<double> a, MatrixOf<double> b, bool accumulate, double* c,
              int64_t ldc, const double* bias) {
  const bool by_dots = b.transposed && !a.transposed && bias == nullptr && !deterministic();
  if (m > kStreamedRows || (!by_dots && (b.transposed || n < 8))) return false;
  const NumberLoops<double>& table = number_loops<double>();
  const int64_t a_row = a.transposed ? 1 : a.ld, a_col = a.transposed ? a.ld : 1;
  split(m, n, k, [&](int64_t i, int64_t rows, int64_t j, int64_t columns) {
    double* to = c + i * ldc + j;
    if (by_dots) {
      table.dot_product(rows, columns, k, a.data + i * a_row, a.ld, b.data + j * b.ld, b.ld, accumulate, to, ldc);
    } else {
      by_pieces(rows, columns, k, accumulate, to, ldc, bias != nullptr ? bias + j : nullptr,
                [&](int64_t p, int64_t depth, double* piece, int64_t ld) {
                  table.streamed_product(rows, columns, depth, a.data + i * a_row + p * a_col, a_row, a_col,
                                         b.data + j + p * b.ld, b.ld, piece, ld);
                });
    }
  });
  return true;
}

}  // namespace

#ifdef NN_ONEDNN

bool has_onednn() { return true; }

bool multiplies_bfloat16() {
  // Every machine that runs our loops for AVX-512 has what oneDNN needs; with AVX512_BF16 or AMX it is fast.
  return std::string(vectors().isa) == "avx512";
}

const char* bfloat16_products() {
  if (!multiplies_bfloat16()) return "float32 copies";
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  if ((isa & dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx) return "AMX";
  return (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16 ? "AVX512_BF16" : "AVX-512, emulated";
}

#else

bool has_onednn() { return false; }

const char* bfloat16_products() { return "float32 copies"; }

bool multiplies_bfloat16() { return false; }

#endif

void gemm(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, bool accumulate, float* c, int64_t ldc,
          const float* bias) {
  if (m == 0 || n == 0) return;
  if (is_slender(m, n, k)) return slender(m, n, k, a, b, accumulate, c, ldc, bias);
  blocked_product(m, n, k, a, b, accumulate, c, ldc, bias);
}

void gemm(int64_t m, int64_t n, int64_t k, MatrixOf<double> a, MatrixOf<double> b, bool accumulate, double* c,
          int64_t ldc, const double* bias) {
  if (m == 0 || n == 0) return;
  for (int64_t i = 0; i < m && k == 0; ++i) {  // there is nothing to pack
    for (int64_t j = 0; j < n; ++j) {
      double& element = c[i * ldc + j];
      element = (accumulate ? element : 0.0) + (bias != nullptr ? bias[j] : 0.0);
    }
  }
  if (k == 0 || few_rows(m, n, k, a, b, accumulate, c, ldc, bias)) return;
  blocked_product(m, n, k, a, b, accumulate, c, ldc, bias);
}

}  // namespace nn_cpu
