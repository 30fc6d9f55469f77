#include "kernels/integer_depthwise.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "support/grid.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"

namespace nn_cpu {
namespace {

/// A convolution of each channel by itself, in floating-point numbers: those of float32 hold its sums, which have few
/// products, exactly. An image is cut into one for each place that strides skip, so that a tap reads neighbours.
class DepthwiseIntegers : public Op {
 public:
  /// Whether sums stay exact: products have 16 bits, and float32 has 24.
  static bool takes(const Signature& s, const ProductPlaces& places) {
    const ArrayDesc weight = s.arrays.at(1).value_or(ArrayDesc{});
    const Dims& kernel = weight.shape;
    const size_t zero = places.weight_zero;
    const bool is_flat = kernel.size() == 3 || kernel.size() == 4,
               is_centred = !s.has(zero) || s.arrays[zero]->dtype == weight.dtype;
    return is_flat && is_centred && kernel[1] == 1 && s.args.integer("group") > 1 && count(kernel) <= kernel[0] * 256;
  }

  DepthwiseIntegers(const Signature& s, const ProductPlaces& places)
      : x_zero_(s, places.x_zero),
        weight_zero_(s, places.weight_zero),
        bias_(places.bias),
        result_of_(s, places, levels(s, 1).shape[0]) {
    const ArrayDesc &x = levels(s, 0), &weight = levels(s, 1), &y = *s.arrays[places.y];
    x_type_ = level_type(x.dtype), weight_type_ = level_type(weight.dtype);
    channels_ = x.shape[1], images_ = x.shape[0] * channels_, filters_ = weight.shape[0] / channels_;
    NN_CHECK(s.args.integer("group") == channels_ && weight.shape[0] == channels_ * filters_ &&
                 y.shape[1] == weight.shape[0],
             "channels must be those of the weights, got others");
    if (s.has(bias_))
      NN_CHECK(s.contiguous(bias_, DType::kInt32).size() == weight.shape[0], "bias must have one for each filter");
    const auto two = [](const Dims& dims, int64_t missing) {
      const Three axes = three(dims, missing);
      return Pair{axes[1], axes[2]};
    };
    const auto spatial = [](const Dims& dims) { return Dims(dims.begin() + 2, dims.end()); };
    size_ = two(spatial(x.shape), 1), result_ = two(spatial(y.shape), 1), kernel_ = two(spatial(weight.shape), 1);
    stride_ = two(s.args.dims("stride"), 1), dilation_ = two(s.args.dims("dilation"), 1),
    pad_ = two(s.args.dims("pad"), 0);
    for (size_t axis = 0; axis < 2; ++axis) {
      part_[axis] = result_[axis] + (kernel_[axis] - 1) * dilation_[axis] / stride_[axis];
    }
    plane_ = (part_[0] + 1) * part_[1];  // lines of results run on into places that nobody reads
    for (int64_t i = 0; i < kernel_[0]; ++i) {
      for (int64_t j = 0; j < kernel_[1]; ++j) {
        const int64_t row = i * dilation_[0], column = j * dilation_[1];
        offsets_.push_back((row % stride_[0] * stride_[1] + column % stride_[1]) * plane_ +
                           row / stride_[0] * part_[1] + column / stride_[1]);
      }
    }
  }

  void run(void* const* arrays) const override {
    const int64_t taps = kernel_[0] * kernel_[1], places = result_[0] * part_[1];
    const int64_t work = taps * places * filters_;
    Scratch shared(result_of_.bytes() + Scratch::bytes<float>(channels_ * filters_ * taps));
    const LevelScales scales = result_of_.scales(arrays, true, shared);
    auto* weights = shared.take<float>(channels_ * filters_ * taps);
    centre_weights(arrays, weights);
    parallel_for(images_, 100'000 / std::max<int64_t>(work, 1) + 1, [&](int64_t begin, int64_t end, int) {
      Scratch scratch(Scratch::bytes<float>(stride_[0] * stride_[1] * plane_) + Scratch::bytes<int32_t>(places) +
                      Scratch::bytes<float>(size_[0] * size_[1]));
      auto *planes = scratch.take<float>(stride_[0] * stride_[1] * plane_),
           *numbers = scratch.take<float>(size_[0] * size_[1]);
      auto* sums = scratch.take<int32_t>(places);
      std::fill_n(planes, stride_[0] * stride_[1] * plane_, 0.0f);  // what is written is the same for all images
      for (int64_t image = begin; image < end; ++image) {
        spread(arrays, image, numbers, planes);
        for (int64_t k = 0; k < filters_; ++k) filter(arrays, image, k, planes, weights, scales, sums);
      }
    });
  }

  bool independent_of_threads() const override { return true; }
  std::string implementation() const override { return "depthwise sums of integers, " + isa_; }
  double cost() const override {
    return static_cast<double>(images_ * filters_ * result_[0] * part_[1] * kernel_[0] * kernel_[1]) * 0.15;
  }

 private:
  using Pair = std::array<int64_t, 2>;

