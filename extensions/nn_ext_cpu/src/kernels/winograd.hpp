// Winograd's F(4x4, 3x3) and F(2x2, 3x3) for 3 x 3 convolutions of channels-last images with stride 1: a quarter or
// four ninths of the products of the direct method.
//   forward   x (N, H, W, C), weight (K, C, 3, 3) -> y (N, OH, OW, K)
//   data      dy, weight -> dx: the forward method with turned filters
//   weights   x, dy -> dweight; with tiles of 4 x 4 only
// Three stages a block of tiles: transform, a matrix product for each of 36 or 16 positions, transform back; see
// vector/winograd.cpp. If there are many tiles each thread takes blocks of its own through all stages; a block's
// transforms fit its second-level cache. Else all threads work on one block. Sums in float32; errors are about ten
// times those of the direct method, near 1e-6 relative.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace nn_cpu {

/// The state of the weights of a convolution from run to run. Transformed filters of weights that stay are kept; they
/// are up to four times as many as the weights, and have to come from memory.
enum class Weights { kChange, kMayChange, kStay };

/// A 3 x 3 convolution. `turned`: filters are rotated by half a turn and the roles of their channels change places.
struct WinogradShape {
  int64_t n, h, w, c;  // input
  int64_t oh, ow, k;   // output
  int64_t pad_h, pad_w;
  bool turned = false;
  int64_t tile = 4;  // outputs a side of a tile: 4 or 2

  int64_t side() const { return tile + 2; }  // of the inputs of a tile
  int64_t positions() const { return side() * side(); }
  int64_t tile_rows() const { return (oh + tile - 1) / tile; }
  int64_t tile_columns() const { return (ow + tile - 1) / tile; }
  int64_t tiles() const { return n * tile_rows() * tile_columns(); }

  /// The convolution of dy that gives dx.
  WinogradShape transposed() const { return {n, oh, ow, k, h, w, c, 2 - pad_h, 2 - pad_w, true}; }

  /// Elements of the transformed filters.
  int64_t filter_elements() const;

  /// A name for the layout of the transformed filters, which the size of the images does not change.
  std::string filter_layout() const;
};

/// The shape with the tiles that are expected to be fastest; nothing where the direct method is.
std::optional<WinogradShape> fastest_winograd(const WinogradShape& shape, Weights weights);

/// Transforms filters for winograd_forward.
void winograd_filters(const WinogradShape& shape, const float* weight, float* filters);

/// The epilogue of a convolution, applied before its result is stored: y = max(result * scale + shift + addend, floor).
/// Absent: nullptr.
struct Epilogue {
  const float *scale = nullptr, *shift = nullptr;  // of each output channel
  const float* addend = nullptr;                   // shaped and laid out as y
  bool relu = false;
};

/// `filters` are the transformed ones if they are at hand; nullptr: they are made from `weight` in working memory.
void winograd_forward(const WinogradShape& shape, const float* x, const float* weight, const float* filters,
                      const Epilogue& epilogue, float* y);
void winograd_weights(const WinogradShape& shape, const float* x, const float* dy, float* dweight);

/// Whether convolutions may use this method; true at first.
bool winograd_enabled();
void enable_winograd(bool enabled);

}  // namespace nn_cpu
