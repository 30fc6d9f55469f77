// Resampling axis by axis: along each of some axes, an element of the result is a weighted sum of a few elements, its
// taps. Interpolation, padding by reflection and shifting are made of it, and so are their gradients, with the taps the
// other way round.
//   resample   x -> y, both contiguous float32 of one rank; settings, for one axis after the other:
//     axes      the axes in the order in which they are treated
//     starts    for each axis, L + 1 numbers: taps starts[i] <= t < starts[i + 1] belong to place i of the result, L
//               the length there
//     indices, weights   of all taps of all axes, one axis after the other
// A place without taps is 0. Sums are kept in float32, in the order of the taps. Results between two axes live in
// working memory, for one entry of the axes before the first one at a time. O(elements * taps).
#include <algorithm>
#include <cstring>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kGrain = 16384;    // elements a thread
constexpr int64_t kFewColumns = 16;  // blocks this narrow are treated element by element

/// Neighbouring places of an axis with equally many taps: tap t of place i is at [t * count + i - first].
struct Run {
  int64_t first, count, taps;
  std::vector<int32_t> indices;
  std::vector<float> weights;
};

/// One axis of an array seen as (A, `from`, B), which becomes (A, `to`, B).
struct Pass {
  int64_t a, b, from, to;
  std::vector<Run> runs;

  int64_t input_size() const { return a * from * b; }
  int64_t output_size() const { return a * to * b; }

  /// Blocks [begin, end) of A.
  void compute(const float* x, float* y, int64_t begin, int64_t end) const {
    const VectorTable& table = vectors();
    for (int64_t block = begin; block < end; ++block) {
      const float* from_block = x + block * from * b;
      float* to_block = y + block * to * b;
      for (const Run& run : runs) {
        if (b == 1) {
          table.resample_row(from_block, run.count, run.indices.data(), run.weights.data(), run.taps,
                             to_block + run.first);
          continue;
        }
        for (int64_t i = 0; i < run.count; ++i) {
          mix(table, run, i, from_block, to_block + (run.first + i) * b);
        }
      }
    }
  }

 private:
  /// One row of the result.
  void mix(const VectorTable& table, const Run& run, int64_t i, const float* x, float* y) const {
    const auto row = [&](int64_t tap) { return x + run.indices[tap * run.count + i] * b; };
    const auto weight = [&](int64_t tap) { return run.weights[tap * run.count + i]; };
    if (run.taps == 0) {
      std::fill_n(y, b, 0.0f);
    } else if (run.taps == 1 && weight(0) == 1.0f) {
      std::memcpy(y, row(0), b * sizeof(float));
    } else if (run.taps == 1) {
      table.rows.row_scale(row(0), b, weight(0), y);
    } else {
      table.mix_rows(row(0), weight(0), row(1), weight(1), b, y);
      for (int64_t tap = 2; tap < run.taps; ++tap) table.axpy(weight(tap), row(tap), y, b);
    }
  }
};

class Resample : public Op {
 public:
  explicit Resample(const Signature& s) : x_size_(s.contiguous(0).size()), y_size_(s.contiguous(1).size()) {
    Dims shape = s.array(0).shape;
    const Dims &target = s.array(1).shape, &axes = s.args.dims("axes");
    const Dims &starts = s.args.dims("starts"), &indices = s.args.dims("indices");
    const auto& weights = s.args.get<std::vector<double>>("weights");
    NN_CHECK(shape.size() == target.size() && !axes.empty(),
             "x and y must have one rank, and axes be given, got other ones");
    const int64_t first = *std::min_element(axes.begin(), axes.end());
    for (int64_t axis = 0; axis < first; ++axis) outer_ *= shape[axis];
    size_t next_start = 0, next_tap = 0;
    for (const int64_t axis : axes) {
      const int64_t length = target[axis];
      NN_CHECK(next_start + length < starts.size(),
               "starts must be one more than places of an axis, got " << starts.size() << " in all");
      passes_.push_back(
          pass_along(shape, axis, first, length, &starts[next_start], &indices[next_tap], &weights[next_tap]));
      next_tap += starts[next_start + length];
      next_start += length + 1;
      shape[axis] = length;
    }
    NN_CHECK(shape == target && next_tap == indices.size() && weights.size() == indices.size(),
             "taps must lead from the shape of x to that of y, got " << to_string(shape));
    for (size_t k = 0; k + 1 < passes_.size(); ++k) between_ = std::max(between_, passes_[k].output_size());
  }

