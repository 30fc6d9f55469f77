// Pooling over windows of up to three spatial axes; shorter ones have axes of length 1 in front.
//
// x and y have `batch` times `channels` images of lengths[] and counts[] elements; the offset in an array is
//   batch index * per_batch + channel * per_channel + place in the image * per_place,
// which covers channels before and after the spatial axes. A thread computes one element of its result and gathers
// what belongs to it, also in gradients: no atomic operation, the same bits each time.
// MODE 0: maximum, 1: sum, 2: average. O(window) a thread forward and for gradients of sums; O(window^2) for gradients of
// maxima, which look for the first maximum of each window again.

struct Walk { int64 per_batch, per_channel, per_place; };
struct Geometry { int64 channels, lengths[3], counts[3], sizes[3], strides[3], pads[3], including_pad; };

#define GEOMETRY                                                                                                      \
  int64 batch, int64 channels, int64 n0, int64 n1, int64 n2, int64 c0, int64 c1, int64 c2, int64 k0, int64 k1,         \
      int64 k2, int64 s0, int64 s1, int64 s2, int64 p0, int64 p1, int64 p2, int64 including_pad, int64 xb, int64 xc,   \
      int64 xp, int64 yb, int64 yc, int64 yp
#define MADE                                                                                                          \
  const Geometry g = {channels, {n0, n1, n2}, {c0, c1, c2}, {k0, k1, k2}, {s0, s1, s2}, {p0, p1, p2}, including_pad}; \
  const Walk of_x = {xb, xc, xp}, of_y = {yb, yc, yp};

struct Place { int64 batch, channel, at[3]; };

__device__ Place place_of(int64 i, int64 channels, const int64* lengths) {
  Place p;
  p.channel = i % channels;
  i /= channels;
  for (int axis = 2; axis >= 0; --axis) { p.at[axis] = i % lengths[axis]; i /= lengths[axis]; }
  p.batch = i;
  return p;
}

__device__ int64 offset(const Place& p, const int64* lengths, const Walk& w) {
  return p.batch * w.per_batch + p.channel * w.per_channel
      + ((p.at[0] * lengths[1] + p.at[1]) * lengths[2] + p.at[2]) * w.per_place;
}

// How many elements an average counts on one axis.
__device__ int64 counted(const Geometry& g, int axis, int64 window) {
  int64 start = window * g.strides[axis] - g.pads[axis];
  int64 stop = min(start + g.sizes[axis], g.lengths[axis] + g.pads[axis]);
  if (!g.including_pad) { start = max(start, int64(0)); stop = min(stop, g.lengths[axis]); }
  return stop - start;
}

// Calls body(place of x) for every element of a window that is inside x.
template <class Body>
__device__ void visit(const Geometry& g, const Place& window, Body body) {
  int64 first[3], last[3];
  for (int axis = 0; axis < 3; ++axis) {
    const int64 start = window.at[axis] * g.strides[axis] - g.pads[axis];
    first[axis] = max(start, int64(0));
    last[axis] = min(start + g.sizes[axis], g.lengths[axis]);
  }
  Place p = window;
  for (p.at[0] = first[0]; p.at[0] < last[0]; ++p.at[0])
    for (p.at[1] = first[1]; p.at[1] < last[1]; ++p.at[1])
      for (p.at[2] = first[2]; p.at[2] < last[2]; ++p.at[2]) body(p);
}

// Calls body(window) for every window that holds an element of x.
template <class Body>
__device__ void visit_windows(const Geometry& g, const Place& element, Body body) {
  int64 first[3], last[3];
  for (int axis = 0; axis < 3; ++axis) {
    const int64 end = element.at[axis] + g.pads[axis];
    const int64 before = end - g.sizes[axis];
    first[axis] = before < 0 ? 0 : before / g.strides[axis] + 1;
    last[axis] = min(end / g.strides[axis] + 1, g.counts[axis]);
  }
  Place w = element;
  for (w.at[0] = first[0]; w.at[0] < last[0]; ++w.at[0])
    for (w.at[1] = first[1]; w.at[1] < last[1]; ++w.at[1])
      for (w.at[2] = first[2]; w.at[2] < last[2]; ++w.at[2]) body(w);
}

// Offset in x of the first maximum of a window, NaN being larger than everything; -1 if that is in the padding.
__device__ int64 first_maximum(const Geometry& g, const Place& window, const T* x, const Walk& of_x) {
  bool begins_outside = false;
  for (int axis = 0; axis < 3; ++axis) begins_outside |= window.at[axis] * g.strides[axis] < g.pads[axis];
  int64 best = -1;
  R top = -infinity();
  visit(g, window, [&](const Place& p) {
    const int64 i = offset(p, g.lengths, of_x);
    const R value = R(load(x[i]));
    if (value > top || (value != value && top == top) || (best < 0 && !begins_outside)) { best = i; top = value; }
  });
  return best;
}

#define LOOP(n) for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x)

extern "C" __global__ void pooling(GEOMETRY, const T* x, T* y) {
  MADE
  LOOP(batch * channels * c0 * c1 * c2) {
    const Place window = place_of(i, channels, g.counts);
    R a = MODE == 0 ? -infinity() : R(0);
    visit(g, window, [&](const Place& p) {
      const R value = R(load(x[offset(p, g.lengths, of_x)]));
      a = MODE == 0 ? larger(a, value) : a + value;
    });
    if (MODE == 2) for (int axis = 0; axis < 3; ++axis) a /= R(counted(g, axis, window.at[axis]));
    store(y[offset(window, g.counts, of_y)], a);
  }
}

extern "C" __global__ void pooling_backward(GEOMETRY, const T* x, const T* dy, T* dx) {
  MADE
  LOOP(batch * channels * n0 * n1 * n2) {
    const Place element = place_of(i, channels, g.lengths);
    const int64 own = offset(element, g.lengths, of_x);
    R a = 0;
    visit_windows(g, element, [&](const Place& window) {
      R share = R(load(dy[offset(window, g.counts, of_y)]));
      if (MODE == 0 && first_maximum(g, window, x, of_x) != own) return;
      if (MODE == 2) for (int axis = 0; axis < 3; ++axis) share /= R(counted(g, axis, window.at[axis]));
      a += share;
    });
    store(dx[own], a);
  }
}

// The values of x at the place of the first maximum of each window of `keys`; 0 where that is in the padding.
extern "C" __global__ void pooling_gather(GEOMETRY, const T* keys, const T* x, T* y) {
  MADE
  LOOP(batch * channels * c0 * c1 * c2) {
    const Place window = place_of(i, channels, g.counts);
    const int64 place = first_maximum(g, window, keys, of_x);
    store(y[offset(window, g.counts, of_y)], place < 0 ? R(0) : R(load(x[place])));
  }
}
