// Gradients of attention, whose forward pass attention.cpp computes.
//   attention_backward           q, k, v, mask, y, log_sum, dy -> dq, dk, dv, dmask, each of which may be left out
//   dropout_attention_backward   q, k, v, mask, y, drawn, log_sum, dy, nothing -> dq, dk, dv, dmask
//
// The weights are computed again, block by block, from log_sum (Dao et al., 2022, FlashAttention, algorithm 4). The
// gradient of the mask is a pass of its own over the blocks of the mask, each of which sums over all scores that share
// it, so that blocks are independent where heads or queries share a mask. O(L S (E + V)) time, O(parts S (E + V))
// memory.
#include <algorithm>
#include <type_traits>

#include "kernels/attention.hpp"
#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/scratch.hpp"

namespace nn_cpu {
namespace attention {
namespace {

template <bool kDrops>
class AttentionBackward : public Op {
  enum Place { kDrawn = 5, kLogSum = kDrops ? 6 : 5, kDy, kDq = kDrops ? 9 : 7, kDk, kDv, kDMask };

 public:
  explicit AttentionBackward(const Signature& s)
      : heads_(s), dropping_(s), wants_q_(s.has(kDq)), wants_k_(s.has(kDk)), wants_v_(s.has(kDv)) {
    if constexpr (kDrops) {
      NN_CHECK(s.contiguous(kDrawn, DType::kInt64).size() == 2,
               "drawn must have two elements, got " << s.array(kDrawn).size());
    }
    if (s.has(kDMask)) {
      d_mask_size_ = s.contiguous(kDMask).size();
      for (auto& [start, sharing] : heads_.mask.sharing(heads_.heads)) rows_of_mask_.push_back({start, sharing});
    }
  }

  void run(void* const* arrays) const override {
    if (wants_q_ || wants_k_ || wants_v_) differentiate(arrays);
    if (!rows_of_mask_.empty()) differentiate_mask(arrays);
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return (rows_of_mask_.empty() ? 2.5 : 4.0) * heads_.cost(); }

 private:
  /// The arrays of one head.
  struct Head {
    const float *q, *k, *v, *y, *log_sum, *dy;

    Head(const Heads& h, void* const* arrays, int64_t head) {
      const int64_t query = head * h.queries, key = head * h.keys;
      q = static_cast<const float*>(arrays[0]) + query * h.features;
      k = static_cast<const float*>(arrays[1]) + key * h.features;
      v = static_cast<const float*>(arrays[2]) + key * h.values;
      y = static_cast<const float*>(arrays[4]) + query * h.values;
      log_sum = static_cast<const float*>(arrays[kLogSum]) + query;
      dy = static_cast<const float*>(arrays[kDy]) + query * h.values;
    }
  };

  /// A block of scores: the weights, those that are left by dropout and their factors, and the gradients of the scores.
  struct Block {
    float *turned_k, *turned_v, *weights, *changes, *kept, *factors;

    static size_t bytes(const Heads& h) {
      return Scratch::bytes<float>(kKeys * h.features) + Scratch::bytes<float>(kKeys * h.values) +
             (kDrops ? 4 : 2) * Scratch::bytes<float>(kQueries * kKeys);
    }

    Block(const Heads& h, Scratch& scratch)
        : turned_k(scratch.take<float>(kKeys * h.features)),
          turned_v(scratch.take<float>(kKeys * h.values)),
          weights(scratch.take<float>(kQueries * kKeys)),
          changes(scratch.take<float>(kQueries * kKeys)),
          kept(kDrops ? scratch.take<float>(kQueries * kKeys) : weights),
          factors(kDrops ? scratch.take<float>(kQueries * kKeys) : nullptr) {}
  };

  static void add(const float* part, float* total, int64_t n) {
    parallel_for(
        n, 65536, [&](int64_t begin, int64_t end, int) { vectors().add_to(part + begin, total + begin, end - begin); },
        16);
  }

  /// The gradients of q, k and v.
  void differentiate(void* const* arrays) const {
    const Heads& h = heads_;
    auto *dk = static_cast<float*>(arrays[kDk]), *dv = static_cast<float*>(arrays[kDv]);
    const int64_t size_k = wants_k_ ? h.heads * h.keys * h.features : 0,
                  size_v = wants_v_ ? h.heads * h.keys * h.values : 0;
    // the first part of each head adds to the results themselves, the others to copies that are added afterwards
    Scratch scratch((h.parts - 1) * (Scratch::bytes<float>(size_k) + Scratch::bytes<float>(size_v)));
    std::vector<float*> parts_k{dk}, parts_v{dv};
    for (int64_t part = 1; part < h.parts; ++part) {
      parts_k.push_back(scratch.take<float>(size_k));
      parts_v.push_back(scratch.take<float>(size_v));
    }
    h.visit([&](int64_t head, int64_t part) { differentiate_part(arrays, head, part, parts_k[part], parts_v[part]); });
    for (int64_t part = 1; part < h.parts; ++part) {
      add(parts_k[part], dk, size_k);
      add(parts_v[part], dv, size_v);
    }
  }

