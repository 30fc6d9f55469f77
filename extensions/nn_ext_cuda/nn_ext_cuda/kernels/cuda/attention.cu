// Attention without the matrix of weights: tiles of TILE queries and TILE keys, whose scores are in registers and in shared
// memory only.
//
// q (heads, n_queries, WIDTH), k (heads, n_keys, WIDTH), v (heads, n_keys, DEPTH) and their gradients hold elements of T,
// log_sum and inner (heads, n_queries) elements of R. The features of a row are neighbours; groups of `n_inner` heads, the heads
// of a group, and rows are as far apart as the three numbers after an array say (`_outer`, `_inner`, `_row`), the last of which is
// below 2^31. A block of SIDE x SIDE threads works on one tile of rows (queries
// forward and for dq, keys for dk and dv) and goes through the tiles of columns in order, so that sums have the same bits
// each time. A thread has EACH x EACH of the scores: rows `row`, `row` + SIDE, ... and columns `column`, `column` + SIDE, ...
// of the tile. It reads 2 EACH numbers for EACH^2 products, since reading shared memory is what limits the speed.
//
// Features are taken into shared memory PART at a time for scores, and SPAN at a time for what the weights are applied to.
// A block computes up to FEATURES features of a result; blockIdx.y counts such blocks, each of which computes the scores.
//
// A score is scale q.k plus the mask; -inf hides a key. The weights are exp(score - log_sum); their gradients follow from
// dp = dy.v as weight (dp - dy.y), where inner is dy.y (Dao et al., 2022, FlashAttention, and 2023, FlashAttention-2).
//
// With DROPOUT a weight is multiplied by a factor, 0 or `keep`, after the sum of the weights was taken. It is drawn by the
// number of the weight among all of them (see philox.cuh) and drawn again in the backward pass, from a copy of the key.
#define SIDE 16
#define THREADS (SIDE * SIDE)
#define EACH (TILE / SIDE)
#define SPAN (2 * PART)
#define TILES_OF(n) (((n) + TILE - 1) / TILE)
// Unrolled, so that what is indexed by r and c stays in registers.
#define FOR_EACH_ROW _Pragma("unroll") for (int r = 0; r < EACH; ++r)
#define FOR_EACH_COLUMN _Pragma("unroll") for (int c = 0; c < EACH; ++c)

