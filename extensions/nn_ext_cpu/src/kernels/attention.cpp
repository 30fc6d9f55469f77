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
#include <cmath>
#include <type_traits>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/scratch.hpp"

namespace nn_cpu {
namespace attention {
namespace {

float larger_or_nan(float a, float b) { return a < b || b != b ? b : a; }

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
    const int64_t key_blocks = blocks_of(h.keys, kKeys);
    h.visit([&](int64_t head, int64_t part) {
      Scratch scratch(Scratch::bytes<float>(key_blocks * kKeys * h.features) + Scratch::bytes<float>(kQueries * kKeys) +
                      Scratch::bytes<float>(kQueries * h.features) + 2 * Scratch::bytes<float>(kQueries));
      Block block{scratch.take<float>(key_blocks * kKeys * h.features), scratch.take<float>(kQueries * kKeys),
                  scratch.take<float>(kQueries * h.features), scratch.take<float>(kQueries),
                  scratch.take<float>(kQueries)};
      const float *keys = k + head * h.keys * h.features, *values = v + head * h.keys * h.values;
      for (int64_t j = 0; j < h.keys; j += kKeys) {
        vectors().transpose(keys + j * h.features, std::min(kKeys, h.keys - j), h.features, h.features,
                            block.turned + j * h.features, kKeys);
      }
      for (int64_t i = part * kQueries; i < h.queries; i += h.parts * kQueries) {
        const int64_t rows = std::min(kQueries, h.queries - i), first = head * h.queries + i;
        attend(block, q + first * h.features, values, mask, head, i, rows, y + first * h.values, log_sum + first,
               drawn);
      }
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return heads_.cost(); }

 private:
  struct Block {
    float *turned, *weights, *scaled, *largest, *total;
  };

  /// A block of queries and all keys.
  void attend(const Block& b, const float* q, const float* v, const float* mask, int64_t head, int64_t i, int64_t rows,
              float* y, float* log_sum, const uint64_t* drawn) const {
    const Heads& h = heads_;
    h.scaled(q, rows, b.scaled);
    std::fill_n(b.largest, rows, kHidden);
    std::fill_n(b.total, rows, 0.0f);
    std::fill_n(y, rows * h.values, 0.0f);
    for (int64_t j = 0; j < h.keys; j += kKeys) {
      const int64_t columns = std::min(kKeys, h.keys - j);
      if (h.seen(i + rows - 1, j, columns) == 0) break;
      h.scores(b.scaled, rows, b.turned + j * h.features, columns, mask, head, i, j, b.weights);
      for (int64_t row = 0; row < rows; ++row) {
        weigh(b, row, h.seen(i + row, j, columns), columns, y + row * h.values);
        if constexpr (kDrops) {
          float factors[kKeys], *weights = b.weights + row * kKeys;
          dropping_.drop(drawn, h.weight(head, i + row) + j, weights, columns, weights, factors);
        }
      }
      vectors().product(rows, h.values, columns, b.weights, kKeys, 1, v + j * h.values, h.values, true, nullptr, y,
                        h.values);
    }
    for (int64_t row = 0; row < rows; ++row) {
      const bool sees_none = b.largest[row] == kHidden;
      const float inverse = sees_none ? 0.0f : 1.0f / b.total[row];
      vectors().rows.row_scale(y + row * h.values, h.values, inverse, y + row * h.values);
      log_sum[row] = sees_none ? kHidden : b.largest[row] + std::log(b.total[row]);
    }
  }

  /// Turns the scores of a query into weights, and brings what was summed before to the same largest score.
  void weigh(const Block& b, int64_t row, int64_t seen, int64_t columns, float* y) const {
    float* weights = b.weights + row * kKeys;
    std::fill(weights + seen, weights + columns, 0.0f);
    const float before = b.largest[row];
    const float largest = seen == 0 ? before : larger_or_nan(before, vectors().max(weights, seen));
    if (largest == kHidden) {
      std::fill_n(weights, seen, 0.0f);
      return;
    }
    const auto sum = static_cast<float>(vectors().exp_sum(weights, largest, weights, seen));
    if (before != kHidden && largest != before) {
      const float shrink = std::exp(before - largest);
      b.total[row] *= shrink;
      vectors().rows.row_scale(y, heads_.values, shrink, y);
    }
    b.total[row] += sum;
    b.largest[row] = largest;
  }

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
