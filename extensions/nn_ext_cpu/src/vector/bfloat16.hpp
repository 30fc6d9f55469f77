// Numbers in memory of either floating type, as float32 in registers.
#pragma once

#include "support/vector.hpp"

namespace nn_cpu::NN_ISA {

inline float value(float x) { return x; }

inline float value(Bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float y;
  __builtin_memcpy(&y, &bits, sizeof y);
  return y;
}

inline void put(float& y, float x) { y = x; }

/// Rounds to nearest, halves to even; what is no number stays one that is none.
inline void put(Bf16& y, float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  y.bits = static_cast<uint16_t>(x != x ? (bits >> 16) | 0x40u : rounded);
}

inline double value(double x) { return x; }
inline void put(double& y, double x) { y = x; }

}  // namespace nn_cpu::NN_ISA
