// Images stored plane by plane, treated by loops whose innermost axis are lanes: groups of planes become lanes in
// working memory.
#pragma once

#include <algorithm>

#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {

/// The planes of an array, one after the other, each of `size` elements.
template <class T>
struct PlanesOf {
  T* data;
  int64_t size;
};
using Planes = PlanesOf<float>;

/// Whether groups of planes pay: there are some, and a group of them fits into memory that a thread may keep.
inline bool planes_pay(int64_t count, int64_t elements_a_plane) {
  constexpr int64_t kFewest = 4, kMostElements = 1 << 19;
  return count >= kFewest && elements_a_plane <= kMostElements;
}

/// How many planes become lanes together: as many as keep the working memory of `bytes_a_plane` within the second-level
/// cache.
inline int64_t lanes_of_planes(int64_t bytes_a_plane) {
  constexpr int64_t kCacheBytes = 1 << 19, kFewest = 16, kMost = 64;
  return std::clamp(kCacheBytes / std::max<int64_t>(bytes_a_plane, 1) / kFewest * kFewest, kFewest, kMost);
}

/// Calls body(pointers, lanes) for groups of the `count` planes: pointers[k] holds those of arrays[k] as (size, lanes),
/// filled for the first `n_inputs` arrays, and copied to the others afterwards.
template <class T, size_t N, class Body>
void with_planes_as_lanes(const PlanesOf<T> (&arrays)[N], size_t n_inputs, int64_t count, const Body& body) {
  int64_t elements = 0;
  for (const PlanesOf<T>& planes : arrays) elements += planes.size;
  const int64_t width = lanes_of_planes(elements * static_cast<int64_t>(sizeof(T))),
                groups = (count + width - 1) / width;
  parallel_for(groups, 16384 / std::max<int64_t>(1, elements * width) + 1, [&](int64_t begin, int64_t end, int) {
    size_t bytes = 0;
    for (const PlanesOf<T>& planes : arrays) bytes += Scratch::bytes<T>(planes.size * width);
    Scratch scratch(bytes);
    T* pointers[N];
    for (size_t k = 0; k < N; ++k) pointers[k] = scratch.take<T>(arrays[k].size * width);
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * width, lanes = std::min(width, count - first);
      for (size_t k = 0; k < n_inputs; ++k) {
        number_loops<T>().transpose(arrays[k].data + first * arrays[k].size, lanes, arrays[k].size, arrays[k].size,
                                    pointers[k], lanes);
      }
      body(pointers, lanes);
      for (size_t k = n_inputs; k < N; ++k) {
        number_loops<T>().transpose(pointers[k], arrays[k].size, lanes, lanes, arrays[k].data + first * arrays[k].size,
                                    arrays[k].size);
      }
    }
  });
}

}  // namespace nn_cpu
