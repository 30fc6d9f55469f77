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

/// Gradients of gates are a line of cache further apart than they need: at a power of two all of a column would meet in
/// the same few places of the cache.
constexpr int64_t kGap = 16;

/// Calls body(first sample, count) so that all threads have something to do: each takes some samples, or all work on
/// one product.
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
  parallel_for(rows, 16384 / n + 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) std::copy_n(values, n, out + row * ld);
  });
}

/// A matrix (rows, columns) in panels, for products with a few rows that read it again in each step.
class Panels {
 public:
  static int64_t elements(int64_t rows, int64_t columns) { return rows * count(columns) * kPanelColumns; }

  Panels(int64_t rows, int64_t columns, Matrix from, float* memory) : rows_(rows), columns_(columns), data_(memory) {
    parallel_for(count(columns), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t panel = begin; panel < end; ++panel) {
        const int64_t first = panel * kPanelColumns, n = width(panel);
        float* to = memory + panel * rows * kPanelColumns;
        if (from.transposed) {
          vectors().transpose(from.data + first * from.ld, n, rows, from.ld, to, kPanelColumns);
        } else {
          for (int64_t row = 0; row < rows; ++row)
            std::copy_n(from.data + row * from.ld + first, n, to + row * kPanelColumns);
        }
      }
    });
  }

  /// c (m, columns) = a (m, rows) times the matrix, plus c if `accumulate`.
  void multiply(int64_t m, Matrix a, bool accumulate, float* c, int64_t ldc) const {
    parallel_for(count(columns_), std::max<int64_t>(1, kGrain / (m * rows_)), [&](int64_t begin, int64_t end, int) {
      for (int64_t panel = begin; panel < end; ++panel) {
        vectors().panel_product(m, width(panel), rows_, a.data, a.ld, data_ + panel * rows_ * kPanelColumns, accumulate,
                                c + panel * kPanelColumns, ldc);
      }
    });
  }

 private:
  static constexpr int64_t kGrain = 6000;  // products of a row with a panel that are worth a thread's while

  static int64_t count(int64_t columns) { return (columns + kPanelColumns - 1) / kPanelColumns; }
  int64_t width(int64_t panel) const { return std::min(kPanelColumns, columns_ - panel * kPanelColumns); }

  int64_t rows_, columns_;
  const float* data_;
};

/// Next to each other in rows of (I + H): what the layer reads at each step and sample, and the state before it.
void join_inputs(const RecurrentLayer& layer, const float* x, const States& states, float* out) {
  parallel_for(layer.steps, 16384 / (layer.batch * layer.width()) + 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t position = begin; position < end; ++position) {
      const int64_t step = layer.is_backwards ? layer.steps - 1 - position : position;
      const Matrix state = states.before(position, 0);
      for (int64_t i = 0; i < layer.batch; ++i) {
        const int64_t row = step * layer.batch + i;
        std::copy_n(x + row * layer.inputs, layer.inputs, out + row * layer.width());
        std::copy_n(state.data + i * state.ld, layer.hidden, out + row * layer.width() + layer.inputs);
      }
    }
  });
}

}  // namespace

void recurrent_forward(const RecurrentLayer& layer, const float* x, const float* weight, const float* bias,
                       const float* h, const float* c, float* trace) {
  const CellFunction& cell = *layer.cell;
  const int64_t hidden = layer.hidden, gates = layer.gates(), saved = layer.saved();
  if (bias != nullptr) fill_rows(bias, gates, layer.rows(), trace, saved);
  gemm(layer.rows(), gates, layer.inputs, {x, layer.inputs}, {weight, layer.width(), true}, bias != nullptr, trace,
       saved);
  Scratch scratch(Scratch::bytes<float>(Panels::elements(hidden, gates)) + Scratch::bytes<float>(layer.batch * gates));
  auto *memory_of_panels = scratch.take<float>(Panels::elements(hidden, gates)),
       *products = scratch.take<float>(layer.batch * gates);
  const Panels of_state(hidden, gates, {weight + layer.inputs, layer.width(), true}, memory_of_panels);
  const States old_h{layer, h, trace, layer.state_place()}, old_c{layer, c, trace, layer.state_place() - hidden};
  over_samples(layer.batch, [&](int64_t first, int64_t count) {
    float* product = products + first * gates;
    for (int64_t position = 0; position < layer.steps; ++position) {
      const int64_t step = layer.is_backwards ? layer.steps - 1 - position : position;
      float* rows = trace + (step * layer.batch + first) * saved;
      const Matrix state = old_h.before(position, first),
                   memory = cell.has_memory ? old_c.before(position, first) : Matrix{nullptr, 0};
      if (cell.has_product) {
        std::fill_n(product, count * gates, 0.0f);
        if (bias != nullptr) fill_rows(bias + gates, hidden, count, product + gates - hidden, gates);
        of_state.multiply(count, state, true, product, gates);
      } else {
        of_state.multiply(count, state, true, rows, saved);
      }
      for (int64_t i = 0; i < count; ++i) {
        cell.forward(hidden, rows + i * saved, product + i * gates, state.data + i * state.ld,
                     memory.data + i * memory.ld);
      }
    }
  });
}

