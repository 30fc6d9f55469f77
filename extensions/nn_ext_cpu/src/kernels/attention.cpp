// Attention of each query to all keys of its head: y = softmax(scale q k^T + mask) v.
//   attention            q (H, L, E), k (H, S, E), v (H, S, V), mask -> y (H, L, V), log_sum (H, L)
//   dropout_attention    q, k, v, mask -> y, drawn, log_sum; then the key, as of dropout in random.cpp
// H counts the heads of all samples; the mask may be absent or broadcast. Settings: scale, is_causal, and `scores`, the
// shape (..., L, S) that the mask is broadcast to; with dropout p, the chance of a weight to be dropped.
//
// With dropout a weight is multiplied by a factor, 0 or 1 / (1 - p), after the sum of the weights was taken. The factor
// of weight number e in the C order of the scores follows from e and the key, of which `drawn` keeps a copy.
//
// Blocks of queries meet blocks of keys, so that no more than one block of scores is in memory (Dao et al., 2022,
// FlashAttention, algorithm 1). The softmax is corrected as larger scores appear (Milakov and Gimelshein, 2018, Online
// normalizer calculation for softmax); log_sum is the logarithm of its denominator, for attention_gradients.cpp. Blocks
// that a causal query cannot see are skipped. A head is cut into parts by its queries when there are few heads; the
// number of parts does not depend on the number of threads, and so neither do the results. O(L S (E + V)) time,
// O(parts S E) memory.
#include "kernels/attention.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/attention_blocks.hpp"
#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/scratch.hpp"

namespace nn_cpu {
namespace attention {
namespace {

template <bool kDrops>
class Attention : public Op {
 public:
  explicit Attention(const Signature& s) : heads_(s), dropping_(s) {
    if constexpr (kDrops) {
      NN_CHECK(s.contiguous(5, DType::kInt64).size() == 2 && s.contiguous(7, DType::kUInt64).size() == 2,
               "drawn and key must have two elements each, got others");
    }
  }

  void run(void* const* arrays) const override {
    const Heads& h = heads_;
    const auto *q = static_cast<const float*>(arrays[0]), *k = static_cast<const float*>(arrays[1]),
               *v = static_cast<const float*>(arrays[2]);
    const auto* mask = static_cast<const float*>(arrays[3]);
    auto *y = static_cast<float*>(arrays[4]), *log_sum = static_cast<float*>(arrays[kDrops ? 6 : 5]);
    const uint64_t* drawn = nullptr;
    if constexpr (kDrops) {
      drawn = static_cast<const uint64_t*>(arrays[7]);
      std::copy_n(drawn, 2, static_cast<uint64_t*>(arrays[5]));
    }
    h.visit([&](int64_t head, int64_t part) {
      Scratch scratch(Blocks::bytes(h, h.keys));
      Blocks blocks(h, h.keys, scratch);
      blocks.turn(k + head * h.keys * h.features);
      for (int64_t i = part * kQueries; i < h.queries; i += h.parts * kQueries) {
        const int64_t rows = std::min(kQueries, h.queries - i), first = head * h.queries + i;
        const auto change = [&](int64_t row, int64_t j, float* weights, int64_t columns) {
          if constexpr (kDrops) {
            float factors[kKeys];
            dropping_.drop(drawn, h.weight(head, i + row) + j, weights, columns, weights, factors);
          }
        };
        blocks.attend(q + first * h.features, v + head * h.keys * h.values, mask, head, i, rows, y + first * h.values,
                      log_sum + first, change);
      }
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return heads_.cost(); }

 private:
  Heads heads_;
  std::conditional_t<kDrops, Dropping, Nothing> dropping_;
};

}  // namespace
}  // namespace attention

void register_attention(Registry& registry) {
  registry.add("attention", make<attention::Attention<false>>, 4);
  registry.add("dropout_attention", make<attention::Attention<true>>, 4);
}

}  // namespace nn_cpu
