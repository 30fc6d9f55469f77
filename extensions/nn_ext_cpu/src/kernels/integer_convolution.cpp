// Convolutions of levels, with exact sums that wrap around as int32. O(B K C / G * spatial axes * kernel).
//   conv_integers   x (B, C, spatial axes), weight (K, C / G, kernel), zero points of one element, that of the
//                   weight of one or K, or none, bias (K) or none -> y (B, K, spatial axes), int32
//   conv_levels     the same with scale and zero point of y after the weight; the scale has one element or K -> y,
//                   levels
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "kernels/integer_depthwise.hpp"
#include "kernels/integer_winograd.hpp"
#include "kernels/levels.hpp"
#include "kernels/winograd.hpp"
#include "support/grid.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"

namespace nn_cpu {
namespace {

/// Copies each Step-th byte, or each `step`-th where Step is 0.
template <int64_t Step>
void copy_strided(const uint8_t* __restrict__ from, int64_t step, int64_t n, uint8_t* __restrict__ to) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i * (Step > 0 ? Step : step)];
}

/// What a tap reads of one line of positions: `n` numbers of a channel from `from` on.
struct Span {
  int64_t from, to, n;
};

/// What each tap reads of the positions of a piece, and whether that is all of them.
struct TapSpans {
  std::vector<Span> spans;
  bool is_whole;
};

class ConvIntegers : public Op {
 public:
  ConvIntegers(const Signature& s, const ProductPlaces& places)
      : x_zero_(s, places.x_zero),
        weight_zero_(s, places.weight_zero),
        bias_(places.bias),
        result_(s, places, levels(s, 1).shape[0]) {
    const ArrayDesc &x = levels(s, 0), &weight = levels(s, 1), &y = *s.arrays[places.y];
    const auto spatial = [](const Dims& dims) { return Dims(dims.begin() + 2, dims.end()); };
    groups_ = s.args.integer("group");
    batch_ = x.shape[0], filters_ = weight.shape[0] / groups_, channels_ = weight.shape[1];
    NN_CHECK(x.shape[1] == groups_ * channels_ && y.shape[1] == weight.shape[0],
             "channels must be those of the weights, got others");
    grid_ = grid_down({batch_, groups_, filters_, channels_, spatial(y.shape), spatial(x.shape), spatial(weight.shape),
                       s.args.dims("stride"), s.args.dims("dilation"), s.args.dims("pad")});
    k_ = channels_ * grid_.taps(), positions_ = grid_.positions();
    x_size_ = count(spatial(x.shape));
    is_plain_ = grid_.taps() == 1 && positions_ == x_size_ && grid_.axes[0].taps[0].offset == 0 &&
                grid_.axes[1].taps[0].offset == 0 && grid_.axes[2].taps[0].offset == 0;
    x_signed_ = x.dtype == DType::kInt8, weight_signed_ = weight.dtype == DType::kInt8;
    if (s.has(bias_))
      NN_CHECK(s.contiguous(bias_, DType::kInt32).size() == weight.shape[0], "bias must have one for each filter");
    const bool sign = weight_signed_;
    const int64_t k = k_, m = weight.shape[0];
    const std::string layout =
        std::string("integer rows ") + (sign ? "s" : "u") + std::to_string(m) + "x" + std::to_string(k);
    cache_ = cache_of(layout, m * k, left_bytes(m, k), [=, &loops = loops_](const uint8_t* from, void* to) {
      prepare_left(loops, {from, sign}, k, m, k, to);
    });
  }

