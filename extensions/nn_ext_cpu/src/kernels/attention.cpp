// Attention of each query to all keys of its head: y = softmax(scale q k^T + mask) v.
//   attention            q (H, L, E), k (H, S, E), v (H, S, V), mask -> y (H, L, V), log_sum (H, L)
//   attention_backward   q, k, v, mask, y, log_sum, dy -> dq, dk, dv, dmask, each of which may be left out
//   dropout_attention            q, k, v, mask -> y, drawn, log_sum; then the key, as of dropout in random.cpp
//   dropout_attention_backward   q, k, v, mask, y, drawn, log_sum, dy, nothing -> dq, dk, dv, dmask
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
// S (E + V)) time, O(parts S (E + V)) memory. The gradient of the mask is a pass of its own over the blocks of the
// mask, each of which sums over all scores that share it, so that blocks are independent where heads or queries share a
// mask.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
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
  int64_t query = 0, key = 0;  // strides

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
    query = strides_[scores.size() - 2], key = strides_.back();
  }

  /// Where the rows of a head begin.
  int64_t start(int64_t head) const {
    int64_t start = 0;
    for (size_t axis = strides_.size() - 2; axis-- > 0; head /= lengths_[axis])
      start += head % lengths_[axis] * strides_[axis];
    return start;
  }

  /// Adds the entries of queries [i, i + rows) and keys [j, j + columns) of a head to a block of scores.
  void add(const float* mask, int64_t head, int64_t i, int64_t rows, int64_t j, int64_t columns, float* block) const {
    if (mask == nullptr) return;
    mask += start(head);
    for (int64_t row = 0; row < rows; ++row) {
      const float* from = mask + (i + row) * query + j * key;
      float* to = block + row * kKeys;
      for (int64_t column = 0; column < columns; ++column) to[column] += from[column * key];
    }
  }

  /// The heads that share rows of the mask, by where these begin.
  std::map<int64_t, std::vector<int64_t>> sharing(int64_t heads) const {
    std::map<int64_t, std::vector<int64_t>> found;
    for (int64_t head = 0; head < heads; ++head) found[start(head)].push_back(head);
    return found;
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

  /// Calls body(piece) for `pieces` of the work on threads.
  template <class Body>
  void share(int64_t pieces, const Body& body) const {
    const int team_size = cost() < 20000 ? 1 : static_cast<int>(std::min<int64_t>(num_threads(), pieces));
    as_team(team_size, 1, [&](Team& team) {
      team.share(0, pieces, [&](int64_t begin, int64_t end) {
        for (int64_t piece = begin; piece < end; ++piece) body(piece);
      });
    });
  }

  /// Calls body(head, part) on threads.
  template <class Body>
  void visit(const Body& body) const {
    share(heads * parts, [&](int64_t piece) { body(piece / parts, piece % parts); });
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
        change(a, i, rows, columns, inner + n * kQueries, block);
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
          change(a, i, rows, columns, inner, block);
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

  /// The gradients of the scores of a block, from its weights.
  void change(const Head& a, int64_t i, int64_t rows, int64_t columns, const float* inner, const Block& block) const {
    const Heads& h = heads_;
    vectors().product(rows, columns, h.values, a.dy + i * h.values, h.values, 1, block.turned_v, kKeys, false, nullptr,
                      block.changes, kKeys);
    for (int64_t row = 0; row < rows; ++row) {
      float* to = block.changes + row * kKeys;
      const float *from = block.weights + row * kKeys, product = inner[row];
      const float* times = kDrops ? block.factors + row * kKeys : nullptr;
      for (int64_t column = 0; column < columns; ++column)
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

void register_attention(Registry& registry) {
  registry.add("attention", make<Attention<false>>, 4);
  registry.add("attention_backward", make<AttentionBackward<false>>, 7);
  registry.add("dropout_attention", make<Attention<true>>, 4);
  registry.add("dropout_attention_backward", make<AttentionBackward<true>>, 9);
}

}  // namespace nn_cpu
