// Convolution and its gradients by oneDNN, in one, two or three spatial dimensions. Logical shapes, any strides:
//   x (N, C, ...), weight (K, C / G, ...), bias (K), y (N, K, ...)
//   convolution           arrays x, weight, bias or none, y
//   convolution_backward  arrays x, weight, none, none, dy, dx, dweight, dbias; any of the last three may be absent
//   deconvolution, deconvolution_backward: the same with weight (C, K / G, ...), the gradient of a convolution as a
//   layer
// Settings: pad, stride, dilation (1 = dense), pad_end (padding at the end, which covers output padding), group.
// Images may be bfloat16; weights, biases and their gradients are float32 also then, and converted as they are
// reordered. What oneDNN has no good primitive for runs by kernels/unfolded_convolution.hpp, as does everything without
// oneDNN. 3 x 3 float32 convolutions of channels-last images go to kernels/winograd.hpp where that pays, and those with
// long sums to kernels/split_convolution.hpp. Weights come in the user's layout and are reordered to the one the
// primitive likes, once a run. Time O(N K C / G * kernel * output positions); sums in float32 inside oneDNN.
#ifdef NN_ONEDNN

#include <algorithm>
#include <memory>

#include "kernels/convolution.hpp"
#include "kernels/register.hpp"
#include "kernels/split_convolution.hpp"
#include "kernels/unfolded_convolution.hpp"
#include "support/check.hpp"
#include "support/column_sums.hpp"
#include "support/engine.hpp"
#include "support/gemm.hpp"
#include "support/weight_cache.hpp"
#include "support/widen.hpp"

namespace nn_cpu {
namespace {

using dnnl::memory;

/// The differences between convolution and deconvolution: the classes of oneDNN and how weights are stored.
struct Ordinary {
  using Forward = dnnl::convolution_forward;
  using BackwardData = dnnl::convolution_backward_data;
  using BackwardWeights = dnnl::convolution_backward_weights;
  static constexpr bool kTransposed = false;
  static constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
};
struct Transposed {
  using Forward = dnnl::deconvolution_forward;
  using BackwardData = dnnl::deconvolution_backward_data;
  using BackwardWeights = dnnl::deconvolution_backward_weights;
  static constexpr bool kTransposed = true;
  static constexpr auto kAlgorithm = dnnl::algorithm::deconvolution_direct;
};

template <class Kind>
typename Kind::Forward::primitive_desc forward_desc(const Geometry& geometry, Images images, const ArrayDesc& x,
                                                    const ArrayDesc& weight, const std::optional<ArrayDesc>& bias,
                                                    const ArrayDesc& y) {
  return described<typename Kind::Forward::primitive_desc>(
      dnnl::prop_kind::forward_training, Kind::kAlgorithm, preferred(x, y, images), any_layout(weight, x.dtype),
      bias ? memory_desc(*bias) : memory::desc(), preferred(y, x, images), geometry.stride, geometry.dilation,
      geometry.pad, geometry.pad_end, user_scratchpad());
}

template <class Kind, Images kImages>
class Convolution : public Op {
 public:
  explicit Convolution(const Signature& s) {
    const Geometry geometry(s.args);
    const ArrayDesc &x = s.floating(0), &y = s.floating(3),
                    weight = grouped(s.array(1), geometry.group, Kind::kTransposed);
    cost_ = flops_cost(weight, y);
    winograd_ = Kind::kTransposed ? std::nullopt : winograd_shape(geometry, x, weight, y, Weights::kMayChange);
    if (winograd_) {
      const auto shape = *winograd_;
      filters_.emplace(shape.filter_layout(), weight.size(), shape.filter_elements(),
                       [shape](const float* from, float* to) { winograd_filters(shape, from, to); });
      return;
    }
    if (!Kind::kTransposed) split_ = SplitConvolution::where_long(geometry, x, weight, s.arrays[2], y);
    if (split_) return;
    const auto desc = forward_desc<Kind>(geometry, kImages, x, weight, s.arrays[2], y);
    primitive_ = Primitive(typename Kind::Forward(desc), desc.scratchpad_desc());
    primitive_.input(DNNL_ARG_SRC, 0, memory_desc(x), desc.src_desc());
    primitive_.input(DNNL_ARG_WEIGHTS, 1, memory_desc(weight), desc.weights_desc(), /*cached=*/s.array(1).contiguous());
    if (s.has(2)) primitive_.input(DNNL_ARG_BIAS, 2, memory_desc(s.array(2)), desc.bias_desc());
    primitive_.output(DNNL_ARG_DST, 3, memory_desc(y), desc.dst_desc());
  }

