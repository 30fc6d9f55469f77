// Non-maximum suppression. x and y (batch, n, 5 + labels): centre, width, height, objectness and probabilities of each box.
//
// A block does what the boxes of a sample do to each other, for one label, or with labels == 0 by objectness for all of them.
// It looks for the best box that is left, keeps it, and removes those that overlap with it, until none is left: a pass over
// the boxes for each that is kept. state (blocks, n): 0 for a box that is left, 1 for one that is not, 2 for a kept one.
#define BOX(i) (x + ((i) * width))

__device__ R thresholded(R value, R thresh) { return value >= thresh ? value : R(0); }
__device__ R objectness_of(const T* box, R thresh) { return thresholded(R(load(box[4])), thresh); }
__device__ R probability_of(const T* box, int64 label, R thresh) {
  return thresholded(R(load(box[5 + label])) * objectness_of(box, thresh), thresh);
}

// Intersection over union of two boxes; 0 if both have no area.
__device__ R overlap_of(const T* one, const T* other) {
  R common = 1, areas = 0, area[2] = {1, 1};
  for (int axis = 0; axis < 2; ++axis) {
    const R half0 = R(load(one[2 + axis])) / 2, half1 = R(load(other[2 + axis])) / 2;
    const R low0 = R(load(one[axis])) - half0, high0 = R(load(one[axis])) + half0;
    const R low1 = R(load(other[axis])) - half1, high1 = R(load(other[axis])) + half1;
    common *= larger(smaller(high0, high1) - larger(low0, low1), R(0));
    area[0] *= high0 - low0, area[1] *= high1 - low1;
  }
  areas = area[0] + area[1] - common;
  return areas > 0 ? common / areas : R(0);
}

extern "C" __global__ void boxes_suppressed(
    int64 n, int64 width, int64 labels, R thresh, R nms, const T* boxes, uint8* states, T* y) {
  __shared__ R scores[256];
  __shared__ int64 places[256];
  const int64 sample = labels ? blockIdx.x / labels : blockIdx.x, label = labels ? blockIdx.x % labels : 0;
  const T* const x = boxes + sample * n * width;
  uint8* const state = states + blockIdx.x * n;
  for (int64 i = threadIdx.x; i < n; i += blockDim.x) {
    const R score = labels ? probability_of(BOX(i), label, thresh) : objectness_of(BOX(i), thresh);
    state[i] = score > 0 ? 0 : 1;
  }
  for (;;) {
    __syncthreads();  // the states have been written, and the best of before read
    R best = 0;
    int64 place = n;
    for (int64 i = threadIdx.x; i < n; i += blockDim.x) {
      if (state[i] != 0) continue;
      const R score = labels ? probability_of(BOX(i), label, thresh) : objectness_of(BOX(i), thresh);
      if (score > best) best = score, place = i;
    }
    scores[threadIdx.x] = best, places[threadIdx.x] = place;
    for (uint32 half = blockDim.x / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x >= half) continue;
      const R other = scores[threadIdx.x + half];
      const int64 its = places[threadIdx.x + half];
      if (other > scores[threadIdx.x] || (other == scores[threadIdx.x] && its < places[threadIdx.x]))
        scores[threadIdx.x] = other, places[threadIdx.x] = its;
    }
    __syncthreads();
    const int64 kept = places[0];
    if (kept == n) break;
    for (int64 i = threadIdx.x; i < n; i += blockDim.x)
      if (i == kept) state[i] = 2;
      else if (state[i] == 0 && overlap_of(BOX(i), BOX(kept)) > nms) state[i] = 1;
  }
  for (int64 i = threadIdx.x; i < n; i += blockDim.x) {
    const bool is_kept = state[i] == 2;
    T* const result = y + (sample * n + i) * width;
    if (label == 0)
      for (int k = 0; k < 4; ++k) result[k] = BOX(i)[k];
    if (labels) {
      if (label == 0) store(result[4], objectness_of(BOX(i), thresh));
      store(result[5 + label], is_kept ? probability_of(BOX(i), label, thresh) : R(0));
    } else {
      store(result[4], is_kept ? objectness_of(BOX(i), thresh) : R(0));
      for (int64 k = 0; k < width - 5; ++k) store(result[5 + k], is_kept ? probability_of(BOX(i), k, thresh) : R(0));
    }
  }
}
