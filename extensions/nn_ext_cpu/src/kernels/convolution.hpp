// The common part of convolutions by oneDNN: the places of their arrays, and which of them go to kernels/winograd.hpp.
#pragma once

#ifdef NN_ONEDNN

#include <algorithm>
#include <optional>

#include "kernels/winograd.hpp"
#include "support/engine.hpp"
#include "support/op.hpp"
#include "support/widen.hpp"

namespace nn_cpu {

struct Geometry {
  dnnl::memory::dims stride, dilation, pad, pad_end;
  int64_t group;

  explicit Geometry(const Args& args)
      : stride(args.dims("stride")),
        dilation(args.dims("dilation")),
        pad(args.dims("pad")),
        pad_end(args.dims("pad_end")),
        group(args.integer("group")) {
    for (int64_t& step : dilation) --step;  // oneDNN counts the gaps
  }
};

/// Weights with a leading group axis (G, K / G, C / G, ...); deconvolution stores (C, K / G, ...), so its first two are
/// swapped.
inline ArrayDesc grouped(const ArrayDesc& weight, int64_t group, bool transposed) {
  ArrayDesc desc = weight;
  const int64_t per_group = weight.shape[0] / group;
  desc.shape[0] = per_group;
  if (transposed) {
    std::swap(desc.shape[0], desc.shape[1]);
    std::swap(desc.strides[0], desc.strides[1]);
  }
  if (group > 1) {
    desc.shape.insert(desc.shape.begin(), group);
    desc.strides.insert(desc.strides.begin(), weight.strides[0] * per_group);
  }
  return desc;
}

/// How a primitive gets images: kPlace, channels-last arrays as they are, or kFree, in the layout that it likes best;
/// or kUnfolded, there is no primitive.
enum class Images { kPlace, kFree, kUnfolded };

/// Channels-last arrays are used in place. Others are left to the primitive, which then works in a layout of blocks; so
/// are both images where one has a single channel, for which oneDNN has no fast channels-last method.
inline dnnl::memory::desc preferred(const ArrayDesc& desc, const ArrayDesc& other, Images images) {
  const bool single = desc.shape[1] == 1 || other.shape[1] == 1;
  return images == Images::kPlace && desc.channels_last() && !single ? memory_desc(desc) : any_layout(desc);
}

/// An operation by oneDNN on images in place, else on images in layouts of its own, else by `unfolded`. Arrays may be
/// bfloat16; those from `first_output` on are results. oneDNN has no convolutions of float64.
template <class OnPlace, class OnFree>
std::unique_ptr<Op> make_convolution(const Signature& s, Factory unfolded, size_t first_output) {
  if (is_wide(s)) return unfolded(s);
  if (auto op = by_onednn(s, make<OnPlace>, first_output)) return op;
  if (auto op = by_onednn(s, make<OnFree>, first_output)) return op;
  return with_wide_arrays(s, unfolded, first_output);
}

inline double flops_cost(const ArrayDesc& weight, const ArrayDesc& y) {
  return 2000.0 +
         static_cast<double>(weight.size()) * static_cast<double>(y.size() / std::max<int64_t>(y.shape[1], 1)) / 100.0;
}

/// The shape for Winograd's method, where a convolution has one and it pays.
inline std::optional<WinogradShape> winograd_shape(const Geometry& geometry, const ArrayDesc& x,
                                                   const ArrayDesc& weight, const ArrayDesc& y, Weights weights) {
  const dnnl::memory::dims ones(2, 1), gaps(2, 0);
  if (!winograd_enabled() || x.ndim() != 4 || geometry.group != 1 || geometry.stride != ones ||
      geometry.dilation != gaps || weight.shape[2] != 3 || weight.shape[3] != 3 || !weight.contiguous() ||
      !x.channels_last() || !y.channels_last() || x.dtype != DType::kFloat32) {
    return std::nullopt;
  }
  const WinogradShape shape{x.shape[0], x.shape[2], x.shape[3],      x.shape[1],     y.shape[2],
                            y.shape[3], y.shape[1], geometry.pad[0], geometry.pad[1]};
  return fastest_winograd(shape, weights);
}

}  // namespace nn_cpu

#endif
