// Operations that want one layout for their images, for calls in which some are channels-last and others contiguous.
#pragma once

#include <initializer_list>
#include <memory>

#include "support/op.hpp"

namespace nn_cpu {

/// The operation that `factory` makes. If the arrays at `inputs` and `outputs` do not share one layout, it is prepared
/// for channels-last ones, and those in another layout are copied before or after each run.
std::unique_ptr<Op> with_alike_images(const Signature& signature, Factory factory, std::initializer_list<size_t> inputs,
                                      std::initializer_list<size_t> outputs);

}  // namespace nn_cpu
