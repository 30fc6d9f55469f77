// Running sums and products along an axis: the array is (outer, length, inner). PRODUCT, else sums. EXCLUSIVE: a result
// leaves its own element out. REVERSE: from the end. Sums are of type R, each in the same order every time.
#define START (PRODUCT ? R(1) : R(0))
#define AT(k) (REVERSE ? length - 1 - (k) : (k))

__device__ __forceinline__ R joined(R a, R b) { return PRODUCT ? a * b : a + b; }

// One thread a row; neighbouring threads have neighbouring rows.
extern "C" __global__ void scan_across(int64 n_rows, int64 length, int64 inner, const T* x, T* y) {
  for (int64 row = blockIdx.x * int64(blockDim.x) + threadIdx.x; row < n_rows; row += int64(gridDim.x) * blockDim.x) {
    const int64 start = row / inner * length * inner + row % inner;
    R a = START;
    for (int64 k = 0; k < length; ++k) {
      const int64 place = start + AT(k) * inner;
      const R value = R(load(x[place]));
      if (EXCLUSIVE) store(y[place], a);
      a = joined(a, value);
      if (!EXCLUSIVE) store(y[place], a);
    }
  }
}

// One block a row of neighbouring elements: blockDim.x at a time, within warps by shuffles.
extern "C" __global__ void scan_along(int64 n_rows, int64 length, int64 inner, const T* x, T* y) {
  __shared__ R totals[32];
  const uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = blockDim.x / 32;
  for (int64 row = blockIdx.x; row < n_rows; row += gridDim.x) {
    R before = START;
    for (int64 first = 0; first < length; first += blockDim.x) {
      const int64 k = first + threadIdx.x, place = row * length + AT(k);
      const R own = k < length ? R(load(x[place])) : START;
      R a = own;
      for (uint32 by = 1; by < 32; by *= 2) {
        const R other = __shfl_up_sync(0xffffffffu, a, by);
        if (lane >= by) a = joined(other, a);
      }
      if (lane == 31) totals[warp] = a;
      __syncthreads();
      R in_front = before;
      for (uint32 w = 0; w < warp; ++w) in_front = joined(in_front, totals[w]);
      for (uint32 w = 0; w < n_warps; ++w) before = joined(before, totals[w]);
      const R left = __shfl_up_sync(0xffffffffu, a, 1);
      const R result = EXCLUSIVE ? (lane == 0 ? in_front : joined(in_front, left)) : joined(in_front, a);
      if (k < length) store(y[place], result);
      __syncthreads();
    }
  }
}
