// Softmax along one axis for neighbouring lanes: element (k, lane) of an array is at x[k * stride + lane], lane < lanes
// <= kMaxLanes, and the part that follows the sum in a row in one piece.
#include "support/vector.hpp"
#include "vector/wide_math.hpp"

namespace nn_cpu::NN_ISA {
namespace {

/// The largest element of each lane (NaN counts as larger), and the sum of e^(x - largest) in double.
template <class T>
void log_sums(const T* x, int64_t count, int64_t stride, int64_t lanes, T* largest, double* totals, T* y) {
  for (int64_t i = 0; i < lanes; ++i) {
    largest[i] = x[i];
    totals[i] = 0.0;
  }
  for (int64_t k = 1; k < count; ++k) {
    const T* row = x + k * stride;
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) largest[i] = larger(row[i], largest[i]);
  }
  for (int64_t k = 0; k < count; ++k) {
    const T* row = x + k * stride;
    T exponentials[kMaxLanes];
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) exponentials[i] = exp(row[i] - largest[i]);
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) totals[i] += exponentials[i];
    if (y == nullptr) continue;
    T* out = y + k * stride;
    for (int64_t i = 0; i < lanes; ++i) out[i] = exponentials[i];
  }
}

}  // namespace

/// y = softmax of x, or its logarithm.
template <class T>
void softmax_lanes(bool log_too, const T* x, int64_t count, int64_t stride, int64_t lanes, T* y) {
  T largest[kMaxLanes], factors[kMaxLanes];
  double totals[kMaxLanes];
  log_sums(x, count, stride, lanes, largest, totals, log_too ? nullptr : y);
  for (int64_t i = 0; i < lanes; ++i)
    factors[i] = log_too ? log1p(static_cast<T>(totals[i] - 1.0)) : static_cast<T>(1.0 / totals[i]);  // 1: the largest
  for (int64_t k = 0; k < count; ++k) {
    const T* row = x + k * stride;
    T* out = y + k * stride;
    if (log_too) {
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) out[i] = (row[i] - largest[i]) - factors[i];
    } else {
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) out[i] *= factors[i];
    }
  }
}

/// dx from y and dy.
template <class T>
void softmax_lanes_gradient(bool log_too, const T* y, const T* dy, int64_t count, int64_t stride, int64_t lanes,
                            T* dx) {
  double totals[kMaxLanes];
  T sums[kMaxLanes];
  for (int64_t i = 0; i < lanes; ++i) totals[i] = 0.0;
  for (int64_t k = 0; k < count; ++k) {
    const T *value = y + k * stride, *gradient = dy + k * stride;
    if (log_too) {
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) totals[i] += gradient[i];
    } else {
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) totals[i] += gradient[i] * value[i];
    }
  }
  for (int64_t i = 0; i < lanes; ++i) sums[i] = static_cast<T>(totals[i]);
  for (int64_t k = 0; k < count; ++k) {
    const T *value = y + k * stride, *gradient = dy + k * stride;
    T* out = dx + k * stride;
    if (log_too) {
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) out[i] = gradient[i] - exp(value[i]) * sums[i];
    } else {
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) out[i] = value[i] * (gradient[i] - sums[i]);
    }
  }
}

template void softmax_lanes<float>(bool, const float*, int64_t, int64_t, int64_t, float*);
template void softmax_lanes_gradient<float>(bool, const float*, const float*, int64_t, int64_t, int64_t, float*);
template void softmax_lanes<double>(bool, const double*, int64_t, int64_t, int64_t, double*);
template void softmax_lanes_gradient<double>(bool, const double*, const double*, int64_t, int64_t, int64_t, double*);

/// dx of n elements in one piece: dy - e^y total, or y (dy - total).
template <class T>
void softmax_row_gradient(bool log_too, const T* y, const T* dy, T total, int64_t n, T* dx) {
  if (log_too) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] - exp(y[i]) * total;
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - total);
  }
}

template void softmax_row_gradient(bool, const float*, const float*, float, int64_t, float*);
template void softmax_row_gradient(bool, const double*, const double*, double, int64_t, double*);

}  // namespace nn_cpu::NN_ISA