  void run(void* const* arrays) const override {
    const int64_t m = groups_ * filters_;
    if (batch_ * m * positions_ == 0) return;
    const WeightCache::Packed kept = find(cache_, arrays[1]);
    Scratch scratch((kept == nullptr ? Scratch::bytes<char>(left_bytes(m, k_)) : 0) + Scratch::bytes<int32_t>(2 * m) +
                    result_.bytes());
    auto* left = const_cast<void*>(static_cast<const void*>(kept.get()));
    if (left == nullptr) {
      left = scratch.take<char>(left_bytes(m, k_));
      prepare_left(loops_, {static_cast<const uint8_t*>(arrays[1]), weight_signed_}, k_, m, k_, left);
    }
    auto* rows = scratch.take<int32_t>(2 * m);
    const IntegerTerms terms = row_terms(arrays, left_sums(left, m, k_), rows);
    const LevelScales scales = result_.scales(arrays, true, scratch);
    const int64_t step = piece(), pieces = (positions_ + step - 1) / step, jobs = batch_ * groups_ * pieces;
    const int64_t work = filters_ * k_ * std::min(step, positions_);
    // filters are split too where there are too few pieces of images
    const int64_t parts = jobs < num_threads() ? std::min<int64_t>(num_threads(), (filters_ + 11) / 12) : 1;
    parallel_for(jobs * parts, kGrain * parts / std::max<int64_t>(work, 1) + 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t job = item / parts, share = item % parts;
        const int64_t first = filters_ * share / parts, last = filters_ * (share + 1) / parts;
        const int64_t from = job % pieces * step;
        const Part own{job / pieces, first, last - first, from, std::min(step, positions_ - from)};
        part(arrays, left, terms, scales, own);
      }
    });
  }

  std::vector<size_t> weights() const override { return {1}; }
  bool independent_of_threads() const override { return true; }
  std::string implementation() const override { return "integer product, " + isa_; }
  double cost() const override {
    return static_cast<double>(batch_ * groups_) * product_cost(filters_, positions_, k_);
  }

 private:
  /// Positions of a piece: its numbers stay in the second-level cache.
  int64_t piece() const {
    const int64_t columns = loops_.columns;
    return std::max<int64_t>(kBytes / std::max<int64_t>(k_, 1) / columns, 4) * columns;
  }

  /// Bias and -p (sum - K q) for each filter, and -q.
  IntegerTerms row_terms(void* const* arrays, const int32_t* sums, int32_t* memory) const {
    IntegerTerms terms;
    const int64_t m = groups_ * filters_;
    const auto* bias = static_cast<const int32_t*>(arrays[bias_]);
    const int32_t zero = x_zero_.at(arrays, 0);
    for (int64_t i = 0; i < m; ++i) {
      const int32_t weight_zero = weight_zero_.at(arrays, i), share = added(negative(sums[i]), weight_zero, k_);
      memory[i] = added(bias != nullptr ? bias[i] : 0, zero, share);
      memory[m + i] = negative(weight_zero);
    }
    terms.rows = memory;
    if (weight_zero_.count() > 0) terms.outer[0].rows = memory + m;
    return terms;
  }

  /// Some filters of a group at some positions of one image.
  struct Part {
    int64_t image, first, filters, begin, positions;
  };

  void part(void* const* arrays, void* left, IntegerTerms terms, LevelScales scales, const Part& own) const {
    const int64_t n = own.positions, bytes = right_bytes(loops_, n, k_);
    const int64_t filter = own.image % groups_ * filters_ + own.first;
    Scratch scratch(Scratch::bytes<char>(bytes) + (is_plain_ ? 0 : Scratch::bytes<uint8_t>(k_ * n)));
    const auto* x = static_cast<const uint8_t*>(arrays[0]) + own.image * channels_ * x_size_;
    const uint8_t* columns = x + own.begin;
    if (!is_plain_) {
      auto* unfolded = scratch.take<uint8_t>(k_ * n);
      unfold(x, static_cast<uint8_t>(x_zero_.at(arrays, 0)), own.begin, own.begin + n, unfolded);
      columns = unfolded;
    }
    auto* right = scratch.take<char>(bytes);
    prepare_right(loops_, {columns, x_signed_}, is_plain_ ? x_size_ : n, k_, n, terms.outer[0].rows != nullptr, right);
    terms.rows += filter;
    if (terms.outer[0].rows != nullptr) {
      terms.outer[0].rows += filter;
      terms.outer[0].columns = right_sums(loops_, right, n, k_);
    }
    if (scales.rows != nullptr) scales.rows += filter;
    const int64_t depth = integer_depth(k_), offset = (own.image * filters_ + own.first) * positions_ + own.begin;
    const IntegerPart product{own.filters, n, k_, left_rows(left) + filter * depth, depth, right, 0};
    result_.product(loops_, product, terms, scales, arrays, offset, positions_);
  }

  /// to[channel][tap][position]
  void unfold(const uint8_t* x, uint8_t border, int64_t begin, int64_t end, uint8_t* to) const {
    const std::vector<TapSpans> taps = tap_spans(begin, end);
    const int64_t step = grid_.axes[2].step, n = end - begin;
    for (int64_t channel = 0; channel < channels_; ++channel, x += x_size_) {
      for (const TapSpans& tap : taps) {
        if (!tap.is_whole) std::fill_n(to, n, border);
        for (const Span& span : tap.spans) {
          if (step == 1) {
            copy_bytes(x + span.from, span.n, to + span.to);
          } else if (step == 2) {
            copy_strided<2>(x + span.from, 2, span.n, to + span.to);
          } else {
            copy_strided<0>(x + span.from, step, span.n, to + span.to);
          }
        }
        to += n;
      }
    }
  }

  std::vector<TapSpans> tap_spans(int64_t begin, int64_t end) const {
    const auto& [outer, middle, inner] = grid_.axes;
    std::vector<TapSpans> taps;
    for (const Axis::Tap& first : outer.taps) {
      for (const Axis::Tap& second : middle.taps) {
        for (const Axis::Tap& third : inner.taps) {
          TapSpans tap{{}, true};
          for_each_line(grid_, begin, end, [&](const Three& t, int64_t place, int64_t n) {
            const int64_t at0 = t[0] * outer.step + first.offset, at1 = t[1] * middle.step + second.offset;
            const bool is_inside = at0 >= 0 && at0 < outer.length && at1 >= 0 && at1 < middle.length;
            const int64_t start = t[2] * inner.step + third.offset, step = inner.step;
            const int64_t low = std::clamp<int64_t>(start < 0 ? (-start + step - 1) / step : 0, 0, n);
            const int64_t rest = inner.length - start;
            const int64_t high = is_inside ? std::clamp<int64_t>(rest > 0 ? (rest + step - 1) / step : 0, low, n) : low;
            if (high - low < n) tap.is_whole = false;
            if (high == low) return;
            tap.spans.push_back(
                {(at0 * middle.length + at1) * inner.length + start + low * step, place + low, high - low});
          });
          taps.push_back(std::move(tap));
        }
      }
    }
    return taps;
  }

  static constexpr int64_t kBytes = 98304;  // of unfolded images, whose panels have twice as many

  const IntegerLoops& loops_ = *vectors().integers;
  std::string isa_ = vectors().isa;
  ZeroPoint x_zero_, weight_zero_;
  size_t bias_;
  ProductResult result_;
  Grid grid_;
  int64_t batch_, groups_, filters_, channels_, k_, positions_, x_size_;
  bool is_plain_, x_signed_, weight_signed_;
  std::shared_ptr<WeightCache> cache_;
};

