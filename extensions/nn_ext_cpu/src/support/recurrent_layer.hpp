// One layer of a recurrent network in one direction of time, forward and backward.
// Shapes: x (T, B, I), states h and c (B, H), weight (gates, H, I + H) whose columns belong to x, then to h, bias
// (gates, H), for the GRU one part more for the product of its last gate with the state; trace (T, B, saved, H), see
// vector/recurrent.cpp.
#pragma once

#include <cstdint>

#include "support/vector.hpp"

namespace nn_cpu {

struct RecurrentLayer {
  const CellFunction* cell;
  int64_t steps, batch, inputs, hidden;
  bool is_backwards;

  int64_t rows() const { return steps * batch; }
  int64_t gates() const { return cell->n_gates * hidden; }
  int64_t saved() const { return cell->n_saved * hidden; }
  int64_t width() const { return inputs + hidden; }
  /// Offset of the state h in rows of the trace; the cell c comes before it.
  int64_t state_place() const { return saved() - hidden; }
  int64_t first_step() const { return is_backwards ? steps - 1 : 0; }
  int64_t last_step() const { return steps - 1 - first_step(); }
  int64_t weight_size() const { return gates() * width(); }
  int64_t bias_size() const { return gates() + (cell->has_product ? hidden : 0); }
  int64_t trace_size() const { return rows() * saved(); }
};

/// Computes the trace. `bias` and, where the cell has no c, `c` are nullptr.
void recurrent_forward(const RecurrentLayer& layer, const float* x, const float* weight, const float* bias,
                       const float* h, const float* c, float* trace);

/// The results of a backward pass; nullptr where nobody wants it. dh and dc hold the gradients of the last states at
/// first, and those of the first states in the end; dc is nullptr where the cell has no c.
struct RecurrentGradients {
  float *dx, *dweight, *dbias, *dh, *dc;
  bool adds_to_dx;
};

/// `dy` (T, B, H) has rows `ld_dy` elements apart.
void recurrent_backward(const RecurrentLayer& layer, const float* x, const float* weight, const float* h,
                        const float* c, const float* trace, const float* dy, int64_t ld_dy,
                        const RecurrentGradients& gradients);

}  // namespace nn_cpu
