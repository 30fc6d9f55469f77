// Which weights are fixed next (A. Zhou et al., "Incremental network quantization", 2017). T is the type of the weights, I that
// of the indicator: 1 for a fixed weight, and minus the number of passes so far for the others.
//
// IS_TIME says whether weights are fixed after so many `passes`, IS_LAST whether all of them are. With RANDOM the rank of a
// weight is a random number (see philox.cuh), otherwise it is its magnitude.

// A number in the order of the ranks; 0 for weights that are not to be chosen. Magnitudes are ordered as their bits are.
__device__ __forceinline__ uint32 rank_of(int64 i, const I* indicator, const T* weight, const uint64* key) {
  if (load(indicator[i]) > 0) return 0;
#if RANDOM
  return (philox(key, i / 4).lane[i % 4] >> 8) + 1;
#else
  const float magnitude = fabs(float(load(weight[i])));
  return magnitude != magnitude ? 0 : bits_of_float(magnitude) + 1;
#endif
}

// The sum of a number of each thread of the block, for all of them.
__device__ int64 sum_of_block(int64 value, int64* shared) {
  __syncthreads();  // the sum before has been read
  shared[threadIdx.x] = value;
  for (uint32 half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  __syncthreads();
  return shared[0];
}

#define COUNTED(condition)                                                                    \
  [&] {                                                                                       \
    int64 own = 0;                                                                            \
    for (int64 i = threadIdx.x; i < n; i += blockDim.x) own += (condition) ? 1 : 0;           \
    return sum_of_block(own, shared);                                                         \
  }()
#define RANK rank_of(i, indicator, weight, key)

// choice: the smallest rank that is chosen, and where those of that rank end, so that half of the weights are chosen. One
// block, bit by bit; it works in a few passes of a training only. Of equal ranks the first ones are chosen.
extern "C" __global__ void choose_fixed(
    int64 n, const I* indicator, const T* weight, const R* n_passes, int64* choice, const uint64* key) {
  __shared__ int64 shared[256];
  const int64 passes = int64(n_passes[0]);
  if (!IS_TIME || IS_LAST) return;
  const int64 left = COUNTED(!(load(indicator[i]) > 0)), wanted = left / 2 > 1 ? left / 2 : 1;
  uint32 lowest = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const uint32 tried = lowest | uint32(1) << bit;
    if (COUNTED(RANK >= tried) >= wanted) lowest = tried;
  }
  int64 first = 0, last = n;
  if (lowest > 0) {
    const int64 rest = wanted - COUNTED(RANK > lowest);
    while (first < last) {
      const int64 middle = (first + last) / 2;
      if (COUNTED(i < middle && RANK == lowest) >= rest) last = middle; else first = middle + 1;
    }
  }
  if (threadIdx.x == 0) choice[0] = lowest > 0 ? int64(lowest) : 1, choice[1] = last;
}

// The indicator after this pass.
extern "C" __global__ void mark_fixed(
    int64 n, I* indicator, const T* weight, const R* n_passes, const int64* choice, const uint64* key) {
  const int64 passes = int64(n_passes[0]);
  for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x) {
    if (load(indicator[i]) > 0) continue;
    bool fixes = IS_LAST;
    if (IS_TIME && !IS_LAST) {
      const int64 rank = RANK;
      fixes = rank > choice[0] || (rank == choice[0] && i < choice[1]);
    }
    store(indicator[i], fixes ? R(1) : -R(passes + 1));
  }
}
