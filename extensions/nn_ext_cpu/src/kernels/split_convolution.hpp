// Convolutions whose sums are long, as several over some of the input channels each. oneDNN adds all products of a sum
// in one chain, whose rounding grows with its length; the ends of four chains are half as far off. Each convolution
// adds its result to that of those before it. float32 without groups, forward only: sums of gradients are shorter.
#pragma once

#ifdef NN_ONEDNN

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/convolution.hpp"
#include "support/engine.hpp"
#include "support/weight_cache.hpp"

namespace nn_cpu {

class SplitConvolution {
 public:
  /// Nothing where sums are short, or where oneDNN has no such primitives.
  static std::unique_ptr<SplitConvolution> where_long(const Geometry& geometry, const ArrayDesc& x,
                                                      const ArrayDesc& weight, const std::optional<ArrayDesc>& bias,
                                                      const ArrayDesc& y);

  /// `arrays` are x, weight, bias or nullptr, y.
  void run(void* const* arrays) const;

  std::string implementation() const;

 private:
  struct Part {
    Primitive primitive;
    Relocation filters;  // from the user's weights of these channels to those that the primitive wants
    int64_t x_offset, weight_offset, packed_offset;
  };

  SplitConvolution(const Geometry& geometry, const ArrayDesc& x, const ArrayDesc& weight,
                   const std::optional<ArrayDesc>& bias, const ArrayDesc& y);

  /// The filters of all parts, as the primitives want them.
  void pack(const float* weight, float* packed) const;

  std::vector<Part> parts_;
  int64_t packed_elements_ = 0, sum_elements_ = 0;
  std::optional<Relocation> result_;  // where y is not channels-last, as the sum is
  std::optional<WeightCache> filters_;
};

}  // namespace nn_cpu

#endif
