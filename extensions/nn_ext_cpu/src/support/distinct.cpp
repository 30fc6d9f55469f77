#include "support/distinct.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#include "support/check.hpp"
#include "support/order.hpp"

namespace nn_cpu {
namespace {

/// A distinct element: a whole number that sorts as the element does, and its place by first occurrence.
using Entry = std::pair<uint64_t, int64_t>;

constexpr int64_t kFew = 512;  // fewer entries are sorted by comparison

// Keys: whole numbers that are equal, and sort, as the elements do.
template <class Bits, class Float>
uint64_t float_key(Float x) {
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  if (x != x) return static_cast<Bits>(~Bits{0});
  const Float plain = x == Float{0} ? Float{0} : x;
  Bits bits;
  std::memcpy(&bits, &plain, sizeof bits);
  return static_cast<Bits>((bits & kSign) != 0 ? ~bits : bits | kSign);
}
uint64_t key_of(float x) { return float_key<uint32_t>(x); }
uint64_t key_of(double x) { return float_key<uint64_t>(x); }
uint64_t key_of(int64_t x) { return static_cast<uint64_t>(x) ^ (uint64_t{1} << 63); }
uint64_t key_of(int32_t x) { return key_of(static_cast<int64_t>(x)); }
uint64_t key_of(uint64_t x) { return x; }
uint64_t key_of(uint8_t x) { return x; }

/// Numbers keys in the order in which they first occur, by open addressing; at most half of its slots are taken.
class Table {
 public:
  Table() : slots_(1024) {}

  /// The number of `key`, which is a new one if it has not occurred.
  int64_t number_of(uint64_t key) {
    Slot& slot = find(key);
    if (slot.number < 0) {
      slot = {key, count_++};
      if (2 * static_cast<size_t>(count_) > slots_.size()) grow();
      return count_ - 1;
    }
    return slot.number;
  }

 private:
  struct Slot {
    uint64_t key = 0;
    int64_t number = -1;
  };

  Slot& find(uint64_t key) {
    const size_t mask = slots_.size() - 1;
    size_t place = scattered(key) & mask;
    while (slots_[place].number >= 0 && slots_[place].key != key) place = (place + 1) & mask;
    return slots_[place];
  }

  /// The finalizer of SplitMix64: every bit of a key changes half of the bits.
  static size_t scattered(uint64_t key) {
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
    return static_cast<size_t>(key ^ (key >> 31));
  }

  void grow() {
    std::vector<Slot> old(4 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number >= 0) find(slot.key) = slot;
    }
  }

  std::vector<Slot> slots_;
  int64_t count_ = 0;
};

/// Sorts entries, whose keys differ; many of them by digits, of which those that all share cost a count.
void sort_entries(std::vector<Entry>& entries) {
  constexpr int kBits = 11, kSize = 1 << kBits;
  if (static_cast<int64_t>(entries.size()) <= kFew) return std::sort(entries.begin(), entries.end());
  uint64_t differing = 0;
  for (const Entry& entry : entries) differing |= entry.first ^ entries[0].first;
  std::vector<Entry> spare(entries.size());
  std::vector<size_t> starts(kSize);
  for (int shift = 0; shift < 64; shift += kBits) {
    const auto digit = [shift](uint64_t key) { return (key >> shift) & (kSize - 1); };
    if (digit(differing) == 0) continue;
    std::fill(starts.begin(), starts.end(), 0);
    for (const Entry& entry : entries) ++starts[digit(entry.first)];
    size_t next = 0;
    for (size_t& start : starts) next += std::exchange(start, next);
    for (const Entry& entry : entries) spare[starts[digit(entry.first)]++] = entry;
    entries.swap(spare);
  }
}

/// Numbers keys like Table, by a place for each of a range.
class RangeTable {
 public:
  RangeTable(uint64_t lowest, uint64_t range) : lowest_(lowest), numbers_(range, -1) {}

  int64_t number_of(uint64_t key) {
    int64_t& number = numbers_[key - lowest_];
    if (number < 0) number = count_++;
    return number;
  }

  /// The numbers in the order of their keys.
  std::vector<int64_t> in_order() const {
    std::vector<int64_t> order;
    order.reserve(static_cast<size_t>(count_));
    std::copy_if(numbers_.begin(), numbers_.end(), std::back_inserter(order),
                 [](int64_t number) { return number >= 0; });
    return order;
  }

 private:
  uint64_t lowest_;
  std::vector<int64_t> numbers_;
  int64_t count_ = 0;
};

/// The distinct elements in the order in which they first occur.
template <class T, class Numbers>
Distinct by_occurrence(const T* x, int64_t n, Numbers& table) {
  Distinct found;
  found.inverse.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t number = table.number_of(key_of(x[i]));
    found.inverse[static_cast<size_t>(i)] = number;
    if (number == static_cast<int64_t>(found.first.size())) {
      found.first.push_back(i);
      found.counts.push_back(0);
    }
    ++found.counts[static_cast<size_t>(number)];
  }
  return found;
}

