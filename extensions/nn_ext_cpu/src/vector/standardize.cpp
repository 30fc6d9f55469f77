// Loops over one row that is standardized by its own mean and deviation: what layer, group and instance normalization
// are made of. `gamma` and `beta` have an element for each of the row; a null pointer stands for ones and zeros.
#include "support/vector.hpp"
#include "vector/math.hpp"

namespace nn_cpu::NN_ISA {

/// y = (x - mean) scale + shift.
void standardize(const float* x, int64_t n, float mean, float scale, float shift, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale + shift;
}

/// y = (x - mean) rate gamma + beta.
void standardize_each(const float* x, int64_t n, float mean, float rate, const float* gamma, const float* beta,
                      float* y) {
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

/// s1 += sum of g, s2 += sum of g (x - mean), with g = dy gamma. Float32 in blocks of 512, blocks add up in double.
void standardize_products(const float* dy, const float* gamma, const float* x, int64_t n, float mean, double* s1,
                          double* s2) {
  for (int64_t start = 0; start < n; start += 512) {
    const int64_t end = start + 512 < n ? start + 512 : n;
    float a1 = 0.0f, a2 = 0.0f;
#pragma omp simd reduction(+ : a1, a2)
    for (int64_t i = start; i < end; ++i) {
      const float g = dy[i] * gamma[i];
      a1 += g;
      a2 += g * (x[i] - mean);
    }
    *s1 += a1;
    *s2 += a2;
  }
}

/// dx = p (dy scale + q (x - mean) + r), where `scale` is a number or, if given, gamma.
void standardize_gradient(const float* dy, const float* gamma, float scale, const float* x, int64_t n, float mean,
                          float p, float q, float r, float* dx) {
  if (gamma == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = p * (dy[i] * scale + (q * (x[i] - mean) + r));
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = p * (dy[i] * gamma[i] + (q * (x[i] - mean) + r));
  }
}

/// y += dy (x - mean) rate.
void add_standardized(const float* dy, const float* x, int64_t n, float mean, float rate, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += dy[i] * ((x[i] - mean) * rate);
}

}  // namespace nn_cpu::NN_ISA
