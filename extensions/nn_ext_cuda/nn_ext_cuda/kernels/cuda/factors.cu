// Determinants, inverses and Cholesky factors of small matrices, each by a block that holds its matrix in shared memory.
// Rows are n + 1 elements apart there, so that columns meet different banks. R is what is computed in.
#define AT(i, j) a[(i) * (n + 1) + (j)]

__device__ void take(R* a, int n, const T* x) {
  for (int k = threadIdx.x; k < n * n; k += blockDim.x) AT(k / n, k % n) = R(load(x[k]));
  __syncthreads();
}

// The row at and below `k` whose element of column k is the largest, NaN before all; it changes places with row k.
__device__ int pivoted(R* a, int n, int k, int* found) {
  if (threadIdx.x == 0) {
    int best = k;
    for (int i = k + 1; i < n; ++i)
      if (AT(i, k) != AT(i, k) || fabs(AT(i, k)) > fabs(AT(best, k))) best = i;
    *found = best;
  }
  __syncthreads();
  const int row = *found;
  if (row != k)
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
      const R held = AT(k, j);
      AT(k, j) = AT(row, j), AT(row, j) = held;
    }
  __syncthreads();
  return row;
}

// det: the product of the pivots; or with `logarithm` the sum of the logarithms of their magnitudes.
extern "C" __global__ void batch_determinant(int64 n_rows, int64 logarithm, const T* x, T* y) {
  extern __shared__ R shared[];
  __shared__ int found;
  R* const a = shared;
  const int n = int(n_rows);
  take(a, n, x + int64(blockIdx.x) * n * n);
  R result = logarithm ? R(0) : R(1);
  for (int k = 0; k < n; ++k) {
    const bool moved = pivoted(a, n, k, &found) != k;
    const R pivot = AT(k, k);
    result = logarithm ? result + log(fabs(pivot)) : moved ? -result * pivot : result * pivot;
    if (pivot == 0) break;
    const int rest = n - k - 1;
    for (int c = threadIdx.x; c < rest * rest; c += blockDim.x) {
      const int i = k + 1 + c / rest, j = k + 1 + c % rest;
      AT(i, j) -= AT(i, k) / pivot * AT(k, j);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) store(y[blockIdx.x], result);
}

// The inverse, by the method of Gauss and Jordan with pivots; in place, so that the columns have to change places in the end.
extern "C" __global__ void batch_inverse(
    int64 n_rows, const T* x, T* y, volatile int64* fault, const int64 fault_number) {
  extern __shared__ R shared[];
  __shared__ int found;
  R* const a = shared;
  const int n = int(n_rows);
  R* const column = a + n * (n + 1);
  int* const moves = (int*)(column + n);
  take(a, n, x + int64(blockIdx.x) * n * n);
  for (int k = 0; k < n; ++k) {
    const int row = pivoted(a, n, k, &found);
    const R pivot = AT(k, k);
    if (threadIdx.x == 0) {
      moves[k] = row;
      if (pivot == 0) tell(fault, fault_number, 0);
    }
    for (int i = threadIdx.x; i < n; i += blockDim.x) column[i] = AT(i, k);
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += blockDim.x) AT(k, j) = (j == k ? R(1) : AT(k, j)) / pivot;
    __syncthreads();
    for (int c = threadIdx.x; c < n * n; c += blockDim.x) {
      const int i = c / n, j = c % n;
      if (i != k) AT(i, j) = (j == k ? R(0) : AT(i, j)) - column[i] * AT(k, j);
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    for (int k = n - 1; k >= 0; --k) {
      const R held = AT(i, k);
      AT(i, k) = AT(i, moves[k]), AT(i, moves[k]) = held;
    }
  __syncthreads();
  for (int k = threadIdx.x; k < n * n; k += blockDim.x) store(y[int64(blockIdx.x) * n * n + k], AT(k / n, k % n));
}

// The lower factor of the symmetric part of x, or the upper one.
extern "C" __global__ void batch_cholesky(
    int64 n_rows, int64 upper, const T* x, T* y, volatile int64* fault, const int64 fault_number) {
  extern __shared__ R shared[];
  R* const a = shared;
  const int n = int(n_rows);
  const int64 start = int64(blockIdx.x) * n * n;
  for (int k = threadIdx.x; k < n * n; k += blockDim.x)
    AT(k / n, k % n) = (R(load(x[start + k])) + R(load(x[start + k % n * n + k / n]))) / 2;
  __syncthreads();
  for (int k = 0; k < n; ++k) {
    const R square = AT(k, k), root = sqrt(square);
    if (threadIdx.x == 0 && square <= 0) tell(fault, fault_number, 0);  // NaN goes on
    __syncthreads();
    for (int i = k + threadIdx.x; i < n; i += blockDim.x) AT(i, k) = i == k ? root : AT(i, k) / root;
    __syncthreads();
    const int rest = n - k - 1;
    for (int c = threadIdx.x; c < rest * rest; c += blockDim.x) {
      const int i = k + 1 + c / rest, j = k + 1 + c % rest;
      if (j <= i) AT(i, j) -= AT(i, k) * AT(j, k);
    }
    __syncthreads();
  }
  for (int k = threadIdx.x; k < n * n; k += blockDim.x) {
    const int i = upper ? k % n : k / n, j = upper ? k / n : k % n;
    store(y[start + k], j <= i ? AT(i, j) : R(0));
  }
}
