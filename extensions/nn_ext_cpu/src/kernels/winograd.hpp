// Winograd's F(4x4, 3x3) for 3 x 3 convolutions of channels-last images with stride 1: a quarter of the products of the direct method.
//   forward   x (N, H, W, C), weight (K, C, 3, 3) -> y (N, OH, OW, K)
//   data      dy, weight -> dx: the forward method with turned filters
//   weights   x, dy -> dweight
// Three stages a block of tiles: transform, 36 matrix products, transform back; see vector/winograd.cpp. A block's transforms fit
// the second-level caches. Sums in float32; errors are about ten times those of the direct method, near 1e-6 relative.
#pragma once

#include <cstdint>

namespace nn_cpu {

/// A 3 x 3 convolution. `turned`: filters are rotated by half a turn and the roles of their channels change places.
struct WinogradShape {
  int64_t n, h, w, c;        // input
  int64_t oh, ow, k;         // output
  int64_t pad_h, pad_w;
  bool turned = false;

  int64_t tile_rows() const { return (oh + 3) / 4; }
  int64_t tile_columns() const { return (ow + 3) / 4; }
  int64_t tiles() const { return n * tile_rows() * tile_columns(); }

  /// The convolution of dy that gives dx.
  WinogradShape transposed() const { return {n, oh, ow, k, h, w, c, 2 - pad_h, 2 - pad_w, true}; }

  /// Whether this method is expected to be faster than the direct one. `keeps_filters`: transformed filters are kept where weights
  /// do not change; they are four times as many as the weights, and have to come from memory.
  bool pays(bool keeps_filters = false) const;

  /// Elements of the transformed filters.
  int64_t filter_elements() const;
};

/// Transforms filters for winograd_forward.
void winograd_filters(const WinogradShape& shape, const float* weight, float* filters);

/// What becomes of the result of a convolution before it is stored: y = max(result * scale + shift + addend, floor). Absent: nullptr.
struct Epilogue {
  const float *scale = nullptr, *shift = nullptr;  // of each output channel
  const float* addend = nullptr;                   // shaped and laid out as y
  bool relu = false;
};

/// `filters` are the transformed ones if they are at hand; nullptr: they are made from `weight` in working memory.
void winograd_forward(const WinogradShape& shape, const float* x, const float* weight, const float* filters, const Epilogue& epilogue,
                      float* y);
void winograd_weights(const WinogradShape& shape, const float* x, const float* dy, float* dweight);

/// Whether convolutions may use this method; true at first.
bool winograd_enabled();
void enable_winograd(bool enabled);

}  // namespace nn_cpu
