// One step of a recurrent network for one sample, after the products with the weights. A row of the trace keeps what
// the gradient needs, in parts of n elements: first the gates, last the new state h.
//   rnn_tanh, rnn_relu   h
//   lstm                 i f g o c h          (Hochreiter and Schmidhuber, 1997; Gers et al., 2000)
//   gru                  r z n m h            (Cho et al., 2014); m is what the weights of n make of the old state
// A forward loop finds the sums of the gates in the row. Those of the GRU lack the products with the old state, which
// come apart. A backward loop turns dh, the gradient of the new state, into the gradients of the sums (`dtotal`) and,
// for the GRU, of the products (`dproduct`). dh becomes the part of the old state's gradient that does not pass through
// the products, if there is one.
#include "support/vector.hpp"
#include "vector/math.hpp"

namespace nn_cpu::NN_ISA {
namespace {

void rnn_tanh(int64_t n, float* row, const float*, const float*, const float*) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) row[i] = tanh(row[i]);
}

void rnn_tanh_backward(int64_t n, const float* row, const float*, const float*, float* dh, float*, float* dtotal,
                       float*) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dtotal[i] = dh[i] * (1.0f - row[i] * row[i]);
}

void rnn_relu(int64_t n, float* row, const float*, const float*, const float*) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) row[i] = larger(row[i], 0.0f);
}

void rnn_relu_backward(int64_t n, const float* row, const float*, const float*, float* dh, float*, float* dtotal,
                       float*) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dtotal[i] = row[i] > 0.0f ? dh[i] : 0.0f;
}

void lstm(int64_t n, float* row, const float*, const float*, const float* c) {
  float *input = row, *forget = row + n, *candidate = row + 2 * n, *output = row + 3 * n, *new_c = row + 4 * n,
        *h = row + 5 * n;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float a = sigmoid(input[i]), b = sigmoid(forget[i]), g = tanh(candidate[i]), o = sigmoid(output[i]);
    const float state = b * c[i] + a * g;
    input[i] = a;
    forget[i] = b;
    candidate[i] = g;
    output[i] = o;
    new_c[i] = state;
    h[i] = o * tanh(state);
  }
}

void lstm_backward(int64_t n, const float* row, const float*, const float* c, float* dh, float* dc, float* dtotal,
                   float*) {
  const float *input = row, *forget = row + n, *candidate = row + 2 * n, *output = row + 3 * n, *new_c = row + 4 * n;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float a = input[i], b = forget[i], g = candidate[i], o = output[i], shown = tanh(new_c[i]);
    const float slope = dc[i] + dh[i] * o * (1.0f - shown * shown);
    dtotal[i] = slope * g * a * (1.0f - a);
    dtotal[n + i] = slope * c[i] * b * (1.0f - b);
    dtotal[2 * n + i] = slope * a * (1.0f - g * g);
    dtotal[3 * n + i] = dh[i] * shown * o * (1.0f - o);
    dc[i] = slope * b;
  }
}

void gru(int64_t n, float* row, const float* product, const float* old_h, const float*) {
  float *reset = row, *update = row + n, *candidate = row + 2 * n, *from_state = row + 3 * n, *h = row + 4 * n;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float r = sigmoid(reset[i] + product[i]), z = sigmoid(update[i] + product[n + i]), m = product[2 * n + i];
    const float g = tanh(candidate[i] + r * m);
    reset[i] = r;
    update[i] = z;
    candidate[i] = g;
    from_state[i] = m;
    h[i] = (1.0f - z) * g + z * old_h[i];
  }
}

void gru_backward(int64_t n, const float* row, const float* old_h, const float*, float* dh, float*, float* dtotal,
                  float* dproduct) {
  const float *reset = row, *update = row + n, *candidate = row + 2 * n, *from_state = row + 3 * n;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float r = reset[i], z = update[i], g = candidate[i];
    const float of_candidate = dh[i] * (1.0f - z) * (1.0f - g * g);
    const float of_reset = of_candidate * from_state[i] * r * (1.0f - r);
    const float of_update = dh[i] * (old_h[i] - g) * z * (1.0f - z);
    dtotal[i] = dproduct[i] = of_reset;
    dtotal[n + i] = dproduct[n + i] = of_update;
    dtotal[2 * n + i] = of_candidate;
    dproduct[2 * n + i] = of_candidate * r;
    dh[i] *= z;
  }
}

constexpr CellFunction kCells[] = {
    {"rnn_tanh", 1, 1, false, false, rnn_tanh, rnn_tanh_backward},
    {"rnn_relu", 1, 1, false, false, rnn_relu, rnn_relu_backward},
    {"lstm", 4, 6, true, false, lstm, lstm_backward},
    {"gru", 3, 5, false, true, gru, gru_backward},
};

}  // namespace

CellTable cells() { return {kCells, static_cast<int>(sizeof(kCells) / sizeof(kCells[0]))}; }

}  // namespace nn_cpu::NN_ISA
