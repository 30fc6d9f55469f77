// A convolution and what inference does with its result, in one pass over memory:
//   y = f((convolution of x and weight + bias - mean) / sqrt(variance + eps) * gamma + beta + z)
//   joined_convolution   arrays x, weight, bias, beta, gamma, mean, variance, z, y, batch mean, batch variance; all
//                        between weight and y may be absent, mean and variance together. The last two become mean and
//                        variance, or zero.
// Settings: those of kernels/convolution.cpp, eps, relu (whether f keeps what is positive, or everything).
// Normalization is a factor and an offset for each output channel, worked out anew in each run; weights stay as they
// are packed.
#ifdef NN_ONEDNN

#include <cmath>

#include "kernels/convolution.hpp"
#include "kernels/register.hpp"
#include "kernels/unfolded_convolution.hpp"
#include "support/check.hpp"
#include "support/gemm.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"
#include "support/weight_cache.hpp"
#include "support/widen.hpp"

namespace nn_cpu {
namespace {

enum Place {
  kX,
  kWeight,
  kBias,
  kBeta,
  kGamma,
  kMean,
  kVariance,
  kZ,
  kY,
  kBatchMean,
  kBatchVariance,
  kScale,
  kShift,
  kPlaces
};

/// The same shape, channels-last in memory.
ArrayDesc channels_last(const ArrayDesc& desc) {
  ArrayDesc result = desc;
  int64_t step = desc.shape[1];
  result.strides[1] = 1;
  for (size_t axis = desc.shape.size() - 1; axis > 1; --axis) {
    result.strides[axis] = step;
    step *= desc.shape[axis];
  }
  result.strides[0] = step;
  return result;
}

template <Images kImages>
class JoinedConvolution : public Op {
 public:
  explicit JoinedConvolution(const Signature& s)
      : channels_(s.floating(kY).shape[1]),
        size_(s.floating(kY).size()),
        is_narrow_(s.floating(kY).dtype == DType::kBFloat16),
        eps_(s.args.real("eps")),
        relu_(s.args.flag("relu")) {
    const Geometry geometry(s.args);
    const ArrayDesc &x = s.floating(kX), &y = s.floating(kY), weight = grouped(s.array(kWeight), geometry.group, false);
    NN_CHECK(y.contiguous() || y.channels_last(), "y must be in one piece, got other strides");
    NN_CHECK(s.has(kMean) == s.has(kVariance), "mean and variance must be given together, got one of them");
    normalizes_ = s.has(kMean);
    shifts_ = normalizes_ || s.has(kBias);
    cost_ = flops_cost(weight, y);
    if (!s.has(kZ) || (s.floating(kZ).channels_last() && y.channels_last()))
      winograd_ = winograd_shape(geometry, x, weight, y, Weights::kStay);
    if (winograd_) {
      const auto shape = *winograd_;
      filters_.emplace(shape.filter_layout(), weight.size(), shape.filter_elements(),
                       [shape](const float* from, float* to) { winograd_filters(shape, from, to); });
    } else {
      prepare(s, geometry, x, weight, y);
    }
  }

  void run(void* const* arrays) const override {
    Scratch scratch(2 * Scratch::bytes<float>(channels_));
    auto *scale = scratch.take<float>(channels_), *shift = scratch.take<float>(channels_);
    fill(arrays, scale, shift);
    if (winograd_) {
      const Epilogue epilogue{normalizes_ ? scale : nullptr, shifts_ ? shift : nullptr,
                              static_cast<const float*>(arrays[kZ]), relu_};
      const auto* weight = static_cast<const float*>(arrays[kWeight]);
      const WeightCache::Packed filters = filters_->find(weight);
      winograd_forward(*winograd_, static_cast<const float*>(arrays[kX]), weight, filters.get(), epilogue,
                       static_cast<float*>(arrays[kY]));
      return;
    }
    if (unfolded_) {
      void* const operands[] = {arrays[kX], arrays[kWeight], nullptr, arrays[kY]};
      unfolded_->run(operands);
      finish(scale, shift, static_cast<const float*>(arrays[kZ]), static_cast<float*>(arrays[kY]));
      return;
    }
    void* all[kPlaces];
    std::copy_n(arrays, kScale, all);
    all[kScale] = scale;
    all[kShift] = shift;
    primitive_.run(all);
    if (relu_) is_narrow_ ? rectify(static_cast<Bf16*>(arrays[kY])) : rectify(static_cast<float*>(arrays[kY]));
  }

  std::vector<size_t> weights() const override {
    return winograd_ ? std::vector<size_t>{kWeight} : primitive_.weights();
  }

  std::string implementation() const override {
    if (winograd_) return "Winograd";
    return unfolded_ ? unfolded_->implementation() : primitive_.implementation();
  }

  double cost() const override { return cost_; }

 private:
  /// ReLU in place. It is no post-op of the primitive, whose maximum of NaN and 0 is 0.
  template <class T>
  void rectify(T* y) const {
    constexpr int64_t kGrain = 32768;  // elements a thread
    parallel_for(size_, kGrain, [&](int64_t begin, int64_t end, int) {
      row_loops<T>().row_standardize(y + begin, nullptr, end - begin, 0.0f, 1.0f, 0.0f, true, y + begin);
    });
  }

