// Weighted sums of elements of a row, and of two rows; see kernels/resample.cpp.
#include "support/vector.hpp"
#include "vector/math.hpp"

namespace nn_cpu::NN_ISA {

/// y[i] = the sum over t < taps of weights[t n + i] x[indices[t n + i]], 0 without taps.
void resample_row(const float* x, int64_t n, const int32_t* indices, const float* weights, int64_t taps, float* y) {
  if (taps == 0) {
    for (int64_t i = 0; i < n; ++i) y[i] = 0.0f;
  } else if (taps == 2) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = weights[i] * x[indices[i]] + weights[n + i] * x[indices[n + i]];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = weights[i] * x[indices[i]];
    for (int64_t t = 1; t < taps; ++t) {
      const int32_t* index = indices + t * n;
      const float* weight = weights + t * n;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) y[i] += weight[i] * x[index[i]];
    }
  }
}

namespace {

/// The element at an index, 0 for an index below 0.
inline float sample(const float* x, int32_t index) {
  const float value = x[index < 0 ? 0 : index];
  return index < 0 ? 0.0f : value;
}

}  // namespace

/// As resample_row, where an index below 0 reads 0.
void sample_row(const float* x, int64_t n, const int32_t* indices, const float* weights, int64_t taps, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = weights[i] * sample(x, indices[i]);
  for (int64_t t = 1; t < taps; ++t) {
    const int32_t* index = indices + t * n;
    const float* weight = weights + t * n;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] += weight[i] * sample(x, index[i]);
  }
}

/// total[i] += x[indices[i]] y[i], where an index below 0 reads 0.
void add_sampled_products(const float* x, const int32_t* indices, const float* y, int64_t n, float* total) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) total[i] += y[i] * sample(x, indices[i]);
}

/// y = a x0 + b x1.
void mix_rows(const float* x0, float a, const float* x1, float b, int64_t n, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = a * x0[i] + b * x1[i];
}

}  // namespace nn_cpu::NN_ISA
