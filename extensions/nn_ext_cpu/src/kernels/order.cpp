// Sorting along an axis, and the k first elements of rows. NaN is the largest, equal elements keep their places.
//   sort            x (A, C, B) -> y, index int64 (either may be absent); setting reverse
//   sort_backward   x, dy -> dx: dy goes back to where the elements came from; setting reverse
//   top_k           x (R, N) -> y, index int64 (R, k) (either may be absent); settings k, largest, absolute (rank
//                   magnitudes), compact; without it y is (R, N), with 0 for what is not among the k
//   top_k_backward  x, dy (as y) -> dx (R, N), 0 for what is not among the k; the same settings
// O(n) a row by radix sort. The k first come before the k-th of the best of some groups, or are found by a scan that
// keeps the best so far.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/order.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kGrain = 2048;  // elements a thread
constexpr int64_t kLines = 16;    // neighbouring lines that are read together: a cache line

/// The lines of an array (A, C, B) along the axis in the middle.
struct SortedAxis {
  int64_t a, c, b;
  bool reverse;

  explicit SortedAxis(const Signature& s) : reverse(s.args.flag("reverse")) {
    const Dims& shape = s.contiguous(0).shape;
    NN_CHECK(shape.size() == 3 && shape[1] < (int64_t{1} << 32),
             "x must be (A, C, B) with C below 2^32, got shape " << to_string(shape));
    a = shape[0], c = shape[1], b = shape[2];
  }

  int64_t size() const { return a * c * b; }

  /// Calls body(first element of a line, its sorted items) for each line.
  template <class Body>
  void visit(const float* x, const Body& body) const {
    const int64_t groups = (b + kLines - 1) / kLines, width = std::min(b, kLines);
    parallel_for(a * groups, kGrain / std::max<int64_t>(1, c * width) + 1, [&](int64_t begin, int64_t end, int) {
      Scratch scratch(Scratch::bytes<Ranked>(c * width) + Scratch::bytes<Ranked>(c));
      auto *items = scratch.take<Ranked>(c * width), *spare = scratch.take<Ranked>(c);
      for (int64_t item = begin; item < end; ++item) {
        const int64_t start = item / groups * c * b + item % groups * kLines,
                      lines = std::min(kLines, b - item % groups * kLines);
        for (int64_t k = 0; k < c; ++k) {
          for (int64_t line = 0; line < lines; ++line)
            items[line * c + k] = ranked(x[start + k * b + line], reverse, static_cast<uint32_t>(k));
        }
        for (int64_t line = 0; line < lines; ++line) body(start + line, sort_ranked(items + line * c, spare, c));
      }
    });
  }
};

