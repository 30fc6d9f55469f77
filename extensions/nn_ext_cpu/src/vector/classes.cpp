// How many scores of a line reach a limit: the rank of a class among others. NaN reaches nothing.
#include "support/vector.hpp"

namespace nn_cpu::NN_ISA {

/// For n scores in one piece.
int32_t count_reaching(const float* x, int64_t n, float limit) {
  int32_t count = 0;
#pragma omp simd reduction(+ : count)
  for (int64_t i = 0; i < n; ++i) count += x[i] >= limit;
  return count;
}

/// For neighbouring lanes, lines of `count` scores with limits of their own.
void counts_reaching(const float* x, int64_t count, int64_t stride, int64_t lanes, const float* limits,
                     int32_t* counts) {
  for (int64_t i = 0; i < lanes; ++i) counts[i] = 0;
  for (int64_t k = 0; k < count; ++k) {
    const float* row = x + k * stride;
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) counts[i] += row[i] >= limits[i];
  }
}

}  // namespace nn_cpu::NN_ISA
