// Attention of each query to all keys of its head: y = softmax(scale q k^T + mask) v.
//   attention            q (H, L, E), k (H, S, E), v (H, S, V), mask -> y (H, L, V), log_sum (H, L)
//   attention_backward   q, k, v, mask, y, log_sum, dy -> dq, dk, dv, each of which may be left out
//   dropout_attention            q, k, v, mask -> y, drawn, log_sum; then the key, as of dropout in random.cpp
//   dropout_attention_backward   q, k, v, mask, y, drawn, log_sum, dy, nothing -> dq, dk, dv
// H counts the heads of all samples; the mask may be absent or broadcast. Settings: scale, is_causal, and `scores`, the
// shape (..., L, S) that the mask is broadcast to; with dropout p, the chance of a weight to be dropped.
//
// With dropout a weight is multiplied by a factor, 0 or 1 / (1 - p), after the sum of the weights was taken. The factor
// of weight number e in the C order of the scores follows from e and the key, of which `drawn` keeps a copy.
//
// Blocks of queries meet blocks of keys, so that no more than one block of scores is in memory (Dao et al., 2022,
// FlashAttention, algorithms 1 and 4). The softmax is corrected as larger scores appear (Milakov and Gimelshein, 2018,
// Online normalizer calculation for softmax); the backward pass computes the weights again from log_sum, the logarithm
// of their denominator. Blocks that a causal query cannot see are skipped. A head is cut into parts by its queries when
// there are few heads; the number of parts does not depend on the number of threads, and so neither do the results. O(L
// S (E + V)) time, O(parts S (E + V)) memory.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kQueries = 64, kKeys = 128;  // of a block: its scores stay in the first-level cache
constexpr int64_t kParts = 8;                  // fewer heads are cut into parts, so that about as many can be shared
constexpr float kHidden = -std::numeric_limits<float>::infinity();

int64_t blocks_of(int64_t length, int64_t block) { return (length + block - 1) / block; }

/// The rows of the mask for each head; strides count elements, those of broadcast axes are 0.
class Mask {
 public:
  Mask() = default;
  Mask(const ArrayDesc& mask, const std::vector<int64_t>& scores) {
    const size_t missing = scores.size() - mask.shape.size();
    int64_t step = 1;
    strides_.assign(scores.size(), 0);
    for (size_t axis = scores.size(); axis-- > missing;) {
      const int64_t length = mask.shape[axis - missing];
      if (length != 1) strides_[axis] = step;
      step *= length;
    }
    lengths_ = scores;
  }

  /// Adds the entries of queries [i, i + rows) and keys [j, j + columns) of a head to a block of scores.
  void add(const float* mask, int64_t head, int64_t i, int64_t rows, int64_t j, int64_t columns, float* block) const {
    if (mask == nullptr) return;
    const size_t last = strides_.size() - 1;
    for (size_t axis = last - 1; axis-- > 0; head /= lengths_[axis]) mask += head % lengths_[axis] * strides_[axis];
    for (int64_t row = 0; row < rows; ++row) {
      const float* from = mask + (i + row) * strides_[last - 1] + j * strides_[last];
      float* to = block + row * kKeys;
      for (int64_t column = 0; column < columns; ++column) to[column] += from[column * strides_[last]];
    }
  }

 private:
  std::vector<int64_t> lengths_, strides_;
};

/// The factors of the weights. They are drawn for a row of a block at a time.
class Dropping {
 public:
  explicit Dropping(const Signature& s)
      : threshold_(static_cast<uint32_t>(std::ceil(s.args.get<double>("p") * 16777216.0))),
        scale_(static_cast<float>(1.0 / (1.0 - s.args.get<double>("p")))) {}

  /// weights times the factors of the weights from number `first` on; the factors too.
  void drop(const uint64_t* key, int64_t first, const float* weights, int64_t n, float* kept, float* factors) const {
    uint32_t words[kKeys + 8];  // blocks of four words, of which the first and the last may be needed in part
    const int64_t skipped = first % 4;
    vectors().philox(key[0], key[1], static_cast<uint64_t>(first / 4), (skipped + n + 3) / 4, words);
    vectors().drop(weights, words + skipped, threshold_, scale_, n, kept, factors);
  }

