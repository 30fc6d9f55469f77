// Reductions and running results along one axis, for neighbouring lanes: element (k, lane) of an array is at x[k *
// stride + lane], k < count, lane < lanes <= kMaxLanes. Results of reductions have one element for each lane.
#include "support/vector.hpp"
#include "vector/math.hpp"

namespace nn_cpu::NN_ISA {

/// y = the largest (or smallest) element, index = its first place; NaN counts as more extreme than any number.
void extremum(bool largest, const float* x, int64_t count, int64_t stride, int64_t lanes, float* y, int32_t* index) {
  for (int64_t i = 0; i < lanes; ++i) {
    y[i] = x[i];
    index[i] = 0;
  }
  for (int64_t k = 1; k < count; ++k) {
    const float* row = x + k * stride;
    const auto place = static_cast<int32_t>(k);
    if (largest) {
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) {
        const bool better = (row[i] > y[i]) | ((row[i] != row[i]) & (y[i] == y[i]));
        y[i] = better ? row[i] : y[i];
        index[i] = better ? place : index[i];
      }
    } else {
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) {
        const bool better = (row[i] < y[i]) | ((row[i] != row[i]) & (y[i] == y[i]));
        y[i] = better ? row[i] : y[i];
        index[i] = better ? place : index[i];
      }
    }
  }
}

/// dx = dy at the first element that equals y, or is NaN as y is, 0 elsewhere.
void extremum_gradient(const float* x, const float* y, const float* dy, int64_t count, int64_t stride, int64_t lanes,
                       float* dx) {
  float rest[kMaxLanes];  // dy until the element is found
  for (int64_t i = 0; i < lanes; ++i) rest[i] = dy[i];
  for (int64_t k = 0; k < count; ++k) {
    const float* row = x + k * stride;
    float* out = dx + k * stride;
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) {
      const bool found = (row[i] == y[i]) | ((row[i] != row[i]) & (y[i] != y[i]));
      out[i] = found ? rest[i] : 0.0f;
      rest[i] = found ? 0.0f : rest[i];
    }
  }
}

namespace {

/// Running results; `reverse` goes from the last element, `exclusive` leaves the element itself out.
template <class F>
void running(bool exclusive, bool reverse, double start, const float* x, int64_t count, int64_t stride, int64_t lanes,
             float* y, F join) {
  double total[kMaxLanes];
  for (int64_t i = 0; i < lanes; ++i) total[i] = start;
  for (int64_t step = 0; step < count; ++step) {
    const int64_t k = reverse ? count - 1 - step : step;
    const float* row = x + k * stride;
    float* out = y + k * stride;
    if (exclusive) {
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) {
        const float value = row[i];
        out[i] = static_cast<float>(total[i]);
        total[i] = join(total[i], value);
      }
    } else {
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) {
        total[i] = join(total[i], row[i]);
        out[i] = static_cast<float>(total[i]);
      }
    }
  }
}

}  // namespace

void running_sum(bool exclusive, bool reverse, const float* x, int64_t count, int64_t stride, int64_t lanes, float* y) {
  running(exclusive, reverse, 0.0, x, count, stride, lanes, y, [](double total, float value) { return total + value; });
}

void running_product(bool exclusive, bool reverse, const float* x, int64_t count, int64_t stride, int64_t lanes,
                     float* y) {
  running(exclusive, reverse, 1.0, x, count, stride, lanes, y, [](double total, float value) { return total * value; });
}

/// dx of a running product y from x and dy, without a division: dx[k] is the product of the elements before k, times
/// the sum of dy[j] and the elements between k and j, by Horner's rule from the other end.
void running_product_gradient(bool exclusive, bool reverse, const float* x, const float* dy, int64_t count,
                              int64_t stride, int64_t lanes, float* dx) {
  running_product(true, reverse, x, count, stride, lanes, dx);
  double behind[kMaxLanes];
  for (int64_t i = 0; i < lanes; ++i) behind[i] = 0.0;
  for (int64_t step = count - 1; step >= 0; --step) {
    const int64_t k = reverse ? count - 1 - step : step;
    const float *row = x + k * stride, *from = dy + k * stride;
    float* out = dx + k * stride;
    if (exclusive) {
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) {
        out[i] = static_cast<float>(out[i] * behind[i]);
        behind[i] = from[i] + row[i] * behind[i];
      }
    } else {
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) {
        const double sum = from[i] + behind[i];
        out[i] = static_cast<float>(out[i] * sum);
        behind[i] = row[i] * sum;
      }
    }
  }
}

namespace {

/// The product of neighbouring elements, as many at a time as hide the latency of a multiplication.
double product_of_row(const float* x, int64_t count) {
  constexpr int64_t kTogether = 32;
  double total[kTogether];
  for (double& part : total) part = 1.0;
  int64_t k = 0;
  for (; k + kTogether <= count; k += kTogether) {
#pragma omp simd
    for (int64_t i = 0; i < kTogether; ++i) total[i] *= x[k + i];
  }
  double product = 1.0;
  for (; k < count; ++k) product *= x[k];
  for (const double part : total) product *= part;
  return product;
}

}  // namespace

/// y = the product of all elements.
void product_of(const float* x, int64_t count, int64_t stride, int64_t lanes, float* y) {
  if (lanes == 1 && stride == 1) {
    *y = static_cast<float>(product_of_row(x, count));
    return;
  }
  double total[kMaxLanes];
  for (int64_t i = 0; i < lanes; ++i) total[i] = 1.0;
  for (int64_t k = 0; k < count; ++k) {
    const float* row = x + k * stride;
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) total[i] *= row[i];
  }
  for (int64_t i = 0; i < lanes; ++i) y[i] = static_cast<float>(total[i]);
}

/// dx = dy times the product of all other elements, without a division.
void product_gradient(const float* x, const float* dy, int64_t count, int64_t stride, int64_t lanes, float* dx) {
  running_product(true, false, x, count, stride, lanes, dx);
  double behind[kMaxLanes];
  for (int64_t i = 0; i < lanes; ++i) behind[i] = dy[i];
  for (int64_t k = count - 1; k >= 0; --k) {
    const float* row = x + k * stride;
    float* out = dx + k * stride;
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) {
      out[i] = static_cast<float>(out[i] * behind[i]);
      behind[i] *= row[i];
    }
  }
}

}  // namespace nn_cpu::NN_ISA
