// Convolutions without a library: columns for matrix products, and direct sums where groups have few channels.
//
// Images (batch, channels, lengths[]) and maps (batch, filters, counts[]) belong to each other: a filter (of `members`
// channels and sizes[] places) at place o of the maps covers the elements stride o + dilation r - pad of the images.
// Shorter spatial axes have axes of length 1 in front. LAST: channels are innermost in images, maps and filters.
// ADDS: images are added to what is there.
//
// Columns hold what each filter covers at each place:
//   channels before: (channels, places of a filter, n_places)        with n_places = samples * counts
//   LAST:            (n_places, groups, places of a filter, members)
// `start` is the first element of the first sample, so that columns can be made for some samples at a time. T is what
// arrays hold; sums are of type R. A thread gathers one element of its result: no atomic operation, the same bits each
// time. Indices within columns have 31 bits, and are taken apart by products (see `divided`).

struct Geometry {
  uint32 lengths[3], counts[3], sizes[3], strides[3], pads[3], dilations[3];
  uint32 channels, filters, members, group_filters;
  uint32 factors[7], shifts[7];
};

#define GEOMETRY                                                                                                       \
  uint32 n0, uint32 n1, uint32 n2, uint32 c0, uint32 c1, uint32 c2, uint32 k0, uint32 k1, uint32 k2, uint32 s0,        \
      uint32 s1, uint32 s2, uint32 p0, uint32 p1, uint32 p2, uint32 d0, uint32 d1, uint32 d2, uint32 channels,         \
      uint32 filters, uint32 members, uint32 group_filters, uint32 f0, uint32 h0, uint32 f1, uint32 h1, uint32 f2,     \
      uint32 h2, uint32 f3, uint32 h3, uint32 f4, uint32 h4, uint32 f5, uint32 h5, uint32 f6, uint32 h6
#define MADE                                                                                                           \
  const Geometry g = {{n0, n1, n2}, {c0, c1, c2}, {k0, k1, k2}, {s0, s1, s2}, {p0, p1, p2}, {d0, d1, d2}, channels,    \
                      filters, members, group_filters, {f0, f1, f2, f3, f4, f5, f6},                                   \
                      {h0, h1, h2, h3, h4, h5, h6}};

// The indices of the prepared divisors.
enum { BY_COUNT2, BY_COUNT1, BY_COUNT0, BY_SIZE2, BY_SIZE1, BY_SIZES, BY_MEMBERS };

#define LOOP(n) for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x)

__device__ __forceinline__ uint32 size_of(const uint32* lengths) { return lengths[0] * lengths[1] * lengths[2]; }

// Takes the last digit of a number in a mixed base off: returns it and leaves the rest.
__device__ __forceinline__ uint32 digit(const Geometry& g, int which, uint32 length, uint32& rest) {
  const uint32 quotient = divided(rest, g.factors[which], g.shifts[which]);
  const uint32 remainder = rest - quotient * length;
  rest = quotient;
  return remainder;
}

__device__ __forceinline__ uint32 digit64(uint32 length, int64& rest) {
  const uint32 remainder = uint32(rest % length);
  rest /= length;
  return remainder;
}

__device__ __forceinline__ int64 image_place(const Geometry& g, int64 sample, uint32 channel, const uint32* at) {
  const int64 place = (int64(at[0]) * g.lengths[1] + at[1]) * g.lengths[2] + at[2];
  const int64 size = size_of(g.lengths);
  return LAST ? (sample * size + place) * g.channels + channel : (sample * g.channels + channel) * size + place;
}

__device__ __forceinline__ int64 map_place(const Geometry& g, int64 sample, uint32 filter, uint32 place) {
  const int64 size = size_of(g.counts);
  return LAST ? (sample * size + place) * g.filters + filter : (sample * g.filters + filter) * size + place;
}

__device__ __forceinline__ int64 filter_place(const Geometry& g, uint32 filter, uint32 member, uint32 place) {
  const uint32 size = size_of(g.sizes);
  return LAST ? (int64(filter) * size + place) * g.members + member : (int64(filter) * g.members + member) * size + place;
}

// The position on an axis of the element r of a filter at place o; false: outside of the image.
__device__ __forceinline__ bool covers(const Geometry& g, int axis, uint32 o, uint32 r, uint32& at) {
  at = o * g.strides[axis] + r * g.dilations[axis] - g.pads[axis];  // below 0 it wraps round to a very large number
  return at < g.lengths[axis];
}

