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
struct Lines : Blocks {
  using Blocks::Blocks;

  int64_t lines() const { return a * b; }
  int64_t start(int64_t line) const { return line / b * c * b + line % b; }

  /// Calls body(line, working memory of `rows` lines) on threads.
  template <class Body>
  void visit(int64_t rows, const Body& body) const {
    parallel_for(lines(), std::max<int64_t>(1, 8192 / std::max<int64_t>(c, 1)), [&](int64_t begin, int64_t end, int) {
      Scratch scratch(Scratch::bytes<float>(rows * c));
      auto* memory = scratch.take<float>(rows * c);
      for (int64_t line = begin; line < end; ++line) body(line, memory);
    });
  }

  /// The elements of a line in one piece: in place where they already are.
  const float* read(const float* x, int64_t line, float* memory) const {
    const float* first = x + start(line);
    if (b == 1) return first;
    for (int64_t i = 0; i < c; ++i) memory[i] = first[i * b];
    return memory;
  }

  void write(const float* values, int64_t line, float* y) const {
    if (b == 1) return;
    for (int64_t i = 0; i < c; ++i) y[start(line) + i * b] = values[i];
  }

  /// The memory to compute the line of an output in.
  float* target(float* y, int64_t line, float* memory) const { return b == 1 ? y + start(line) : memory; }
};

double log_sum(const float* x, int64_t n, float* exponentials, float& largest) {
  largest = vectors().max(x, n);
  return vectors().exp_sum(x, largest, exponentials, n);
}

class Softmax : public Op {
 public:
  explicit Softmax(const Signature& s) : lines_(s.array(0), s.args.integer("axis")), log_(s.args.flag("log")) {}

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const float*>(arrays[0]);
    auto* y = static_cast<float*>(arrays[1]);
    const int64_t n = lines_.c;
    if (n == 0) return;
    lines_.visit(2, [&](int64_t line, float* memory) {
      const float* from = lines_.read(x, line, memory);
      float* to = lines_.target(y, line, memory + n);
      float largest = 0;
      if (log_) {
        Scratch scratch(Scratch::bytes<float>(n));
        const double total = log_sum(from, n, scratch.take<float>(n), largest);
        const auto shift = static_cast<float>(std::log(total));
        for (int64_t i = 0; i < n; ++i) to[i] = (from[i] - largest) - shift;
      } else {
        const auto scale = static_cast<float>(1.0 / log_sum(from, n, to, largest));
        vectors().rows.row_scale(to, n, scale, to);
      }
      lines_.write(to, line, y);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 0.5 * static_cast<double>(lines_.size()); }

 private:
  Lines lines_;
  bool log_;
};

class SoftmaxBackward : public Op {
 public:
  explicit SoftmaxBackward(const Signature& s) : lines_(s.array(0), s.args.integer("axis")), log_(s.args.flag("log")) {}

  void run(void* const* arrays) const override {
    const auto *y = static_cast<const float*>(arrays[0]), *dy = static_cast<const float*>(arrays[1]);
    auto* dx = static_cast<float*>(arrays[2]);
    const int64_t n = lines_.c;
    lines_.visit(3, [&](int64_t line, float* memory) {
      const float *values = lines_.read(y, line, memory), *gradient = lines_.read(dy, line, memory + n);
      float* to = lines_.target(dx, line, memory + 2 * n);
      if (log_) {
        const auto total = static_cast<float>(vectors().sum(gradient, n));
        Scratch scratch(Scratch::bytes<float>(n));
        auto* exponentials = scratch.take<float>(n);
        vectors().exp_sum(values, 0.0f, exponentials, n);
        for (int64_t i = 0; i < n; ++i) to[i] = gradient[i] - exponentials[i] * total;
      } else {
        const auto total = static_cast<float>(vectors().dot(gradient, values, n));
        for (int64_t i = 0; i < n; ++i) to[i] = values[i] * (gradient[i] - total);
      }
      lines_.write(to, line, dx);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 0.3 * static_cast<double>(lines_.size()); }

 private:
  Lines lines_;
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

class CrossEntropy : public Op {
 public:
  explicit CrossEntropy(const Signature& s) : lines_(s.array(0), s.args.integer("axis")) {
    NN_CHECK(s.contiguous(1, DType::kInt64).size() == lines_.lines() && s.contiguous(2).size() == lines_.lines(),
             "labels and loss must be one for each line, got others");
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const float*>(arrays[0]);
    const auto* labels = static_cast<const int64_t*>(arrays[1]);
    auto* y = static_cast<float*>(arrays[2]);
    const int64_t n = lines_.c;
    check_labels(labels, lines_.lines(), n);
    lines_.visit(2, [&](int64_t line, float* memory) {
      y[line] = 0.0f;
      if (labels[line] < 0) return;
      const float* from = lines_.read(x, line, memory);
      float largest = 0;
      const double total = log_sum(from, n, memory + n, largest);
      y[line] = static_cast<float>(std::log(total)) - (from[labels[line]] - largest);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 0.5 * static_cast<double>(lines_.size()); }

 private:
  Lines lines_;
};

class CrossEntropyBackward : public Op {
 public:
  explicit CrossEntropyBackward(const Signature& s) : lines_(s.array(0), s.args.integer("axis")) {
    NN_CHECK(s.contiguous(1, DType::kInt64).size() == lines_.lines() && s.contiguous(2).size() == lines_.lines(),
             "labels and dy must be one for each line, got others");
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const float*>(arrays[0]);
    const auto* labels = static_cast<const int64_t*>(arrays[1]);
    const auto* dy = static_cast<const float*>(arrays[2]);
    auto* dx = static_cast<float*>(arrays[3]);
    const int64_t n = lines_.c;
    check_labels(labels, lines_.lines(), n);
    lines_.visit(2, [&](int64_t line, float* memory) {
      float* to = lines_.target(dx, line, memory + n);
      if (labels[line] < 0) {
        std::fill_n(to, n, 0.0f);
      } else {
        const float* from = lines_.read(x, line, memory);
        float largest = 0;
        const double total = log_sum(from, n, to, largest);
        const auto of_label = static_cast<float>(dy[line] * (to[labels[line]] / total - 1.0));
        vectors().rows.row_scale(to, n, static_cast<float>(dy[line] / total), to);
        to[labels[line]] = of_label;
      }
      lines_.write(to, line, dx);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 0.5 * static_cast<double>(lines_.size()); }

 private:
  Lines lines_;
};

}  // namespace

void register_softmax(Registry& registry) {
  registry.add("softmax", make<Softmax>, 1);
  registry.add("softmax_backward", make<SoftmaxBackward>, 2);
  registry.add("softmax_cross_entropy", make<CrossEntropy>, 2);
  registry.add("softmax_cross_entropy_backward", make<CrossEntropyBackward>, 3);
}

}  // namespace nn_cpu
