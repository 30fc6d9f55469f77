// Attention of the next tokens of sequences to all tokens so far, whose keys and values are in caches.
//   cached_attention   q (H, L, E), k_cache (H, C, E), v_cache (H, C, V), none, k (H, L, E), v (H, L, V), lengths (N)
//                      -> y (H, L, V)
// H counts the heads of all N sequences. k and v are put to the places from lengths[n] on of the caches of their
// sequence; query i sees the places up to lengths[n] + i, and what is beyond the new tokens is never read. Settings:
// scale, is_causal, which is true.
//
// A few queries meet the keys as they are, in one row of scores; more of them go block by block, as in attention.cpp.
// O(L (lengths + L) (E + V)) time.
#include <algorithm>
#include <string>

#include "kernels/attention_blocks.hpp"
#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/errors.hpp"

namespace nn_cpu {
namespace attention {
namespace {

constexpr int64_t kFewQueries = 8;  // for more of them it pays to turn the keys

class CachedAttention : public Op {
  enum Place { kQ, kKeyCache, kValueCache, kMask, kNewKeys, kNewValues, kLengths, kY };

 public:
  explicit CachedAttention(const Signature& s) : heads_(s), sequences_(s.contiguous(kLengths, DType::kInt64).size()) {
    NN_CHECK(s.contiguous(kNewKeys).size() == heads_.heads * heads_.queries * heads_.features &&
                 s.contiguous(kNewValues).size() == heads_.heads * heads_.queries * heads_.values &&
                 s.contiguous(kY).size() == s.array(kNewValues).size() && sequences_ > 0 &&
                 heads_.heads % sequences_ == 0,
             "the arrays of cached_attention must fit each other, got others");
  }

  void run(void* const* arrays) const override {
    const Heads& h = heads_;
    const auto* lengths = static_cast<const int64_t*>(arrays[kLengths]);
    require_room(lengths);
    auto *keys = static_cast<float*>(arrays[kKeyCache]), *values = static_cast<float*>(arrays[kValueCache]);
    append(static_cast<const float*>(arrays[kNewKeys]), h.features, lengths, keys);
    append(static_cast<const float*>(arrays[kNewValues]), h.values, lengths, values);
    const auto* q = static_cast<const float*>(arrays[kQ]);
    auto* y = static_cast<float*>(arrays[kY]);
    h.visit([&](int64_t head, int64_t part) {
      const float *k = keys + head * h.keys * h.features, *v = values + head * h.keys * h.values;
      const int64_t before = lengths[head / (h.heads / sequences_)], first = head * h.queries;
      if (h.queries <= kFewQueries) {
        attend_few(q + first * h.features, k, v, before, y + first * h.values);
      } else {
        attend_many(q + first * h.features, k, v, before, head, part, y + first * h.values);
      }
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return heads_.cost(); }

 private:
  void require_room(const int64_t* lengths) const {
    const auto [low, high] = std::minmax_element(lengths, lengths + sequences_);
    const int64_t most = heads_.keys - heads_.queries;
    if (*low < 0 || *high > most) {
      throw ArgumentError("cached_attention: lengths must be in [0, " + std::to_string(most) + "], got values from " +
                          std::to_string(*low) + " to " + std::to_string(*high));
    }
  }

  void append(const float* from, int64_t features, const int64_t* lengths, float* cache) const {
    const Heads& h = heads_;
    for (int64_t head = 0; head < h.heads; ++head) {
      const int64_t place = head * h.keys + lengths[head / (h.heads / sequences_)];
      std::copy_n(from + head * h.queries * features, h.queries * features, cache + place * features);
    }
  }

  void attend_few(const float* q, const float* k, const float* v, int64_t before, float* y) const {
    const Heads& h = heads_;
    const int64_t keys = before + h.queries;
    Scratch scratch(Scratch::bytes<float>(h.queries * keys) + Scratch::bytes<float>(h.queries * h.features));
    auto *weights = scratch.take<float>(h.queries * keys), *scaled = scratch.take<float>(h.queries * h.features);
    h.scaled(q, h.queries, scaled);
    vectors().dot_product(h.queries, keys, h.features, scaled, h.features, k, h.features, false, weights, keys);
    float totals[kFewQueries];
    for (int64_t i = 0; i < h.queries; ++i) {
      float* row = weights + i * keys;
      const int64_t seen = before + i + 1;
      const float largest = vectors().max(row, seen);
      std::fill(row + seen, row + keys, 0.0f);
      if (largest == kHidden) std::fill_n(row, seen, 0.0f);
      totals[i] = largest == kHidden ? 1.0f : static_cast<float>(vectors().exp_sum(row, largest, row, seen));
    }
    vectors().product(h.queries, h.values, keys, weights, keys, 1, v, h.values, false, nullptr, y, h.values);
    for (int64_t i = 0; i < h.queries; ++i) {
      vectors().rows.row_scale(y + i * h.values, h.values, 1.0f / totals[i], y + i * h.values);
    }
  }

  void attend_many(const float* q, const float* k, const float* v, int64_t before, int64_t head, int64_t part,
                   float* y) const {
    const Heads& h = heads_;
    const int64_t keys = before + h.queries;
    Scratch scratch(Blocks::bytes(h, keys));
    Blocks blocks(h, keys, scratch);
    blocks.turn(k);
    for (int64_t i = part * kQueries; i < h.queries; i += h.parts * kQueries) {
      const int64_t rows = std::min(kQueries, h.queries - i);
      blocks.attend(q + i * h.features, v, nullptr, head, before + i, rows, y + i * h.values, nullptr,
                    [](int64_t, int64_t, float*, int64_t) {});
    }
  }

  Heads heads_;
  int64_t sequences_;
};

}  // namespace
}  // namespace attention

void register_cached_attention(Registry& registry) {
  registry.add("cached_attention", make<attention::CachedAttention>, 7);
}

}  // namespace nn_cpu
