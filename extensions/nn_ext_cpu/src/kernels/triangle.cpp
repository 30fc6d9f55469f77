// Triangles of matrices.
//   triangle   x (A, R, C) -> y: x where column - row >= k (upper) or <= k, elsewhere 0; any dtype. Settings k, upper.
//              O(elements).
#include <algorithm>
#include <cstring>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kGrain = 32768;  // elements a thread

class Triangle : public Op {
 public:
  explicit Triangle(const Signature& s) : k_(s.args.integer("k")), upper_(s.args.flag("upper")) {
    NN_CHECK(s.has(0) && s.has(1), "x and y must be given, got none");
    const DType dtype = s.arrays[0]->dtype;
    const Dims& shape = s.contiguous(0, dtype).shape;
    NN_CHECK(shape.size() == 3 && s.contiguous(1, dtype).size() == s.array(0, dtype).size(),
             "x and y must be (A, R, C), got shape " << to_string(shape));
    lines_ = shape[0] * shape[1], rows_ = shape[1], columns_ = shape[2], bytes_ = item_size(dtype);
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const char*>(arrays[0]);
    auto* y = static_cast<char*>(arrays[1]);
    parallel_for(lines_, kGrain / std::max<int64_t>(1, columns_) + 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t line = begin; line < end; ++line) {
        // Columns [0, split) are below the diagonal or on it, as the triangle wants them.
        const int64_t split = std::clamp<int64_t>(line % rows_ + k_ + (upper_ ? 0 : 1), 0, columns_) * bytes_,
                      width = columns_ * bytes_;
        const char* from = x + line * width;
        char* to = y + line * width;
        if (upper_) {
          std::memset(to, 0, split);
          std::memcpy(to + split, from + split, width - split);
        } else {
          std::memcpy(to, from, split);
          std::memset(to + split, 0, width - split);
        }
      }
    });
  }

  double cost() const override { return 50 + 0.4 * static_cast<double>(lines_ * columns_); }

 private:
  int64_t k_, lines_, rows_, columns_, bytes_;
  bool upper_;
};

}  // namespace

void register_triangle(Registry& registry) { registry.add("triangle", make<Triangle>); }

}  // namespace nn_cpu
