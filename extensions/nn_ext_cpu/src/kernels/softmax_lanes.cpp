// Softmax along an axis that is not the innermost one, and its gradient; x is contiguous and seen as (A, C, B) around
// the axis.
//   softmax_lanes            x -> y;  setting log: y = log softmax
//   softmax_lanes_backward   y, dy -> dx
// Lanes that are neighbours in memory are computed together (vector/softmax.cpp). The maximum is subtracted first, sums
// are kept in double. O(A C B).
#include <algorithm>

#include "kernels/register.hpp"
#include "support/blocks.hpp"
#include "support/parallel.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kGrain = 8192;  // elements a thread

struct Lanes : Blocks {
  using Blocks::Blocks;

  /// Calls body(offset, lanes) for groups of neighbouring lanes. The group is small enough for its lines to stay in
  /// cache.
  template <class Body>
  void visit(const Body& body) const {
    if (size() == 0) return;
    const int64_t width = std::min<int64_t>(kMaxLanes, std::max<int64_t>(16, 65536 / c / 16 * 16)),
                  groups = (b + width - 1) / width;
    parallel_for(a * groups, std::max<int64_t>(1, kGrain / (c * std::min(b, width))),
                 [&](int64_t begin, int64_t end, int) {
                   for (int64_t item = begin; item < end; ++item) {
                     const int64_t lane = item % groups * width;
                     body(item / groups * c * b + lane, std::min(width, b - lane));
                   }
                 });
  }
};

template <class T>
class SoftmaxLanes : public Op {
 public:
  explicit SoftmaxLanes(const Signature& s)
      : lanes_(s.contiguous(0, kDTypeOf<T>), s.args.integer("axis")), log_(s.args.flag("log")) {}

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const T*>(arrays[0]);
    auto* y = static_cast<T*>(arrays[1]);
    lanes_.visit([&](int64_t start, int64_t lanes) {
      number_loops<T>().softmax_lanes(log_, x + start, lanes_.c, lanes_.b, lanes, y + start);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 0.5 * static_cast<double>(lanes_.size()); }

 private:
  Lanes lanes_;
  bool log_;
};

template <class T>
class SoftmaxLanesBackward : public Op {
 public:
  explicit SoftmaxLanesBackward(const Signature& s)
      : lanes_(s.contiguous(0, kDTypeOf<T>), s.args.integer("axis")), log_(s.args.flag("log")) {}

  void run(void* const* arrays) const override {
    const auto *y = static_cast<const T*>(arrays[0]), *dy = static_cast<const T*>(arrays[1]);
    auto* dx = static_cast<T*>(arrays[2]);
    lanes_.visit([&](int64_t start, int64_t lanes) {
      number_loops<T>().softmax_lanes_gradient(log_, y + start, dy + start, lanes_.c, lanes_.b, lanes, dx + start);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 0.5 * static_cast<double>(lanes_.size()); }

 private:
  Lanes lanes_;
  bool log_;
};

}  // namespace

void register_softmax_lanes(Registry& registry) {
  registry.add("softmax_lanes", make_for_numbers<SoftmaxLanes>, 1);
  registry.add("softmax_lanes_backward", make_for_numbers<SoftmaxLanesBackward>, 2);
}

}  // namespace nn_cpu