  void run(void* const* arrays) const override {
    if (split_) {
      split_->run(arrays);
      return;
    }
    if (!winograd_) {
      primitive_.run(arrays);
      return;
    }
    const auto* weight = static_cast<const float*>(arrays[1]);
    const WeightCache::Packed filters = filters_->find(weight);
    winograd_forward(*winograd_, static_cast<const float*>(arrays[0]), weight, filters.get(),
                     {nullptr, static_cast<const float*>(arrays[2])}, static_cast<float*>(arrays[3]));
  }

  std::vector<size_t> weights() const override {
    return winograd_ || split_ ? std::vector<size_t>{1} : primitive_.weights();
  }

  std::string implementation() const override {
    if (split_) return split_->implementation();
    return winograd_ ? "Winograd" : primitive_.implementation();
  }

  double cost() const override { return cost_; }

 private:
  std::optional<WinogradShape> winograd_;
  std::optional<WeightCache> filters_;
  std::unique_ptr<SplitConvolution> split_;
  Primitive primitive_;
  double cost_;
};

template <class Kind, Images kImages>
class ConvolutionBackward : public Op {
 public:
  explicit ConvolutionBackward(const Signature& s) {
    const Geometry geometry(s.args);
    const ArrayDesc &x = s.floating(s.has(0) ? 0 : 5), &dy = s.floating(4);
    const ArrayDesc weight = grouped(s.array(s.has(1) ? 1 : 6), geometry.group, Kind::kTransposed);
    const std::optional<ArrayDesc> bias = s.has(7) ? s.arrays[7] : std::nullopt;
    cost_ = flops_cost(weight, dy) * 2;
    winograd_ = Kind::kTransposed ? std::nullopt : winograd_shape(geometry, x, weight, dy, Weights::kChange);
    with_weight_ = s.has(6);
    if (s.has(7))
      NN_CHECK(with_weight_, "convolution_backward must compute dweight where it computes dbias, got dbias alone");
    if (winograd_ && (!s.has(5) || fastest_winograd(winograd_->transposed(), Weights::kChange))) return;
    winograd_.reset();
    const auto forward = forward_desc<Kind>(geometry, kImages, x, weight, bias, dy);
    if (s.has(5)) prepare_data(geometry, forward, x, weight, dy);
    if (with_weight_) prepare_weights(geometry, forward, x, weight, bias, dy);
  }

  void run(void* const* arrays) const override {
    if (data_) data_->run(arrays);
    if (weights_) weights_->run(arrays);
    if (winograd_) run_winograd(arrays);
  }

  std::string implementation() const override {
    if (winograd_) return "Winograd";
    return joined({data_ ? data_->implementation() : "", weights_ ? weights_->implementation() : ""});
  }

  double cost() const override { return cost_; }

 private:
  using Forward = typename Kind::Forward::primitive_desc;

  void prepare_data(const Geometry& geometry, const Forward& forward, const ArrayDesc& x, const ArrayDesc& weight,
                    const ArrayDesc& dy) {
    const auto desc = described<typename Kind::BackwardData::primitive_desc>(
        Kind::kAlgorithm, preferred(x, dy, kImages), any_layout(weight, x.dtype), preferred(dy, x, kImages),
        geometry.stride, geometry.dilation, geometry.pad, geometry.pad_end, forward, user_scratchpad());
    data_.emplace(typename Kind::BackwardData(desc), desc.scratchpad_desc());
    data_->input(DNNL_ARG_DIFF_DST, 4, memory_desc(dy), desc.diff_dst_desc());
    data_->input(DNNL_ARG_WEIGHTS, 1, memory_desc(weight), desc.weights_desc());
    data_->output(DNNL_ARG_DIFF_SRC, 5, memory_desc(x), desc.diff_src_desc());
  }

