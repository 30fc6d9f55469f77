// What both passes of attention share: the operands, the mask and dropout. See attention.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "support/op.hpp"
#include "support/parallel.hpp"
#include "support/vector.hpp"

namespace nn_cpu::attention {

constexpr int64_t kQueries = 64, kKeys = 128;  // of a block: its scores stay in the first-level cache
/// Fewer heads are cut into parts, so that about as many can be shared between threads. In deterministic mode they are
/// not: the sums of a head would depend on how many heads there are.
constexpr int64_t kParts = 8;
constexpr float kHidden = -std::numeric_limits<float>::infinity();

inline int64_t blocks_of(int64_t length, int64_t block) { return (length + block - 1) / block; }

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

/// In place of `Dropping` without dropout.
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
        parts(std::clamp<int64_t>(blocks_of(deterministic() ? 1 : kParts, std::max<int64_t>(heads, 1)), 1,
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
    vectors().rows.row_scale(q, rows * features, scale, to);
  }

  /// The number of the first weight of a query among those of all heads.
  int64_t weight(int64_t head, int64_t i) const { return (head * queries + i) * keys; }

  double cost() const {
    const double products = static_cast<double>(heads) * static_cast<double>(queries) * static_cast<double>(keys) *
                            static_cast<double>(features + values);
    return products / (is_causal ? 200.0 : 100.0);
  }
};

}  // namespace nn_cpu::attention
