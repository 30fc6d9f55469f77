#include "support/recurrent_layer.hpp"

#include <algorithm>

#include "support/column_sums.hpp"
#include "support/gemm.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"

namespace nn_cpu {
namespace {

/// Samples that make it worth while for a thread to go through all steps on its own.
constexpr int64_t kSamples = 8;

/// Calls body(first sample, count) so that all threads have something to do: each takes some samples, or all work on one product.
template <class Body>
void over_samples(int64_t batch, const Body& body) {
  if (batch < kSamples * num_threads()) {
    body(int64_t{0}, batch);
    return;
  }
  parallel_for(batch, kSamples, [&](int64_t begin, int64_t end, int) { body(begin, end - begin); });
}

/// The rows of a matrix in which a step finds the states before it.
struct States {
  const RecurrentLayer& layer;
  const float *first, *trace;
  int64_t place;  // in rows of the trace

  Matrix before(int64_t position, int64_t sample) const {
    if (position == 0) return {first + sample * layer.hidden, layer.hidden};
    const int64_t step = layer.is_backwards ? layer.steps - position : position - 1;
    return {trace + (step * layer.batch + sample) * layer.saved() + place, layer.saved()};
  }
};

void fill_rows(const float* values, int64_t n, int64_t rows, float* out, int64_t ld) {
  for (int64_t row = 0; row < rows; ++row) std::copy_n(values, n, out + row * ld);
}

/// The part of the weights that belongs to the state, as (H, gates H).
void turn_state_weight(const RecurrentLayer& layer, const float* weight, float* turned) {
  const VectorTable& table = vectors();
  parallel_for(
      layer.gates(), 256,
      [&](int64_t begin, int64_t end, int) {
        const float* rows = weight + begin * layer.width() + layer.inputs;
        table.transpose(rows, end - begin, layer.hidden, layer.width(), turned + begin, layer.gates());
      },
      16);
}

}  // namespace

void recurrent_forward(const RecurrentLayer& layer, const float* x, const float* weight, const float* bias, const float* h,
                       const float* c, float* trace) {
  const CellFunction& cell = *layer.cell;
  const int64_t hidden = layer.hidden, gates = layer.gates(), saved = layer.saved();
  if (bias != nullptr) fill_rows(bias, gates, layer.rows(), trace, saved);
  gemm(layer.rows(), gates, layer.inputs, {x, layer.inputs}, {weight, layer.width(), true}, bias != nullptr, trace, saved);
  Scratch scratch(Scratch::bytes<float>(hidden * gates) + Scratch::bytes<float>(layer.batch * gates));
  auto *turned = scratch.take<float>(hidden * gates), *products = scratch.take<float>(layer.batch * gates);
  turn_state_weight(layer, weight, turned);
  const States old_h{layer, h, trace, layer.state_place()}, old_c{layer, c, trace, layer.state_place() - hidden};
  over_samples(layer.batch, [&](int64_t first, int64_t count) {
    float* product = products + first * gates;
    for (int64_t position = 0; position < layer.steps; ++position) {
      const int64_t step = layer.is_backwards ? layer.steps - 1 - position : position;
      float* rows = trace + (step * layer.batch + first) * saved;
      const Matrix state = old_h.before(position, first), memory = cell.has_memory ? old_c.before(position, first) : Matrix{nullptr, 0};
      if (cell.has_product) {
        std::fill_n(product, count * gates, 0.0f);
        if (bias != nullptr) fill_rows(bias + gates, hidden, count, product + gates - hidden, gates);
        gemm(count, gates, hidden, state, {turned, gates}, true, product, gates);
      } else {
        gemm(count, gates, hidden, state, {turned, gates}, true, rows, saved);
      }
      for (int64_t i = 0; i < count; ++i) {
        cell.forward(hidden, rows + i * saved, product + i * gates, state.data + i * state.ld, memory.data + i * memory.ld);
      }
    }
  });
}

void recurrent_backward(const RecurrentLayer& layer, const float* x, const float* weight, const float* h, const float* c,
                        const float* trace, const float* dy, int64_t ld_dy, const RecurrentGradients& gradients) {
  const CellFunction& cell = *layer.cell;
  const int64_t hidden = layer.hidden, gates = layer.gates(), rows = layer.rows(), batch = layer.batch;
  const VectorTable& table = vectors();
  Scratch scratch((cell.has_product ? 2 : 1) * Scratch::bytes<float>(rows * gates) + Scratch::bytes<float>(gates));
  auto* dtotal = scratch.take<float>(rows * gates);
  auto* dproduct = cell.has_product ? scratch.take<float>(rows * gates) : dtotal;
  const States old_h{layer, h, trace, layer.state_place()}, old_c{layer, c, trace, layer.state_place() - hidden};
  over_samples(batch, [&](int64_t first, int64_t count) {
    float* dh = gradients.dh + first * hidden;
    float* dc = cell.has_memory ? gradients.dc + first * hidden : nullptr;
    for (int64_t position = layer.steps - 1; position >= 0; --position) {
      const int64_t step = layer.is_backwards ? layer.steps - 1 - position : position;
      const int64_t row = step * batch + first;
      const Matrix state = old_h.before(position, first), memory = cell.has_memory ? old_c.before(position, first) : Matrix{nullptr, 0};
      for (int64_t i = 0; i < count; ++i) {
        table.add_to(dy + (row + i) * ld_dy, dh + i * hidden, hidden);
        cell.backward(hidden, trace + (row + i) * layer.saved(), state.data + i * state.ld, memory.data + i * memory.ld, dh + i * hidden,
                      dc != nullptr ? dc + i * hidden : nullptr, dtotal + (row + i) * gates, dproduct + (row + i) * gates);
      }
      gemm(count, hidden, gates, {dproduct + row * gates, gates}, {weight + layer.inputs, layer.width()}, cell.has_product, dh, hidden);
    }
  });
  if (gradients.dx != nullptr) {
    gemm(rows, layer.inputs, gates, {dtotal, gates}, {weight, layer.width()}, gradients.adds_to_dx, gradients.dx, layer.inputs);
  }
  if (gradients.dweight != nullptr) {
    gemm(gates, layer.inputs, rows, {dtotal, gates, true}, {x, layer.inputs}, false, gradients.dweight, layer.width());
    // the states before the first step, then those before all others, which lie in the trace one step away
    float* of_state = gradients.dweight + layer.inputs;
    gemm(gates, hidden, batch, {dproduct + layer.first_step() * batch * gates, gates, true}, {h, hidden}, false, of_state, layer.width());
    if (layer.steps > 1) {
      const int64_t later = layer.is_backwards ? 0 : batch * gates;
      gemm(gates, hidden, rows - batch, {dproduct + later, gates, true},
           {trace + (layer.is_backwards ? batch * layer.saved() : 0) + layer.state_place(), layer.saved()}, true, of_state, layer.width());
    }
  }
  if (gradients.dbias != nullptr) {
    column_sums(dtotal, rows, gates, gradients.dbias);
    if (cell.has_product) {
      auto* sums = scratch.take<float>(gates);
      column_sums(dproduct, rows, gates, sums);
      std::copy_n(sums + gates - hidden, hidden, gradients.dbias + gates);
    }
  }
}

}  // namespace nn_cpu
