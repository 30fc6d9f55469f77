// Softmax along one axis, and the cross entropy of it with class labels. x is viewed as (A, C, B) around the axis.
//   softmax            x -> y;  setting log: y = log softmax
//   softmax_backward   y, dy -> dx
//   softmax_cross_entropy            x, labels (A, 1, B) int64 -> y (A, 1, B) = log(sum exp x) - x[label]
//   softmax_cross_entropy_backward   x, labels, dy (A, 1, B) -> dx = dy (softmax - onehot)
// Negative labels give 0; labels of C or more throw. The maximum is subtracted first, sums are kept in double. O(A C
// B); where the axis is not innermost, each of its lines is gathered into working memory.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/register.hpp"
#include "support/blocks.hpp"
#include "support/errors.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

/// The lines along the axis; each is `stride` elements apart.
template <class T>
struct Lines : Blocks {
  using Blocks::Blocks;

  int64_t lines() const { return a * b; }
  int64_t start(int64_t line) const { return line / b * c * b + line % b; }

  /// Calls body(line, working memory of `rows` lines) on threads.
  template <class Body>
  void visit(int64_t rows, const Body& body) const {
    parallel_for(lines(), std::max<int64_t>(1, 8192 / std::max<int64_t>(c, 1)), [&](int64_t begin, int64_t end, int) {
      Scratch scratch(Scratch::bytes<T>(rows * c));
      auto* memory = scratch.take<T>(rows * c);
      for (int64_t line = begin; line < end; ++line) body(line, memory);
    });
  }

  /// The elements of a line in one piece: in place where they already are.
  const T* read(const T* x, int64_t line, T* memory) const {
    const T* first = x + start(line);
    if (b == 1) return first;
    for (int64_t i = 0; i < c; ++i) memory[i] = first[i * b];
    return memory;
  }

  void write(const T* values, int64_t line, T* y) const {
    if (b == 1) return;
    for (int64_t i = 0; i < c; ++i) y[start(line) + i * b] = values[i];
  }

  /// Whether lines are in one piece, and so short that many of them are better computed side by side.
  bool is_narrow() const { return b == 1 && c > 0 && c <= kShortRow<T>; }

  /// Calls body(first line, count, working memory for `arrays` of tiles) for the lines by kMaxLanes, on threads. A tile
  /// holds the lines as columns, kMaxLanes elements from row to row.
  template <class Body>
  void visit_tiles(int64_t arrays, const Body& body) const {
    const int64_t tiles = (lines() + kMaxLanes - 1) / kMaxLanes;
    parallel_for(tiles, std::max<int64_t>(1, 8192 / (kMaxLanes * c)), [&](int64_t begin, int64_t end, int) {
      Scratch scratch(Scratch::bytes<T>(arrays * kMaxLanes * c));
      auto* memory = scratch.take<T>(arrays * kMaxLanes * c);
      for (int64_t line = begin * kMaxLanes; line < std::min(lines(), end * kMaxLanes); line += kMaxLanes)
        body(line, std::min(kMaxLanes, lines() - line), memory);
    });
  }

  void to_tile(const T* x, int64_t line, int64_t count, T* tile) const {
    number_loops<T>().transpose(x + line * c, count, c, c, tile, kMaxLanes);
  }
  void from_tile(const T* tile, int64_t line, int64_t count, T* y) const {
    number_loops<T>().transpose(tile, c, count, kMaxLanes, y + line * c, c);
  }

  /// The memory to compute the line of an output in.
  T* target(T* y, int64_t line, T* memory) const { return b == 1 ? y + start(line) : memory; }
};

template <class T>
double log_sum(const T* x, int64_t n, T* exponentials, T& largest) {
  largest = number_loops<T>().max(x, n);
  return number_loops<T>().exp_sum(x, largest, exponentials, n);
}

