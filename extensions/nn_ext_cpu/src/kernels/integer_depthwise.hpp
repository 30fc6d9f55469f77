// Convolutions of levels of each channel by itself.
#pragma once

#include <memory>

#include "kernels/levels.hpp"

namespace nn_cpu {

/// The operation for arrays as conv_integers and conv_levels have them; nothing where channels are mixed, or sums would
/// not be exact.
std::unique_ptr<Op> make_depthwise_integers(const Signature& s, const ProductPlaces& places);

}  // namespace nn_cpu
