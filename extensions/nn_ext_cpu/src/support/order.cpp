#include "support/order.hpp"

#include <algorithm>
#include <utility>

namespace nn_cpu {
namespace {

constexpr int64_t kFew = 128;    // shorter rows are sorted by comparison; a multiple of kRun
constexpr int64_t kRun = 4;      // items that a network sorts
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

// Which of two items comes first is as good as random: a branch on it would be foretold wrongly every other time.

Ranked chosen(Ranked a, Ranked b, bool second) { return a ^ ((a ^ b) & (Ranked{0} - static_cast<Ranked>(second))); }

void put_in_order(Ranked& a, Ranked& b) {
  const bool swapped = b < a;
  const Ranked first = chosen(a, b, swapped), second = chosen(b, a, swapped);
  a = first, b = second;
}

void sort_run(Ranked* x) {
  put_in_order(x[0], x[1]);
  put_in_order(x[2], x[3]);
  put_in_order(x[0], x[2]);
  put_in_order(x[1], x[3]);
  put_in_order(x[1], x[2]);
}

/// Merges two runs of `half` items, from both ends: the smaller half and the larger one do not wait for each other.
void merge_halves(const Ranked* x, int64_t half, Ranked* y) {
  const Ranked *low = x, *high = x + half, *low_end = x + half - 1, *high_end = x + 2 * half - 1;
  Ranked *first = y, *last = y + 2 * half - 1;
  for (int64_t i = 0; i < half; ++i) {
    const bool is_high = *high < *low, is_low = *high_end < *low_end;
    *first++ = chosen(*low, *high, is_high);
    *last-- = chosen(*high_end, *low_end, is_low);
    high += is_high, low += !is_high;
    low_end -= is_low, high_end -= !is_low;
  }
}

/// Whole runs for n items, and a power of 2 of them if that is not many more: halves of one length merge faster.
int64_t padded(int64_t n) {
  int64_t whole = kRun;
  while (whole < n) whole *= 2;
  return n > whole / 4 * 3 && whole <= kFew ? whole : (n + kRun - 1) / kRun * kRun;
}

/// Sorts n <= kFew items by merging runs. Places make all items different, so there is one order.
void merge_sort(Ranked* items, int64_t n) {
  Ranked first[kFew], second[kFew], *from = first, *to = second;
  const int64_t size = padded(n);
  std::copy_n(items, n, from);
  std::fill(from + n, from + size, ~Ranked{0});
  for (int64_t i = 0; i < size; i += kRun) sort_run(from + i);
  for (int64_t half = kRun; half < size; half *= 2, std::swap(from, to)) {
    int64_t i = 0;
    for (; i + 2 * half <= size; i += 2 * half) merge_halves(from + i, half, to + i);
    const int64_t middle = std::min(size, i + half);
    std::merge(from + i, from + middle, from + middle, from + size, to + i);
  }
  std::copy_n(from, n, items);
}

}  // namespace

Ranked* sort_ranked(Ranked* items, Ranked* spare, int64_t n) {
  if (n <= kFew) {
    merge_sort(items, n);
    return items;
  }
  return n <= kMany ? radix_sort<8>(items, spare, n) : radix_sort<11>(items, spare, n);
}

void select_ranked(Ranked* items, int64_t n, int64_t k) {
  if (k < n) std::nth_element(items, items + k, items + n);
  std::sort(items, items + k);
}

}  // namespace nn_cpu