// The place of the filter whose element r covers place `at` of the image on an axis; false: there is none.
__device__ __forceinline__ bool covered(const Geometry& g, int axis, uint32 at, uint32 r, uint32& o) {
  const uint32 before = r * g.dilations[axis], distance = at + g.pads[axis];
  o = (distance - before) / g.strides[axis];
  return distance >= before && (distance - before) % g.strides[axis] == 0 && o < g.counts[axis];
}

extern "C" __global__ void columns(GEOMETRY, uint32 n, uint32 n_places, uint32 fn, uint32 hn, int64 start, const T* images, T* y) {
  MADE
  LOOP(n) {
    uint32 rest = uint32(i), sample = 0, member = 0, group = 0, channel, r;
    if (LAST) {
      member = digit(g, BY_MEMBERS, g.members, rest);
      r = rest;
      rest = divided(rest, g.factors[BY_SIZES], g.shifts[BY_SIZES]);
      r -= rest * size_of(g.sizes);
      group = rest;
      rest = divided(rest, fn, hn);
      group -= rest * (g.channels / g.members);
      sample = rest;
      channel = group * g.members + member;
    } else {
      r = divided(rest, fn, hn);
      sample = rest - r * n_places;
      channel = divided(r, g.factors[BY_SIZES], g.shifts[BY_SIZES]);
      r -= channel * size_of(g.sizes);
    }
    uint32 at[3];
    bool inside = true;
    const uint32 r2 = digit(g, BY_SIZE2, g.sizes[2], r), r1 = digit(g, BY_SIZE1, g.sizes[1], r);
    const uint32 o2 = digit(g, BY_COUNT2, g.counts[2], sample), o1 = digit(g, BY_COUNT1, g.counts[1], sample);
    const uint32 o0 = digit(g, BY_COUNT0, g.counts[0], sample);
    inside &= covers(g, 2, o2, r2, at[2]);
    inside &= covers(g, 1, o1, r1, at[1]);
    inside &= covers(g, 0, o0, r, at[0]);
    T value = T();
    if (inside) value = images[start + image_place(g, sample, channel, at)];
    y[i] = value;
  }
}

// Calls body(place in a filter, place in the maps) for every filter place that covers an element of the images.
template <class Body>
__device__ __forceinline__ void visit(const Geometry& g, const uint32* at, Body body) {
  uint32 o0, o1, o2;
  for (uint32 r0 = 0; r0 < g.sizes[0]; ++r0) {
    if (!covered(g, 0, at[0], r0, o0)) continue;
    for (uint32 r1 = 0; r1 < g.sizes[1]; ++r1) {
      if (!covered(g, 1, at[1], r1, o1)) continue;
      for (uint32 r2 = 0; r2 < g.sizes[2]; ++r2)
        if (covered(g, 2, at[2], r2, o2))
          body((r0 * g.sizes[1] + r1) * g.sizes[2] + r2, (o0 * g.counts[1] + o1) * g.counts[2] + o2);
    }
  }
}

// Sample, channel and place of element i of images or maps.
__device__ __forceinline__ void taken_apart(int64 i, uint32 channels, const uint32* lengths, int64& sample, uint32& channel, uint32* at) {
  channel = LAST ? digit64(channels, i) : 0;
  for (int axis = 2; axis >= 0; --axis) at[axis] = digit64(lengths[axis], i);
  if (!LAST) channel = digit64(channels, i);
  sample = i;
}

// The sums of the columns that each element of the images is in, and the bias of its channel.
extern "C" __global__ void images(GEOMETRY, int64 n, uint32 n_places, int64 start, const T* columns, const T* bias, T* y) {
  MADE
  LOOP(n) {
    int64 sample;
    uint32 channel, at[3];
    taken_apart(i, g.channels, g.lengths, sample, channel, at);
    const uint32 size = size_of(g.sizes);
    R a = bias ? R(load(bias[channel])) : R(0);
    visit(g, at, [&](uint32 r, uint32 o) {
      const int64 place = sample * size_of(g.counts) + o;
      const uint32 group = channel / g.members, member = channel % g.members;
      const int64 row = LAST ? (int64(group) * size + r) * g.members + member : int64(channel) * size + r;
      a += R(load(columns[LAST ? place * (int64(g.channels) * size) + row : row * n_places + place]));
    });
    store(y[start + i], ADDS ? a + R(load(y[start + i])) : a);
  }
}

