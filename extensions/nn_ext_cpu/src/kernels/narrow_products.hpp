// Matrix products of layers whose arrays are bfloat16, by oneDNN: the operations of kernels/linear.cpp on the same
// arrays.
#pragma once

#include <memory>

#include "support/op.hpp"

namespace nn_cpu {

std::unique_ptr<Op> make_narrow_affine(const Signature& signature);
std::unique_ptr<Op> make_narrow_affine_backward(const Signature& signature);
std::unique_ptr<Op> make_narrow_batch_matmul(const Signature& signature);

}  // namespace nn_cpu
