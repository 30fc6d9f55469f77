// The forward pass of attention for a head, block by block; see attention.cpp.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/attention.hpp"
#include "support/scratch.hpp"

namespace nn_cpu::attention {

inline float larger_or_nan(float a, float b) { return a < b || b != b ? b : a; }

/// The first `keys` keys of a head, turned, and working memory for a block of queries.
class Blocks {
 public:
  static size_t bytes(const Heads& h, int64_t keys) {
    return Scratch::bytes<float>(blocks_of(keys, kKeys) * kKeys * h.features) +
           Scratch::bytes<float>(kQueries * kKeys) + Scratch::bytes<float>(kQueries * h.features) +
           2 * Scratch::bytes<float>(kQueries);
  }

  Blocks(const Heads& heads, int64_t keys, Scratch& scratch)
      : h_(heads),
        keys_(keys),
        turned_(scratch.take<float>(blocks_of(keys, kKeys) * kKeys * heads.features)),
        weights_(scratch.take<float>(kQueries * kKeys)),
        scaled_(scratch.take<float>(kQueries * heads.features)),
        largest_(scratch.take<float>(kQueries)),
        total_(scratch.take<float>(kQueries)) {}

  void turn(const float* keys) {
    for (int64_t j = 0; j < keys_; j += kKeys) {
      vectors().transpose(keys + j * h_.features, std::min(kKeys, keys_ - j), h_.features, h_.features,
                          turned_ + j * h_.features, kKeys);
    }
  }

  /// Queries [i, i + rows) and all keys. change(row, j, weights, columns) may change the weights of the keys from j on
  /// after they were summed; log_sum may be nullptr.
  template <class Change>
  void attend(const float* q, const float* v, const float* mask, int64_t head, int64_t i, int64_t rows, float* y,
              float* log_sum, const Change& change) {
    h_.scaled(q, rows, scaled_);
    std::fill_n(largest_, rows, kHidden);
    std::fill_n(total_, rows, 0.0f);
    std::fill_n(y, rows * h_.values, 0.0f);
    for (int64_t j = 0; j < keys_; j += kKeys) {
      const int64_t columns = std::min(kKeys, keys_ - j);
      if (h_.seen(i + rows - 1, j, columns) == 0) break;
      h_.scores(scaled_, rows, turned_ + j * h_.features, columns, mask, head, i, j, weights_);
      for (int64_t row = 0; row < rows; ++row) {
        weigh(row, h_.seen(i + row, j, columns), columns, y + row * h_.values);
        change(row, j, weights_ + row * kKeys, columns);
      }
      vectors().product(rows, h_.values, columns, weights_, kKeys, 1, v + j * h_.values, h_.values, true, nullptr, y,
                        h_.values);
    }
    for (int64_t row = 0; row < rows; ++row) {
      const bool sees_none = largest_[row] == kHidden;
      const float inverse = sees_none ? 0.0f : 1.0f / total_[row];
      vectors().rows.row_scale(y + row * h_.values, h_.values, inverse, y + row * h_.values);
      if (log_sum != nullptr) log_sum[row] = sees_none ? kHidden : largest_[row] + std::log(total_[row]);
    }
  }

 private:
  /// Turns the scores of a query into weights, and brings what was summed before to the same largest score.
  void weigh(int64_t row, int64_t seen, int64_t columns, float* y) {
    float* weights = weights_ + row * kKeys;
    std::fill(weights + seen, weights + columns, 0.0f);
    const float before = largest_[row];
    const float largest = seen == 0 ? before : larger_or_nan(before, vectors().max(weights, seen));
    if (largest == kHidden) {
      std::fill_n(weights, seen, 0.0f);
      return;
    }
    const auto sum = static_cast<float>(vectors().exp_sum(weights, largest, weights, seen));
    if (before != kHidden && largest != before) {
      const float shrink = std::exp(before - largest);
      total_[row] *= shrink;
      vectors().rows.row_scale(y, h_.values, shrink, y);
    }
    total_[row] += sum;
    largest_[row] = largest;
  }

  const Heads& h_;
  int64_t keys_;
  float *turned_, *weights_, *scaled_, *largest_, *total_;
};

}  // namespace nn_cpu::attention
