// Pooling over windows of up to three spatial axes; shorter ones have axes of length 1 in front.
//
// x and y have `batch` times `channels` images of lengths[] and counts[] elements; the offset in an array is
//   batch index * per_batch + channel * per_channel + place in the image * per_place,
// which covers channels before and after the spatial axes. A thread computes one element of its result and gathers
// what belongs to it, also in gradients: no atomic operation, the same bits each time. Gradients of maxima take two
// launches: one that notes the place of the first maximum in each window, and one that gathers by these notes.
// There a thread takes PACK channels that are neighbours in memory.
// MODE 0: maximum, 1: sum, 2: average. Index counts elements; 64 bits of it are divided by a hundred instructions.
// O(window) a thread.

struct Walk { Index per_batch, per_channel, per_place; };
struct Geometry { Index channels, lengths[3], counts[3], sizes[3], strides[3], pads[3], including_pad; };

#define GEOMETRY                                                                                                      \
  Index batch, Index channels, Index n0, Index n1, Index n2, Index c0, Index c1, Index c2, Index k0, Index k1,         \
      Index k2, Index s0, Index s1, Index s2, Index p0, Index p1, Index p2, Index including_pad, Index xb, Index xc,   \
      Index xp, Index yb, Index yc, Index yp
#define MADE                                                                                                          \
  const Geometry g = {channels, {n0, n1, n2}, {c0, c1, c2}, {k0, k1, k2}, {s0, s1, s2}, {p0, p1, p2}, including_pad}; \
  const Walk of_x = {xb, xc, xp}, of_y = {yb, yc, yp};

struct Place { Index batch, channel, at[3]; };

__device__ Place place_of(Index i, Index channels, const Index* lengths) {
  Place p;
  p.channel = i % channels;
  i /= channels;
  for (int axis = 2; axis >= 0; --axis) { p.at[axis] = i % lengths[axis]; i /= lengths[axis]; }
  p.batch = i;
  return p;
}

__device__ Index offset(const Place& p, const Index* lengths, const Walk& w) {
  return p.batch * w.per_batch + p.channel * w.per_channel
      + ((p.at[0] * lengths[1] + p.at[1]) * lengths[2] + p.at[2]) * w.per_place;
}

// How many elements an average counts on one axis.
__device__ Index counted(const Geometry& g, int axis, Index window) {
  Index start = window * g.strides[axis] - g.pads[axis];
  Index stop = min(start + g.sizes[axis], g.lengths[axis] + g.pads[axis]);
  if (!g.including_pad) { start = max(start, Index(0)); stop = min(stop, g.lengths[axis]); }
  return stop - start;
}

// Calls body(place of x) for every element of a window that is inside x.
template <class Body>
__device__ void visit(const Geometry& g, const Place& window, Body body) {
  Index first[3], last[3];
  for (int axis = 0; axis < 3; ++axis) {
    const Index start = window.at[axis] * g.strides[axis] - g.pads[axis];
    first[axis] = max(start, Index(0));
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
  Index first[3], last[3];
  for (int axis = 0; axis < 3; ++axis) {
    const Index end = element.at[axis] + g.pads[axis];
    const Index before = end - g.sizes[axis];
    first[axis] = before < 0 ? 0 : before / g.strides[axis] + 1;
    last[axis] = min(end / g.strides[axis] + 1, g.counts[axis]);
  }
  Place w = element;
  for (w.at[0] = first[0]; w.at[0] < last[0]; ++w.at[0])
    for (w.at[1] = first[1]; w.at[1] < last[1]; ++w.at[1])
      for (w.at[2] = first[2]; w.at[2] < last[2]; ++w.at[2]) body(w);
}

// Offset in x of the first maximum of a window, NaN being larger than everything.
__device__ Index first_maximum(const Geometry& g, const Place& window, const T* x, const Walk& of_x) {
  Index best = -1;
  R top = -infinity();
  visit(g, window, [&](const Place& p) {
    const Index i = offset(p, g.lengths, of_x);
    const R value = R(load(x[i]));
    if (value > top || (value != value && top == top) || best < 0) { best = i; top = value; }
  });
  return best;
}

#define LOOP(n)                                                                                          \
  for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < int64(n); i += int64(gridDim.x) * blockDim.x)

extern "C" __global__ void pooling(GEOMETRY, const T* x, T* y) {
  MADE
  LOOP(batch * channels * c0 * c1 * c2) {
    const Place window = place_of(Index(i), channels, g.counts);
    R a = MODE == 0 ? -infinity() : R(0);
    visit(g, window, [&](const Place& p) {
      const R value = R(load(x[offset(p, g.lengths, of_x)]));
      a = MODE == 0 ? larger(a, value) : a + value;
    });
    if (MODE == 2) for (int axis = 0; axis < 3; ++axis) a /= R(counted(g, axis, window.at[axis]));
    store(y[offset(window, g.counts, of_y)], a);
  }
}

