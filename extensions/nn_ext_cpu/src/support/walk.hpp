// Iteration over several strided arrays at once: axes in memory order of the leading array, merged where possible.
#pragma once

#include <algorithm>
#include <array>
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

/// Calls body(offsets, position, length) for each run along the last axis within elements [start, start + n) of the
/// space: `offsets[k]` is that of the array with `strides[k]`, `position` counts from 0, and the run steps by the last
/// strides.
template <size_t N, class Body>
void for_each_run_of(const Dims& shape, const std::array<const Dims*, N>& strides, int64_t start, int64_t n,
                     const Body& body) {
  constexpr int kMaxAxes = 16;
  const int last = static_cast<int>(shape.size()) - 1;
  int64_t index[kMaxAxes];
  std::array<int64_t, N> offsets{};
  int64_t rest = start;
  for (int axis = last; axis >= 0; --axis) {
    index[axis] = rest % shape[axis];
    rest /= shape[axis];
    for (size_t k = 0; k < N; ++k) offsets[k] += index[axis] * (*strides[k])[axis];
  }
  for (int64_t position = 0; position < n;) {
    const int64_t length = std::min(n - position, shape[last] - index[last]);
    body(offsets, position, length);
    position += length;
    index[last] += length;
    for (size_t k = 0; k < N; ++k) offsets[k] += length * (*strides[k])[last];
    for (int axis = last; axis > 0 && index[axis] == shape[axis]; --axis) {
      for (size_t k = 0; k < N; ++k) offsets[k] += (*strides[k])[axis - 1] - shape[axis] * (*strides[k])[axis];
      index[axis] = 0;
      ++index[axis - 1];
    }
  }
}

/// The same for one array: body(offset, position, length).
template <class Body>
void for_each_run(const Dims& shape, const Dims& strides, int64_t start, int64_t n, const Body& body) {
  for_each_run_of<1>(shape, {&strides}, start, n,
                     [&](const std::array<int64_t, 1>& offsets, int64_t position, int64_t length) {
                       body(offsets[0], position, length);
                     });
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
