#include <pybind11/pybind11.h>

#include "bindings/prepare.hpp"
#include "bindings/types.hpp"
#include "kernels/register.hpp"
#include "support/parallel.hpp"

PYBIND11_MODULE(_native, module) {
  module.doc() = "Native kernels of nn_ext_cpu: prepare() makes an Op from descriptions of arrays.";
  nn_cpu::prepare_for_forks();
  nn_cpu::Registry& registry = nn_cpu::Registry::instance();
  nn_cpu::register_pointwise(registry);
  nn_cpu::register_linear(registry);
  nn_cpu::register_update(registry);
  nn_cpu::register_layerwise(registry);
  nn_cpu::register_pooling(registry);
  nn_cpu::register_softmax(registry);
  nn_cpu::register_copy(registry);
  nn_cpu::register_random(registry);
  nn_cpu::register_indexing(registry);
  nn_cpu::register_standardization(registry);
  nn_cpu::register_channel_groups(registry);
  nn_cpu::register_recurrent(registry);
  nn_cpu::register_along(registry);
  nn_cpu::register_places(registry);
  nn_cpu::register_draw(registry);
  nn_cpu::register_classes(registry);
  nn_cpu::register_resample(registry);
  nn_cpu::register_order(registry);
  nn_cpu::register_axes(registry);
  nn_cpu::register_softmax_lanes(registry);
  nn_cpu::register_sums(registry);
  nn_cpu::register_moves(registry);
  nn_cpu::register_triangle(registry);
  nn_cpu::register_warp(registry);
  nn_cpu::register_attention(registry);
  nn_cpu::register_attention_gradients(registry);
  nn_cpu::register_cached_attention(registry);
  nn_cpu::register_fourier(registry);
  nn_cpu::register_integers(registry);
  nn_cpu::register_integer_convolution(registry);
  nn_cpu::register_normalization(registry);
  nn_cpu::register_convolution(registry);
  nn_cpu::register_joined_convolution(registry);
  nn_cpu::bind_types(module);
  nn_cpu::bind_combine(module);
  nn_cpu::bind_prepare(module);
  nn_cpu::bind_settings(module);
  nn_cpu::bind_memory(module);
  nn_cpu::bind_distinct(module);
}
