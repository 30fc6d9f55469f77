// Attention without the matrix of weights: tiles of TILE queries and TILE keys, whose scores are in shared memory only.
//
// q (heads, n_queries, WIDTH), k (heads, n_keys, WIDTH), v (heads, n_keys, DEPTH) and their gradients hold elements of T,
// log_sum and inner (heads, n_queries) elements of R. A block works on one tile of rows (queries forward and for dq, keys
// for dk and dv) and goes through the tiles of columns in order, so that sums have the same bits each time. LANES
// neighbouring threads share a row: they divide the columns of a tile among themselves, and the features of a result.
//
// A score is scale q.k plus the mask; -inf hides a key. The weights are exp(score - log_sum); their gradients follow from
// dp = dy.v as weight (dp - dy.y), where inner is dy.y (Dao et al., 2022, FlashAttention, and 2023, FlashAttention-2).
//
// With DROPOUT a weight is multiplied by a factor, 0 or `keep`, after the sum of the weights was taken. It is drawn by the
// number of the weight among all of them (see philox.cuh) and drawn again in the backward pass, from a copy of the key.
#define LANES 8
#define OF_LANE(n) (((n) + LANES - 1) / LANES)

// Strides of a mask that is broadcast to (heads, n_queries, n_keys); heads are numbered by up to four axes.
struct Mask {
  const T* values;
  int64 head, query, key;
  __device__ R at(int64 i, int64 j) const { return values ? R(load(values[head + i * query + j * key])) : R(0); }
};

__device__ Mask mask_of(
    const T* values, int64 head, int64 length0, int64 stride0, int64 length1, int64 stride1, int64 length2, int64 stride2,
    int64 length3, int64 stride3, int64 query, int64 key) {
  int64 start = head % length3 * stride3;
  start += (head /= length3) % length2 * stride2;
  start += (head /= length2) % length1 * stride1;
  start += (head / length1) % length0 * stride0;
  return {values, start, query, key};
}

#define MASK_PARAMETERS                                                                                            \
  const T *mask_values, int64 length0, int64 stride0, int64 length1, int64 stride1, int64 length2, int64 stride2, \
      int64 length3, int64 stride3, int64 mask_query, int64 mask_key
#define MASK                                                                                                         \
  mask_of(mask_values, head, length0, stride0, length1, stride1, length2, stride2, length3, stride3, mask_query, mask_key)

// Rows of `n` features from `first` on into shared memory, with one element between rows so that lanes read other banks.
__device__ void take(R* target, const T* source, int64 first, int64 n_rows, int n) {
  for (int i = threadIdx.x; i < TILE * n; i += TILE * LANES) {
    const int row = i / n, feature = i % n;
    target[row * (n + 1) + feature] = first + row < n_rows ? R(load(source[(first + row) * n + feature])) : R(0);
  }
}

template <int n>
__device__ R product(const R* a, const R* b) {
  R sum = 0;
  for (int f = 0; f < n; ++f) sum += a[f] * b[f];
  return sum;
}

__device__ bool is_hidden(int64 query, int64 key, int64 n_queries, int64 n_keys) {
  return query >= n_queries || key >= n_keys || (CAUSAL && key > query);
}

#if DROPOUT
#define DROPOUT_PARAMETERS , const uint64 *key, uint32 threshold, R keep
__device__ R factor_of(const uint64* key, uint32 threshold, R keep, int64 number) {
  return (philox(key, uint64(number) / 4).lane[number % 4] >> 8) >= threshold ? keep : R(0);
}
#define FACTOR(i, j) factor_of(key, threshold, keep, (head * n_queries + (i)) * n_keys + (j))
#else
#define DROPOUT_PARAMETERS
#define FACTOR(i, j) R(1)
#endif

// The values of the lanes of a row combined, for all of them.
__device__ R largest_of_row(R value) {
  for (int by = LANES / 2; by > 0; by /= 2) value = larger(value, __shfl_xor_sync(0xffffffffu, value, by));
  return value;
}
__device__ R sum_of_row(R value) {
  for (int by = LANES / 2; by > 0; by /= 2) value += __shfl_xor_sync(0xffffffffu, value, by);
  return value;
}

// The features of a lane: `sums` with the products of the weights of its row and `rows`, a tile of columns, added; and the
// same features times `factor` written to a row of the result.
template <int n>
__device__ void add_products(R* sums, const R* weights, const R* rows, int lane) {
  for (int f = 0; f < OF_LANE(n); ++f) {
    const int feature = f * LANES + lane;
    if (feature < n)
      for (int c = 0; c < TILE; ++c) sums[f] += weights[c] * rows[c * (n + 1) + feature];
  }
}
template <int n>
__device__ void store_row(T* target, const R* sums, R factor, int lane) {
  for (int f = 0; f < OF_LANE(n); ++f) {
    const int feature = f * LANES + lane;
    if (feature < n) store(target[feature], factor * sums[f]);
  }
}