void recurrent_backward(const RecurrentLayer& layer, const float* x, const float* weight, const float* h,
                        const float* c, const float* trace, const float* dy, int64_t ld_dy,
                        const RecurrentGradients& gradients) {
  const CellFunction& cell = *layer.cell;
  const int64_t hidden = layer.hidden, gates = layer.gates(), rows = layer.rows(), batch = layer.batch;
  const VectorTable& table = vectors();
  const int64_t ld = gates + kGap, n_joined = gradients.dweight != nullptr ? rows * layer.width() : 0;
  Scratch scratch((cell.has_product ? 2 : 1) * Scratch::bytes<float>(rows * ld) +
                  Scratch::bytes<float>(Panels::elements(gates, hidden)) + Scratch::bytes<float>(n_joined) +
                  Scratch::bytes<float>(gates));
  auto* dtotal = scratch.take<float>(rows * ld);
  auto* dproduct = cell.has_product ? scratch.take<float>(rows * ld) : dtotal;
  const Panels of_state(gates, hidden, {weight + layer.inputs, layer.width()},
                        scratch.take<float>(Panels::elements(gates, hidden)));
  const States old_h{layer, h, trace, layer.state_place()}, old_c{layer, c, trace, layer.state_place() - hidden};
  over_samples(batch, [&](int64_t first, int64_t count) {
    float* dh = gradients.dh + first * hidden;
    float* dc = cell.has_memory ? gradients.dc + first * hidden : nullptr;
    for (int64_t position = layer.steps - 1; position >= 0; --position) {
      const int64_t step = layer.is_backwards ? layer.steps - 1 - position : position;
      const int64_t row = step * batch + first;
      const Matrix state = old_h.before(position, first),
                   memory = cell.has_memory ? old_c.before(position, first) : Matrix{nullptr, 0};
      for (int64_t i = 0; i < count; ++i) {
        table.add_to(dy + (row + i) * ld_dy, dh + i * hidden, hidden);
        cell.backward(hidden, trace + (row + i) * layer.saved(), state.data + i * state.ld, memory.data + i * memory.ld,
                      dh + i * hidden, dc != nullptr ? dc + i * hidden : nullptr, dtotal + (row + i) * ld,
                      dproduct + (row + i) * ld);
      }
      of_state.multiply(count, {dproduct + row * ld, ld}, cell.has_product, dh, hidden);
    }
  });
  if (gradients.dx != nullptr) {
    gemm(rows, layer.inputs, gates, {dtotal, ld}, {weight, layer.width()}, gradients.adds_to_dx, gradients.dx,
         layer.inputs);
  }
  if (gradients.dweight != nullptr) {
    auto* joined = scratch.take<float>(n_joined);
    join_inputs(layer, x, old_h, joined);
    const int64_t of_total = cell.has_product ? layer.inputs : layer.width();
    gemm(gates, of_total, rows, {dtotal, ld, true}, {joined, layer.width()}, false, gradients.dweight, layer.width());
    if (cell.has_product) {
      gemm(gates, hidden, rows, {dproduct, ld, true}, {joined + layer.inputs, layer.width()}, false,
           gradients.dweight + layer.inputs, layer.width());
    }
  }
  if (gradients.dbias != nullptr) {
    column_sums(dtotal, rows, gates, ld, gradients.dbias);
    if (cell.has_product) {
      auto* sums = scratch.take<float>(gates);
      column_sums(dproduct, rows, gates, ld, sums);
      std::copy_n(sums + gates - hidden, hidden, gradients.dbias + gates);
    }
  }
}

}  // namespace nn_cpu