 private:
  uint32_t threshold_;
  float scale_;
};

struct Nothing {
  explicit Nothing(const Signature&) {}
};

/// The operands of both passes.
struct Heads {
  int64_t heads, queries, keys, features, values;  // H, L, S, E and V
  float scale;
  bool is_causal;
  Mask mask;
  int64_t parts;

  explicit Heads(const Signature& s)
      : heads(s.contiguous(0).shape[0]),
        queries(s.array(0).shape[1]),
        keys(s.contiguous(1).shape[1]),
        features(s.array(0).shape[2]),
        values(s.contiguous(2).shape[2]),
        scale(s.args.real("scale")),
        is_causal(s.args.flag("is_causal")),
        parts(std::clamp<int64_t>(blocks_of(kParts, std::max<int64_t>(heads, 1)), 1,
                                  std::max<int64_t>(blocks_of(queries, kQueries), 1))) {
    if (s.has(3)) mask = Mask(s.contiguous(3), s.args.dims("scores"));
  }

  /// How many keys, from `j` on, query `i` sees in a block of `columns`.
  int64_t seen(int64_t i, int64_t j, int64_t columns) const {
    return is_causal ? std::clamp<int64_t>(i - j + 1, 0, columns) : columns;
  }

  /// Calls body(head, part) on threads.
  template <class Body>
  void visit(const Body& body) const {
    const int64_t pieces = heads * parts;
    const int team_size = cost() < 20000 ? 1 : static_cast<int>(std::min<int64_t>(num_threads(), pieces));
    as_team(team_size, 1, [&](Team& team) {
      team.share(0, pieces, [&](int64_t begin, int64_t end) {
        for (int64_t piece = begin; piece < end; ++piece) body(piece / parts, piece % parts);
      });
    });
  }

  /// block (rows, kKeys) = scale q k^T + mask for queries from i and keys from j on; `turned` holds the columns of k^T.
  void scores(const float* scaled, int64_t rows, const float* turned, int64_t columns, const float* mask_values,
              int64_t head, int64_t i, int64_t j, float* block) const {
    vectors().product(rows, columns, features, scaled, features, 1, turned, kKeys, false, nullptr, block, kKeys);
    mask.add(mask_values, head, i, rows, j, columns, block);
  }

  /// q times the scale.
  void scaled(const float* q, int64_t rows, float* to) const {
    vectors().rows.row_affine(q, nullptr, rows * features, scale, 0.0f, false, to);
  }

  /// The number of the first weight of a query among those of all heads.
  int64_t weight(int64_t head, int64_t i) const { return (head * queries + i) * keys; }

  double cost() const {
    const double products = static_cast<double>(heads) * static_cast<double>(queries) * static_cast<double>(keys) *
                            static_cast<double>(features + values);
    return products / (is_causal ? 200.0 : 100.0);
  }
};

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
      vectors().rows.row_affine(y + row * h.values, nullptr, h.values, inverse, 0.0f, false, y + row * h.values);
      log_sum[row] = sees_none ? kHidden : b.largest[row] + std::log(b.total[row]);
    }
  }

  /// Turns the scores of a query into weights, and brings what was summed before to the same largest score.
  void weigh(const Block& b, int64_t row, int64_t seen, int64_t columns, float* y) const {
    float* weights = b.weights + row * kKeys;
    std::fill(weights + seen, weights + columns, 0.0f);
    const float before = b.largest[row];
    const float largest = seen == 0 ? before : std::max(before, vectors().max(weights, seen));
    if (largest == kHidden) {
      std::fill_n(weights, seen, 0.0f);
      return;
    }
    const auto sum = static_cast<float>(vectors().exp_sum(weights, largest, weights, seen));
    if (before != kHidden && largest != before) {
      const float shrink = std::exp(before - largest);
      b.total[row] *= shrink;
      vectors().rows.row_affine(y, nullptr, heads_.values, shrink, 0.0f, false, y);
    }
    b.total[row] += sum;
    b.largest[row] = largest;
  }

  Heads heads_;
  std::conditional_t<kDrops, Dropping, Nothing> dropping_;
};

