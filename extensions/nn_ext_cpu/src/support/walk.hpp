// Iteration over several strided arrays at once: axes in memory order of the leading array, merged where possible.
#pragma once

#include <cstring>
#include <vector>

#include "support/array.hpp"

namespace nn_cpu {

/// The iteration space of a group of arrays. `strides[k]` are those of array k along the merged axes.
struct Walk {
  Dims shape;
  std::vector<Dims> strides;
  int64_t size = 1;

  /// Arrays are given by strides over the common `shape` (0 where broadcast); axes are ordered by those of `leader`.
  Walk(const Dims& shape, const std::vector<Dims>& strides, size_t leader);

  /// True when array k is met element after element in memory.
  bool dense(size_t k) const;
  /// True when array k has one element for the whole space.
  bool constant(size_t k) const;
};

/// Calls body(offset, position, length) for each run along the last axis within elements [start, start + n) of the space:
/// `offset` is that of the array with `strides`, `position` counts from 0, and the run steps by strides.back().
template <class Body>
void for_each_run(const Dims& shape, const Dims& strides, int64_t start, int64_t n, const Body& body) {
  constexpr int kMaxAxes = 16;
  const int last = static_cast<int>(shape.size()) - 1;
  int64_t index[kMaxAxes];
  int64_t offset = 0, rest = start;
  for (int axis = last; axis >= 0; --axis) {
    index[axis] = rest % shape[axis];
    rest /= shape[axis];
    offset += index[axis] * strides[axis];
  }
  for (int64_t position = 0; position < n;) {
    const int64_t length = std::min(n - position, shape[last] - index[last]);
    body(offset, position, length);
    position += length;
    index[last] += length;
    offset += length * strides[last];
    for (int axis = last; axis > 0 && index[axis] == shape[axis]; --axis) {
      offset += strides[axis - 1] - shape[axis] * strides[axis];
      index[axis] = 0;
      ++index[axis - 1];
    }
  }
}

/// Copies elements [start, start + n) of a strided array into consecutive memory.
template <class T>
void gather(const Dims& shape, const Dims& strides, const T* source, int64_t start, int64_t n, T* target) {
  const int64_t step = strides.back();
  for_each_run(shape, strides, start, n, [&](int64_t offset, int64_t position, int64_t length) {
    const T* from = source + offset;
    T* to = target + position;
    if (step == 1) {
      if (length < 16) {
        for (int64_t i = 0; i < length; ++i) to[i] = from[i];
      } else {
        std::memcpy(to, from, length * sizeof(T));
      }
    } else if (step == 0) {
      std::fill_n(to, length, *from);
    } else {
      for (int64_t i = 0; i < length; ++i) to[i] = from[i * step];
    }
  });
}

/// The reverse of gather.
template <class T>
void scatter(const Dims& shape, const Dims& strides, const T* source, int64_t start, int64_t n, T* target) {
  const int64_t step = strides.back();
  for_each_run(shape, strides, start, n, [&](int64_t offset, int64_t position, int64_t length) {
    for (int64_t i = 0; i < length; ++i) target[offset + i * step] = source[position + i];
  });
}

}  // namespace nn_cpu