  void run(void* const* arrays) const override {
    if (y_size_ == 0) return;
    const auto* x = static_cast<const float*>(arrays[0]);
    auto* y = static_cast<float*>(arrays[1]);
    const int64_t x_block = x_size_ / outer_, y_block = y_size_ / outer_;
    if (outer_ >= num_threads()) {
      parallel_for(outer_, kGrain / (x_block + y_block) + 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t k = begin; k < end; ++k)
          run_block(x + k * x_block, y + k * y_block,
                    [](const Pass& pass, const float* from, float* to) { pass.compute(from, to, 0, pass.a); });
      });
      return;
    }
    for (int64_t k = 0; k < outer_; ++k) {
      run_block(x + k * x_block, y + k * y_block, [](const Pass& pass, const float* from, float* to) {
        parallel_for(pass.a, kGrain / (pass.input_size() / pass.a + pass.output_size() / pass.a + 1) + 1,
                     [&](int64_t begin, int64_t end, int) { pass.compute(from, to, begin, end); });
      });
    }
  }

  double cost() const override { return 100 + 0.5 * static_cast<double>(x_size_ + y_size_); }

 private:
  /// The axis of a block of `shape` (without the axes before `first`); narrow rows become single elements with taps of
  /// their own.
  static Pass pass_along(const Dims& shape, int64_t axis, int64_t first, int64_t length, const int64_t* starts,
                         const int64_t* indices, const double* weights) {
    Pass pass{1, 1, shape[axis], length, {}};
    for (int64_t k = first; k < static_cast<int64_t>(shape.size()); ++k) {
      if (k < axis) pass.a *= shape[k];
      if (k > axis) pass.b *= shape[k];
    }
    const int64_t spread = pass.b < kFewColumns ? pass.b : 1;
    for (int64_t i = 0; i < length;) {
      const int64_t taps = starts[i + 1] - starts[i];
      int64_t end = i + 1;
      while (end < length && starts[end + 1] - starts[end] == taps) ++end;
      Run run{i * spread, (end - i) * spread, taps, {}, {}};
      for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t place = i; place < end; ++place) {
          const int64_t index = indices[starts[place] + tap];
          NN_CHECK(index >= 0 && index < pass.from,
                   "indices of taps must be in [0, " << pass.from << "), got " << index);
          for (int64_t k = 0; k < spread; ++k) {
            run.indices.push_back(static_cast<int32_t>(index * spread + k));
            run.weights.push_back(static_cast<float>(weights[starts[place] + tap]));
          }
        }
      }
      pass.runs.push_back(std::move(run));
      i = end;
    }
    pass.from *= spread;
    pass.to *= spread;
    pass.b /= spread;
    return pass;
  }

  template <class Body>
  void run_block(const float* x, float* y, const Body& body) const {
    Scratch scratch(2 * Scratch::bytes<float>(between_));
    float* memory[2] = {scratch.take<float>(between_), scratch.take<float>(between_)};
    const float* from = x;
    for (size_t k = 0; k < passes_.size(); ++k) {
      float* to = k + 1 == passes_.size() ? y : memory[k % 2];
      body(passes_[k], from, to);
      from = to;
    }
  }

  int64_t x_size_, y_size_, outer_ = 1, between_ = 0;
  std::vector<Pass> passes_;
};

}  // namespace

void register_resample(Registry& registry) { registry.add("resample", make<Resample>, 1); }

}  // namespace nn_cpu