template <bool kDrops>
class AttentionBackward : public Op {
  enum Place { kDrawn = 5, kLogSum = kDrops ? 6 : 5, kDy, kDq = kDrops ? 9 : 7, kDk, kDv };

 public:
  explicit AttentionBackward(const Signature& s) : heads_(s), dropping_(s), wants_k_(s.has(kDk)), wants_v_(s.has(kDv)) {
    if constexpr (kDrops) {
      NN_CHECK(s.contiguous(kDrawn, DType::kInt64).size() == 2,
               "drawn must have two elements, got " << s.array(kDrawn).size());
    }
  }

  void run(void* const* arrays) const override {
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
    h.visit([&](int64_t head, int64_t part) { differentiate(arrays, head, part, parts_k[part], parts_v[part]); });
    for (int64_t part = 1; part < h.parts; ++part) {
      add(parts_k[part], dk, size_k);
      add(parts_v[part], dv, size_v);
    }
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 2.5 * heads_.cost(); }

 private:
  static void add(const float* part, float* total, int64_t n) {
    parallel_for(
        n, 65536, [&](int64_t begin, int64_t end, int) { vectors().add_to(part + begin, total + begin, end - begin); },
        16);
  }

  /// One part of a head: its queries and all keys.
  void differentiate(void* const* arrays, int64_t head, int64_t part, float* dk, float* dv) const {
    const Heads& h = heads_;
    const int64_t first_query = head * h.queries, first_key = head * h.keys,
                  own = blocks_of(blocks_of(h.queries, kQueries) - part, h.parts);
    const auto *q = static_cast<const float*>(arrays[0]) + first_query * h.features,
               *k = static_cast<const float*>(arrays[1]) + first_key * h.features;
    const auto* v = static_cast<const float*>(arrays[2]) + first_key * h.values;
    const auto* mask = static_cast<const float*>(arrays[3]);
    const auto *y = static_cast<const float*>(arrays[4]) + first_query * h.values,
               *log_sum = static_cast<const float*>(arrays[kLogSum]) + first_query;
    const auto* dy = static_cast<const float*>(arrays[kDy]) + first_query * h.values;
    auto* dq = arrays[kDq] == nullptr ? nullptr : static_cast<float*>(arrays[kDq]) + first_query * h.features;
    Scratch scratch(Scratch::bytes<float>(kKeys * h.features) + Scratch::bytes<float>(kKeys * h.values) +
                    kBlocks * Scratch::bytes<float>(kQueries * kKeys) +
                    Scratch::bytes<float>(own * kQueries * h.features) + Scratch::bytes<float>(own * kQueries));
    auto *turned_k = scratch.take<float>(kKeys * h.features), *turned_v = scratch.take<float>(kKeys * h.values);
    auto *weights = scratch.take<float>(kQueries * kKeys), *d_weights = scratch.take<float>(kQueries * kKeys);
    auto* kept = kDrops ? scratch.take<float>(kQueries * kKeys) : weights;
    auto* factors = kDrops ? scratch.take<float>(kQueries * kKeys) : nullptr;
    auto *scaled = scratch.take<float>(own * kQueries * h.features), *products = scratch.take<float>(own * kQueries);
    if (wants_k_) std::fill_n(dk + first_key * h.features, h.keys * h.features, 0.0f);
    if (wants_v_) std::fill_n(dv + first_key * h.values, h.keys * h.values, 0.0f);
    for (int64_t n = 0; n < own; ++n) {
      const int64_t i = (part + n * h.parts) * kQueries, rows = std::min(kQueries, h.queries - i);
      h.scaled(q + i * h.features, rows, scaled + n * kQueries * h.features);
      for (int64_t row = 0; row < rows; ++row) {
        products[n * kQueries + row] =
            static_cast<float>(vectors().dot(dy + (i + row) * h.values, y + (i + row) * h.values, h.values));
      }
      if (dq != nullptr) std::fill_n(dq + i * h.features, rows * h.features, 0.0f);
    }
    for (int64_t j = 0; j < h.keys; j += kKeys) {
      const int64_t columns = std::min(kKeys, h.keys - j);
      vectors().transpose(k + j * h.features, columns, h.features, h.features, turned_k, kKeys);
      vectors().transpose(v + j * h.values, columns, h.values, h.values, turned_v, kKeys);
      for (int64_t n = 0; n < own; ++n) {
        const int64_t i = (part + n * h.parts) * kQueries, rows = std::min(kQueries, h.queries - i);
        if (h.seen(i + rows - 1, j, columns) == 0) continue;
        const float* block_q = scaled + n * kQueries * h.features;
        h.scores(block_q, rows, turned_k, columns, mask, head, i, j, weights);
        for (int64_t row = 0; row < rows; ++row) {
          weigh(weights + row * kKeys, h.seen(i + row, j, columns), columns, log_sum[i + row]);
          if constexpr (kDrops) {
            dropping_.drop(static_cast<const uint64_t*>(arrays[kDrawn]), h.weight(head, i + row) + j,
                           weights + row * kKeys, columns, kept + row * kKeys, factors + row * kKeys);
          }
        }
        if (wants_v_) {
          vectors().product(columns, h.values, rows, kept, 1, kKeys, dy + i * h.values, h.values, true, nullptr,
                            dv + (first_key + j) * h.values, h.values);
        }
        if (!wants_k_ && dq == nullptr) continue;
        vectors().product(rows, columns, h.values, dy + i * h.values, h.values, 1, turned_v, kKeys, false, nullptr,
                          d_weights, kKeys);
        for (int64_t row = 0; row < rows; ++row) {
          float* to = d_weights + row * kKeys;
          const float *from = weights + row * kKeys, product = products[n * kQueries + row];
          const float* times = kDrops ? factors + row * kKeys : nullptr;
          for (int64_t column = 0; column < columns; ++column)
            to[column] = from[column] * ((kDrops ? times[column] * to[column] : to[column]) - product);
        }
        if (dq != nullptr) {
          vectors().product(rows, h.features, columns, d_weights, kKeys, 1, k + j * h.features, h.features, true,
                            nullptr, dq + i * h.features, h.features);
        }
        if (wants_k_) {  // the queries bring the scale with them
          vectors().product(columns, h.features, rows, d_weights, 1, kKeys, block_q, h.features, true, nullptr,
                            dk + (first_key + j) * h.features, h.features);
        }
      }
    }
    for (int64_t n = 0; dq != nullptr && n < own; ++n) {
      const int64_t i = (part + n * h.parts) * kQueries, rows = std::min(kQueries, h.queries - i);
      h.scaled(dq + i * h.features, rows, dq + i * h.features);
    }
  }

  /// Turns the scores of a query into weights by the logarithm of their denominator.
  static void weigh(float* weights, int64_t seen, int64_t columns, float log_sum) {
    if (log_sum == kHidden) seen = 0;
    std::fill(weights + seen, weights + columns, 0.0f);
    vectors().exp_sum(weights, log_sum, weights, seen);
  }

  static constexpr int64_t kBlocks = kDrops ? 4 : 2;

  Heads heads_;
  std::conditional_t<kDrops, Dropping, Nothing> dropping_;
  bool wants_k_, wants_v_;
};

}  // namespace

void register_attention(Registry& registry) {
  registry.add("attention", make<Attention<false>>, 4);
  registry.add("attention_backward", make<AttentionBackward<false>>, 7);
  registry.add("dropout_attention", make<Attention<true>>, 4);
  registry.add("dropout_attention_backward", make<AttentionBackward<true>>, 9);
}

}  // namespace nn_cpu
