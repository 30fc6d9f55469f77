// Sums along one axis of an array (A, C, B). They run in the type of x over blocks and add up the blocks in double.
#include "support/vector.hpp"
#include "vector/lanes.hpp"

namespace nn_cpu::NN_ISA {

/// y[r] = scale times the sum of row r of n elements.
template <class T>
void row_sums(const T* x, int64_t rows, int64_t n, double scale, T* y) {
  using Lanes = LanesOf<T>;
  constexpr int kWidth = kWidthOf<T>;
  constexpr int64_t kBlock = (sizeof(T) == 8 ? 512 : 32) * kWidth;  // doubles need no sum of a longer type
  const int rest = static_cast<int>(n % kWidth);
  const int64_t whole = n - rest;
  for (int64_t r = 0; r < rows; ++r, x += n) {
    Lanes tail = rest > 0 ? load_part(x + whole, rest) : Lanes{};
    if (whole <= kBlock) {
      Lanes other{};
      int64_t i = 0;
      for (; i + 2 * kWidth <= whole; i += 2 * kWidth) {
        tail += load(x + i);
        other += load(x + i + kWidth);
      }
      if (i < whole) other += load(x + i);
      y[r] = static_cast<T>(scale) * sum_of_lanes(tail + other);
      continue;
    }
    double total = sum_of_lanes(tail);
    for (int64_t start = 0; start < whole; start += kBlock) {
      const int64_t end = start + kBlock < whole ? start + kBlock : whole;
      Lanes part[4] = {};
      int64_t i = start;
      for (; i + 4 * kWidth <= end; i += 4 * kWidth) {
        for (int k = 0; k < 4; ++k) part[k] += load(x + i + k * kWidth);
      }
      for (; i < end; i += kWidth) part[0] += load(x + i);
      total += sum_of_lanes((part[0] + part[1]) + (part[2] + part[3]));
    }
    y[r] = static_cast<T>(static_cast<T>(scale) * total);
  }
}

/// y[lane] = scale times the sum of x[k * stride + lane] over k < count, for lanes < lanes <= kMaxLanes.
template <class T>
void lane_sums(const T* x, int64_t count, int64_t stride, int64_t lanes, double scale, T* y) {
  constexpr int64_t kBlock = 64;
  T part[kMaxLanes];
  double total[kMaxLanes];
  for (int64_t i = 0; i < lanes; ++i) total[i] = 0.0;
  for (int64_t start = 0; start < count; start += kBlock) {
    const int64_t end = start + kBlock < count ? start + kBlock : count;
    for (int64_t i = 0; i < lanes; ++i) part[i] = x[start * stride + i];
    for (int64_t k = start + 1; k < end; ++k) {
      const T* row = x + k * stride;
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) part[i] += row[i];
    }
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) total[i] += part[i];
  }
#pragma omp simd
  for (int64_t i = 0; i < lanes; ++i) y[i] = static_cast<T>(static_cast<T>(scale) * total[i]);
}

template void row_sums<float>(const float*, int64_t, int64_t, double, float*);
template void row_sums<double>(const double*, int64_t, int64_t, double, double*);
template void lane_sums<float>(const float*, int64_t, int64_t, int64_t, double, float*);
template void lane_sums<double>(const double*, int64_t, int64_t, int64_t, double, double*);

}  // namespace nn_cpu::NN_ISA
