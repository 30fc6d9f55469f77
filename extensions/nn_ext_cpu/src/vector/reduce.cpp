// Reductions of contiguous float32 rows. Sums run in float32 over blocks of 512 elements, in as many lanes as the
// vector unit has, and add up the blocks in double: the relative error stays near 1e-6 for any length.
#include "support/vector.hpp"
#include "vector/math.hpp"

namespace nn_cpu::NN_ISA {
namespace {

constexpr int64_t kBlock = 512;
constexpr int kSums = 16;  // kept apart in a block, however wide the vectors are: the error is that of short sums

template <class F>
double blocked_sum(int64_t n, F term) {
  double total = 0.0;
  for (int64_t start = 0; start < n; start += kBlock) {
    const int64_t end = start + kBlock < n ? start + kBlock : n;
    float partial[kSums] = {};
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

}  // namespace

double sum(const float* x, int64_t n) {
  return blocked_sum(n, [x](int64_t i) { return x[i]; });
}

double sum_of_squares(const float* x, int64_t n) {
  return blocked_sum(n, [x](int64_t i) { return x[i] * x[i]; });
}

double dot(const float* x, const float* y, int64_t n) {
  return blocked_sum(n, [x, y](int64_t i) { return x[i] * y[i]; });
}

float max(const float* x, int64_t n) {
  float best = -kInfinity;
  int nan = 0;
#pragma omp simd reduction(max : best) reduction(| : nan)
  for (int64_t i = 0; i < n; ++i) {
    best = x[i] > best ? x[i] : best;
    nan |= x[i] != x[i];
  }
  return nan ? kInfinity - kInfinity : best;
}

float min(const float* x, int64_t n) {
  float best = kInfinity;
  int nan = 0;
#pragma omp simd reduction(min : best) reduction(| : nan)
  for (int64_t i = 0; i < n; ++i) {
    best = x[i] < best ? x[i] : best;
    nan |= x[i] != x[i];
  }
  return nan ? kInfinity - kInfinity : best;
}

void add_to_double(const float* x, double* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

void add_to(const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

/// y += a x.
void axpy(float a, const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

double exp_sum(const float* x, float shift, float* y, int64_t n) {
  double total = 0.0;
  for (int64_t start = 0; start < n; start += kBlock) {
    const int64_t end = start + kBlock < n ? start + kBlock : n;
    float partial = 0.0f;
#pragma omp simd reduction(+ : partial)
    for (int64_t i = start; i < end; ++i) {
      const float e = exp(x[i] - shift);
      y[i] = e;
      partial += e;
    }
    total += partial;
  }
  return total;
}

}  // namespace nn_cpu::NN_ISA
