// Powers of float32 numbers, computed in double without branches so that loops become vector code.
#pragma once

#include "vector/wide_math.hpp"

namespace nn_cpu::NN_ISA {

/// log2(a) of a >= 0, relative error 1e-11; log2(0) = -inf, inf and NaN stay.
inline double log2_of(float a) {
  const bool tiny = a < 1.17549435e-38f;
  const float scaled = tiny ? a * 8388608.0f : a;
  const int32_t bits = as_bits(scaled);
  const int32_t n = wrapping_difference(bits, 0x3f3504f3) >> 23;  // mantissa in [sqrt(1/2), sqrt(2))
  const double m = as_float(wrapping_difference(bits, in_exponent(n)));
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 3.407370817e-1;
  p = p * z + 4.116723595e-1;
  p = p * z + 5.770835906e-1;
  p = p * z + 9.617966733e-1;
  p = p * z + 2.8853900818;
  const double y = p * s + static_cast<double>(n - (tiny ? 23 : 0));
  const double special = a == 0.0f ? -static_cast<double>(kInfinity) : static_cast<double>(a);
  return (a > 0.0f) & (a < kInfinity) ? y : special;
}

/// 2^t rounded to float32, relative error before rounding 2e-9; NaN stays.
inline float exp2_of(double t) {
  const double low = t < -160.0 ? -160.0 : t;  // NaN passes both
  const double clamped = low > 160.0 ? 160.0 : low;
  const double shifted = clamped + kRoundDouble;
  const double r = clamped - (shifted - kRoundDouble);
  double p = 1.534581157e-4;
  p = p * r + 1.339993122e-3;
  p = p * r + 9.618488959e-3;
  p = p * r + 5.550328777e-2;
  p = p * r + 2.402264689e-1;
  p = p * r + 6.931472057e-1;
  p = p * r + 1.000000001;
  return static_cast<float>(p * as_double((as_bits(shifted) + 1023) << 52));
}

/// x^y, 1 ulp, with the special values of the C library; but -inf to a power that is not whole is NaN, as its square
/// root.
inline float power(float x, float y) {
  const float magnitude = absolute(x);
  const float result = exp2_of(static_cast<double>(y) * log2_of(magnitude));
  const float half = 0.5f * y;
  const bool whole = __builtin_floorf(y) == y, odd = whole & (__builtin_floorf(half) != half);
  const bool negative = as_bits(x) < 0;
  const float with_sign = as_float(as_bits(result) ^ (negative & odd ? static_cast<int32_t>(0x80000000) : 0));
  const bool undefined = (x < 0.0f) & !whole;
  const float defined = undefined ? kInfinity - kInfinity : with_sign;
  const bool one = (y == 0.0f) | (x == 1.0f) | ((x == -1.0f) & (absolute(y) == kInfinity));
  return one ? 1.0f : defined;
}

}  // namespace nn_cpu::NN_ISA
