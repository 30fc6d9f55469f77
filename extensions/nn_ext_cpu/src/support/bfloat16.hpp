// Single numbers between float32 and bfloat16; whole arrays are converted by the loops of src/vector.
#pragma once

#include <cmath>
#include <cstring>

#include "support/vector.hpp"

namespace nn_cpu {

inline float to_float(float x) { return x; }

inline float to_float(Bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float y;
  std::memcpy(&y, &bits, sizeof y);
  return y;
}

/// Rounds to nearest, halves to even.
inline Bf16 to_bfloat16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if (std::isnan(x)) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

}  // namespace nn_cpu