extern "C" __global__ void direct_maps(GEOMETRY, int64 n, const T* images, const T* filters_, const T* bias, T* y) {
  MADE
  LOOP(n) {
    int64 sample;
    uint32 filter, o[3], at[3];
    taken_apart(i, g.filters, g.counts, sample, filter, o);
    const uint32 first = filter / g.group_filters * g.members;
    R a = bias ? R(load(bias[filter])) : R(0);
    for (uint32 r0 = 0; r0 < g.sizes[0]; ++r0) {
      if (!covers(g, 0, o[0], r0, at[0])) continue;
      for (uint32 r1 = 0; r1 < g.sizes[1]; ++r1) {
        if (!covers(g, 1, o[1], r1, at[1])) continue;
        for (uint32 r2 = 0; r2 < g.sizes[2]; ++r2) {
          if (!covers(g, 2, o[2], r2, at[2])) continue;
          const uint32 r = (r0 * g.sizes[1] + r1) * g.sizes[2] + r2;
          for (uint32 member = 0; member < g.members; ++member)
            a += R(load(images[image_place(g, sample, first + member, at)])) * R(load(filters_[filter_place(g, filter, member, r)]));
        }
      }
    }
    store(y[i], a);
  }
}

extern "C" __global__ void direct_images(GEOMETRY, int64 n, const T* maps, const T* filters_, const T* bias, T* y) {
  MADE
  LOOP(n) {
    int64 sample;
    uint32 channel, at[3];
    taken_apart(i, g.channels, g.lengths, sample, channel, at);
    const uint32 first = channel / g.members * g.group_filters, member = channel % g.members;
    R a = bias ? R(load(bias[channel])) : R(0);
    visit(g, at, [&](uint32 r, uint32 o) {
      for (uint32 filter = first; filter < first + g.group_filters; ++filter)
        a += R(load(maps[map_place(g, sample, filter, o)])) * R(load(filters_[filter_place(g, filter, member, r)]));
    });
    store(y[i], ADDS ? a + R(load(y[i])) : a);
  }
}

// One block for each element of the filters; its threads share the places of the maps.
extern "C" __global__ void direct_filters(GEOMETRY, int64 samples, const T* images, const T* maps, T* y) {
  __shared__ R sums[32];
  MADE
  uint32 filter, member, r;
  if (LAST) {
    member = blockIdx.x % g.members;
    r = blockIdx.x / g.members % size_of(g.sizes);
    filter = blockIdx.x / g.members / size_of(g.sizes);
  } else {
    r = blockIdx.x % size_of(g.sizes);
    member = blockIdx.x / size_of(g.sizes) % g.members;
    filter = blockIdx.x / size_of(g.sizes) / g.members;
  }
  const uint32 channel = filter / g.group_filters * g.members + member;
  const uint32 r2 = r % g.sizes[2], r1 = r / g.sizes[2] % g.sizes[1], r0 = r / g.sizes[2] / g.sizes[1];
  const uint32 n_places = size_of(g.counts);
  R a = 0;
  for (int64 k = threadIdx.x; k < samples * n_places; k += blockDim.x) {
    const int64 sample = k / n_places;
    const uint32 place = uint32(k - sample * n_places);
    uint32 o = place, at[3];
    const uint32 o2 = digit(g, BY_COUNT2, g.counts[2], o), o1 = digit(g, BY_COUNT1, g.counts[1], o);
    if (covers(g, 2, o2, r2, at[2]) && covers(g, 1, o1, r1, at[1]) && covers(g, 0, o, r0, at[0]))
      a += R(load(images[image_place(g, sample, channel, at)])) * R(load(maps[map_place(g, sample, filter, place)]));
  }
  for (int by = 16; by > 0; by /= 2) a += __shfl_xor_sync(0xffffffffu, a, by);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = a;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  a = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : R(0);
  for (int by = 16; by > 0; by /= 2) a += __shfl_xor_sync(0xffffffffu, a, by);
  if (threadIdx.x == 0) store(y[blockIdx.x], a);
}
