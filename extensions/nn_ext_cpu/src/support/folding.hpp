// Transposed convolutions whose results have few channels: the products of each position of the small image with the
// weights are added to the large image where the taps are. An unfolded image would hold each of many channels once for
// each tap.
#pragma once

#include "support/unfolding.hpp"

namespace nn_cpu {

/// Whether fold_up moves fewer elements than unfolding.
bool is_better_folded(const Unfolding& u);

/// What unfold_up does.
template <class T>
void fold_up(const Unfolding& u, const T* small, const ImageLayout& small_layout, const T* weight,
             const WeightLayout& weight_layout, const T* bias, T* large, const ImageLayout& large_layout);

}  // namespace nn_cpu
