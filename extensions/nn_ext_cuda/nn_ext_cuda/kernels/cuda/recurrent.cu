// The parts of recurrent networks that are no matrix products: one step of one layer in one direction. T is what arrays hold.
//
// kept is memory of the network: first what gates gave, as numbers of R, for each layer, direction and step (numbers, batch,
// hidden), from the first address on that is aligned for them; then the outputs of all layers as numbers of T, (steps, batch,
// directions, hidden) each. Arguments that end in _at are where something begins in an array, -1 for what is not there. n is
// batch * hidden, `width` directions * hidden.

__device__ __forceinline__ R logistic(R x) { return (tanh(x / 2) + 1) / 2; }

#define FOR_EACH \
  for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x)
#define ROW (i / hidden)
#define COLUMN (i % hidden)

// products (batch, GATES, hidden) with the input and with the state, both without the bias.
#define STEP_PARAMETERS                                                                                                  \
  int64 n, int64 hidden, int64 width, int64 products_at, int64 bias_at, int64 state_at, int64 saved_at, int64 before_at, \
      int64 old_at, int64 output_at, int64 y_at, int64 is_last, const T *products, const T *recurrent, const T *bias,    \
      const T *h, const T *c, T *kept, T *y, T *h_n, T *c_n
#define FROM_INPUT(gate) R(load(products[products_at + (ROW * GATES + (gate)) * hidden + COLUMN]))
#define FROM_STATE(gate) R(load(recurrent[(ROW * GATES + (gate)) * hidden + COLUMN]))
#define BIAS(gate) (bias ? R(load(bias[bias_at + (gate) * hidden + COLUMN])) : R(0))
#define TOTAL(gate) (FROM_INPUT(gate) + FROM_STATE(gate) + BIAS(gate))
#define NUMBERS ((R*)(((uint64)kept + sizeof(R) - 1) / sizeof(R) * sizeof(R)))
#define SAVED(number) NUMBERS[saved_at + (number) * n + i]
#define BEFORE(number) NUMBERS[before_at + (number) * n + i]
#define OLD_STATE R(load(old_at < 0 ? h[state_at + i] : kept[old_at + ROW * width + COLUMN]))

#define GIVE(value)                                                   \
  store(kept[output_at + ROW * width + COLUMN], value);               \
  if (y_at >= 0) store(y[y_at + ROW * width + COLUMN], value);        \
  if (is_last) store(h_n[state_at + i], value);

#if defined(RNN)
extern "C" __global__ void rnn_step(STEP_PARAMETERS) {
  FOR_EACH {
    const R total = TOTAL(0), value = RELU ? larger(total, R(0)) : tanh(total);
    GIVE(value)
  }
}
#elif defined(LSTM)
extern "C" __global__ void lstm_step(STEP_PARAMETERS) {
  FOR_EACH {
    const R input = logistic(TOTAL(0)), forget = logistic(TOTAL(1)), candidate = tanh(TOTAL(2)), output = logistic(TOTAL(3));
    const R old = before_at < 0 ? R(load(c[state_at + i])) : BEFORE(4);
    const R memory = forget * old + input * candidate, value = output * tanh(memory);
    SAVED(0) = input, SAVED(1) = forget, SAVED(2) = candidate, SAVED(3) = output, SAVED(4) = memory;
    GIVE(value)
    if (is_last) store(c_n[state_at + i], memory);
  }
}
#else
extern "C" __global__ void gru_step(STEP_PARAMETERS) {
  FOR_EACH {
    const R reset = logistic(TOTAL(0)), update = logistic(TOTAL(1)), of_state = FROM_STATE(2) + BIAS(3);
    const R candidate = tanh(FROM_INPUT(2) + BIAS(2) + reset * of_state);
    const R value = (1 - update) * candidate + update * OLD_STATE;
    SAVED(0) = reset, SAVED(1) = update, SAVED(2) = candidate, SAVED(3) = of_state;
    GIVE(value)
  }
}
#endif

