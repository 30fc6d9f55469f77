// Reductions along rows. A row is `length` elements with a stride of `inner`; there are `n_rows` of them, and row r begins
// at element r / inner * length * inner + r % inner. Blocks have two directions: lanes, which share a row, and rows.
// With BY_ROWS lanes are neighbours in memory (inner is 1), otherwise rows are. The launch is the same either way:
// blockDim.x threads that are neighbours in memory, blockDim.y others.
#if BY_ROWS
#define LANE threadIdx.x
#define LANES blockDim.x
#define ROW (blockIdx.x * int64(blockDim.y) + threadIdx.y)
#define ROW_OF_BLOCK threadIdx.y
#else
#define LANE threadIdx.y
#define LANES blockDim.y
#define ROW (blockIdx.x * int64(blockDim.x) + threadIdx.x)
#define ROW_OF_BLOCK threadIdx.x
#endif

struct Sum { __device__ R operator()(R a, R b) const { return a + b; } };
struct Maximum { __device__ R operator()(R a, R b) const { return larger(a, b); } };

// The values of all lanes of a row combined, for all of them, in the same order every time. Every thread of a block calls
// it. Lanes that are neighbours are whole warps, which need no memory among themselves.
#if BY_ROWS
template <class Combine>
__device__ R combined(R value, R* shared, Combine combine) {
  for (int by = 16; by > 0; by /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, by));
  const uint32 n_warps = LANES / 32;
  if (n_warps == 1) return value;
  R* own = shared + ROW_OF_BLOCK * n_warps;
  __syncthreads();  // what was combined before has been read
  if (LANE % 32 == 0) own[LANE / 32] = value;
  __syncthreads();
  value = own[0];
  for (uint32 warp = 1; warp < n_warps; ++warp) value = combine(value, own[warp]);
  return value;
}
#else
template <class Combine>
__device__ R combined(R value, R* shared, Combine combine) {
  R* own = shared + ROW_OF_BLOCK * LANES;
  __syncthreads();  // what was combined before has been read
  own[LANE] = value;
  for (uint32 half = LANES / 2; half > 0; half /= 2) {
    __syncthreads();
    if (LANE < half) own[LANE] = combine(own[LANE], own[LANE + half]);
  }
  __syncthreads();
  return own[0];
}
#endif