  /// One part of a head: its queries and all keys.
  void differentiate_part(void* const* arrays, int64_t head, int64_t part, float* dk, float* dv) const {
    const Heads& h = heads_;
    const Head a(h, arrays, head);
    const int64_t first_key = head * h.keys, own = blocks_of(blocks_of(h.queries, kQueries) - part, h.parts);
    auto* dq = wants_q_ ? static_cast<float*>(arrays[kDq]) + head * h.queries * h.features : nullptr;
    Scratch scratch(Block::bytes(h) + Scratch::bytes<float>(own * kQueries * h.features) +
                    Scratch::bytes<float>(own * kQueries));
    const Block block(h, scratch);
    auto *scaled = scratch.take<float>(own * kQueries * h.features), *inner = scratch.take<float>(own * kQueries);
    if (wants_k_) std::fill_n(dk + first_key * h.features, h.keys * h.features, 0.0f);
    if (wants_v_) std::fill_n(dv + first_key * h.values, h.keys * h.values, 0.0f);
    for (int64_t n = 0; n < own; ++n) {
      const int64_t i = (part + n * h.parts) * kQueries, rows = std::min(kQueries, h.queries - i);
      prepare(a, i, rows, scaled + n * kQueries * h.features, inner + n * kQueries);
      if (dq != nullptr) std::fill_n(dq + i * h.features, rows * h.features, 0.0f);
    }
    for (int64_t j = 0; j < h.keys; j += kKeys) {
      const int64_t columns = std::min(kKeys, h.keys - j);
      turn(a, j, columns, block);
      for (int64_t n = 0; n < own; ++n) {
        const int64_t i = (part + n * h.parts) * kQueries, rows = std::min(kQueries, h.queries - i);
        if (h.seen(i + rows - 1, j, columns) == 0) continue;
        const float* block_q = scaled + n * kQueries * h.features;
        weigh(arrays, a, head, i, rows, j, columns, block_q, block);
        if (wants_v_) {
          vectors().product(columns, h.values, rows, block.kept, 1, kKeys, a.dy + i * h.values, h.values, true, nullptr,
                            dv + (first_key + j) * h.values, h.values);
        }
        if (!wants_k_ && dq == nullptr) continue;
        change(a, i, rows, j, columns, inner + n * kQueries, block);
        if (dq != nullptr) {
          vectors().product(rows, h.features, columns, block.changes, kKeys, 1, a.k + j * h.features, h.features, true,
                            nullptr, dq + i * h.features, h.features);
        }
        if (wants_k_) {  // the queries bring the scale with them
          vectors().product(columns, h.features, rows, block.changes, 1, kKeys, block_q, h.features, true, nullptr,
                            dk + (first_key + j) * h.features, h.features);
        }
      }
    }
    for (int64_t n = 0; dq != nullptr && n < own; ++n) {
      const int64_t i = (part + n * h.parts) * kQueries, rows = std::min(kQueries, h.queries - i);
      h.scaled(dq + i * h.features, rows, dq + i * h.features);
    }
  }

  /// The gradient of the mask, block by block of it.
  void differentiate_mask(void* const* arrays) const {
    const Heads& h = heads_;
    auto* d_mask = static_cast<float*>(arrays[kDMask]);
    std::fill_n(d_mask, d_mask_size_, 0.0f);
    const int64_t down = h.mask.query == 0 ? 1 : blocks_of(h.queries, kQueries),
                  across = h.mask.key == 0 ? 1 : blocks_of(h.keys, kKeys);
    h.share(static_cast<int64_t>(rows_of_mask_.size()) * down * across, [&](int64_t piece) {
      const RowsOfMask& rows = rows_of_mask_[piece / across / down];
      sum_changes(arrays, rows, piece / across % down, piece % across, d_mask + rows.start);
    });
  }

  struct RowsOfMask {
    int64_t start;
    std::vector<int64_t> heads;  // that share them
  };

  /// The block (row, column) of a mask: all scores that it is added to. An axis along which the mask does not vary has
  /// one block for all queries or keys.
  void sum_changes(void* const* arrays, const RowsOfMask& of_mask, int64_t row, int64_t column, float* d_mask) const {
    const Heads& h = heads_;
    const int64_t i_end = h.mask.query == 0 ? h.queries : std::min(h.queries, (row + 1) * kQueries),
                  j_end = h.mask.key == 0 ? h.keys : std::min(h.keys, (column + 1) * kKeys);
    Scratch scratch(Block::bytes(h) + Scratch::bytes<float>(kQueries * h.features) + Scratch::bytes<float>(kQueries));
    const Block block(h, scratch);
    auto *scaled = scratch.take<float>(kQueries * h.features), *inner = scratch.take<float>(kQueries);
    for (const int64_t head : of_mask.heads) {
      const Head a(h, arrays, head);
      for (int64_t i = row * kQueries; i < i_end; i += kQueries) {
        const int64_t rows = std::min(kQueries, h.queries - i);
        prepare(a, i, rows, scaled, inner);
        for (int64_t j = column * kKeys; j < j_end; j += kKeys) {
          const int64_t columns = std::min(kKeys, h.keys - j);
          if (h.seen(i + rows - 1, j, columns) == 0) break;
          turn(a, j, columns, block);
          weigh(arrays, a, head, i, rows, j, columns, scaled, block);
          change(a, i, rows, j, columns, inner, block);
          add_changes(block.changes, rows, columns, d_mask + i * h.mask.query + j * h.mask.key);
        }
      }
    }
  }

