// Loops over one row that is standardized by its own mean and deviation: what layer, group and instance normalization
// are made of. `gamma` and `beta` have an element for each of the row; a null pointer stands for ones and zeros.
#include "support/vector.hpp"
#include "vector/wide_math.hpp"

namespace nn_cpu::NN_ISA {

/// y = (x - mean) scale + shift.
template <class T>
void standardize(const T* x, int64_t n, T mean, T scale, T shift, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale + shift;
}

/// y = (x - mean) rate gamma + beta.
template <class T>
void standardize_each(const T* x, int64_t n, T mean, T rate, const T* gamma, const T* beta, T* y) {
  if (gamma == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rate + beta[i];
  } else if (beta == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rate * gamma[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rate * gamma[i] + beta[i];
  }
}

/// s1 += sum of g, s2 += sum of g (x - mean), with g = dy gamma. In blocks of 512, blocks add up in double.
template <class T>
void standardize_products(const T* dy, const T* gamma, const T* x, int64_t n, T mean, double* s1, double* s2) {
  for (int64_t start = 0; start < n; start += 512) {
    const int64_t end = start + 512 < n ? start + 512 : n;
    T a1 = T{0}, a2 = T{0};
#pragma omp simd reduction(+ : a1, a2)
    for (int64_t i = start; i < end; ++i) {
      const T g = dy[i] * gamma[i];
      a1 += g;
      a2 += g * (x[i] - mean);
    }
    *s1 += a1;
    *s2 += a2;
  }
}

/// dx = p (dy scale + q (x - mean) + r), where `scale` is a number or, if given, gamma.
template <class T>
void standardize_gradient(const T* dy, const T* gamma, T scale, const T* x, int64_t n, T mean, T p, T q, T r, T* dx) {
  if (gamma == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = p * (dy[i] * scale + (q * (x[i] - mean) + r));
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = p * (dy[i] * gamma[i] + (q * (x[i] - mean) + r));
  }
}

/// y += dy (x - mean) rate.
template <class T>
void add_standardized(const T* dy, const T* x, int64_t n, T mean, T rate, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += dy[i] * ((x[i] - mean) * rate);
}

template void standardize(const float*, int64_t, float, float, float, float*);
template void standardize_each(const float*, int64_t, float, float, const float*, const float*, float*);
template void standardize_products(const float*, const float*, const float*, int64_t, float, double*, double*);
template void standardize_gradient(const float*, const float*, float, const float*, int64_t, float, float, float, float,
                                   float*);
template void add_standardized(const float*, const float*, int64_t, float, float, float*);
template void standardize(const double*, int64_t, double, double, double, double*);
template void standardize_each(const double*, int64_t, double, double, const double*, const double*, double*);
template void standardize_products(const double*, const double*, const double*, int64_t, double, double*, double*);
template void standardize_gradient(const double*, const double*, double, const double*, int64_t, double, double, double,
                                   double, double*);
template void add_standardized(const double*, const double*, int64_t, double, double, double*);

}  // namespace nn_cpu::NN_ISA
