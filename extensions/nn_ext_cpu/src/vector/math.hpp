// Branch-free float32 functions that compilers turn into vector code. NaN and infinity give what IEEE 754 arithmetic
// says. Polynomials were fitted for this file (weighted least squares, Lawson's algorithm); the largest error measured
// over all exponents is given in units in the last place (ulp).
#pragma once

#include <cstdint>

namespace nn_cpu::NN_ISA {

template <class To, class From>
inline To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

inline float as_float(int32_t bits) { return same_bits<float>(bits); }
inline int32_t as_bits(float value) { return same_bits<int32_t>(value); }

/// a - b modulo 2^32: the bits of NaN and infinity, which a later selection replaces, may exceed the range.
inline int32_t wrapping_difference(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}
/// n in the place of a float32 exponent; n may be negative.
inline int32_t in_exponent(int32_t n) { return static_cast<int32_t>(static_cast<uint32_t>(n) << 23); }

constexpr float kInfinity = __builtin_inff();
constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, kept in the low bits

inline float absolute(float x) { return as_float(as_bits(x) & 0x7fffffff); }
inline float copy_sign(float magnitude, float sign) {
  return as_float(as_bits(magnitude) | (as_bits(sign) & static_cast<int32_t>(0x80000000)));
}
/// NaN if either is NaN.
inline float larger(float a, float b) { return ((a > b) | (a != a)) ? a : b; }
inline float smaller(float a, float b) { return ((a < b) | (a != a)) ? a : b; }
/// x where it is not below 0; NaN and -0 stay. One instruction: its second operand is the result where either is NaN.
inline float rectified(float x) { return x < 0.0f ? 0.0f : x; }

/// e^x, 1.1 ulp; subnormal results included.
inline float exp(float x) {
  const float low = x < -104.0f ? -104.0f : x;  // NaN passes both
  const float clamped = low > 89.0f ? 89.0f : low;
  const float shifted = clamped * 1.44269504f + kRound;
  const int32_t n = wrapping_difference(as_bits(shifted), as_bits(kRound));
  const float whole = shifted - kRound;
  const float r = (clamped - whole * 0.693359375f) - whole * -2.12194440e-4f;
  float p = 1.978926157e-4f;
  p = p * r + 1.394575229e-3f;
  p = p * r + 8.333504200e-3f;
  p = p * r + 4.166628048e-2f;
  p = p * r + 1.666666567e-1f;
  p = p * r + 0.5f;
  const float y = p * (r * r) + r + 1.0f;
  const int32_t half = n >> 1;  // 2^n in two factors, each a normal number
  return y * as_float(in_exponent(half + 127)) * as_float(in_exponent(n - half + 127));
}

/// e^x - 1, 1.5 ulp.
inline float expm1(float x) {
  float p = 2.496221350e-5f;
  p = p * x + 1.997355721e-4f;
  p = p * x + 1.388859004e-3f;
  p = p * x + 8.333142847e-3f;
  p = p * x + 4.166666791e-2f;
  p = p * x + 1.666666716e-1f;
  p = p * x + 0.5f;
  const float near = p * (x * x) + x;
  const float far = exp(x) - 1.0f;
  return absolute(x) < 0.5f ? near : far;
}

/// Natural logarithm, 1 ulp; log(0) = -inf, NaN below 0.
inline float log(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float scaled = tiny ? x * 8388608.0f : x;
  const int32_t bits = as_bits(scaled);
  const int32_t n = wrapping_difference(bits, 0x3f3504f3) >> 23;  // mantissa in [sqrt(1/2), sqrt(2))
  const float f = as_float(wrapping_difference(bits, in_exponent(n))) - 1.0f;
  const float e = static_cast<float>(n - (tiny ? 23 : 0));
  float p = 6.918099523e-2f;
  p = p * f - 1.183294728e-1f;
  p = p * f + 1.189400032e-1f;
  p = p * f - 1.237876043e-1f;
  p = p * f + 1.421530396e-1f;
  p = p * f - 1.666944921e-1f;
  p = p * f + 2.000238597e-1f;
  p = p * f - 2.499998510e-1f;
  p = p * f + 3.333330750e-1f;
  const float f2 = f * f;
  float y = p * f * f2 + e * -2.12194440e-4f;
  y = (f - 0.5f * f2) + y + e * 0.693359375f;
  y = x < kInfinity ? y : x;  // inf and NaN
  y = x < 0.0f ? kInfinity - kInfinity : y;
  return x == 0.0f ? -kInfinity : y;
}

/// log(1 + x) without cancellation (Kahan's correction), 2 ulp.
inline float log1p(float x) {
  const float u = 1.0f + x;
  const float difference = u - 1.0f;
  const float corrected = log(u) * (x / difference);
  const float y = difference == 0.0f ? x : corrected;
  return x == kInfinity ? x : y;
}

/// tanh, 2 ulp.
inline float tanh(float x) {
  const float a = absolute(x);
  const float z = x * x;
  float p = -5.717045162e-3f;
  p = p * z + 2.065058798e-2f;
  p = p * z - 5.374349654e-2f;
  p = p * z + 1.333149076e-1f;
  p = p * z - 3.333328366e-1f;
  const float near = p * z * a + a;
  const float far = 1.0f - 2.0f / (exp(2.0f * a) + 1.0f);
  return copy_sign(a < 0.625f ? near : far, x);  // of -0 too
}

/// 1 / (1 + e^-x), 2 ulp.
inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

/// log(1 + e^x) for any x.
inline float softplus(float x) { return (x > 0.0f ? x : (x != x ? x : 0.0f)) + log1p(exp(-absolute(x))); }

/// Error function, 2 ulp.
inline float erf(float x) {
  const float z = x * x;
  float p = 7.889122935e-5f;
  p = p * z - 8.020842215e-4f;
  p = p * z + 5.189535674e-3f;
  p = p * z - 2.685444430e-2f;
  p = p * z + 1.128360033e-1f;
  p = p * z - 3.761262596e-1f;
  p = p * z + 1.128379107f;
  const float near = p * x;
  const float whole = absolute(x);
  const float a = whole > 4.0f ? 4.0f : whole;
  float q = -1.704581933e-7f;
  q = q * a + 2.395318916e-5f;
  q = q * a - 4.541728995e-4f;
  q = q * a + 4.245004617e-3f;
  q = q * a - 2.528575435e-2f;
  q = q * a + 1.085110381e-1f;
  q = q * a + 6.331528425e-1f;
  q = q * a + 1.129605412f;
  q = q * a - 1.926530240e-4f;
  const float far = copy_sign(1.0f - exp(-q), x);
  return whole < 1.0f ? near : far;
}

/// Largest |x| that sine and cosine reduce here; callers use the C library beyond.
constexpr float kMaxAngle = 6000.0f;

/// An angle as a number of quarter turns and a rest of at most pi / 4 in size.
struct Angle {
  int32_t quarters;
  float rest;
};

/// Cody and Waite's reduction in three parts.
inline Angle reduced(float x) {
  const float shifted = x * 0.636619772f + kRound;
  const float whole = shifted - kRound;
  return {wrapping_difference(as_bits(shifted), as_bits(kRound)),
          ((x - whole * 1.5703125f) - whole * 4.837512969971e-4f) - whole * 7.549790126404e-8f};
}

/// sin(x + quadrant * pi/2), 1.5 ulp for |x| <= kMaxAngle.
inline float sine(float x, int32_t quadrant) {
  const Angle angle = reduced(x);
  const uint32_t n = static_cast<uint32_t>(angle.quarters) + static_cast<uint32_t>(quadrant);
  const float r = angle.rest;
  const float z = r * r;
  float s = 2.717564485e-6f;
  s = s * z - 1.983925613e-4f;
  s = s * z + 8.333329111e-3f;
  s = s * z - 1.666666716e-1f;
  s = s * z * r + r;
  float c = -2.720330485e-7f;
  c = c * z + 2.479943578e-5f;
  c = c * z - 1.388888340e-3f;
  c = c * z + 4.166666791e-2f;
  c = c * z * z - 0.5f * z + 1.0f;
  const float y = (n & 1) ? c : s;
  return (n & 2) ? -y : y;
}

}  // namespace nn_cpu::NN_ISA
