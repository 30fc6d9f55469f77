// Scores x (A, C, B) of C classes beside labels (A, 1, B), int64; y and dy have the shape of the labels.
//   class_log             x, labels -> y = -log max(x[label], 2^-126)
//   class_log_backward    x, labels, dy -> dx = -dy / x at the label, 0 elsewhere; 0 is divided by as 2^-24
//   class_rank            x, labels -> y = 1 where more than n scores reach that of the label, else 0; setting n
//   class_mask            labels -> y (A, C, B): 1 at the label, 0 elsewhere; any label
//   class_confusion       x, labels -> counts (C, C), int64: [label, place of the highest score]; NaN is the highest
// Negative labels give 0 and are not counted; labels of C or more throw. Setting axis, and label for what errors call
// the function. O(A C B); lanes B are treated next to each other.
#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/register.hpp"
#include "support/blocks.hpp"
#include "support/check.hpp"
#include "support/errors.hpp"
#include "support/parallel.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kGrain = 16384;  // elements a thread

/// The arrays around the axis, and their labels.
struct Classes : Blocks {
  std::string label;

  Classes(const Signature& s, size_t scores, size_t labels)
      : Blocks(s.contiguous(scores), s.args.integer("axis")), label(s.args.get<std::string>("label")) {
    expect_lanes(s, labels, DType::kInt64);
  }

  int64_t lanes() const { return a * b; }

  void expect_lanes(const Signature& s, size_t position, DType dtype = DType::kFloat32) const {
    NN_CHECK(s.contiguous(position, dtype).size() == lanes(),
             "array " << position << " must have an element for each label, got " << s.array(position, dtype).size());
  }

  void check(const int64_t* labels) const {
    const int64_t largest = lanes() > 0 ? *std::max_element(labels, labels + lanes()) : -1;
    if (largest < c) return;
    throw ArgumentError(label + ": target must be below " + std::to_string(c) + ", the number of classes, got " +
                        std::to_string(largest));
  }

  /// Index of the score of lane `lane` and class `k`.
  int64_t place(int64_t lane, int64_t k) const { return (lane / b * c + k) * b + lane % b; }

  /// Calls body(begin, end) on ranges of lanes, whose work is `work` elements each.
  template <class Body>
  void visit_lanes(int64_t work, const Body& body) const {
    parallel_for(lanes(), kGrain / std::max<int64_t>(work, 1) + 1,
                 [&](int64_t begin, int64_t end, int) { body(begin, end); });
  }

  /// Calls body(first lane, lanes, first score) for neighbouring lanes of one block.
  template <class Body>
  void visit_groups(const Body& body) const {
    const int64_t groups = (b + kMaxLanes - 1) / kMaxLanes;
    parallel_for(a * groups, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, c * std::min<int64_t>(b, kMaxLanes))),
                 [&](int64_t begin, int64_t end, int) {
                   for (int64_t item = begin; item < end; ++item) {
                     const int64_t block = item / groups, lane = item % groups * kMaxLanes;
                     body(block * b + lane, std::min<int64_t>(kMaxLanes, b - lane), block * c * b + lane);
                   }
                 });
  }
};

class ClassLog : public Op {
 public:
  explicit ClassLog(const Signature& s) : classes_(s, 0, 1) { classes_.expect_lanes(s, 2); }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const float*>(arrays[0]);
    const auto* labels = static_cast<const int64_t*>(arrays[1]);
    auto* y = static_cast<float*>(arrays[2]);
    classes_.check(labels);
    classes_.visit_lanes(32, [&](int64_t begin, int64_t end) {
      for (int64_t lane = begin; lane < end; ++lane) {
        y[lane] = 0.0f;
        if (labels[lane] < 0) continue;
        const float score = x[classes_.place(lane, labels[lane])];
        y[lane] = -std::log(score < 0x1p-126f ? 0x1p-126f : score);
      }
    });
  }

  double cost() const override { return 50 + 20.0 * static_cast<double>(classes_.lanes()); }

 private:
  Classes classes_;
};

