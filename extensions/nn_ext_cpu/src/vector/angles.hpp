// Tangent, and the inverse trigonometric and hyperbolic functions: branch-free float32 like those of vector/math.hpp.
#pragma once

#include "vector/math.hpp"

namespace nn_cpu::NN_ISA {

/// Largest |x| that the tangent reduces here: beyond, the reduction of `sine` loses digits close to poles and zeros.
constexpr float kMaxTangentAngle = 300.0f;

/// tan(x), 3 ulp for |x| <= kMaxTangentAngle.
inline float tangent(float x) {
  const Angle angle = reduced(x);
  const float r = angle.rest;
  const float z = r * r;
  float p = 4.469375182e-3f;
  p = p * z - 1.014579865e-4f;
  p = p * z + 1.098869556e-2f;
  p = p * z + 2.122212977e-2f;
  p = p * z + 5.407181289e-2f;
  p = p * z + 1.333255532e-1f;
  p = p * z + 3.333335301e-1f;
  const float t = p * z * r + r;
  return (angle.quarters & 1) ? -1.0f / t : t;
}

/// arctan(x), 2 ulp; |x| is brought below tan(pi / 8) by one quotient.
inline float arctangent(float x) {
  const float a = absolute(x);
  const bool steep = a > 2.41421356f, middle = a > 0.414213562f;
  const float above = steep ? -1.0f : (middle ? a - 1.0f : a);
  const float below = steep ? a : (middle ? a + 1.0f : 1.0f);
  const float turn = steep ? 1.57079637f : (middle ? 0.785398185f : 0.0f);
  const float rest = steep ? -4.37113883e-8f : (middle ? -2.18556941e-8f : 0.0f);  // what `turn` lost by rounding
  const float t = above / below;
  const float z = t * t;
  float p = -6.060531420e-2f;
  p = p * z + 1.058736485e-1f;
  p = p * z - 1.424274189e-1f;
  p = p * z + 1.999843449e-1f;
  p = p * z - 3.333331468e-1f;
  return copy_sign(turn + ((p * z * t + rest) + t), x);
}

/// The part of arcsin(s) beyond s, for s^2 = z <= 1/4.
inline float arcsine_tail(float s, float z) {
  float p = 3.763011334e-2f;
  p = p * z + 1.435847661e-2f;
  p = p * z + 3.182869094e-2f;
  p = p * z + 4.451446855e-2f;
  p = p * z + 7.500517024e-2f;
  p = p * z + 1.666665978e-1f;
  return p * z * s;
}

/// arcsin(x), 2.5 ulp; NaN beyond 1.
inline float arcsine(float x) {
  const float a = absolute(x);
  const bool near_one = a > 0.5f;
  const float z = near_one ? 0.5f - 0.5f * a : a * a;
  const float s = near_one ? __builtin_sqrtf(z) : a;
  const float y = s + arcsine_tail(s, z);
  return copy_sign(near_one ? 1.57079637f - 2.0f * y : y, x);
}

/// arccos(x), 1.5 ulp; NaN beyond 1.
inline float arccosine(float x) {
  const float a = absolute(x);
  const bool near_one = a > 0.5f;
  const float z = near_one ? 0.5f - 0.5f * a : a * a;
  const float s = near_one ? __builtin_sqrtf(z) : a;
  const float tail = arcsine_tail(s, z);
  const float near = 2.0f * (s + tail);
  const float far = 1.57079637f - (copy_sign(s, x) + (copy_sign(tail, x) + 4.37113883e-8f));
  return near_one ? (x < 0.0f ? 3.14159274f - near : near) : far;
}

/// log(a + sqrt(a^2 + sign)) beyond the squares that float32 holds: log(2 a).
inline float log_of_double(float a) { return log(a) + 0.693147182f; }

constexpr float kLargeArgument = 1e9f;

/// arsinh(x), 3.5 ulp.
inline float area_sine(float x) {
  const float a = absolute(x);
  const float square = a * a;
  const float y = log1p(a + square / (1.0f + __builtin_sqrtf(1.0f + square)));
  return copy_sign(a < kLargeArgument ? y : log_of_double(a), x);
}

/// arcosh(x), 3.5 ulp; NaN below 1.
inline float area_cosine(float x) {
  const float t = x - 1.0f;
  const float y = log1p(t + __builtin_sqrtf(t * (x + 1.0f)));
  const float all = x < kLargeArgument ? y : log_of_double(x);
  return x < 1.0f ? kInfinity - kInfinity : all;
}

/// artanh(x), 3.5 ulp; NaN beyond 1.
inline float area_tangent(float x) {
  const float a = absolute(x);
  return copy_sign(0.5f * log1p(2.0f * a / (1.0f - a)), x);
}

}  // namespace nn_cpu::NN_ISA
