// One function for each topic that adds its operations to the table.
#pragma once

#include "support/op.hpp"

namespace nn_cpu {

void register_pointwise(Registry& registry);
void register_linear(Registry& registry);
void register_convolution(Registry& registry);
void register_joined_convolution(Registry& registry);
void register_normalization(Registry& registry);
void register_update(Registry& registry);
void register_layerwise(Registry& registry);
void register_pooling(Registry& registry);
void register_softmax(Registry& registry);
void register_copy(Registry& registry);
void register_random(Registry& registry);
void register_indexing(Registry& registry);
void register_standardization(Registry& registry);
void register_channel_groups(Registry& registry);
void register_recurrent(Registry& registry);
void register_along(Registry& registry);
void register_places(Registry& registry);
void register_draw(Registry& registry);
void register_classes(Registry& registry);
void register_resample(Registry& registry);
void register_order(Registry& registry);
void register_axes(Registry& registry);
void register_softmax_lanes(Registry& registry);
void register_sums(Registry& registry);
void register_moves(Registry& registry);
void register_triangle(Registry& registry);
void register_warp(Registry& registry);
void register_attention(Registry& registry);
void register_attention_gradients(Registry& registry);
void register_cached_attention(Registry& registry);
void register_fourier(Registry& registry);
void register_integers(Registry& registry);
void register_integer_convolution(Registry& registry);

/// Names of the solvers that the operation `update` knows.
std::vector<std::string> update_names();

}  // namespace nn_cpu