  void prepare_weights(const Geometry& geometry, const Forward& forward, const ArrayDesc& x, const ArrayDesc& weight,
                       const std::optional<ArrayDesc>& bias, const ArrayDesc& dy) {
    const auto desc = described<typename Kind::BackwardWeights::primitive_desc>(
        Kind::kAlgorithm, preferred(x, dy, kImages), any_layout(weight), bias ? memory_desc(*bias) : memory::desc(),
        preferred(dy, x, kImages), geometry.stride, geometry.dilation, geometry.pad, geometry.pad_end, forward,
        user_scratchpad());
    weights_.emplace(typename Kind::BackwardWeights(desc), desc.scratchpad_desc());
    weights_->input(DNNL_ARG_SRC, 0, memory_desc(x), desc.src_desc());
    weights_->input(DNNL_ARG_DIFF_DST, 4, memory_desc(dy), desc.diff_dst_desc());
    weights_->output(DNNL_ARG_DIFF_WEIGHTS, 6, memory_desc(weight), desc.diff_weights_desc());
    if (bias) weights_->output(DNNL_ARG_DIFF_BIAS, 7, memory_desc(*bias), desc.diff_bias_desc());
  }

  void run_winograd(void* const* arrays) const {
    const auto *x = static_cast<const float*>(arrays[0]), *weight = static_cast<const float*>(arrays[1]);
    const auto* dy = static_cast<const float*>(arrays[4]);
    if (arrays[5] != nullptr)
      winograd_forward(winograd_->transposed(), dy, weight, nullptr, {}, static_cast<float*>(arrays[5]));
    if (with_weight_) winograd_weights(*winograd_, x, dy, static_cast<float*>(arrays[6]));
    if (arrays[7] != nullptr)
      column_sums(dy, winograd_->n * winograd_->oh * winograd_->ow, winograd_->k, static_cast<float*>(arrays[7]));
  }

  std::optional<WinogradShape> winograd_;
  bool with_weight_ = false;
  std::optional<Primitive> data_, weights_;
  double cost_;
};

template <class Kind>
std::unique_ptr<Op> make_forward(const Signature& s) {
  constexpr auto unfolded = Kind::kTransposed ? make_unfolded_deconvolution : make_unfolded_convolution;
  return make_convolution<Convolution<Kind, Images::kPlace>, Convolution<Kind, Images::kFree>>(s, unfolded, 3);
}

template <class Kind>
std::unique_ptr<Op> make_backward(const Signature& s) {
  constexpr auto unfolded =
      Kind::kTransposed ? make_unfolded_deconvolution_backward : make_unfolded_convolution_backward;
  return make_convolution<ConvolutionBackward<Kind, Images::kPlace>, ConvolutionBackward<Kind, Images::kFree>>(
      s, unfolded, 5);
}

}  // namespace

void register_convolution(Registry& registry) {
  registry.add("convolution", make_forward<Ordinary>);
  registry.add("convolution_backward", make_backward<Ordinary>);
  registry.add("deconvolution", make_forward<Transposed>);
  registry.add("deconvolution_backward", make_backward<Transposed>);
}

}  // namespace nn_cpu

#else

#include "kernels/register.hpp"
#include "kernels/unfolded_convolution.hpp"

void nn_cpu::register_convolution(Registry& registry) {
  registry.add("convolution", make_unfolded_convolution, 3);
  registry.add("convolution_backward", make_unfolded_convolution_backward, 5);
  registry.add("deconvolution", make_unfolded_deconvolution, 3);
  registry.add("deconvolution_backward", make_unfolded_deconvolution_backward, 5);
}

#endif