extern "C" __global__ void pooling_backward(GEOMETRY, const T* dy, T* dx) {
  MADE
  LOOP(batch * channels * n0 * n1 * n2) {
    const Place element = place_of(Index(i), channels, g.lengths);
    const Index own = offset(element, g.lengths, of_x);
    R a = 0;
    visit_windows(g, element, [&](const Place& window) {
      R share = R(load(dy[offset(window, g.counts, of_y)]));
      if (MODE == 2) for (int axis = 0; axis < 3; ++axis) share /= R(counted(g, axis, window.at[axis]));
      a += share;
    });
    store(dx[own], a);
  }
}

// PACK neighbours, at once if they are `packed`: aligned to their size.
template <class V>
__device__ Pack<V, PACK> read(const V* from, bool packed) {
  if (packed) return *(const Pack<V, PACK>*)from;
  Pack<V, PACK> found;
  for (int k = 0; k < PACK; ++k) found.item[k] = from[k];
  return found;
}

__device__ bool is_aligned(const T* array) { return (uint64(array) & (sizeof(Pack<T, PACK>) - 1)) == 0; }

// The number of an element among those of a window, if that were all inside x.
__device__ Index number_of(const Geometry& g, const Place& window, const Place& element) {
  Index number = 0;
  for (int axis = 0; axis < 3; ++axis)
    number = number * g.sizes[axis] + element.at[axis] + g.pads[axis] - window.at[axis] * g.strides[axis];
  return number;
}

// For each window of x the number of its first maximum; -1 if that is in the padding. It has the layout of y.
extern "C" __global__ void pooling_first_maxima(GEOMETRY, const T* x, Number* numbers) {
  MADE
  const bool packed = is_aligned(x);
  LOOP(batch * (channels / PACK) * c0 * c1 * c2) {
    Place window = place_of(Index(i), channels / PACK, g.counts);
    window.channel *= PACK;
    bool begins_outside = false;
    for (int axis = 0; axis < 3; ++axis) begins_outside |= window.at[axis] * g.strides[axis] < g.pads[axis];
    Index best[PACK];
    R top[PACK];
    for (int k = 0; k < PACK; ++k) { best[k] = -1; top[k] = -infinity(); }
    visit(g, window, [&](const Place& p) {
      const Index number = number_of(g, window, p);
      const Pack<T, PACK> values = read(x + offset(p, g.lengths, of_x), packed);
      for (int k = 0; k < PACK; ++k) {
        const R value = R(load(values.item[k]));
        const bool is_first_nan = value != value && top[k] == top[k];
        if (value > top[k] || is_first_nan || (best[k] < 0 && !begins_outside)) { best[k] = number; top[k] = value; }
      }
    });
    Pack<Number, PACK> made;
    for (int k = 0; k < PACK; ++k) made.item[k] = Number(best[k]);
    *(Pack<Number, PACK>*)(numbers + offset(window, g.counts, of_y)) = made;
  }
}

// The gradient of maxima, from the numbers of these.
extern "C" __global__ void pooling_of_maxima(GEOMETRY, const Number* numbers, const T* dy, T* dx) {
  MADE
  const bool packed = is_aligned(dy), is_written_at_once = is_aligned(dx);
  LOOP(batch * (channels / PACK) * n0 * n1 * n2) {
    Place element = place_of(Index(i), channels / PACK, g.lengths);
    element.channel *= PACK;
    R a[PACK];
    for (int k = 0; k < PACK; ++k) a[k] = 0;
    visit_windows(g, element, [&](const Place& window) {
      const Number own = Number(number_of(g, window, element));
      const Index at = offset(window, g.counts, of_y);
      const Pack<Number, PACK> found = read(numbers + at, true);
      const Pack<T, PACK> shares = read(dy + at, packed);
      for (int k = 0; k < PACK; ++k)
        if (found.item[k] == own) a[k] += R(load(shares.item[k]));
    });
    Pack<T, PACK> made;
    for (int k = 0; k < PACK; ++k) store(made.item[k], a[k]);
    T* const target = dx + offset(element, g.lengths, of_x);
    if (is_written_at_once) *(Pack<T, PACK>*)target = made;
    else for (int k = 0; k < PACK; ++k) target[k] = made.item[k];
  }
}

// The values of x at the place of the first maximum of each window of `keys`; 0 where that is in the padding.
extern "C" __global__ void pooling_gather(GEOMETRY, const T* keys, const T* x, T* y) {
  MADE
  LOOP(batch * channels * c0 * c1 * c2) {
    const Place window = place_of(Index(i), channels, g.counts);
    const Index place = first_maximum(g, window, keys, of_x);
    store(y[offset(window, g.counts, of_y)], place < 0 ? R(0) : R(load(x[place])));
  }
}