  /// The numbers of an image less the zero point, each in its plane; borders stay zero.
  void spread(void* const* arrays, int64_t image, float* numbers, float* planes) const {
    const auto* x = static_cast<const uint8_t*>(arrays[0]) + image * size_[0] * size_[1];
    const int32_t zero = x_zero_.at(arrays, 0);
    const float one = 1.0f;
    loops_.dequantize(x, size_[0] * size_[1], &one, &zero, false, x_type_, numbers);
    for (int64_t i = 0; i < size_[0]; ++i) {
      const int64_t row = i + pad_[0];
      if (row / stride_[0] >= part_[0]) break;
      const float* line = numbers + i * size_[1];
      float* to = planes + row % stride_[0] * stride_[1] * plane_ + row / stride_[0] * part_[1];
      const int64_t last = std::min(size_[1], part_[1] * stride_[1] - pad_[1]);
      if (stride_[1] == 1) {
        std::copy_n(line, std::max<int64_t>(last, 0), to + pad_[1]);
        continue;
      }
      for (int64_t phase = 0; phase < stride_[1]; ++phase) {
        const int64_t first = (phase - pad_[1] % stride_[1] + stride_[1]) % stride_[1];
        float* place = to + phase * plane_ + (first + pad_[1]) / stride_[1];
        for (int64_t j = first; j < last; j += stride_[1]) *place++ = line[j];
      }
    }
  }

  /// The weights of all filters less their zero points.
  void centre_weights(void* const* arrays, float* to) const {
    const auto* weights = static_cast<const uint8_t*>(arrays[1]);
    const int64_t taps = kernel_[0] * kernel_[1], each = weight_zero_.count() > 1 ? 1 : channels_ * filters_;
    const float one = 1.0f;
    for (int64_t k = 0; k < channels_ * filters_; k += each) {
      const int32_t zero = weight_zero_.at(arrays, k);
      loops_.dequantize(weights + k * taps, each * taps, &one, &zero, false, weight_type_, to + k * taps);
    }
  }

  void filter(void* const* arrays, int64_t image, int64_t k, const float* planes, const float* weights,
              LevelScales scales, int32_t* sums) const {
    const int64_t channel = image % channels_ * filters_ + k, taps = kernel_[0] * kernel_[1];
    const float* from[256];
    for (int64_t t = 0; t < taps; ++t) from[t] = planes + offsets_[static_cast<size_t>(t)];
    loops_.taps(from, weights + channel * taps, taps, result_[0] * part_[1], sums);
    finish(arrays, channel, (image * filters_ + k) * result_[0] * result_[1], scales, sums);
  }

  /// Writes the sums of a channel, with its bias; `offset`: where it begins in the result.
  void finish(void* const* arrays, int64_t channel, int64_t offset, LevelScales scales, const int32_t* sums) const {
    const auto* bias = static_cast<const int32_t*>(arrays[bias_]);
    const auto [rows, columns] = result_;
    if (result_of_.to_levels()) {
      const int32_t zero = 0;
      IntegerTerms terms;
      terms.rows = bias != nullptr ? bias + channel : &zero;
      scales.rows += channel;
      auto* y = static_cast<uint8_t*>(arrays[result_of_.places().y]) + offset;
      if (columns == part_[1]) return loops_.requantize(1, rows * columns, terms, sums, 0, scales, y, 0);
      // all at once, and then without the places that nobody reads
      Scratch scratch(Scratch::bytes<uint8_t>(rows * part_[1] + 16));
      auto* levels = scratch.take<uint8_t>(rows * part_[1] + 16);
      loops_.requantize(1, rows * part_[1], terms, sums, 0, scales, levels, 0);
      for (int64_t i = 0; i < rows; ++i) copy_bytes(levels + i * part_[1], columns, y + i * columns);
      return;
    }
    const uint32_t shift = bias != nullptr ? static_cast<uint32_t>(bias[channel]) : 0u;
    int32_t* y = static_cast<int32_t*>(arrays[result_of_.places().y]) + offset;
    for (int64_t i = 0; i < rows; ++i, y += columns) {
      const int32_t* row = sums + i * part_[1];
      for (int64_t j = 0; j < columns; ++j) y[j] = static_cast<int32_t>(static_cast<uint32_t>(row[j]) + shift);
    }
  }

  const IntegerLoops& loops_ = *vectors().integers;
  std::string isa_ = vectors().isa;
  ZeroPoint x_zero_, weight_zero_;
  size_t bias_;
  ProductResult result_of_;
  LevelType x_type_, weight_type_;
  int64_t channels_, images_, filters_, plane_;
  std::vector<int64_t> offsets_;                                  // of what each tap reads, in the planes
  Pair size_, result_, kernel_, stride_, dilation_, pad_, part_;  // part_: lines and columns of a plane that are read
};

}  // namespace

std::unique_ptr<Op> make_depthwise_integers(const Signature& s, const ProductPlaces& places) {
  if (!DepthwiseIntegers::takes(s, places)) return nullptr;
  return std::make_unique<DepthwiseIntegers>(s, places);
}

}  // namespace nn_cpu