/// Puts element order[place] at each place.
void put_in_order(const std::vector<int64_t>& order, Distinct& found) {
  std::vector<int64_t> places(order.size()), first(order.size()), counts(order.size());
  for (size_t place = 0; place < order.size(); ++place) {
    const auto number = static_cast<size_t>(order[place]);
    places[number] = static_cast<int64_t>(place);
    first[place] = found.first[number], counts[place] = found.counts[number];
  }
  for (int64_t& number : found.inverse) number = places[static_cast<size_t>(number)];
  found.first = std::move(first), found.counts = std::move(counts);
}

/// The distinct elements by sorting all of them, whose keys are less than 2^32 above `lowest`.
template <class T>
Distinct by_sorting(const T* x, int64_t n, uint64_t lowest) {
  std::vector<Ranked> items(static_cast<size_t>(n)), spare(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    items[static_cast<size_t>(i)] = (key_of(x[i]) - lowest) << 32 | static_cast<Ranked>(i);
  }
  const Ranked* sorted = sort_ranked(items.data(), spare.data(), n);
  Distinct found;
  found.inverse.resize(static_cast<size_t>(n));
  found.first.reserve(static_cast<size_t>(n)), found.counts.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const auto place = static_cast<int64_t>(place_of(sorted[i]));
    if (i == 0 || sorted[i] >> 32 != sorted[i - 1] >> 32) {
      found.first.push_back(place);  // equal ones stay in place, so this is the first of them
      found.counts.push_back(0);
    }
    ++found.counts.back();
    found.inverse[static_cast<size_t>(place)] = static_cast<int64_t>(found.first.size()) - 1;
  }
  return found;
}

/// Whether most of the first elements differ: then there are about as many distinct ones to sort as elements.
template <class T>
bool mostly_differ(const T* x, int64_t n) {
  const int64_t some = std::min<int64_t>(n, 128);
  std::array<uint64_t, 128> keys{};
  for (int64_t i = 0; i < some; ++i) keys[static_cast<size_t>(i)] = key_of(x[i]);
  std::sort(keys.begin(), keys.begin() + some);
  return 4 * (std::unique(keys.begin(), keys.begin() + some) - keys.begin()) > 3 * some;
}

template <class T>
Distinct distinct(const T* x, int64_t n, bool sorted) {
  uint64_t lowest = 0, range = sizeof(T) <= 4 ? uint64_t{1} << 32 : ~uint64_t{0};
  if constexpr (std::is_integral_v<T>) {
    if (n > 0) {
      const auto [low, high] = std::minmax_element(x, x + n);
      lowest = key_of(*low), range = key_of(*high) - lowest + 1;
    }
    if (range - 1 < 4 * static_cast<uint64_t>(n)) {
      RangeTable table(lowest, range);
      Distinct found = by_occurrence(x, n, table);
      if (sorted) put_in_order(table.in_order(), found);
      return found;
    }
  }
  if (sorted && range - 1 < uint64_t{1} << 32 && n < int64_t{1} << 32 && mostly_differ(x, n)) {
    return by_sorting(x, n, lowest);
  }
  Table table;
  Distinct found = by_occurrence(x, n, table);
  if (!sorted) return found;
  std::vector<Entry> entries;
  entries.reserve(found.first.size());
  for (const int64_t first : found.first) entries.emplace_back(key_of(x[first]), static_cast<int64_t>(entries.size()));
  sort_entries(entries);
  std::vector<int64_t> order(entries.size());
  std::transform(entries.begin(), entries.end(), order.begin(), [](const Entry& entry) { return entry.second; });
  put_in_order(order, found);
  return found;
}

}  // namespace

Distinct find_distinct(const void* x, DType dtype, int64_t n, bool sorted) {
  switch (dtype) {
    case DType::kFloat32:
      return distinct(static_cast<const float*>(x), n, sorted);
    case DType::kFloat64:
      return distinct(static_cast<const double*>(x), n, sorted);
    case DType::kInt64:
      return distinct(static_cast<const int64_t*>(x), n, sorted);
    case DType::kInt32:
      return distinct(static_cast<const int32_t*>(x), n, sorted);
    case DType::kUInt64:
      return distinct(static_cast<const uint64_t*>(x), n, sorted);
    case DType::kUInt8:
    case DType::kBool:
      return distinct(static_cast<const uint8_t*>(x), n, sorted);
    default:
      NN_CHECK(false, "elements must be of a dtype that is compared, got another one");
  }
}

}  // namespace nn_cpu
