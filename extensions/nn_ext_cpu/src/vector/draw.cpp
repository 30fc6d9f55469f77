// Random words (vector/random.cpp) turned into numbers, in double precision and rounded once, as nn_core defines them.
// This file is compiled without contraction of products and sums, so that every instruction set gives the same bits.
#include "support/vector.hpp"
#include "vector/math.hpp"

namespace nn_cpu::NN_ISA {
namespace {

constexpr double kUnit = 5.9604644775390625e-08;  // 2^-24

/// The upper 24 bits, a number that conversions from int32 keep exactly.
inline int32_t fraction(uint32_t word) { return static_cast<int32_t>(word >> 8); }

/// ln(n 2^-24) for n in [1, 2^24], 2 ulp: exponent times ln 2 plus the series 2 (f + f^3 / 3 + ...) of f = (m - 1) / (m
/// + 1).
inline double log_of_fraction(int32_t n) {
  const int32_t bits = as_bits(static_cast<float>(n));
  const int32_t exponent = (bits - 0x3f3504f3) >> 23;  // mantissa m in [sqrt(1/2), sqrt(2))
  const auto m = static_cast<double>(as_float(bits - (exponent << 23)));
  const double f = (m - 1.0) / (m + 1.0), z = f * f;
  double p = 1.0 / 21;
  p = p * z + 1.0 / 19;
  p = p * z + 1.0 / 17;
  p = p * z + 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  const double k = static_cast<double>(exponent - 24);
  return k * 0.6931471804855391 + (2.0 * f + (2.0 * f * z * p + k * 7.440617110012397e-11));
}

/// Cosine and sine of 2 pi n 2^-24 for n in [0, 2^24): the angle is rounded as nn_core does, then reduced to [-pi/4,
/// pi/4].
inline void cosine_and_sine(int32_t n, double& cosine, double& sine_) {
  const double angle = static_cast<double>(n) * kUnit * 6.283185307179586;
  const int32_t quadrant = (n + (1 << 21)) >> 22;
  const auto q = static_cast<double>(quadrant);
  const double r = ((angle - q * 1.5707963267341256) - q * 6.077100506303966e-11) - q * 2.0222662487959506e-21;
  const double z = r * r;
  double s = 1.0 / 355687428096000.0;
  s = s * z - 1.0 / 1307674368000.0;
  s = s * z + 1.0 / 6227020800.0;
  s = s * z - 1.0 / 39916800.0;
  s = s * z + 1.0 / 362880.0;
  s = s * z - 1.0 / 5040.0;
  s = s * z + 1.0 / 120.0;
  s = s * z - 1.0 / 6.0;
  s = s * z * r + r;
  double c = 1.0 / 20922789888000.0;
  c = c * z - 1.0 / 87178291200.0;
  c = c * z + 1.0 / 479001600.0;
  c = c * z - 1.0 / 3628800.0;
  c = c * z + 1.0 / 40320.0;
  c = c * z - 1.0 / 720.0;
  c = c * z + 1.0 / 24.0;
  c = c * z * z + (1.0 - 0.5 * z);
  const bool odd = quadrant & 1;
  const double first = odd ? s : c, second = odd ? c : s;
  cosine = ((quadrant + 1) & 2) ? -first : first;
  sine_ = (quadrant & 2) ? -second : second;
}

}  // namespace

/// y = low + range u with u in [0, 1).
void draw_uniform(const uint32_t* words, double low, double range, int64_t n, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<float>(low + range * (static_cast<double>(fraction(words[i])) * kUnit));
}

/// y = mu + sigma z with standard normal z, by Box-Muller on pairs of words; `pairs` of them.
void draw_normal(const uint32_t* words, double mu, double sigma, int64_t pairs, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < pairs; ++i) {
    const double radius = __builtin_sqrt(-2.0 * log_of_fraction(fraction(words[2 * i]) + 1));
    double cosine, sine_;
    cosine_and_sine(fraction(words[2 * i + 1]), cosine, sine_);
    y[2 * i] = static_cast<float>(mu + sigma * (radius * cosine));
    y[2 * i + 1] = static_cast<float>(mu + sigma * (radius * sine_));
  }
}

/// y = low + the upper half of word times `range`, a whole number in [low, low + range).
void draw_below(const uint32_t* words, int64_t low, uint64_t range, int64_t n, int64_t* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = low + static_cast<int64_t>((words[i] * range) >> 32);
}

}  // namespace nn_cpu::NN_ISA
