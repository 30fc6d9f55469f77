// Transposition of a square tile in registers: each of log2(lanes) steps swaps the off-diagonal halves of blocks.
#pragma once

#include <cstdint>
#include <utility>

#include "vector/lanes.hpp"

namespace nn_cpu::NN_ISA {

/// The lanes with these numbers: those of `first` are 0 to kWidth - 1, those of `second` follow.
template <int... Number>
inline Lanes chosen(Lanes first, Lanes second) {
#ifdef __clang__
  return __builtin_shufflevector(first, second, Number...);
#else  // before version 12 GCC has only this one
  using Index = int32_t __attribute__((vector_size(kWidth * 4)));
  return __builtin_shuffle(first, second, Index{Number...});
#endif
}

/// One step of the transposition of a tile: rows i and i + Half exchange the lanes whose number differs from theirs in
/// the bit Half.
template <int Half, int... J>
inline void exchange(Lanes* rows, std::integer_sequence<int, J...>) {
  for (int i = 0; i < kWidth; ++i) {
    if ((i & Half) != 0) continue;
    const Lanes first = rows[i], second = rows[i + Half];
    rows[i] = chosen<((J & Half) == 0 ? J : kWidth + J - Half)...>(first, second);
    rows[i + Half] = chosen<((J & Half) == 0 ? J + Half : kWidth + J)...>(first, second);
  }
}

inline void transpose_lanes(Lanes* rows) {
  constexpr std::make_integer_sequence<int, kWidth> lanes{};
  if constexpr (kWidth > 8) exchange<8>(rows, lanes);
  if constexpr (kWidth > 4) exchange<4>(rows, lanes);
  exchange<2>(rows, lanes);
  exchange<1>(rows, lanes);
}

}  // namespace nn_cpu::NN_ISA
