// Operations on float32 for calls whose arrays are bfloat16.
#pragma once

#include <memory>

#include "support/op.hpp"

namespace nn_cpu {

/// The operation that `factory` makes. Arrays of bfloat16 before `first_output` are widened before each run, and those
/// from there on are rounded after it.
std::unique_ptr<Op> with_wide_arrays(const Signature& signature, Factory factory, size_t first_output);

}  // namespace nn_cpu
