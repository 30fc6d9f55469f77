// Convolutions of channels that each have a kernel of their own (depthwise): planes are copied with their padding, and
// the kernel slides over them (vector/slide.cpp). One or two axes, stride 1. Sums do not depend on the number of
// threads.
#pragma once

#include "support/unfolding.hpp"

namespace nn_cpu {

/// Whether the functions below take a convolution. Their arguments are those of support/unfolding.hpp.
bool is_sliding(const Unfolding& u);

template <class T>
void slide_down(const Unfolding& u, const T* large, const ImageLayout& large_layout, const T* weight,
                const WeightLayout& w, const T* bias, T* small, const ImageLayout& small_layout);

template <class T>
void slide_up(const Unfolding& u, const T* small, const ImageLayout& small_layout, const T* weight,
              const WeightLayout& w, const T* bias, T* large, const ImageLayout& large_layout);

template <class T>
void slide_weights(const Unfolding& u, const T* small, const ImageLayout& small_layout, const T* large,
                   const ImageLayout& large_layout, T* dweight, const WeightLayout& w);

}  // namespace nn_cpu
