// Stable sorting of rows, and what is put to places in the order of the indices. K is the type of the keys, T that of the
// values. No atomic operation takes part, so that the bits do not depend on timing.
//
// A pass merges neighbouring sorted runs of `run` elements of each row: the new place of an element is its number in its own
// run plus that of the elements of the other run that go in front of it, found by bisection. O(n log^2 n) steps for a row of
// n elements, in log2(n) passes of n threads each.

template <class V>
__device__ __forceinline__ bool goes_before(V a, V b, bool descending) {
  if (a != a) return descending && b == b;  // NaN is the largest
  if (b != b) return !descending;
  return descending ? a > b : a < b;
}

// Number of the `count` sorted keys that go before `key`; with `equal`, those that are equal to it too.
__device__ __forceinline__ int64 n_before(const K* keys, int64 count, K key, bool equal, bool descending) {
  int64 low = 0, high = count;
  while (low < high) {
    const int64 middle = (low + high) / 2;
    const bool before = equal ? !goes_before(key, keys[middle], descending) : goes_before(keys[middle], key, descending);
    if (before) low = middle + 1; else high = middle;
  }
  return low;
}

// keys, merged: (rows, length). `places` are where the keys were at first; null in the first pass, where each is at its own.
extern "C" __global__ void merge_pass(
    int64 n, int64 length, int64 run, int64 descending, const K* keys, const int64* places, K* merged, int64* merged_places) {
  for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x) {
    const int64 p = i % length, row = i - p;
    const int64 first = p / (2 * run) * (2 * run);
    const int64 middle = min(first + run, length), last = min(first + 2 * run, length);
    const bool is_left = p < middle;
    const K* const others = keys + row + (is_left ? middle : first);
    const int64 n_others = is_left ? last - middle : middle - first;
    const int64 ahead = n_before(others, n_others, keys[i], !is_left, descending != 0);
    const int64 target = row + (is_left ? p : first + p - middle) + ahead;
    merged[target] = keys[i];
    merged_places[target] = places ? places[i] : p;
  }
}

// keys (rows, length) of x (outer, length, inner), rows = outer * inner.
extern "C" __global__ void keys_taken(int64 n, int64 length, int64 inner, int64 absolute, const T* x, K* keys) {
  for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x) {
    const int64 p = i % length, row = i / length;
    const K key = K(load(x[(row / inner * length + p) * inner + row % inner]));
    keys[i] = absolute && key < K(0) ? -key : key;
  }
}

// The first `count` elements of each sorted row: next to each other in y (outer, count, inner), or with `spread` at the
// places that they have in x, with zeros at the others. y and index may be null.
extern "C" __global__ void picked(
    int64 n, int64 length, int64 inner, int64 count, int64 spread, const T* x, const int64* places, T* y, int64* index) {
  for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x) {
    const int64 p = i % length, row = i / length, place = places[i];
    const int64 source = (row / inner * length + place) * inner + row % inner;
    if (spread) {
      if (p < count) y[source] = x[source]; else store(y[source], R(0));
    } else if (p < count) {
      const int64 target = (row / inner * count + p) * inner + row % inner;
      if (y) y[target] = x[source];
      if (index) index[target] = place;
    }
  }
}

// y (rows, width) gets the rows of `values` that `sources` numbers: each row of y the sum of what it has and of what goes to
// it, in the order of the indices; or without `add` the last of them. `keys` are the sorted rows of y, -1 for none.
extern "C" __global__ void segments_put(
    int64 n, int64 width, int64 add, const int64* keys, const int64* places, const int64* sources, const T* values, T* y) {
  for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x) {
    const int64 s = i / width, column = i % width, count = n / width;
    const int64 row = keys[s];
    if (row < 0 || (s > 0 && keys[s - 1] == row)) continue;  // another thread begins with the first of the segment
    R sum = add ? R(load(y[row * width + column])) : R(0);
    for (int64 t = s; t < count && keys[t] == row; ++t) {
      const R value = R(load(values[sources[places[t]] * width + column]));
      sum = add ? sum + value : value;
    }
    store(y[row * width + column], sum);
  }
}
