// Convolutions as matrix products, for calls that oneDNN does not take, or only by a method that must not run or is
// slow. Arrays and settings are those of kernels/convolution.cpp; all are float32, or all float64.
#pragma once

#include <memory>

#include "support/op.hpp"

namespace nn_cpu {

std::unique_ptr<Op> make_unfolded_convolution(const Signature& s);
std::unique_ptr<Op> make_unfolded_convolution_backward(const Signature& s);
std::unique_ptr<Op> make_unfolded_deconvolution(const Signature& s);
std::unique_ptr<Op> make_unfolded_deconvolution_backward(const Signature& s);

}  // namespace nn_cpu