  void prepare(const Signature& s, const Geometry& geometry, const ArrayDesc& x, const ArrayDesc& weight,
               const ArrayDesc& y) {
    if constexpr (kImages == Images::kUnfolded) {
      unfolded_ = make_unfolded_convolution({{x, s.array(kWeight), std::nullopt, y}, s.args});
      y_ = y;
      z_ = s.has(kZ) ? s.array(kZ) : y;
      return;
    }
    // an addend needs the layout of the result, which therefore must be known
    const dnnl::memory::desc target = s.has(kZ) ? memory_desc(channels_last(y)) : preferred(y, x, kImages);
    dnnl::memory::dims shape(y.shape.size(), 1);
    shape[1] = channels_;
    dnnl::memory::dims strides(y.shape.size(), 1);
    strides[0] = channels_;
    const dnnl::memory::desc vector(shape, dnnl::memory::data_type::f32, strides);
    dnnl::post_ops after;
    std::vector<std::pair<int, dnnl::memory::desc>> operands;
    const auto binary = [&](dnnl::algorithm algorithm, int place, const dnnl::memory::desc& desc) {
      after.append_binary(algorithm, desc);
      operands.emplace_back(place, desc);
    };
    if (normalizes_) binary(dnnl::algorithm::binary_mul, kScale, vector);
    if (shifts_) binary(dnnl::algorithm::binary_add, kShift, vector);
    if (s.has(kZ)) binary(dnnl::algorithm::binary_add, kZ, target);
    dnnl::primitive_attr attributes = user_scratchpad();
    attributes.set_post_ops(after);
    const auto desc = described<dnnl::convolution_forward::primitive_desc>(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, preferred(x, y, kImages),
        any_layout(weight, x.dtype), dnnl::memory::desc(), target, geometry.stride, geometry.dilation, geometry.pad,
        geometry.pad_end, attributes);
    primitive_ = Primitive(dnnl::convolution_forward(desc), desc.scratchpad_desc());
    primitive_.input(DNNL_ARG_SRC, kX, memory_desc(x), desc.src_desc());
    primitive_.input(DNNL_ARG_WEIGHTS, kWeight, memory_desc(weight), desc.weights_desc(),
                     /*cached=*/s.array(kWeight).contiguous());
    for (size_t i = 0; i < operands.size(); ++i) {
      const auto& [place, inner] = operands[i];
      primitive_.input(DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1, place,
                       place == kZ ? memory_desc(s.floating(kZ)) : inner, inner);
    }
    primitive_.output(DNNL_ARG_DST, kY, memory_desc(y), desc.dst_desc());
  }

  /// What follows the unfolded convolution, in place.
  void finish(const float* scale, const float* shift, const float* z, float* y) const {
    const int64_t positions = y_.size() / std::max<int64_t>(y_.shape[0] * channels_, 1);
    const int64_t grain = 16384 / std::max<int64_t>(channels_, 1) + 1;
    parallel_for(y_.shape[0] * positions, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        float* to = y + place(y_, i, positions);
        const float* addend = z != nullptr ? z + place(z_, i, positions) : nullptr;
        for (int64_t k = 0; k < channels_; ++k) {
          float& value = to[k * y_.strides[1]];
          if (shifts_) value = value * scale[k] + shift[k];
          if (addend != nullptr) value += addend[k * z_.strides[1]];
          if (relu_ && value < 0.0f) value = 0.0f;  // NaN and -0 stay
        }
      }
    });
  }

  /// Offset of the first channel at position `i` of all images.
  static int64_t place(const ArrayDesc& image, int64_t i, int64_t positions) {
    int64_t offset = i / positions * image.strides[0];
    i %= positions;
    for (size_t axis = image.shape.size(); axis-- > 2; i /= image.shape[axis])
      offset += i % image.shape[axis] * image.strides[axis];
    return offset;
  }

  /// The factor and the offset of each channel, and the statistics for the caller.
  void fill(void* const* arrays, float* scale, float* shift) const {
    const auto at = [arrays](Place place) { return static_cast<const float*>(arrays[place]); };
    const float *bias = at(kBias), *beta = at(kBeta), *gamma = at(kGamma), *mean = at(kMean), *variance = at(kVariance);
    auto *batch_mean = static_cast<float*>(arrays[kBatchMean]),
         *batch_variance = static_cast<float*>(arrays[kBatchVariance]);
    for (int64_t k = 0; k < channels_; ++k) {
      if (batch_mean != nullptr) batch_mean[k] = normalizes_ ? mean[k] : 0.0f;
      if (batch_variance != nullptr) batch_variance[k] = normalizes_ ? variance[k] : 0.0f;
      scale[k] = normalizes_ ? (gamma != nullptr ? gamma[k] : 1.0f) / std::sqrt(variance[k] + eps_) : 1.0f;
      shift[k] = ((bias != nullptr ? bias[k] : 0.0f) - (normalizes_ ? mean[k] : 0.0f)) * scale[k] +
                 (beta != nullptr ? beta[k] : 0.0f);
    }
  }

  int64_t channels_, size_;
  bool is_narrow_;
  float eps_;
  bool relu_, normalizes_ = false, shifts_ = false;
  std::optional<WinogradShape> winograd_;
  std::optional<WeightCache> filters_;
  Primitive primitive_;
  std::unique_ptr<Op> unfolded_;
  ArrayDesc y_, z_;  // of the unfolded convolution
  double cost_ = 0;
};

std::unique_ptr<Op> make_joined(const Signature& s) {
  return make_convolution<JoinedConvolution<Images::kPlace>, JoinedConvolution<Images::kFree>>(
      s, make<JoinedConvolution<Images::kUnfolded>>, kY);
}

}  // namespace

void register_joined_convolution(Registry& registry) { registry.add("joined_convolution", make_joined); }

}  // namespace nn_cpu

#else

#include "kernels/register.hpp"

void nn_cpu::register_joined_convolution(Registry&) {}

#endif
