// An array seen as (A, C, B) around one axis: A runs before it, C along it, B after it, in memory order.
#pragma once

#include "support/array.hpp"
#include "support/check.hpp"

namespace nn_cpu {

struct Blocks {
  int64_t a = 1, c, b = 1;

  /// `x` is contiguous, or channels-last with axis 1, which makes the axis the innermost one (B = 1).
  Blocks(const ArrayDesc& x, int64_t axis) : c(x.shape.at(axis)) {
    if (axis == 1 && !x.contiguous()) {
      NN_CHECK(x.channels_last(), "x must be contiguous or channels-last, got strides " << to_string(x.strides));
      a = c > 0 ? x.size() / c : 0;
      return;
    }
    NN_CHECK(x.contiguous(), "x must be contiguous, got strides " << to_string(x.strides));
    for (int64_t i = 0; i < x.ndim(); ++i) {
      if (i < axis) a *= x.shape[i];
      if (i > axis) b *= x.shape[i];
    }
  }

  int64_t size() const { return a * c * b; }
};

}  // namespace nn_cpu
