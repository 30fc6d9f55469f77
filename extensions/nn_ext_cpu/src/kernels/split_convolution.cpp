#include "kernels/split_convolution.hpp"

#ifdef NN_ONEDNN

namespace nn_cpu {
namespace {

using dnnl::memory;

constexpr int64_t kParts = 4;
constexpr int64_t kLongChain = 2048;     // products of a sum
constexpr int64_t kChannelMultiple = 8;  // in each part: a vector of AVX2
constexpr int64_t kLineElements = 16;    // of float32 in a line of the cache

/// The description of a convolution that adds to y what it computes, or writes it.
dnnl::convolution_forward::primitive_desc part_desc(const Geometry& geometry, const ArrayDesc& x,
                                                    const ArrayDesc& weight, const std::optional<ArrayDesc>& bias,
                                                    const ArrayDesc& y, bool adds) {
  dnnl::primitive_attr attributes = user_scratchpad();
  if (adds) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  return described<dnnl::convolution_forward::primitive_desc>(
      dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, memory_desc(x), any_layout(weight),
      bias ? memory_desc(*bias) : memory::desc(), memory_desc(y), geometry.stride, geometry.dilation, geometry.pad,
      geometry.pad_end, attributes);
}

}  // namespace

std::unique_ptr<SplitConvolution> SplitConvolution::where_long(const Geometry& geometry, const ArrayDesc& x,
                                                               const ArrayDesc& weight,
                                                               const std::optional<ArrayDesc>& bias,
                                                               const ArrayDesc& y) {
  const int64_t channels = x.shape[1], chain = weight.size() / weight.shape[0];
  // kernels of a single place have a method that adds up parts already
  if (geometry.group != 1 || chain < kLongChain || chain == channels || channels % (kParts * kChannelMultiple) != 0 ||
      x.dtype != DType::kFloat32 || !weight.dense() || y.shape[1] == 1) {
    return nullptr;
  }
  try {
    return std::unique_ptr<SplitConvolution>(new SplitConvolution(geometry, x, weight, bias, y));
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

SplitConvolution::SplitConvolution(const Geometry& geometry, const ArrayDesc& x, const ArrayDesc& weight,
                                   const std::optional<ArrayDesc>& bias, const ArrayDesc& y) {
  ArrayDesc own_x = x, own_weight = weight, sum = y;
  own_x.shape[1] = own_weight.shape[1] = x.shape[1] / kParts;
  ArrayDesc packed_x = own_x;
  packed_x.strides = channels_last_strides(own_x.shape);
  if (!y.channels_last()) {
    sum.strides = channels_last_strides(y.shape);
    sum_elements_ = y.size();
    result_.emplace(memory_desc(sum), memory_desc(y));
  }
  // images of another size may want other blocks of the same weights, and so may single parts, of which one has a bias
  std::string layout = "parts " + layout_name(memory_desc(weight));
  for (int64_t i = 0; i < kParts; ++i) {
    const std::optional<ArrayDesc> own_bias = i == 0 ? bias : std::nullopt;
    const auto desc = part_desc(geometry, packed_x, own_weight, own_bias, sum, i > 0);
    Part part{Primitive(dnnl::convolution_forward(desc), desc.scratchpad_desc()),
              Relocation(memory_desc(own_weight), desc.weights_desc()), i * own_x.shape[1] * x.strides[1],
              i * own_weight.shape[1] * weight.strides[1], packed_elements_};
    const std::string name = layout_name(desc.weights_desc());
    if (name.empty()) throw dnnl::error(dnnl_unimplemented, "a layout of weights has no name");
    layout += '>' + name;
    part.primitive.input(DNNL_ARG_SRC, 0, memory_desc(own_x), desc.src_desc());
    part.primitive.input(DNNL_ARG_WEIGHTS, 1, desc.weights_desc(), desc.weights_desc());
    if (own_bias) part.primitive.input(DNNL_ARG_BIAS, 2, memory_desc(*own_bias), desc.bias_desc());
    part.primitive.output(DNNL_ARG_DST, 3, memory_desc(sum), desc.dst_desc());
    const auto elements = static_cast<int64_t>(desc.weights_desc().get_size() / sizeof(float));
    packed_elements_ += (elements + kLineElements - 1) / kLineElements * kLineElements;
    parts_.push_back(std::move(part));
  }
  filters_.emplace(layout, weight.size(), packed_elements_, [this](const float* from, float* to) { pack(from, to); });
}

void SplitConvolution::pack(const float* weight, float* packed) const {
  for (const Part& part : parts_) part.filters.run(weight + part.weight_offset, packed + part.packed_offset);
}

void SplitConvolution::run(void* const* arrays) const {
  const auto* weight = static_cast<const float*>(arrays[1]);
  const WeightCache::Packed kept = filters_->find(weight);
  Scratch scratch(Scratch::bytes<float>(kept ? 0 : packed_elements_) + Scratch::bytes<float>(sum_elements_));
  const float* packed = kept.get();
  if (packed == nullptr) {
    auto* room = scratch.take<float>(packed_elements_);
    pack(weight, room);
    packed = room;
  }
  void* sum = result_ ? scratch.take<float>(sum_elements_) : arrays[3];
  for (const Part& part : parts_) {
    void* const operands[] = {static_cast<float*>(arrays[0]) + part.x_offset,
                              const_cast<float*>(packed + part.packed_offset), arrays[2], sum};
    part.primitive.run(operands);
  }
  if (result_) result_->run(sum, arrays[3]);
}

std::string SplitConvolution::implementation() const { return parts_.front().primitive.implementation() + " in parts"; }

}  // namespace nn_cpu

#endif