#define LYING(array) array, int64 array##_outer, int64 array##_inner, int64 array##_row
// Divided in 32 bits, which takes fewer registers: there are less than 2^31 heads.
#define HEAD_OF(array) \
  (array + uint32(head) / uint32(n_inner) * array##_outer + uint32(head) % uint32(n_inner) * array##_inner)

// The mask of a head, broadcast along queries or keys where a stride is 0.
struct Mask {
  const T* values;
  int64 query, key;
  __device__ R at(int64 i, int64 j) const { return values ? R(load(values[i * query + j * key])) : R(0); }
};

// The heads are numbered by axes, innermost first, each with a length and the stride of the mask: FOR_AXES(f) is
// f(0) f(1) ..., as many as the mask needs.
#define AXIS_PARAMETERS(k) int64 length##k, int64 stride##k,
#define MASK_PARAMETERS const T *mask_values, FOR_AXES(AXIS_PARAMETERS) int64 mask_query, int64 mask_key
#define AXIS_START(k) mask.values += rest % length##k * stride##k, rest /= length##k;

// Declares `mask`, that of `head`.
#define FIND_MASK                                           \
  Mask mask = {mask_values, mask_query, mask_key};          \
  if (mask_values) {                                        \
    int64 rest = head;                                      \
    FOR_AXES(AXIS_START)                                    \
  }

__device__ bool is_hidden(int64 query, int64 key, int64 n_queries, int64 n_keys) {
  return query >= n_queries || key >= n_keys || (CAUSAL && key > query);
}

#if DROPOUT
#define DROPOUT_PARAMETERS , const uint64 *dropout_key, uint32 threshold, R keep
__device__ R factor_of(const uint64* key, uint32 threshold, R keep, int64 number) {
  return (philox(key, uint64(number) / 4).lane[number % 4] >> 8) >= threshold ? keep : R(0);
}
#define FACTOR(query, key) factor_of(dropout_key, threshold, keep, (head * n_queries + (query)) * n_keys + (key))
#else
#define DROPOUT_PARAMETERS
#define FACTOR(query, key) R(1)
#endif

// The values of the threads that share a row combined, for all of them.
__device__ R largest_of_row(R value) {
  for (int by = SIDE / 2; by > 0; by /= 2) value = larger(value, __shfl_xor_sync(0xffffffffu, value, by));
  return value;
}
__device__ R sum_of_row(R value) {
  for (int by = SIDE / 2; by > 0; by /= 2) value += __shfl_xor_sync(0xffffffffu, value, by);
  return value;
}

// `n` features from `start` on of TILE rows from `first` on of a matrix (n_rows, width), whose rows are `pitch` apart, into shared memory, zeros beyond it;
// one element between rows, so that threads read other banks.
template <int n>
__device__ void take(R* target, const T* source, int pitch, int64 first, int64 n_rows, int width, int start) {
  for (int i = threadIdx.x; i < TILE * n; i += THREADS) {
    const int row = i / n, feature = i % n;
    const bool exists = first + row < n_rows && start + feature < width;
    target[row * (n + 1) + feature] = exists ? R(load(source[(first + row) * pitch + start + feature])) : R(0);
  }
}

// Adds the products of rows of a and rows of b, over all of their features: a from `first_a` on along the rows of the tile,
// b from `first_b` on along its columns. What was in `panel` is overwritten.
__device__ void multiply(
    R (&sums)[EACH][EACH], const T* a, int pitch_a, int64 first_a, int64 n_a, const T* b, int pitch_b, int64 first_b,
    int64 n_b, int width, R* panel) {
  const int row = threadIdx.x / SIDE, column = threadIdx.x % SIDE;
  R* const rows = panel;
  R* const columns = panel + TILE * (PART + 1);
  for (int start = 0; start < width; start += PART) {
    __syncthreads();  // what was in the panel has been read
    take<PART>(rows, a, pitch_a, first_a, n_a, width, start);
    take<PART>(columns, b, pitch_b, first_b, n_b, width, start);
    __syncthreads();
#pragma unroll 4
    for (int f = 0; f < PART; ++f) {
      R of_row[EACH], of_column[EACH];
      FOR_EACH_ROW of_row[r] = rows[(row + SIDE * r) * (PART + 1) + f];
      FOR_EACH_COLUMN of_column[c] = columns[(column + SIDE * c) * (PART + 1) + f];
      FOR_EACH_ROW FOR_EACH_COLUMN sums[r][c] += of_row[r] * of_column[c];
    }
  }
}

// Adds the weights of a tile times rows of `source` (n_rows, width) from `first` on, which belong to its columns: the
// features from `start` on, `column` + SIDE f of them in sums[][f].
__device__ void apply(
    R (&sums)[EACH][FEATURES / SIDE], const R* weights, const T* source, int pitch, int64 first, int64 n_rows, int width,
    int start, R* panel) {
  const int row = threadIdx.x / SIDE, column = threadIdx.x % SIDE;
#pragma unroll
  for (int span = 0; span < FEATURES; span += SPAN) {
    if (start + span >= width) break;
    __syncthreads();  // the weights have been written, and what was in the panel has been read
    take<SPAN>(panel, source, pitch, first, n_rows, width, start + span);
    __syncthreads();
#pragma unroll 4
    for (int c = 0; c < TILE; ++c) {
      R of_row[EACH], of_feature[SPAN / SIDE];
      FOR_EACH_ROW of_row[r] = weights[(row + SIDE * r) * (TILE + 1) + c];
      for (int f = 0; f < SPAN / SIDE; ++f) of_feature[f] = panel[c * (SPAN + 1) + column + SIDE * f];
      FOR_EACH_ROW
        for (int f = 0; f < SPAN / SIDE; ++f) sums[r][span / SIDE + f] += of_row[r] * of_feature[f];
    }
  }
}

// Rows of a result (n_rows, width) from `first` on, the features that `apply` has summed, times `factor`.
__device__ void store_rows(
    T* target, int pitch, const R (&sums)[EACH][FEATURES / SIDE], int64 first, int64 n_rows, int width, int start,
    R factor) {
  const int column = threadIdx.x % SIDE;
  FOR_EACH_ROW {
    const int64 row = first + threadIdx.x / SIDE + SIDE * r;
    for (int f = 0; f < FEATURES / SIDE; ++f) {
      const int feature = start + column + SIDE * f;
      if (row < n_rows && feature < width) store(target[row * pitch + feature], factor * sums[r][f]);
    }
  }
}

// Shared memory: the panel of features, then the weights of a tile.
#define SHARED                \
  extern __shared__ R shared[]; \
  R* const panel = shared;      \
  R* const weights = panel + 2 * TILE * (PART + 1);
#define WEIGHT(r, c) weights[(row + SIDE * (r)) * (TILE + 1) + column + SIDE * (c)]

extern "C" __global__ void __launch_bounds__(256) attention(
    int64 n_queries, int64 n_keys, int64 n_inner, R scale, const T* LYING(q), const T* LYING(k), const T* LYING(v),
    MASK_PARAMETERS, T* LYING(y), R* log_sum DROPOUT_PARAMETERS) {
  SHARED
  const int row = threadIdx.x / SIDE, column = threadIdx.x % SIDE, first_feature = blockIdx.y * FEATURES;
  const int64 n_tiles = TILES_OF(n_queries), head = blockIdx.x / n_tiles, first = blockIdx.x % n_tiles * TILE;
  FIND_MASK
  q = HEAD_OF(q), k = HEAD_OF(k), v = HEAD_OF(v), y = HEAD_OF(y);
  R top[EACH], total[EACH], sums[EACH][FEATURES / SIDE];
  FOR_EACH_ROW {
    top[r] = -infinity(), total[r] = 0;
    for (int f = 0; f < FEATURES / SIDE; ++f) sums[r][f] = 0;
  }
  const int64 end = CAUSAL && first + TILE < n_keys ? first + TILE : n_keys;
  for (int64 start = 0; start < end; start += TILE) {
    R scores[EACH][EACH] = {};
    multiply(scores, q, q_row, first, n_queries, k, k_row, start, n_keys, WIDTH, panel);
    FOR_EACH_ROW {
      const int64 query = first + row + SIDE * r;
      R best = -infinity();
      FOR_EACH_COLUMN {
        const int64 key = start + column + SIDE * c;
        scores[r][c] = is_hidden(query, key, n_queries, n_keys) ? -infinity() : scale * scores[r][c] + mask.at(query, key);
        best = larger(best, scores[r][c]);
      }
      best = larger(top[r], largest_of_row(best));
      const R base = best == -infinity() ? R(0) : best, shrink = exp(top[r] - base);
      R own = 0;
      FOR_EACH_COLUMN {
        const R weight = exp(scores[r][c] - base);
        own += weight;  // what is hidden draws nothing
        WEIGHT(r, c) = weight == 0 ? weight : weight * FACTOR(query, start + column + SIDE * c);
      }
      total[r] = total[r] * shrink + sum_of_row(own);
      top[r] = best;
      for (int f = 0; f < FEATURES / SIDE; ++f) sums[r][f] *= shrink;
    }
    apply(sums, weights, v, v_row, start, n_keys, DEPTH, first_feature, panel);
  }
  FOR_EACH_ROW {
    const int64 query = first + row + SIDE * r;
    const bool seen = total[r] != 0;
    for (int f = 0; f < FEATURES / SIDE; ++f) sums[r][f] = seen ? sums[r][f] / total[r] : R(0);
    if (query < n_queries && column == 0 && blockIdx.y == 0)
      log_sum[head * n_queries + query] = seen ? top[r] + log(total[r]) : -infinity();
  }
  store_rows(y, y_row, sums, first, n_queries, DEPTH, first_feature, R(1));
}

// inner = dy.y, a warp for each of n queries.
extern "C" __global__ void attention_inner(
    int64 n, int64 n_queries, int64 n_inner, const T* LYING(y), const T* LYING(dy), R* inner) {
  const int64 query = blockIdx.x * int64(blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (query >= n) return;
  const int64 head = query / n_queries, row = query % n_queries;
  y = HEAD_OF(y) + row * y_row, dy = HEAD_OF(dy) + row * dy_row;
  R sum = 0;
  for (int f = lane; f < DEPTH; f += 32) sum += R(load(y[f])) * R(load(dy[f]));
  for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
  if (lane == 0) inner[query] = sum;
}

// The weight of a key for a query; 0 where all keys are hidden.
__device__ R weight_of(R score, R log_sum) { return log_sum == -infinity() ? R(0) : exp(score - log_sum); }

extern "C" __global__ void __launch_bounds__(256) attention_backward_queries(
    int64 n_queries, int64 n_keys, int64 n_inner, R scale, const T* LYING(q), const T* LYING(k), const T* LYING(v),
    MASK_PARAMETERS, const R* log_sum, const R* inner, const T* LYING(dy), T* LYING(dq) DROPOUT_PARAMETERS) {
  SHARED
  const int row = threadIdx.x / SIDE, column = threadIdx.x % SIDE, first_feature = blockIdx.y * FEATURES;
  const int64 n_tiles = TILES_OF(n_queries), head = blockIdx.x / n_tiles, first = blockIdx.x % n_tiles * TILE;
  FIND_MASK
  q = HEAD_OF(q), k = HEAD_OF(k), v = HEAD_OF(v), dy = HEAD_OF(dy);
  dq = HEAD_OF(dq), log_sum += head * n_queries, inner += head * n_queries;
  R sums[EACH][FEATURES / SIDE] = {};
  const int64 end = CAUSAL && first + TILE < n_keys ? first + TILE : n_keys;
  for (int64 start = 0; start < end; start += TILE) {
    R scores[EACH][EACH] = {}, d_weights[EACH][EACH] = {};
    multiply(scores, q, q_row, first, n_queries, k, k_row, start, n_keys, WIDTH, panel);
    multiply(d_weights, dy, dy_row, first, n_queries, v, v_row, start, n_keys, DEPTH, panel);
    FOR_EACH_ROW FOR_EACH_COLUMN {
        const int64 query = first + row + SIDE * r, key = start + column + SIDE * c;
        R change = 0;
        if (!is_hidden(query, key, n_queries, n_keys)) {
          const R weight = weight_of(scale * scores[r][c] + mask.at(query, key), log_sum[query]);
          change = weight * (FACTOR(query, key) * d_weights[r][c] - inner[query]);
        }
        WEIGHT(r, c) = change;
      }
    apply(sums, weights, k, k_row, start, n_keys, WIDTH, first_feature, panel);
  }
  store_rows(dq, dq_row, sums, first, n_queries, WIDTH, first_feature, scale);
}

// dk and dv, each of which may be null.
extern "C" __global__ void __launch_bounds__(256) attention_backward_keys(
    int64 n_queries, int64 n_keys, int64 n_inner, R scale, const T* LYING(q), const T* LYING(k), const T* LYING(v),
    MASK_PARAMETERS, const R* log_sum, const R* inner, const T* LYING(dy), T* LYING(dk), T* LYING(dv) DROPOUT_PARAMETERS) {
  SHARED
  const int row = threadIdx.x / SIDE, column = threadIdx.x % SIDE, first_feature = blockIdx.y * FEATURES;
  const int64 n_tiles = TILES_OF(n_keys), head = blockIdx.x / n_tiles, first = blockIdx.x % n_tiles * TILE;
  FIND_MASK
  q = HEAD_OF(q), k = HEAD_OF(k), v = HEAD_OF(v), dy = HEAD_OF(dy);
  log_sum += head * n_queries, inner += head * n_queries;
  R key_sums[EACH][FEATURES / SIDE] = {}, value_sums[EACH][FEATURES / SIDE] = {};
  for (int64 start = CAUSAL ? first : 0; start < n_queries; start += TILE) {
    R scores[EACH][EACH] = {}, d_weights[EACH][EACH] = {};
    multiply(scores, k, k_row, first, n_keys, q, q_row, start, n_queries, WIDTH, panel);
    multiply(d_weights, v, v_row, first, n_keys, dy, dy_row, start, n_queries, DEPTH, panel);
    FOR_EACH_ROW FOR_EACH_COLUMN {
        const int64 key = first + row + SIDE * r, query = start + column + SIDE * c;
        R weight = 0, change = 0;
        if (!is_hidden(query, key, n_queries, n_keys)) {
          const R factor = FACTOR(query, key);
          weight = weight_of(scale * scores[r][c] + mask.at(query, key), log_sum[query]);
          change = weight * (factor * d_weights[r][c] - inner[query]);
          weight *= factor;
        }
        WEIGHT(r, c) = weight;
        d_weights[r][c] = change;
      }
    if (dv) apply(value_sums, weights, dy, dy_row, start, n_queries, DEPTH, first_feature, panel);
    if (!dk) continue;
    __syncthreads();  // the weights have been read
    FOR_EACH_ROW FOR_EACH_COLUMN WEIGHT(r, c) = d_weights[r][c];
    apply(key_sums, weights, q, q_row, start, n_queries, WIDTH, first_feature, panel);
  }
  if (dk) store_rows(HEAD_OF(dk), dk_row, key_sums, first, n_keys, WIDTH, first_feature, scale);
  if (dv) store_rows(HEAD_OF(dv), dv_row, value_sums, first, n_keys, DEPTH, first_feature, R(1));
}

// Heads that share rows of the mask differ along axes with stride 0.
#define AXIS_OF_ROWS(k) if (stride##k) d_mask += rest % length##k * stride##k, rest /= length##k;
#define AXIS_OF_HEAD(k)                              \
  {                                                  \
    int64& digits = stride##k ? of_mask : of_sharing; \
    head += digits % length##k * place;              \
    digits /= length##k, place *= length##k;         \
  }

// The gradient of the mask. A block works on one tile of the mask, and sums over the `n_sharing` heads that share it; an axis
// along which the mask does not vary has one tile for all queries or keys.
extern "C" __global__ void __launch_bounds__(256) attention_backward_mask(
    int64 n_queries, int64 n_keys, int64 n_inner, R scale, const T* LYING(q), const T* LYING(k), const T* LYING(v),
    MASK_PARAMETERS, const R* log_sum, const R* inner, const T* LYING(dy), int64 n_sharing, T* d_mask DROPOUT_PARAMETERS) {
  SHARED
  const int row = threadIdx.x / SIDE, column = threadIdx.x % SIDE;
  const int64 down = mask_query ? TILES_OF(n_queries) : 1, across = mask_key ? TILES_OF(n_keys) : 1;
  const int64 first_query = blockIdx.x / across % down * TILE, first_key = blockIdx.x % across * TILE;
  const int64 query_end = mask_query ? first_query + TILE : n_queries, key_end = mask_key ? first_key + TILE : n_keys;
  const int64 number_of_rows = blockIdx.x / across / down;
  int64 rest = number_of_rows;
  FOR_AXES(AXIS_OF_ROWS)
  R sums[EACH][EACH] = {};
  for (int64 n = 0; n < n_sharing; ++n) {
    int64 of_mask = number_of_rows, of_sharing = n, head = 0, place = 1;
    FOR_AXES(AXIS_OF_HEAD)
    FIND_MASK
    const T *q_head = HEAD_OF(q), *k_head = HEAD_OF(k), *v_head = HEAD_OF(v), *dy_head = HEAD_OF(dy);
    for (int64 i = first_query; i < query_end; i += TILE)
      for (int64 j = first_key; j < key_end && !(CAUSAL && j > i + TILE - 1); j += TILE) {
        R scores[EACH][EACH] = {}, d_weights[EACH][EACH] = {};
        multiply(scores, q_head, q_row, i, n_queries, k_head, k_row, j, n_keys, WIDTH, panel);
        multiply(d_weights, dy_head, dy_row, i, n_queries, v_head, v_row, j, n_keys, DEPTH, panel);
        FOR_EACH_ROW FOR_EACH_COLUMN {
            const int64 query = i + row + SIDE * r, key = j + column + SIDE * c;
            if (is_hidden(query, key, n_queries, n_keys)) continue;
            const int64 number = head * n_queries + query;
            const R weight = weight_of(scale * scores[r][c] + mask.at(query, key), log_sum[number]);
            sums[r][c] += weight * (FACTOR(query, key) * d_weights[r][c] - inner[number]);
          }
      }
  }
  FOR_EACH_ROW FOR_EACH_COLUMN WEIGHT(r, c) = sums[r][c];
  __syncthreads();
  if (!mask_query) {  // sum each column into the first row
    if (threadIdx.x < TILE)
      for (int i = 1; i < TILE; ++i) weights[threadIdx.x] += weights[i * (TILE + 1) + threadIdx.x];
    __syncthreads();
  }
  const int rows = mask_query ? TILE : 1;
  if (!mask_key) {  // sum each row into the first column
    if (threadIdx.x < rows)
      for (int j = 1; j < TILE; ++j) weights[threadIdx.x * (TILE + 1)] += weights[threadIdx.x * (TILE + 1) + j];
    __syncthreads();
  }
  const int columns = mask_key ? TILE : 1;
  for (int i = threadIdx.x; i < rows * columns; i += THREADS) {
    const int64 query = first_query + i / columns, key = first_key + i % columns;
    if ((!mask_query || query < n_queries) && (!mask_key || key < n_keys))
      store(d_mask[query * mask_query + key * mask_key], weights[i / columns * (TILE + 1) + i % columns]);
  }
}

#if DROPOUT
// The key for the backward pass.
extern "C" __global__ void attention_drawn(const uint64* key, uint64* drawn) { drawn[threadIdx.x] = key[threadIdx.x]; }
#endif
