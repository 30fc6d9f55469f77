// Dropout with the random bits that nn_core defines: element e of C order has lane e % 4 of Philox block e // 4.
//   dropout   x -> y, mask; then the key, uint64 (2,) = seed, counter, read at each run. Setting p.
//   mask = 1 / (1 - p) where the element's uniform number, a multiple of 2^-24, is at least p, else 0;  y = x mask
#include <algorithm>
#include <cmath>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

class Dropout : public Op {
 public:
  explicit Dropout(const Signature& s) : size_(s.contiguous(0).size()), p_(s.args.get<double>("p")) {
    NN_CHECK(s.contiguous(1).size() == size_ && s.contiguous(2).size() == size_,
             "y and mask must have the size of x, got others");
    NN_CHECK(s.contiguous(3, DType::kUInt64).size() == 2, "key must have two elements, got " << s.array(3).size());
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const float*>(arrays[0]);
    auto *y = static_cast<float*>(arrays[1]), *mask = static_cast<float*>(arrays[2]);
    const auto* key = static_cast<const uint64_t*>(arrays[3]);
    const auto threshold = static_cast<uint32_t>(std::ceil(p_ * 16777216.0));
    const auto scale = static_cast<float>(1.0 / (1.0 - p_));
    constexpr int64_t kBlocks = 128;
    parallel_for(
        size_, 8192,
        [&](int64_t begin, int64_t end, int) {
          uint32_t words[4 * kBlocks];
          for (int64_t start = begin; start < end; start += 4 * kBlocks) {
            const int64_t n = std::min(end - start, 4 * kBlocks);
            vectors().philox(key[0], key[1], static_cast<uint64_t>(start / 4), (n + 3) / 4, words);
            vectors().drop(x + start, words, threshold, scale, n, y + start, mask + start);
          }
        },
        4);
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + static_cast<double>(size_); }

 private:
  int64_t size_;
  double p_;
};

}  // namespace

void register_random(Registry& registry) { registry.add("dropout", make<Dropout>, 1); }

}  // namespace nn_cpu
