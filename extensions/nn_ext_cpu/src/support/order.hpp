// The order of floats: as whole numbers that sort alike, followed by the place so that equal ones keep their places.
#pragma once

#include <cstdint>
#include <cstring>

namespace nn_cpu {

/// The upper half says how early a number comes, the lower half is its place.
using Ranked = uint64_t;

/// -0 counts as 0, and NaN as larger than every number.
inline Ranked ranked(float x, bool descending, uint32_t place) {
  const float plain = x == 0.0f ? 0.0f : x;
  uint32_t bits;
  std::memcpy(&bits, &plain, 4);
  const uint32_t ascending = x != x ? 0xffffffffu : ((bits >> 31) != 0 ? ~bits : bits | 0x80000000u);
  return static_cast<Ranked>(descending ? ~ascending : ascending) << 32 | place;
}

inline uint32_t place_of(Ranked item) { return static_cast<uint32_t>(item); }

/// Sorts n items by their upper halves, equal ones staying in place; `spare` has room for n more. Returns where the
/// result is. Radix sort, O(n) for long rows.
Ranked* sort_ranked(Ranked* items, Ranked* spare, int64_t n);

/// Moves the k first of n items, which are sorted by nothing, to the front and sorts them. O(n + k log k) expected.
void select_ranked(Ranked* items, int64_t n, int64_t k);

}  // namespace nn_cpu