class Sort : public Op {
 public:
  explicit Sort(const Signature& s) : axis_(s) {
    if (s.has(1))
      NN_CHECK(s.contiguous(1).size() == axis_.size(), "y must have the size of x, got " << s.array(1).size());
    if (s.has(2))
      NN_CHECK(s.contiguous(2, DType::kInt64).size() == axis_.size(), "index must have the size of x, got another");
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const float*>(arrays[0]);
    auto* y = static_cast<float*>(arrays[1]);
    auto* index = static_cast<int64_t*>(arrays[2]);
    axis_.visit(x, [&](int64_t first, const Ranked* items) {
      for (int64_t k = 0; k < axis_.c; ++k) {
        const int64_t place = place_of(items[k]), target = first + k * axis_.b;
        if (y != nullptr) y[target] = x[first + place * axis_.b];
        if (index != nullptr) index[target] = place;
      }
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + 10.0 * static_cast<double>(axis_.size()); }

 private:
  SortedAxis axis_;
};

class SortBackward : public Op {
 public:
  explicit SortBackward(const Signature& s) : axis_(s) {
    NN_CHECK(s.contiguous(1).size() == axis_.size() && s.contiguous(2).size() == axis_.size(),
             "dy and dx must have the size of x, got others");
  }

  void run(void* const* arrays) const override {
    const auto *x = static_cast<const float*>(arrays[0]), *dy = static_cast<const float*>(arrays[1]);
    auto* dx = static_cast<float*>(arrays[2]);
    axis_.visit(x, [&](int64_t first, const Ranked* items) {
      for (int64_t k = 0; k < axis_.c; ++k) dx[first + place_of(items[k]) * axis_.b] = dy[first + k * axis_.b];
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + 10.0 * static_cast<double>(axis_.size()); }

 private:
  SortedAxis axis_;
};

/// The rows of a matrix, and which of their elements are wanted.
struct Chosen {
  int64_t rows, columns, k;
  bool largest, absolute, compact;

  explicit Chosen(const Signature& s)
      : k(s.args.integer("k")),
        largest(s.args.flag("largest")),
        absolute(s.args.flag("absolute")),
        compact(s.args.flag("compact")) {
    const Dims& shape = s.contiguous(0).shape;
    NN_CHECK(shape.size() == 2 && k >= 1 && k <= shape[1] && shape[1] < (int64_t{1} << 32),
             "x must be (R, N) with k <= N < 2^32, got shape " << to_string(shape));
    rows = shape[0], columns = shape[1];
  }

  /// Elements of a row of y and dy.
  int64_t width() const { return compact ? k : columns; }

  void expect(const Signature& s, size_t position, int64_t row_size, DType dtype = DType::kFloat32) const {
    NN_CHECK(s.contiguous(position, dtype).size() == rows * row_size,
             "array " << position << " must have rows of " << row_size << ", got " << s.array(position, dtype).size()
                      << " elements");
  }

  /// Calls body(row, the k first items in order) for each row.
  template <class Body>
  void visit(const float* x, const Body& body) const {
    const int64_t room = 2 * k + 64, groups = (std::max<int64_t>(64, 5 * k / 2) + 15) / 16 * 16;
    const bool grouped = columns >= 2 * groups && columns < (int64_t{1} << 31);
    parallel_for(rows, kGrain / columns + 1, [&](int64_t begin, int64_t end, int) {
      Scratch scratch(Scratch::bytes<Ranked>(room) + Scratch::bytes<float>(groups) + Scratch::bytes<int32_t>(room));
      auto* best = scratch.take<Ranked>(room);
      auto* ranks = scratch.take<float>(groups);
      auto* places = scratch.take<int32_t>(room);
      for (int64_t row = begin; row < end; ++row) {
        const float* from = x + row * columns;
        if (!grouped || !choose_by_groups(from, groups, ranks, places, room, best)) choose(from, best, room);
        body(row, best);
      }
    });
  }

 private:
  /// Ranks all that is not below the k-th of the groups' best, which k elements reach at least; false where too many
  /// do, or NaN is among them.
  bool choose_by_groups(const float* x, int64_t groups, float* ranks, int32_t* places, int64_t room,
                        Ranked* best) const {
    vectors().highest_ranks(absolute, !largest, x, columns, groups, ranks);
    if (largest && std::any_of(ranks, ranks + groups, [](float rank) { return rank != rank; })) return false;
    std::nth_element(ranks, ranks + k - 1, ranks + groups, std::greater<>());
    const int64_t count = vectors().places_reaching(absolute, !largest, x, columns, ranks[k - 1], room, places);
    if (count < k || count > room) return false;
    for (int64_t i = 0; i < count; ++i) {
      const float value = x[places[i]];
      best[i] = ranked(absolute ? std::fabs(value) : value, largest, static_cast<uint32_t>(places[i]));
    }
    select_ranked(best, count, k);
    return true;
  }

  /// Collects what comes before the k-th best so far; a full buffer is cut down to the k best. `beyond(value, limit)`
  /// says that a number certainly comes later, so that most elements cost a comparison; NaN leaves it open.
  template <class Beyond>
  void choose(const float* x, Ranked* best, int64_t room, const Beyond& beyond) const {
    constexpr int64_t kTogether = 32;
    int64_t count = 0;
    Ranked limit = ~Ranked{0};
    float limit_value = std::numeric_limits<float>::quiet_NaN();
    const auto take = [&](int64_t i) {
      const Ranked item = ranked(absolute ? std::fabs(x[i]) : x[i], largest, static_cast<uint32_t>(i));
      if (item > limit) return;
      best[count++] = item;
      if (count < room) return;
      std::nth_element(best, best + k - 1, best + count);
      limit = best[k - 1];
      count = k;
      limit_value = absolute ? std::fabs(x[place_of(limit)]) : x[place_of(limit)];
    };
    for (int64_t start = 0; start < columns; start += kTogether) {
      const int64_t stop = std::min(columns, start + kTogether);
      int open = 0;
      for (int64_t i = start; i < stop; ++i) open |= !beyond(x[i], limit_value);
      for (int64_t i = start; open != 0 && i < stop; ++i) {
        if (!beyond(x[i], limit_value)) take(i);
      }
    }
    select_ranked(best, count, k);
  }

  void choose(const float* x, Ranked* best, int64_t room) const {
    if (absolute && largest) return choose(x, best, room, [](float v, float limit) { return std::fabs(v) < limit; });
    if (absolute) return choose(x, best, room, [](float v, float limit) { return std::fabs(v) > limit; });
    if (largest) return choose(x, best, room, [](float v, float limit) { return v < limit; });
    return choose(x, best, room, [](float v, float limit) { return v > limit; });
  }
};

class TopK : public Op {
 public:
  explicit TopK(const Signature& s) : chosen_(s) {
    if (s.has(1)) chosen_.expect(s, 1, chosen_.width());
    if (s.has(2)) chosen_.expect(s, 2, chosen_.k, DType::kInt64);
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const float*>(arrays[0]);
    auto* y = static_cast<float*>(arrays[1]);
    auto* index = static_cast<int64_t*>(arrays[2]);
    chosen_.visit(x, [&](int64_t row, const Ranked* best) {
      const float* from = x + row * chosen_.columns;
      float* to = y == nullptr ? nullptr : y + row * chosen_.width();
      if (to != nullptr && !chosen_.compact) std::fill_n(to, chosen_.columns, 0.0f);
      for (int64_t i = 0; i < chosen_.k; ++i) {
        const int64_t place = place_of(best[i]);
        if (to != nullptr) to[chosen_.compact ? i : place] = from[place];
        if (index != nullptr) index[row * chosen_.k + i] = place;
      }
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + 2.0 * static_cast<double>(chosen_.rows * chosen_.columns); }

 private:
  Chosen chosen_;
};

class TopKBackward : public Op {
 public:
  explicit TopKBackward(const Signature& s) : chosen_(s) {
    chosen_.expect(s, 1, chosen_.width());
    chosen_.expect(s, 2, chosen_.columns);
  }

  void run(void* const* arrays) const override {
    const auto *x = static_cast<const float*>(arrays[0]), *dy = static_cast<const float*>(arrays[1]);
    auto* dx = static_cast<float*>(arrays[2]);
    chosen_.visit(x, [&](int64_t row, const Ranked* best) {
      const float* from = dy + row * chosen_.width();
      float* to = dx + row * chosen_.columns;
      std::fill_n(to, chosen_.columns, 0.0f);
      for (int64_t i = 0; i < chosen_.k; ++i) to[place_of(best[i])] = from[chosen_.compact ? i : place_of(best[i])];
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + 2.0 * static_cast<double>(chosen_.rows * chosen_.columns); }

 private:
  Chosen chosen_;
};

}  // namespace

void register_order(Registry& registry) {
  registry.add("sort", make<Sort>, 1);
  registry.add("sort_backward", make<SortBackward>, 2);
  registry.add("top_k", make<TopK>, 1);
  registry.add("top_k_backward", make<TopKBackward>, 2);
}

}  // namespace nn_cpu