class ClassLogBackward : public Op {
 public:
  explicit ClassLogBackward(const Signature& s) : classes_(s, 0, 1) {
    classes_.expect_lanes(s, 2);
    NN_CHECK(s.contiguous(3).size() == classes_.size(), "dx must have the size of x, got " << s.array(3).size());
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const float*>(arrays[0]);
    const auto* labels = static_cast<const int64_t*>(arrays[1]);
    const auto* dy = static_cast<const float*>(arrays[2]);
    auto* dx = static_cast<float*>(arrays[3]);
    classes_.check(labels);
    parallel_for(classes_.size(), 4 * kGrain,
                 [&](int64_t begin, int64_t end, int) { std::fill(dx + begin, dx + end, 0.0f); });
    classes_.visit_lanes(32, [&](int64_t begin, int64_t end) {
      for (int64_t lane = begin; lane < end; ++lane) {
        if (labels[lane] < 0) continue;
        const int64_t place = classes_.place(lane, labels[lane]);
        dx[place] = -dy[lane] / (x[place] == 0.0f ? 0x1p-24f : x[place]);
      }
    });
  }

  double cost() const override { return 50 + 0.2 * static_cast<double>(classes_.size()); }

 private:
  Classes classes_;
};

class ClassRank : public Op {
 public:
  explicit ClassRank(const Signature& s) : classes_(s, 0, 1), n_(s.args.integer("n")) { classes_.expect_lanes(s, 2); }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const float*>(arrays[0]);
    const auto* labels = static_cast<const int64_t*>(arrays[1]);
    auto* y = static_cast<float*>(arrays[2]);
    classes_.check(labels);
    const VectorTable& table = vectors();
    classes_.visit_groups([&](int64_t first, int64_t lanes, int64_t start) {
      float scores[kMaxLanes];
      int32_t ranks[kMaxLanes];
      for (int64_t i = 0; i < lanes; ++i)
        scores[i] = labels[first + i] < 0 ? 0.0f : x[classes_.place(first + i, labels[first + i])];
      if (classes_.b == 1) {
        ranks[0] = table.count_reaching(x + start, classes_.c, scores[0]);
      } else {
        table.counts_reaching(x + start, classes_.c, classes_.b, lanes, scores, ranks);
      }
      for (int64_t i = 0; i < lanes; ++i) y[first + i] = ranks[i] > n_ && labels[first + i] >= 0 ? 1.0f : 0.0f;
    });
  }

  double cost() const override { return 50 + 0.3 * static_cast<double>(classes_.size()); }

 private:
  Classes classes_;
  int64_t n_;
};

class ClassMask : public Op {
 public:
  explicit ClassMask(const Signature& s) : classes_(s, 1, 0) {}

  void run(void* const* arrays) const override {
    const auto* labels = static_cast<const int64_t*>(arrays[0]);
    auto* y = static_cast<float*>(arrays[1]);
    parallel_for(classes_.size(), 4 * kGrain,
                 [&](int64_t begin, int64_t end, int) { std::fill(y + begin, y + end, 0.0f); });
    classes_.visit_lanes(8, [&](int64_t begin, int64_t end) {
      for (int64_t lane = begin; lane < end; ++lane) {
        if (labels[lane] >= 0 && labels[lane] < classes_.c) y[classes_.place(lane, labels[lane])] = 1.0f;
      }
    });
  }

  double cost() const override { return 50 + 0.2 * static_cast<double>(classes_.size()); }

 private:
  Classes classes_;
};

class ClassConfusion : public Op {
 public:
  explicit ClassConfusion(const Signature& s) : classes_(s, 0, 1) {
    const int64_t cells = s.contiguous(2, DType::kInt64).size();
    NN_CHECK(cells == classes_.c * classes_.c, "counts must be (C, C), got " << cells << " elements");
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const float*>(arrays[0]);
    const auto* labels = static_cast<const int64_t*>(arrays[1]);
    auto* counts = static_cast<int64_t*>(arrays[2]);
    classes_.check(labels);
    std::fill_n(counts, classes_.c * classes_.c, int64_t{0});
    for (int64_t lane = 0; lane < classes_.lanes(); ++lane) {
      if (labels[lane] < 0) continue;
      const float* scores = x + classes_.place(lane, 0);
      int64_t highest = 0;
      for (int64_t k = 1; k < classes_.c; ++k) {
        const float score = scores[k * classes_.b], best = scores[highest * classes_.b];
        if (score > best || (score != score && best == best)) highest = k;
      }
      ++counts[labels[lane] * classes_.c + highest];
    }
  }

  double cost() const override { return 50 + static_cast<double>(classes_.size()); }

 private:
  Classes classes_;
};

}  // namespace

void register_classes(Registry& registry) {
  registry.add("class_log", make<ClassLog>, 2);
  registry.add("class_log_backward", make<ClassLogBackward>, 3);
  registry.add("class_rank", make<ClassRank>, 2);
  registry.add("class_mask", make<ClassMask>, 1);
  registry.add("class_confusion", make<ClassConfusion>, 2);
}

}  // namespace nn_cpu
