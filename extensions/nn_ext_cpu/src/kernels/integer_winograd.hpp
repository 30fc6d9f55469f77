// Winograd's F(2x2, 3x3) for convolutions of levels with stride 1: four ninths of the products, and the same sums to
// the last bit. Filters are transformed as twice as large numbers along each axis, so that all numbers stay whole; a
// result is a fourth of what comes out, which holds where no sum of the convolution leaves 30 bits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/levels.hpp"

namespace nn_cpu {

/// A convolution of one group of images (C, H, W) with filters (K, C, 3, 3).
struct IntegerWinograd {
  int64_t channels, filters, h, w, oh, ow, pad_h, pad_w;
  bool x_signed, weight_signed;

  /// Whether the method is exact and has much fewer products, with panels of so many columns.
  bool is_faster(int64_t columns) const;

  int64_t tile_rows() const { return (oh + 1) / 2; }
  int64_t tile_columns() const { return (ow + 1) / 2; }
  int64_t depth() const { return integer_depth(channels); }

  /// The transformed filters: rows of int16 for each of 16 positions.
  int64_t filter_bytes() const { return 16 * filters * depth() * 2; }
  void transform_filters(const uint8_t* weight, void* to) const;
  std::string layout() const;
};

/// Rows of tiles of an image, and filters, that one thread computes.
struct WinogradPart {
  int64_t first_row, rows, first_filter, filters;
};

/// Computes a part of the image x. `offset`: where the image begins in the result; terms and scales are those of all
/// filters, and terms have no factors.
void integer_winograd(const IntegerLoops& loops, const IntegerWinograd& s, const WinogradPart& part, const uint8_t* x,
                      int32_t zero_point, const int16_t* filters, const int32_t* bias, const LevelScales& scales,
                      const ProductResult& result, void* const* arrays, int64_t offset);

/// Rows of tiles whose transforms stay in the second-level cache.
int64_t winograd_rows(const IntegerWinograd& s);

}  // namespace nn_cpu
