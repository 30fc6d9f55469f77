// Transposition of a square tile in registers: each of log2(lanes) steps swaps the off-diagonal halves of blocks.
#pragma once

#include <cstdint>
#include <utility>

#include "vector/lanes.hpp"

namespace nn_cpu::NN_ISA {

/// The number of lanes of a vector.
template <class Vector>
constexpr int kLanesOf = sizeof(Vector) / sizeof(std::declval<Vector>()[0]);

/// The lanes with these numbers: those of `first` begin at 0, those of `second` follow.
template <int... Number, class Vector>
inline Vector chosen(Vector first, Vector second) {
#ifdef __clang__
  return __builtin_shufflevector(first, second, Number...);
#else  // before version 12 GCC has only this one
  using Index = decltype(first == second);  // whole numbers of the size of an element
  return __builtin_shuffle(first, second, Index{Number...});
#endif
}

/// One step of the transposition of a tile: rows i and i + Half exchange the lanes whose number differs from theirs in
/// the bit Half.
template <int Half, class Vector, int... J>
inline void exchange(Vector* rows, std::integer_sequence<int, J...>) {
  constexpr int kLanes = sizeof...(J);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if ((i & Half) != 0) continue;
    const Vector first = rows[i], second = rows[i + Half];
    rows[i] = chosen<((J & Half) == 0 ? J : kLanes + J - Half)...>(first, second);
    rows[i + Half] = chosen<((J & Half) == 0 ? J + Half : kLanes + J)...>(first, second);
  }
}

template <class Vector>
inline void transpose_lanes(Vector* rows) {
  constexpr int kLanes = kLanesOf<Vector>;
  constexpr std::make_integer_sequence<int, kLanes> lanes{};
  if constexpr (kLanes > 8) exchange<8>(rows, lanes);
  if constexpr (kLanes > 4) exchange<4>(rows, lanes);
  if constexpr (kLanes > 2) exchange<2>(rows, lanes);
  exchange<1>(rows, lanes);
}

}  // namespace nn_cpu::NN_ISA
