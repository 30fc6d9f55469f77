// Branch-free double functions that compilers turn into vector code, and those of both types, beside vector/math.hpp.
// NaN and infinity give what IEEE 754 arithmetic says. Polynomials are the series of the functions, up to terms below
// half a unit in the last place; those of erf were fitted for this file (Chebyshev). What has no vector code here goes
// through the C library.
#pragma once

#include <cstdint>

#include "vector/math.hpp"

namespace nn_cpu::NN_ISA {

inline double as_double(uint64_t bits) { return same_bits<double>(bits); }
inline uint64_t as_bits(double value) { return same_bits<uint64_t>(value); }

constexpr double kRoundDouble = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer, kept in the low bits
constexpr double kLog2High = 6.93147180369123816490e-01, kLog2Low = 1.90821492927058770002e-10;  // their sum is log 2

inline double absolute(double x) { return as_double(as_bits(x) & 0x7fffffffffffffffu); }
inline double copy_sign(double magnitude, double sign) {
  return as_double(as_bits(magnitude) | (as_bits(sign) & 0x8000000000000000u));
}
inline double larger(double a, double b) { return ((a > b) | (a != a)) ? a : b; }
inline double smaller(double a, double b) { return ((a < b) | (a != a)) ? a : b; }
inline double rectified(double x) { return x < 0.0 ? 0.0 : x; }

inline float root(float x) { return __builtin_sqrtf(x); }
inline double root(double x) { return __builtin_sqrt(x); }
inline float truncated(float x) { return __builtin_truncf(x); }
inline double truncated(double x) { return __builtin_trunc(x); }
inline float ceiling(float x) { return __builtin_ceilf(x); }
inline double ceiling(double x) { return __builtin_ceil(x); }
inline float floored(float x) { return __builtin_floorf(x); }
inline double floored(double x) { return __builtin_floor(x); }

/// The sum of c[i] x^i, from the last one on; unrolled, so that it becomes a chain of multiply-adds.
template <int N>
inline double polynomial(const double (&c)[N], double x) {
  double sum = c[N - 1];
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

/// e^x, subnormal results included.
inline double exp(double x) {
  constexpr double kInverseFactorials[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                                           1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                                           1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  const double low = x < -746.0 ? -746.0 : x;  // NaN passes both
  const double clamped = low > 710.0 ? 710.0 : low;
  const double whole = (clamped * 1.4426950408889634 + kRoundDouble) - kRoundDouble;
  const double r = (clamped - whole * kLog2High) - whole * kLog2Low;
  const double y = polynomial(kInverseFactorials, r) * (r * r) + r + 1.0;
  const double half = whole * 0.5 + kRoundDouble;  // 2^whole in two factors, each a normal number
  const double rest = (whole - (half - kRoundDouble)) + kRoundDouble;
  return y * as_double((as_bits(half) + 1023) << 52) * as_double((as_bits(rest) + 1023) << 52);
}

/// e^x - 1.
inline double expm1(double x) {
  constexpr double kInverseFactorials[] = {
      1.0 / 2,         1.0 / 6,          1.0 / 24,          1.0 / 120,          1.0 / 720,
      1.0 / 5040,      1.0 / 40320,      1.0 / 362880,      1.0 / 3628800,      1.0 / 39916800,
      1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200, 1.0 / 1307674368000};
  const double near = polynomial(kInverseFactorials, x) * (x * x) + x;
  const double far = exp(x) - 1.0;
  return absolute(x) < 0.5 ? near : far;
}

/// Natural logarithm; log(0) = -inf, NaN below 0.
inline double log(double x) {
  constexpr double kSeries[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  const bool tiny = x < 2.2250738585072014e-308;
  const uint64_t bits = as_bits(tiny ? x * 18014398509481984.0 : x);
  const double m = as_double((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);  // in [1, 2)
  const bool is_high = m > 1.4142135623730951;
  const double exponent = as_double((bits >> 52) | 0x4330000000000000u) - (4503599627370496.0 + 1023.0);
  const double e = exponent + (is_high ? 1.0 : 0.0) - (tiny ? 54.0 : 0.0);
  const double f = (is_high ? 0.5 * m : m) - 1.0;
  const double s = f / (2.0 + f), z = s * s, half_square = 0.5 * f * f;  // log(1 + f) = 2 artanh(s)
  const double tail = s * (half_square + z * polynomial(kSeries, z)) + e * kLog2Low;
  double y = e * kLog2High - ((half_square - tail) - f);
  y = x < static_cast<double>(kInfinity) ? y : x;  // inf and NaN
  y = x < 0.0 ? static_cast<double>(kInfinity - kInfinity) : y;
  return x == 0.0 ? -static_cast<double>(kInfinity) : y;
}

/// log(1 + x) without cancellation (Kahan's correction).
inline double log1p(double x) {
  const double u = 1.0 + x;
  const double difference = u - 1.0;
  const double corrected = log(u) * (x / difference);
  const double y = difference == 0.0 ? x : corrected;
  return x == static_cast<double>(kInfinity) ? x : y;
}

inline double tanh(double x) {
  const double a = absolute(x);
  const double e = expm1(2.0 * (a > 22.0 ? 22.0 : a));
  return copy_sign(e / (e + 2.0), x);  // of -0 too
}

inline double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

inline double softplus(double x) { return (x > 0.0 ? x : (x != x ? x : 0.0)) + log1p(exp(-absolute(x))); }

/// Error function, 2 ulp: x P(x^2) near 0, 1 - e^(-x^2) Q((x - 2) / (x + 2)) beyond 1, and 1 from 6 on.
inline double erf(double x) {
  constexpr double kNear[] = {1.1283791670955126,      -0.3761263890318375,     0.11283791670954879,
                              -0.026866170645076792,   0.0052239776248180145,   -0.000854832698083379,
                              0.0001205533111164271,   -1.4925595266831182e-05, 1.6461000484121368e-06,
                              -1.6350312701054695e-07, 1.4659775274047436e-08,  -1.1372848856791674e-09,
                              5.957176147748911e-11};
  constexpr double kFar[] = {0.25539567631050575,     -0.4271858474139585,    0.24165819424246585,
                             -0.07897858101570611,    0.0037328924043978336,  0.006997461736971578,
                             -0.00084714325299195,    -0.0009819769411038642, 4.355558686575482e-05,
                             0.00017435947400205157,  2.7527175557227246e-05, -2.7562209161129353e-05,
                             -1.3998283772784976e-05, 1.3058577122278017e-06, 4.011749647325067e-06,
                             1.272567661840228e-06,   -1.1352571477273627e-06};
  const double whole = absolute(x), a = whole > 6.0 ? 6.0 : whole;
  const double near = polynomial(kNear, x * x) * x;
  const double far = copy_sign(1.0 - exp(-a * a) * polynomial(kFar, (a - 2.0) / (a + 2.0)), x);
  return whole < 1.0 ? near : far;
}

/// Largest |x| that the functions of angles reduce here; callers use the C library beyond.
constexpr double kMaxAngleDouble = 100000.0;

/// An angle as a number of quarter turns, in the low bits, and a rest of at most about pi / 4 in size.
struct WideAngle {
  uint64_t quarters;
  double rest;
};

/// Cody and Waite's reduction in three parts; the products with the first two of 33 bits are exact.
inline WideAngle reduced(double x) {
  const double shifted = x * 0.63661977236758134 + kRoundDouble;
  const double whole = shifted - kRoundDouble;
  return {as_bits(shifted), ((x - whole * 1.57079632673412561417) - whole * 6.07710050630396597660e-11) -
                                whole * 2.02226624879595063154e-21};
}

struct SineAndCosine {
  double sine, cosine;
};

/// Of an angle of at most about pi / 4 in size.
inline SineAndCosine sine_and_cosine(double r) {
  constexpr double kSine[] = {-1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
                              -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
  constexpr double kCosine[] = {1.0 / 24,        -1.0 / 720,         1.0 / 40320,          -1.0 / 3628800,
                                1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000};
  const double z = r * r;
  return {polynomial(kSine, z) * (z * r) + r, polynomial(kCosine, z) * (z * z) + (1.0 - 0.5 * z)};
}

/// sin(x + quadrant * pi/2), 2 ulp for |x| <= kMaxAngleDouble.
inline double sine(double x, uint64_t quadrant) {
  const WideAngle angle = reduced(x);
  const uint64_t n = angle.quarters + quadrant;
  const SineAndCosine of = sine_and_cosine(angle.rest);
  const double y = (n & 1) != 0 ? of.cosine : of.sine;
  return as_double(as_bits(y) ^ ((n & 2) << 62));
}

/// tan(x), 3 ulp for |x| <= kMaxAngleDouble.
inline double tangent(double x) {
  const WideAngle angle = reduced(x);
  const SineAndCosine of = sine_and_cosine(angle.rest);
  const bool turned = (angle.quarters & 1) != 0;
  return (turned ? -of.cosine : of.sine) / (turned ? of.sine : of.cosine);
}

/// arctan(x), 2 ulp; |x| is brought below tan(pi / 16) by one quotient.
inline double arctangent(double x) {
  constexpr double kSeries[] = {-1.0 / 3,  1.0 / 5,  -1.0 / 7,  1.0 / 9,  -1.0 / 11, 1.0 / 13,
                                -1.0 / 15, 1.0 / 17, -1.0 / 19, 1.0 / 21, -1.0 / 23};
  const double a = absolute(x);
  const bool low = a > 0.1989123673796580, middle = a > 0.6681786379192989, high = a > 1.4966057626654890,
             steep = a > 5.0273394921258481;
  const double c = high ? 2.414213562373095 : (middle ? 1.0 : (low ? 0.4142135623730951 : 0.0));
  const double turn = steep    ? 1.5707963267948966
                      : high   ? 1.1780972450961724
                      : middle ? 0.7853981633974483
                      : low    ? 0.3926990816987242
                               : 0.0;  // arctan(c), or pi / 2
  const double lost = steep    ? 6.123233995736766e-17
                      : high   ? 2.7563998718653792e-17
                      : middle ? 3.061616997868383e-17
                      : low    ? -5.069287735517835e-18
                               : 0.0;  // what `turn` lost by rounding
  const double t = (steep ? -1.0 : a - c) / (steep ? a : 1.0 + a * c);
  const double z = t * t;
  return copy_sign(turn + ((polynomial(kSeries, z) * z * t + lost) + t), x);
}

inline double arcsine(double x) { return __builtin_asin(x); }
inline double arccosine(double x) { return __builtin_acos(x); }
inline double area_sine(double x) { return __builtin_asinh(x); }
inline double area_cosine(double x) { return __builtin_acosh(x); }
inline double area_tangent(double x) { return __builtin_atanh(x); }

/// As of the C library, but -inf to a power that is not whole is NaN, as its square root.
inline double power(double x, double y) {
  const bool undefined = x == -__builtin_inf() && __builtin_floor(y) != y;
  return undefined ? __builtin_nan("") : __builtin_pow(x, y);
}

}  // namespace nn_cpu::NN_ISA