/// A convolution of 3 x 3 places by Winograd's method.
class WinogradIntegers : public Op {
 public:
  /// Whether the method gives the same sums, and faster.
  static bool takes(const Signature& s, const ProductPlaces& places) {
    const bool is_given = s.has(0) && s.has(1) && s.has(places.y), is_known = !s.has(places.weight_zero);
    if (!winograd_enabled() || !is_given || !is_known || s.arrays[1]->ndim() != 4) return false;
    const auto all = [&](const char* name, int64_t value) {
      const Dims dims = s.args.dims(name);
      return std::all_of(dims.begin(), dims.end(), [=](int64_t length) { return length == value; });
    };
    const Dims& kernel = s.arrays[1]->shape;
    const bool is_small = kernel[2] == 3 && kernel[3] == 3 && s.args.integer("group") == 1;
    return is_small && all("stride", 1) && all("dilation", 1) &&
           shape_of(s, places).is_faster(vectors().integers->columns);
  }

  WinogradIntegers(const Signature& s, const ProductPlaces& places)
      : shape_(shape_of(s, places)),
        x_zero_(s, places.x_zero),
        bias_(places.bias),
        result_(s, places, levels(s, 1).shape[0]),
        batch_(levels(s, 0).shape[0]) {
    NN_CHECK(s.arrays[1]->shape[1] == shape_.channels && s.arrays[places.y]->shape[1] == shape_.filters,
             "channels must be those of the weights, got others");
    if (s.has(bias_))
      NN_CHECK(s.contiguous(bias_, DType::kInt32).size() == shape_.filters, "bias must have one for each filter");
    const IntegerWinograd shape = shape_;
    cache_ = cache_of(shape.layout(), shape.filters * shape.channels * 9, shape.filter_bytes(),
                      [=](const uint8_t* from, void* to) { shape.transform_filters(from, to); });
  }

