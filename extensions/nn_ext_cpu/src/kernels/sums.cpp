// Sums along neighbouring axes.
//   sum_along   x (A, C, B) -> y (A, B) = scale times the sum over C; setting scale
// O(A C B) at the speed of memory; see vector/sums.cpp. Threads share the lanes of y, so results repeat.
#include <algorithm>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kGrain = 32768;   // elements a thread
constexpr int64_t kNarrowest = 64;  // neighbouring lanes

template <class T>
class SumAlong : public Op {
 public:
  explicit SumAlong(const Signature& s) : scale_(s.args.get<double>("scale")) {
    const Dims& shape = s.contiguous(0, kDTypeOf<T>).shape;
    NN_CHECK(shape.size() == 3 && count(shape) > 0,
             "x must be (A, C, B) with elements, got shape " << to_string(shape));
    a_ = shape[0], c_ = shape[1], b_ = shape[2];
    NN_CHECK(s.contiguous(1, kDTypeOf<T>).size() == a_ * b_,
             "y must have an element a lane, got " << s.array(1, kDTypeOf<T>).size());
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const T*>(arrays[0]);
    auto* y = static_cast<T*>(arrays[1]);
    if (b_ == 1) {
      parallel_for(a_, kGrain / c_ + 1, [&](int64_t begin, int64_t end, int) {
        number_loops<T>().row_sums(x + begin * c_, end - begin, c_, scale_, y + begin);
      });
      return;
    }
    const int64_t share =
        a_ * b_ / num_threads() / kNarrowest * kNarrowest;  // so that few lanes keep all threads busy, too
    const int64_t width = std::clamp<int64_t>(share, kNarrowest, kMaxLanes), groups = (b_ + width - 1) / width;
    parallel_for(a_ * groups, kGrain / (c_ * std::min<int64_t>(b_, width)) + 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t block = item / groups, lane = item % groups * width;
        number_loops<T>().lane_sums(x + block * c_ * b_ + lane, c_, b_, std::min<int64_t>(width, b_ - lane), scale_,
                                    y + block * b_ + lane);
      }
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + 0.15 * static_cast<double>(a_ * c_ * b_); }

 private:
  double scale_;
  int64_t a_ = 1, c_ = 1, b_ = 1;
};

}  // namespace

void register_sums(Registry& registry) { registry.add("sum_along", make_for_numbers<SumAlong>, 1); }

}  // namespace nn_cpu
