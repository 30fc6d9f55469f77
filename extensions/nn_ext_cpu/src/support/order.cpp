#include "support/order.hpp"

#include <algorithm>

namespace nn_cpu {
namespace {

constexpr int64_t kFew = 96;     // shorter rows are sorted by comparison
constexpr int64_t kMany = 8192;  // longer rows take digits of 11 bits, whose counters cost more

/// Radix sort by digits of kBits, from the last one of the upper half on.
template <int kBits>
Ranked* radix_sort(Ranked* items, Ranked* spare, int64_t n) {
  constexpr int kDigits = (32 + kBits - 1) / kBits, kSize = 1 << kBits;
  uint32_t counts[kDigits][kSize] = {};
  const auto digit = [](Ranked item, int d) { return (item >> (32 + d * kBits)) & (kSize - 1); };
  for (int64_t i = 0; i < n; ++i) {
    for (int d = 0; d < kDigits; ++d) ++counts[d][digit(items[i], d)];
  }
  for (int d = 0; d < kDigits; ++d) {
    uint32_t* starts = counts[d];
    if (starts[digit(items[0], d)] == n) continue;  // one digit for all
    uint32_t next = 0;
    for (int value = 0; value < kSize; ++value) {
      const uint32_t count = starts[value];
      starts[value] = next;
      next += count;
    }
    for (int64_t i = 0; i < n; ++i) spare[starts[digit(items[i], d)]++] = items[i];
    std::swap(items, spare);
  }
  return items;
}

}  // namespace

Ranked* sort_ranked(Ranked* items, Ranked* spare, int64_t n) {
  if (n <= kFew) {
    std::sort(items, items + n);  // places make all items different, so this order is the stable one
    return items;
  }
  return n <= kMany ? radix_sort<8>(items, spare, n) : radix_sort<11>(items, spare, n);
}

void select_ranked(Ranked* items, int64_t n, int64_t k) {
  if (k < n) std::nth_element(items, items + k, items + n);
  std::sort(items, items + k);
}

}  // namespace nn_cpu