  void run(void* const* arrays) const override {
    const WeightCache::Packed kept = find(cache_, arrays[1]);
    const int64_t k = shape_.filters;
    Scratch scratch((kept == nullptr ? Scratch::bytes<char>(shape_.filter_bytes()) : 0) + Scratch::bytes<int32_t>(k) +
                    result_.bytes());
    const void* filters = kept.get();
    if (filters == nullptr) {
      auto* made = scratch.take<char>(shape_.filter_bytes());
      shape_.transform_filters(static_cast<const uint8_t*>(arrays[1]), made);
      filters = made;
    }
    auto* bias = scratch.take<int32_t>(k);
    const auto* given = static_cast<const int32_t*>(arrays[bias_]);
    for (int64_t i = 0; i < k; ++i) bias[i] = given != nullptr ? given[i] : 0;
    const LevelScales scales = result_.scales(arrays, true, scratch);
    const int64_t step = winograd_rows(shape_), rows = shape_.tile_rows(), pieces = (rows + step - 1) / step;
    const int64_t jobs = batch_ * pieces;
    // filters are split too where there are too few pieces of images
    const int64_t parts = jobs < num_threads() ? std::min<int64_t>(num_threads(), (k + 23) / 24) : 1;
    parallel_for(
        jobs * parts, static_cast<int64_t>(20'000.0 * static_cast<double>(jobs * parts) / cost()) + 1,
        [&](int64_t begin, int64_t end, int) {
          for (int64_t item = begin; item < end; ++item) {
            const int64_t job = item / parts, share = item % parts, image = job / pieces;
            const int64_t row = job % pieces * step, first = k * share / parts;
            const WinogradPart part{row, std::min(step, rows - row), first, k * (share + 1) / parts - first};
            const auto* x = static_cast<const uint8_t*>(arrays[0]) + image * shape_.channels * shape_.h * shape_.w;
            integer_winograd(loops_, shape_, part, x, x_zero_.at(arrays, 0), static_cast<const int16_t*>(filters), bias,
                             scales, result_, arrays, image * k * shape_.oh * shape_.ow);
          }
        });
  }

  std::vector<size_t> weights() const override { return {1}; }
  bool independent_of_threads() const override { return true; }
  std::string implementation() const override { return "Winograd of integers, " + isa_; }
  double cost() const override {
    return static_cast<double>(std::max<int64_t>(batch_, 1)) *
           product_cost(shape_.filters, shape_.oh * shape_.ow, 4 * shape_.channels + 64);
  }

 private:
  static IntegerWinograd shape_of(const Signature& s, const ProductPlaces& places) {
    const ArrayDesc &x = levels(s, 0), &weight = levels(s, 1);
    const Dims &image = x.shape, &y = s.arrays[places.y]->shape, pad = s.args.dims("pad");
    return {image[1],
            weight.shape[0],
            image[2],
            image[3],
            y[2],
            y[3],
            pad[0],
            pad[1],
            x.dtype == DType::kInt8,
            weight.dtype == DType::kInt8};
  }

  const IntegerLoops& loops_ = *vectors().integers;
  std::string isa_ = vectors().isa;
  IntegerWinograd shape_;
  ZeroPoint x_zero_;
  size_t bias_;
  ProductResult result_;
  int64_t batch_;
  std::shared_ptr<WeightCache> cache_;
};

template <bool ToLevels>
std::unique_ptr<Op> make_conv(const Signature& s) {
  const ProductPlaces places(ToLevels);
  if (WinogradIntegers::takes(s, places)) return std::make_unique<WinogradIntegers>(s, places);
  if (auto depthwise = make_depthwise_integers(s, places)) return depthwise;
  return std::make_unique<ConvIntegers>(s, places);
}

}  // namespace

void register_integer_convolution(Registry& registry) {
  registry.add("conv_integers", make_conv<false>);
  registry.add("conv_levels", make_conv<true>);
}

}  // namespace nn_cpu