extern "C" __global__ void attention(
    int64 n_queries, int64 n_keys, R scale, const T* q, const T* k, const T* v, MASK_PARAMETERS, T* y, R* log_sum
    DROPOUT_PARAMETERS) {
  extern __shared__ R shared[];
  const int row = threadIdx.x / LANES, lane = threadIdx.x % LANES;
  const int64 n_tiles = (n_queries + TILE - 1) / TILE, head = blockIdx.x / n_tiles;
  const int64 first = blockIdx.x % n_tiles * TILE, query = first + row;
  const Mask mask = MASK;
  R* const queries = shared;
  R* const keys = queries + TILE * (WIDTH + 1);  // and the values, once the keys have been read
  R* const weights = keys + TILE * ((WIDTH > DEPTH ? WIDTH : DEPTH) + 1);
  q += head * n_queries * WIDTH, k += head * n_keys * WIDTH, v += head * n_keys * DEPTH, y += head * n_queries * DEPTH;
  take(queries, q, first, n_queries, WIDTH);
  R top = -infinity(), total = 0, sums[OF_LANE(DEPTH)];
  for (int f = 0; f < OF_LANE(DEPTH); ++f) sums[f] = 0;
  const int64 end = CAUSAL && first + TILE < n_keys ? first + TILE : n_keys;
  for (int64 start = 0; start < end; start += TILE) {
    __syncthreads();  // the values of the tile before have been read
    take(keys, k, start, n_keys, WIDTH);
    __syncthreads();
    R scores[OF_LANE(TILE)], best = -infinity();
    for (int c = 0; c < OF_LANE(TILE); ++c) {
      const int column = c * LANES + lane;
      scores[c] = -infinity();
      if (column < TILE && !is_hidden(query, start + column, n_queries, n_keys))
        scores[c] = scale * product<WIDTH>(queries + row * (WIDTH + 1), keys + column * (WIDTH + 1)) + mask.at(query, start + column);
      best = larger(best, scores[c]);
    }
    best = larger(top, largest_of_row(best));
    const R base = best == -infinity() ? R(0) : best, shrink = exp(top - base);
    R own = 0;
    for (int c = 0; c < OF_LANE(TILE); ++c) {
      const int column = c * LANES + lane;
      const R weight = exp(scores[c] - base);
      own += weight;
      if (column < TILE)  // what is hidden draws nothing
        weights[row * (TILE + 1) + column] = weight == 0 ? weight : weight * FACTOR(query, start + column);
    }
    total = total * shrink + sum_of_row(own);
    top = best;
    __syncthreads();  // the keys have been read, and the weights written
    take(keys, v, start, n_keys, DEPTH);
    __syncthreads();
    for (int f = 0; f < OF_LANE(DEPTH); ++f) sums[f] *= shrink;
    add_products<DEPTH>(sums, weights + row * (TILE + 1), keys, lane);
  }
  if (query >= n_queries) return;
  const bool seen = total != 0;
  for (int f = 0; f < OF_LANE(DEPTH); ++f) {
    const int feature = f * LANES + lane;
    if (feature < DEPTH) store(y[query * DEPTH + feature], seen ? sums[f] / total : R(0));
  }
  if (lane == 0) log_sum[head * n_queries + query] = seen ? top + log(total) : -infinity();
}

// inner = dy.y, a thread for each query.
extern "C" __global__ void attention_inner(int64 n, const T* y, const T* dy, R* inner) {
  const int64 row = blockIdx.x * int64(blockDim.x) + threadIdx.x;
  if (row >= n) return;
  R sum = 0;
  for (int f = 0; f < DEPTH; ++f) sum += R(load(y[row * DEPTH + f])) * R(load(dy[row * DEPTH + f]));
  inner[row] = sum;
}

// The weight of a key for a query; 0 where it is hidden, or where all keys are.
__device__ R weight_of(R score, R log_sum) { return log_sum == -infinity() ? R(0) : exp(score - log_sum); }

