// Softmax, its logarithm, and the cross entropy of a softmax with class labels, along rows (see rows.cuh).
//
// x, y, dy, dx hold n_rows * length elements of T; loss and dloss (of type L), and target (int64) hold n_rows, one for each
// row.
// LOG: the logarithm of the softmax. The largest element of a row is subtracted before exponentials are taken, and sums
// are of type R. A label below 0 is ignored; one beyond the last class gives NaN, and is told as a fault (faults.py).
// Three passes over a row forward, two backward; rows that fit into a cache are read from memory once.

// max x and sum exp(x - max x) of a row.
__device__ void statistics(const T* x, int64 length, int64 inner, bool live, R* shared, R* top, R* sum) {
  R a = -infinity();
  if (live) for (int64 k = LANE; k < length; k += LANES) a = larger(a, R(load(x[k * inner])));
  *top = combined(a, shared, Maximum());
  a = 0;
  if (live) for (int64 k = LANE; k < length; k += LANES) a += exp(R(load(x[k * inner])) - *top);
  *sum = combined(a, shared, Sum());
}

extern "C" __global__ void softmax(int64 n_rows, int64 length, int64 inner, const T* x, T* y) {
  extern __shared__ R shared[];
  const bool live = ROW < n_rows;
  const int64 start = ROW / inner * length * inner + ROW % inner;
  R top, sum;
  statistics(x + start, length, inner, live, shared, &top, &sum);
  if (!live) return;
  const R log_sum = log(sum);
  for (int64 k = LANE; k < length; k += LANES) {
    const R shifted = R(load(x[start + k * inner])) - top;
    store(y[start + k * inner], LOG ? shifted - log_sum : exp(shifted - log_sum));
  }
}

extern "C" __global__ void softmax_backward(int64 n_rows, int64 length, int64 inner, const T* y, const T* dy, T* dx) {
  extern __shared__ R shared[];
  const bool live = ROW < n_rows;
  const int64 start = ROW / inner * length * inner + ROW % inner;
  R a = 0;
  if (live) {
    for (int64 k = LANE; k < length; k += LANES) {
      const int64 i = start + k * inner;
      a += LOG ? R(load(dy[i])) : R(load(dy[i])) * R(load(y[i]));
    }
  }
  const R sum = combined(a, shared, Sum());
  if (!live) return;
  for (int64 k = LANE; k < length; k += LANES) {
    const int64 i = start + k * inner;
    const R g = R(load(dy[i])), p = R(load(y[i]));
    store(dx[i], LOG ? g - exp(p) * sum : p * (g - sum));
  }
}

#if CROSS_ENTROPY
#if TELLS
extern "C" __global__ void cross_entropy(
    int64 n_rows, int64 length, int64 inner, const T* x, const int64* target, L* loss, volatile int64* fault,
    int64 fault_number) {
  extern __shared__ R shared[];
  const bool live = ROW < n_rows;
  const int64 start = ROW / inner * length * inner + ROW % inner;
  R top, sum;
  statistics(x + start, length, inner, live, shared, &top, &sum);
  if (!live || LANE != 0) return;
  const int64 label = target[ROW];
  const R nothing = label < 0 ? R(0) : infinity() - infinity();
  const bool known = label >= 0 && label < length;
  store(loss[ROW], known ? log(sum) + top - R(load(x[start + label * inner])) : nothing);
  if (label >= length) tell(fault, fault_number, label);
}
#endif

extern "C" __global__ void cross_entropy_backward(
    int64 n_rows, int64 length, int64 inner, const T* x, const int64* target, const L* dloss, T* dx) {
  extern __shared__ R shared[];
  const bool live = ROW < n_rows;
  const int64 start = ROW / inner * length * inner + ROW % inner;
  R top, sum;
  statistics(x + start, length, inner, live, shared, &top, &sum);
  if (!live) return;
  const int64 label = target[ROW];
  const R g = label < 0 || label >= length ? R(0) : R(load(dloss[ROW]));
  for (int64 k = LANE; k < length; k += LANES) {
    const R p = exp(R(load(x[start + k * inner])) - top) / sum;
    store(dx[start + k * inner], g * (p - R(k == label)));
  }
}
#endif
