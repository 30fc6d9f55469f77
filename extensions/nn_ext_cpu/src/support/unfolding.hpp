// A convolution between a large image and a small one (for a convolution, x and y; for a deconvolution, y and x), as
// products with the unfolded image: the matrix of the values that each filter reads at each position.
//   small[n, s, o] = sum over b, t of weight[s, b, t] large[n, b, o stride + t dilation - pad], for each group
// Weights have the axes (G, S / G, B / G, kernel); images have any strides. Time O(products), working memory O(kBytes)
// for each thread. T is float or double, the type of sums, too.
#pragma once

#include "support/array.hpp"

namespace nn_cpu {

struct Unfolding {
  int64_t batch, groups, small_channels, large_channels;  // channels of one group
  Dims small_size, large_size, kernel;                    // spatial axes
  Dims stride, dilation, pad;                             // dilation 1 is dense

  int64_t taps() const { return count(kernel); }
};

/// Strides of an image in elements: batch, channel, spatial axes.
struct ImageLayout {
  int64_t batch, channel;
  Dims axes;

  explicit ImageLayout(const ArrayDesc& image);
};

/// Strides of weights in elements.
struct WeightLayout {
  int64_t group, small, large;
  Dims kernel;
};

/// small = the convolution of large, plus bias for each channel if it is not nullptr.
template <class T>
void unfold_down(const Unfolding& u, const T* large, const ImageLayout& large_layout, const T* weight,
                 const WeightLayout& weight_layout, const T* bias, T* small, const ImageLayout& small_layout);

/// large = the transposed convolution of small, plus bias for each channel if it is not nullptr.
template <class T>
void unfold_up(const Unfolding& u, const T* small, const ImageLayout& small_layout, const T* weight,
               const WeightLayout& weight_layout, const T* bias, T* large, const ImageLayout& large_layout);

/// dweight = the gradient of the weights for these images.
template <class T>
void unfold_weights(const Unfolding& u, const T* small, const ImageLayout& small_layout, const T* large,
                    const ImageLayout& large_layout, T* dweight, const WeightLayout& weight_layout);

}  // namespace nn_cpu