// dproducts and drecurrent (batch, GATES, hidden): the gradients of both products. That of the state comes through the
// product of the next step, `through`, and `direct`ly; that of the memory in `dmemory`; in the last step, in dh_n and dc_n.
#define BACK_PARAMETERS                                                                                                   \
  int64 n, int64 hidden, int64 width, int64 state_at, int64 saved_at, int64 before_at, int64 old_at, int64 output_at,     \
      int64 dy_at, int64 products_at, int64 is_last, const T *h, const T *c, T *kept, const T *dy, const T *dh_n,         \
      const T *dc_n, const T *through, R *direct, R *dmemory, T *dproducts, T *drecurrent
#define DY R(load(dy[dy_at + ROW * width + COLUMN]))
#define D_STATE (DY + (is_last ? R(load(dh_n[state_at + i])) : R(load(through[i]))))
#define D_PRODUCT(gate) dproducts[products_at + (ROW * GATES + (gate)) * hidden + COLUMN]
#define D_RECURRENT(gate) drecurrent[products_at + (ROW * GATES + (gate)) * hidden + COLUMN]

#if defined(RNN)
extern "C" __global__ void rnn_back(BACK_PARAMETERS) {
  FOR_EACH {
    const R value = R(load(kept[output_at + ROW * width + COLUMN]));
    store(D_PRODUCT(0), D_STATE * (RELU ? (value > 0 ? R(1) : R(0)) : 1 - value * value));
  }
}
#elif defined(LSTM)
extern "C" __global__ void lstm_back(BACK_PARAMETERS) {
  FOR_EACH {
    const R input = SAVED(0), forget = SAVED(1), candidate = SAVED(2), output = SAVED(3), shown = tanh(SAVED(4));
    const R old = before_at < 0 ? R(load(c[state_at + i])) : BEFORE(4), dh = D_STATE;
    const R dc = (is_last ? R(load(dc_n[state_at + i])) : dmemory[i]) + dh * output * (1 - shown * shown);
    store(D_PRODUCT(0), dc * candidate * input * (1 - input));
    store(D_PRODUCT(1), dc * old * forget * (1 - forget));
    store(D_PRODUCT(2), dc * input * (1 - candidate * candidate));
    store(D_PRODUCT(3), dh * shown * output * (1 - output));
    dmemory[i] = dc * forget;
  }
}
#else
extern "C" __global__ void gru_back(BACK_PARAMETERS) {
  FOR_EACH {
    const R reset = SAVED(0), update = SAVED(1), candidate = SAVED(2), of_state = SAVED(3);
    const R dh = D_STATE + (is_last ? R(0) : direct[i]);
    const R d_candidate = dh * (1 - update) * (1 - candidate * candidate);
    const R d_reset = d_candidate * of_state * reset * (1 - reset);
    const R d_update = dh * (OLD_STATE - candidate) * update * (1 - update);
    store(D_PRODUCT(0), d_reset), store(D_RECURRENT(0), d_reset);
    store(D_PRODUCT(1), d_update), store(D_RECURRENT(1), d_update);
    store(D_PRODUCT(2), d_candidate), store(D_RECURRENT(2), d_candidate * reset);
    direct[i] = dh * update;
  }
}
#endif

// The gradients of the first states; what is null is not wanted, or not there.
extern "C" __global__ void states_given(
    int64 n, int64 state_at, const T* through, const R* direct, const R* dmemory, T* dh, T* dc) {
  FOR_EACH {
    if (dh) store(dh[state_at + i], R(load(through[i])) + (direct ? direct[i] : R(0)));
    if (dc) store(dc[state_at + i], dmemory[i]);
  }
}

// x mask, element by element.
extern "C" __global__ void masked(int64 n, int64 x_at, int64 mask_at, const T* x, const T* mask, T* y) {
  FOR_EACH store(y[i], R(load(x[x_at + i])) * R(load(mask[mask_at + i])));
}

// The sums of the columns from `first` on of a matrix of `rows` rows of `pitch` elements. A block has 32 columns and 8 lanes.
extern "C" __global__ void bias_given(int64 columns, int64 rows, int64 pitch, int64 first, int64 target, const T* x, T* dbias) {
  __shared__ R sums[8][32];
  const int64 column = blockIdx.x * int64(32) + threadIdx.x;
  R sum = 0;
  for (int64 row = threadIdx.y; row < rows && column < columns; row += 8) sum += R(load(x[row * pitch + first + column]));
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= columns) return;
  for (int lane = 1; lane < 8; ++lane) sum += sums[lane][threadIdx.x];
  store(dbias[target + column], sum);
}