extern "C" __global__ void attention_backward_queries(
    int64 n_queries, int64 n_keys, R scale, const T* q, const T* k, const T* v, MASK_PARAMETERS, const R* log_sum,
    const R* inner, const T* dy, T* dq DROPOUT_PARAMETERS) {
  extern __shared__ R shared[];
  const int row = threadIdx.x / LANES, lane = threadIdx.x % LANES;
  const int64 n_tiles = (n_queries + TILE - 1) / TILE, head = blockIdx.x / n_tiles;
  const int64 first = blockIdx.x % n_tiles * TILE, query = first + row;
  const Mask mask = MASK;
  R* const queries = shared;
  R* const gradients = queries + TILE * (WIDTH + 1);
  R* const keys = gradients + TILE * (DEPTH + 1);
  R* const values = keys + TILE * (WIDTH + 1);
  R* const changes = values + TILE * (DEPTH + 1);
  q += head * n_queries * WIDTH, k += head * n_keys * WIDTH, v += head * n_keys * DEPTH, dy += head * n_queries * DEPTH;
  dq += head * n_queries * WIDTH, log_sum += head * n_queries, inner += head * n_queries;
  take(queries, q, first, n_queries, WIDTH);
  take(gradients, dy, first, n_queries, DEPTH);
  const R of_row = query < n_queries ? log_sum[query] : -infinity(), inner_of_row = query < n_queries ? inner[query] : R(0);
  R sums[OF_LANE(WIDTH)];
  for (int f = 0; f < OF_LANE(WIDTH); ++f) sums[f] = 0;
  const int64 end = CAUSAL && first + TILE < n_keys ? first + TILE : n_keys;
  for (int64 start = 0; start < end; start += TILE) {
    __syncthreads();  // the tile before has been read
    take(keys, k, start, n_keys, WIDTH);
    take(values, v, start, n_keys, DEPTH);
    __syncthreads();
    for (int column = lane; column < TILE; column += LANES) {
      R change = 0;
      if (!is_hidden(query, start + column, n_queries, n_keys)) {
        const R score = scale * product<WIDTH>(queries + row * (WIDTH + 1), keys + column * (WIDTH + 1)) + mask.at(query, start + column);
        const R d_weight = FACTOR(query, start + column) * product<DEPTH>(gradients + row * (DEPTH + 1), values + column * (DEPTH + 1));
        change = weight_of(score, of_row) * (d_weight - inner_of_row);
      }
      changes[row * (TILE + 1) + column] = change;
    }
    __syncthreads();
    add_products<WIDTH>(sums, changes + row * (TILE + 1), keys, lane);
  }
  if (query >= n_queries) return;
  store_row<WIDTH>(dq + query * WIDTH, sums, scale, lane);
}

// dk and dv, each of which may be null.
extern "C" __global__ void attention_backward_keys(
    int64 n_queries, int64 n_keys, R scale, const T* q, const T* k, const T* v, MASK_PARAMETERS, const R* log_sum,
    const R* inner, const T* dy, T* dk, T* dv DROPOUT_PARAMETERS) {
  extern __shared__ R shared[];
  const int row = threadIdx.x / LANES, lane = threadIdx.x % LANES;
  const int64 n_tiles = (n_keys + TILE - 1) / TILE, head = blockIdx.x / n_tiles;
  const int64 first = blockIdx.x % n_tiles * TILE, key_number = first + row;
  const Mask mask = MASK;
  R* const keys = shared;
  R* const values = keys + TILE * (WIDTH + 1);
  R* const queries = values + TILE * (DEPTH + 1);
  R* const gradients = queries + TILE * (WIDTH + 1);
  R* const weights = gradients + TILE * (DEPTH + 1);
  R* const changes = weights + TILE * (TILE + 1);
  q += head * n_queries * WIDTH, k += head * n_keys * WIDTH, v += head * n_keys * DEPTH, dy += head * n_queries * DEPTH;
  log_sum += head * n_queries, inner += head * n_queries;
  take(keys, k, first, n_keys, WIDTH);
  take(values, v, first, n_keys, DEPTH);
  R key_sums[OF_LANE(WIDTH)], value_sums[OF_LANE(DEPTH)];
  for (int f = 0; f < OF_LANE(WIDTH); ++f) key_sums[f] = 0;
  for (int f = 0; f < OF_LANE(DEPTH); ++f) value_sums[f] = 0;
  for (int64 start = CAUSAL ? first : 0; start < n_queries; start += TILE) {
    __syncthreads();  // the tile before has been read
    take(queries, q, start, n_queries, WIDTH);
    take(gradients, dy, start, n_queries, DEPTH);
    __syncthreads();
    for (int column = lane; column < TILE; column += LANES) {
      const int64 query = start + column;
      R weight = 0, change = 0;
      if (!is_hidden(query, key_number, n_queries, n_keys)) {
        const R score = scale * product<WIDTH>(queries + column * (WIDTH + 1), keys + row * (WIDTH + 1)) + mask.at(query, key_number);
        const R factor = FACTOR(query, key_number);
        weight = weight_of(score, log_sum[query]);
        change = weight * (factor * product<DEPTH>(gradients + column * (DEPTH + 1), values + row * (DEPTH + 1)) - inner[query]);
        weight *= factor;
      }
      weights[row * (TILE + 1) + column] = weight;
      changes[row * (TILE + 1) + column] = change;
    }
    __syncthreads();
    add_products<WIDTH>(key_sums, changes + row * (TILE + 1), queries, lane);
    add_products<DEPTH>(value_sums, weights + row * (TILE + 1), gradients, lane);
  }
  if (key_number >= n_keys) return;
  if (dk) store_row<WIDTH>(dk + (head * n_keys + key_number) * WIDTH, key_sums, scale, lane);
  if (dv) store_row<DEPTH>(dv + (head * n_keys + key_number) * DEPTH, value_sums, R(1), lane);
}

#if DROPOUT
// The key for the backward pass.
extern "C" __global__ void attention_drawn(const uint64* key, uint64* drawn) { drawn[threadIdx.x] = key[threadIdx.x]; }
#endif
