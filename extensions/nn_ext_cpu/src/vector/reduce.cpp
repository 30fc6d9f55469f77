// Reductions of contiguous rows. Sums run in the type of x over blocks of 512 elements, in as many lanes as the vector
// unit has, and add up the blocks in double: the relative error of float32 stays near 1e-6 for any length.
#include "support/vector.hpp"
#include "vector/lanes.hpp"
#include "vector/wide_math.hpp"

namespace nn_cpu::NN_ISA {
namespace {

constexpr int64_t kBlock = 512;
constexpr int kSums = 16;  // kept apart in a block, however wide the vectors are: the error is that of short sums

template <class T, class F>
double blocked_sum(int64_t n, F term) {
  double total = 0.0;
  for (int64_t start = 0; start < n; start += kBlock) {
    const int64_t end = start + kBlock < n ? start + kBlock : n;
    T partial[kSums] = {};
    int64_t i = start;
    for (; i + kSums <= end; i += kSums) {
#pragma omp simd
      for (int lane = 0; lane < kSums; ++lane) partial[lane] += term(i + lane);
    }
    for (; i < end; ++i) partial[(i - start) % kSums] += term(i);
    for (int half = kSums / 2; half > 0; half /= 2) {
      for (int lane = 0; lane < half; ++lane) partial[lane] += partial[lane + half];
    }
    total += partial[0];
  }
  return total;
}

/// The best of x, NaN if one is among them; four vectors of candidates, as each waits for the one before it.
template <class T, class F>
T extremum_of(const T* x, int64_t n, T worst, F better) {
  constexpr int kLanes = kWidthOf<T>;
  LanesOf<T> best[4];
  for (auto& candidates : best) candidates = splat(worst);
  auto nan = best[0] != best[0];
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const LanesOf<T> value = load(x + i + k * kLanes);
      best[k] = better(value, best[k]);
      nan |= value != value;
    }
  }
  for (; i + kLanes <= n; i += kLanes) {
    const LanesOf<T> value = load(x + i);
    best[0] = better(value, best[0]);
    nan |= value != value;
  }
  const LanesOf<T> all = better(better(best[0], best[1]), better(best[2], best[3]));
  T result = worst;
  bool has_nan = false;
  for (int lane = 0; lane < kLanes; ++lane) {
    result = better(all[lane], result);
    has_nan |= nan[lane] != 0;
  }
  for (; i < n; ++i) {
    result = better(x[i], result);
    has_nan |= x[i] != x[i];
  }
  return has_nan ? T{kInfinity - kInfinity} : result;
}

}  // namespace

template <class T>
double sum(const T* x, int64_t n) {
  return blocked_sum<T>(n, [x](int64_t i) { return x[i]; });
}

template <class T>
double sum_of_squares(const T* x, int64_t n) {
  return blocked_sum<T>(n, [x](int64_t i) { return x[i] * x[i]; });
}

template <class T>
double dot(const T* x, const T* y, int64_t n) {
  return blocked_sum<T>(n, [x, y](int64_t i) { return x[i] * y[i]; });
}

template <class T>
T max(const T* x, int64_t n) {
  return extremum_of<T>(x, n, T{-kInfinity}, [](auto a, auto b) { return a > b ? a : b; });
}

template <class T>
T min(const T* x, int64_t n) {
  return extremum_of<T>(x, n, T{kInfinity}, [](auto a, auto b) { return a < b ? a : b; });
}

template <class T>
void add_to_double(const T* x, double* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

template <class T>
void add_to(const T* x, T* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

/// y += a x.
template <class T>
void axpy(T a, const T* x, T* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

template <class T>
void scale_row(const T* x, int64_t n, T a, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = a * x[i];
}

template <class T>
double exp_sum(const T* x, T shift, T* y, int64_t n) {
  double total = 0.0;
  for (int64_t start = 0; start < n; start += kBlock) {
    const int64_t end = start + kBlock < n ? start + kBlock : n;
    T partial = 0;
#pragma omp simd reduction(+ : partial)
    for (int64_t i = start; i < end; ++i) {
      const T e = exp(x[i] - shift);
      y[i] = e;
      partial += e;
    }
    total += partial;
  }
  return total;
}

template double sum<float>(const float*, int64_t);
template double sum_of_squares<float>(const float*, int64_t);
template double dot<float>(const float*, const float*, int64_t);
template float max<float>(const float*, int64_t);
template float min<float>(const float*, int64_t);
template void add_to_double<float>(const float*, double*, int64_t);
template void scale_row<float>(const float*, int64_t, float, float*);
template void add_to<float>(const float*, float*, int64_t);
template void add_to<double>(const double*, double*, int64_t);
template void axpy<float>(float, const float*, float*, int64_t);
template void axpy<double>(double, const double*, double*, int64_t);
template double exp_sum<float>(const float*, float, float*, int64_t);
template double sum<double>(const double*, int64_t);
template double sum_of_squares<double>(const double*, int64_t);
template double dot<double>(const double*, const double*, int64_t);
template double max<double>(const double*, int64_t);
template double min<double>(const double*, int64_t);
template void add_to_double<double>(const double*, double*, int64_t);
template void scale_row<double>(const double*, int64_t, double, double*);
template double exp_sum<double>(const double*, double, double*, int64_t);

}  // namespace nn_cpu::NN_ISA