  /// Adds a block of changes to the gradient of the mask, summed along the axes along which the mask does not vary.
  void add_changes(float* changes, int64_t rows, int64_t columns, float* d_mask) const {
    const Mask& mask = heads_.mask;
    if (mask.query == 0) {
      for (int64_t row = 1; row < rows; ++row) vectors().add_to(changes + row * kKeys, changes, columns);
      rows = 1;
    }
    for (int64_t row = 0; row < rows; ++row) {
      if (mask.key == 0) {
        d_mask[row * mask.query] += static_cast<float>(vectors().sum(changes + row * kKeys, columns));
      } else {
        vectors().add_to(changes + row * kKeys, d_mask + row * mask.query, columns);
      }
    }
  }

  /// The scaled queries from i on, and dy.y of each.
  void prepare(const Head& a, int64_t i, int64_t rows, float* scaled, float* inner) const {
    const Heads& h = heads_;
    h.scaled(a.q + i * h.features, rows, scaled);
    for (int64_t row = i; row < i + rows; ++row)
      *inner++ = static_cast<float>(vectors().dot(a.dy + row * h.values, a.y + row * h.values, h.values));
  }

  /// The columns of k^T and v^T from key j on.
  void turn(const Head& a, int64_t j, int64_t columns, const Block& block) const {
    const Heads& h = heads_;
    vectors().transpose(a.k + j * h.features, columns, h.features, h.features, block.turned_k, kKeys);
    vectors().transpose(a.v + j * h.values, columns, h.values, h.values, block.turned_v, kKeys);
  }

  /// The weights of a block, from the logarithms of their denominators.
  void weigh(void* const* arrays, const Head& a, int64_t head, int64_t i, int64_t rows, int64_t j, int64_t columns,
             const float* scaled, const Block& block) const {
    const Heads& h = heads_;
    h.scores(scaled, rows, block.turned_k, columns, static_cast<const float*>(arrays[3]), head, i, j, block.weights);
    for (int64_t row = 0; row < rows; ++row) {
      float* weights = block.weights + row * kKeys;
      const float log_sum = a.log_sum[i + row];
      const int64_t seen = log_sum == kHidden ? 0 : h.seen(i + row, j, columns);
      std::fill(weights + seen, weights + columns, 0.0f);
      vectors().exp_sum(weights, log_sum, weights, seen);
      if constexpr (kDrops) {
        dropping_.drop(static_cast<const uint64_t*>(arrays[kDrawn]), h.weight(head, i + row) + j, weights, columns,
                       block.kept + row * kKeys, block.factors + row * kKeys);
      }
    }
  }

  /// The gradients of the scores of a block, from its weights: zero where a query does not see the key, whose weight of
  /// zero does not stop NaN.
  void change(const Head& a, int64_t i, int64_t rows, int64_t j, int64_t columns, const float* inner,
              const Block& block) const {
    const Heads& h = heads_;
    vectors().product(rows, columns, h.values, a.dy + i * h.values, h.values, 1, block.turned_v, kKeys, false, nullptr,
                      block.changes, kKeys);
    for (int64_t row = 0; row < rows; ++row) {
      float* to = block.changes + row * kKeys;
      const float *from = block.weights + row * kKeys, product = inner[row];
      const float* times = kDrops ? block.factors + row * kKeys : nullptr;
      const int64_t seen = a.log_sum[i + row] == kHidden ? 0 : h.seen(i + row, j, columns);
      std::fill(to + seen, to + columns, 0.0f);
      for (int64_t column = 0; column < seen; ++column)
        to[column] = from[column] * ((kDrops ? times[column] * to[column] : to[column]) - product);
    }
  }

  Heads heads_;
  std::conditional_t<kDrops, Dropping, Nothing> dropping_;
  bool wants_q_, wants_k_, wants_v_;
  int64_t d_mask_size_ = 0;
  std::vector<RowsOfMask> rows_of_mask_;  // where the gradient of the mask is wanted
};

}  // namespace
}  // namespace attention

void register_attention_gradients(Registry& registry) {
  registry.add("attention_backward", make<attention::AttentionBackward<false>>, 7);
  registry.add("dropout_attention_backward", make<attention::AttentionBackward<true>>, 9);
}

}  // namespace nn_cpu