template <class T>
class Softmax : public Op {
 public:
  explicit Softmax(const Signature& s)
      : lines_(s.array(0, kDTypeOf<T>), s.args.integer("axis")), log_(s.args.flag("log")) {}

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const T*>(arrays[0]);
    auto* y = static_cast<T*>(arrays[1]);
    if (lines_.is_narrow()) return run_tiles(x, y);
    const int64_t n = lines_.c;
    if (n == 0) return;
    const NumberLoops<T>& table = number_loops<T>();
    lines_.visit(3, [&](int64_t line, T* memory) {
      const T* from = lines_.read(x, line, memory);
      T* to = lines_.target(y, line, memory + n);
      T largest = 0;
      if (log_) {
        const auto shift = static_cast<T>(std::log(log_sum(from, n, memory + 2 * n, largest)));
        table.standardize(from, n, largest, T{1}, -shift, to);
      } else {
        const auto scale = static_cast<T>(1.0 / log_sum(from, n, to, largest));
        table.scale(to, n, scale, to);
      }
      lines_.write(to, line, y);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 0.5 * static_cast<double>(lines_.size()); }

 private:
  void run_tiles(const T* x, T* y) const {
    const int64_t c = lines_.c;
    lines_.visit_tiles(2, [&](int64_t line, int64_t count, T* memory) {
      T* result = memory + c * kMaxLanes;
      lines_.to_tile(x, line, count, memory);
      number_loops<T>().softmax_lanes(log_, memory, c, kMaxLanes, count, result);
      lines_.from_tile(result, line, count, y);
    });
  }

  Lines<T> lines_;
  bool log_;
};

template <class T>
class SoftmaxBackward : public Op {
 public:
  explicit SoftmaxBackward(const Signature& s)
      : lines_(s.array(0, kDTypeOf<T>), s.args.integer("axis")), log_(s.args.flag("log")) {}

