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
    const int64_t n = lines_.c;
    if (n == 0) return;
    lines_.visit(2, [&](int64_t line, T* memory) {
      const T* from = lines_.read(x, line, memory);
      T* to = lines_.target(y, line, memory + n);
      T largest = 0;
      if (log_) {
        Scratch scratch(Scratch::bytes<T>(n));
        const double total = log_sum(from, n, scratch.take<T>(n), largest);
        const auto shift = static_cast<T>(std::log(total));
        for (int64_t i = 0; i < n; ++i) to[i] = (from[i] - largest) - shift;
      } else {
        const auto scale = static_cast<T>(1.0 / log_sum(from, n, to, largest));
        number_loops<T>().scale(to, n, scale, to);
      }
      lines_.write(to, line, y);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 0.5 * static_cast<double>(lines_.size()); }

 private:
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
    const int64_t n = lines_.c;
    lines_.visit(3, [&](int64_t line, T* memory) {
      const T *values = lines_.read(y, line, memory), *gradient = lines_.read(dy, line, memory + n);
      T* to = lines_.target(dx, line, memory + 2 * n);
      if (log_) {
        const auto total = static_cast<T>(number_loops<T>().sum(gradient, n));
        Scratch scratch(Scratch::bytes<T>(n));
        auto* exponentials = scratch.take<T>(n);
        number_loops<T>().exp_sum(values, T{0}, exponentials, n);
        for (int64_t i = 0; i < n; ++i) to[i] = gradient[i] - exponentials[i] * total;
      } else {
        const auto total = static_cast<T>(number_loops<T>().dot(gradient, values, n));
        for (int64_t i = 0; i < n; ++i) to[i] = values[i] * (gradient[i] - total);
      }
      lines_.write(to, line, dx);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 0.3 * static_cast<double>(lines_.size()); }

 private:
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
    lines_.visit(2, [&](int64_t line, T* memory) {
      T* to = lines_.target(dx, line, memory + n);
      if (labels[line] < 0) {
        std::fill_n(to, n, T{0});
      } else {
        const T* from = lines_.read(x, line, memory);
        T largest = 0;
        const double total = log_sum(from, n, to, largest);
        const auto of_label = static_cast<T>(dy[line] * (to[labels[line]] / total - 1.0));
        number_loops<T>().scale(to, n, static_cast<T>(dy[line] / total), to);
        to[labels[line]] = of_label;
      }
      lines_.write(to, line, dx);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 0.5 * static_cast<double>(lines_.size()); }

 private:
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
