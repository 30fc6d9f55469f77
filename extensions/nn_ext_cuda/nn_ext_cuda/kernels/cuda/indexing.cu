// The gradient of rows that were picked by number. `indices` holds n row numbers for each of `batches` groups of tables
// (int64; negative ones count from the end); a table has n_rows rows of `width` elements of T. `tables` follow each other
// for each group of indices.
//
// It is summed without atomic operations: a block owns some rows of a table and goes through all indices, so every row is
// summed in the order of the indices and the bits do not depend on timing. A thread owns a column.
// O(n gridDim.x) reads of indices, each shared by a block.

__device__ __forceinline__ int64 wrapped(int64 index, int64 n_rows) { return index < 0 ? index + n_rows : index; }

extern "C" __global__ void rows_summed(
    int64 n, int64 width, int64 n_rows, int64 rows_of_block, int64 n_tables, int64 tables, const int64* all_indices,
    const T* all_dy, R* all_sums) {
  __shared__ int64 some[256];
  const int64 first = blockIdx.x * rows_of_block;
  const int64 last = min(first + rows_of_block, n_rows);
  for (int64 table = blockIdx.y; table < n_tables; table += gridDim.y) {
    const int64* indices = all_indices + table / tables * n;
    const T* dy = all_dy + table * n * width;
    R* sums = all_sums + table * n_rows * width;
    for (int64 column = threadIdx.x; column < width; column += blockDim.x)
      for (int64 row = first; row < last; ++row) sums[row * width + column] = 0;
    for (int64 start = 0; start < n; start += blockDim.x) {
      __syncthreads();
      if (start + threadIdx.x < n) some[threadIdx.x] = wrapped(indices[start + threadIdx.x], n_rows);
      __syncthreads();
      const int64 count = min(int64(blockDim.x), n - start);
      for (int64 k = 0; k < count; ++k) {
        const int64 row = some[k];
        if (row < first || row >= last) continue;
        for (int64 column = threadIdx.x; column < width; column += blockDim.x)
          sums[row * width + column] += R(load(dy[(start + k) * width + column]));
      }
    }
  }
}