  void run(void* const* arrays) const override {
    const auto *y = static_cast<const T*>(arrays[0]), *dy = static_cast<const T*>(arrays[1]);
    auto* dx = static_cast<T*>(arrays[2]);
    if (lines_.is_narrow()) return run_tiles(y, dy, dx);
    const int64_t n = lines_.c;
    const NumberLoops<T>& table = number_loops<T>();
    lines_.visit(3, [&](int64_t line, T* memory) {
      const T *values = lines_.read(y, line, memory), *gradient = lines_.read(dy, line, memory + n);
      T* to = lines_.target(dx, line, memory + 2 * n);
      const double total = log_ ? table.sum(gradient, n) : table.dot(gradient, values, n);
      table.softmax_row_gradient(log_, values, gradient, static_cast<T>(total), n, to);
      lines_.write(to, line, dx);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 0.3 * static_cast<double>(lines_.size()); }

 private:
  void run_tiles(const T* y, const T* dy, T* dx) const {
    const int64_t size = lines_.c * kMaxLanes;
    lines_.visit_tiles(3, [&](int64_t line, int64_t count, T* memory) {
      T *gradient = memory + size, *result = memory + 2 * size;
      lines_.to_tile(y, line, count, memory);
      lines_.to_tile(dy, line, count, gradient);
      number_loops<T>().softmax_lanes_gradient(log_, memory, gradient, lines_.c, kMaxLanes, count, result);
      lines_.from_tile(result, line, count, dx);
    });
  }

  Lines<T> lines_;
  bool log_;
};

void check_labels(const int64_t* labels, int64_t count, int64_t classes) {
  int64_t largest = -1;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, labels[i]);
  if (largest >= classes) {
    throw ArgumentError("softmax_cross_entropy: target must hold numbers below that of the classes, " +
                        std::to_string(classes) + ", got " + std::to_string(largest));
  }
}

template <class T>
class CrossEntropy : public Op {
 public:
  explicit CrossEntropy(const Signature& s) : lines_(s.array(0, kDTypeOf<T>), s.args.integer("axis")) {
    NN_CHECK(s.contiguous(1, DType::kInt64).size() == lines_.lines() &&
                 s.contiguous(2, kDTypeOf<T>).size() == lines_.lines(),
             "labels and loss must be one for each line, got others");
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const T*>(arrays[0]);
    const auto* labels = static_cast<const int64_t*>(arrays[1]);
    auto* y = static_cast<T*>(arrays[2]);
    const int64_t n = lines_.c;
    check_labels(labels, lines_.lines(), n);
    if (lines_.is_narrow()) return run_tiles(x, labels, y);
    lines_.visit(2, [&](int64_t line, T* memory) {
      y[line] = T{0};
      if (labels[line] < 0) return;
      const T* from = lines_.read(x, line, memory);
      T largest = 0;
      const double total = log_sum(from, n, memory + n, largest);
      y[line] = static_cast<T>(std::log(total)) - (from[labels[line]] - largest);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 0.5 * static_cast<double>(lines_.size()); }

 private:
  void run_tiles(const T* x, const int64_t* labels, T* y) const {
    lines_.visit_tiles(2, [&](int64_t line, int64_t count, T* memory) {
      T* logarithms = memory + lines_.c * kMaxLanes;
      lines_.to_tile(x, line, count, memory);
      number_loops<T>().softmax_lanes(true, memory, lines_.c, kMaxLanes, count, logarithms);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t label = labels[line + i];
        y[line + i] = label < 0 ? T{0} : T{0} - logarithms[label * kMaxLanes + i];
      }
    });
  }

  Lines<T> lines_;
};

template <class T>
class CrossEntropyBackward : public Op {
 public:
  explicit CrossEntropyBackward(const Signature& s) : lines_(s.array(0, kDTypeOf<T>), s.args.integer("axis")) {
    NN_CHECK(s.contiguous(1, DType::kInt64).size() == lines_.lines() &&
                 s.contiguous(2, kDTypeOf<T>).size() == lines_.lines(),
             "labels and dy must be one for each line, got others");
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const T*>(arrays[0]);
    const auto* labels = static_cast<const int64_t*>(arrays[1]);
    const auto* dy = static_cast<const T*>(arrays[2]);
    auto* dx = static_cast<T*>(arrays[3]);
    const int64_t n = lines_.c;
    check_labels(labels, lines_.lines(), n);
    if (lines_.is_narrow()) return run_tiles(x, labels, dy, dx);
    lines_.visit(2, [&](int64_t line, T* memory) {
      T* to = lines_.target(dx, line, memory + n);
      if (labels[line] < 0) {
        std::fill_n(to, n, T{0});
      } else {
        const T* from = lines_.read(x, line, memory);
        T largest = 0;
        const double total = log_sum(from, n, to, largest);
        const double share = to[labels[line]] / total;
        const double less = std::isfinite(dy[line]) ? share - 1.0 : static_cast<T>(share) - T{1};  // see `rest`
        const auto of_label = static_cast<T>(dy[line] * less);
        number_loops<T>().scale(to, n, static_cast<T>(dy[line] / total), to);
        to[labels[line]] = of_label;
      }
      lines_.write(to, line, dx);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 0.5 * static_cast<double>(lines_.size()); }

 private:
  void run_tiles(const T* x, const int64_t* labels, const T* dy, T* dx) const {
    const int64_t c = lines_.c;
    lines_.visit_tiles(2, [&](int64_t line, int64_t count, T* memory) {
      T* shares = memory + c * kMaxLanes;
      lines_.to_tile(x, line, count, memory);
      number_loops<T>().softmax_lanes(false, memory, c, kMaxLanes, count, shares);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t label = labels[line + i];
        if (label >= 0) shares[label * kMaxLanes + i] = -rest(shares + i, label, dy[line + i]);
      }
      lines_.from_tile(shares, line, count, dx);
      for (int64_t i = 0; i < count; ++i) {
        const bool counts = labels[line + i] >= 0;
        T* row = dx + (line + i) * c;
        for (int64_t k = 0; k < c; ++k) row[k] = counts ? row[k] * dy[line + i] : T{0};
      }
    });
  }

  /// 1 less the share of the label: where that is close to 1, the sum of the others, which have all their digits.
  /// An infinite dy needs the rounded difference, as other backends compute it: 0 times infinity is NaN.
  T rest(const T* shares, int64_t label, T dy) const {
    if (!(shares[label * kMaxLanes] > T{0.5}) || !std::isfinite(dy)) return T{1} - shares[label * kMaxLanes];
    T sum = 0;
    for (int64_t k = 0; k < lines_.c; ++k) sum += k == label ? T{0} : shares[k * kMaxLanes];
    return sum;
  }

  Lines<T> lines_;
};

}  // namespace

void register_softmax(Registry& registry) {
  registry.add("softmax", make_for_numbers<Softmax>, 1);
  registry.add("softmax_backward", make_for_numbers<SoftmaxBackward>, 2);
  registry.add("softmax_cross_entropy", make_for_numbers<CrossEntropy>, 2);
  registry.add("softmax_cross_entropy_backward", make_for_numbers<CrossEntropyBackward>, 3);
}

}  // namespace nn_cpu
