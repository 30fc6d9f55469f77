// The positions of a convolution: where each of them is in the image that is written, and what its taps read; in three
// dimensions, of which the first ones may be missing.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "support/unfolding.hpp"

namespace nn_cpu {

using Three = std::array<int64_t, 3>;

/// The last three axes, with axes of `missing` before them.
inline Three three(const Dims& dims, int64_t missing) {
  Three result{missing, missing, missing};
  std::copy(dims.rbegin(), dims.rend(), result.rbegin());
  return result;
}

/// Positions along one axis of the result, and what they read: position t is at origin + t * spacing, and reads
/// t * step + offset for each tap.
struct Axis {
  struct Tap {
    int64_t number, offset;
  };
  int64_t size, origin, spacing, step, length;  // `length` of the image that is read
  std::vector<Tap> taps;                        // by offset
};

struct Grid {
  std::array<Axis, 3> axes;

  int64_t positions() const { return axes[0].size * axes[1].size * axes[2].size; }
  int64_t taps() const { return static_cast<int64_t>(axes[0].taps.size() * axes[1].taps.size() * axes[2].taps.size()); }
  /// Whether taps along the last axis follow each other without gaps.
  bool has_runs() const {
    const auto& taps = axes[2].taps;
    for (size_t i = 1; i < taps.size(); ++i) {
      if (taps[i].offset != taps[0].offset + static_cast<int64_t>(i)) return false;
    }
    return true;
  }
};

inline Axis axis_down(const Unfolding& u, size_t axis) {
  const Three kernel = three(u.kernel, 1), stride = three(u.stride, 1), dilation = three(u.dilation, 1),
              pad = three(u.pad, 0);
  Axis result{three(u.small_size, 1)[axis], 0, 1, stride[axis], three(u.large_size, 1)[axis], {}};
  for (int64_t k = 0; k < kernel[axis]; ++k) result.taps.push_back({k, k * dilation[axis] - pad[axis]});
  return result;
}

/// The positions of the large image whose distance from `origin` is a multiple of the stride: all have the same taps.
inline Axis axis_up(const Unfolding& u, size_t axis, int64_t origin) {
  const Three kernel = three(u.kernel, 1), dilation = three(u.dilation, 1), pad = three(u.pad, 0);
  const int64_t stride = three(u.stride, 1)[axis], length = three(u.large_size, 1)[axis];
  Axis result{(length - origin + stride - 1) / stride, origin, stride, 1, three(u.small_size, 1)[axis], {}};
  for (int64_t k = kernel[axis] - 1; k >= 0; --k) {
    const int64_t distance = origin + pad[axis] - k * dilation[axis];
    if (distance % stride == 0) result.taps.push_back({k, distance / stride});
  }
  return result;
}

inline Grid grid_down(const Unfolding& u) { return {{axis_down(u, 0), axis_down(u, 1), axis_down(u, 2)}}; }

inline std::vector<Grid> grids_up(const Unfolding& u) {
  const Three stride = three(u.stride, 1), length = three(u.large_size, 1);
  std::vector<Grid> grids;
  for (int64_t i = 0; i < std::min(stride[0], length[0]); ++i) {
    for (int64_t j = 0; j < std::min(stride[1], length[1]); ++j) {
      for (int64_t k = 0; k < std::min(stride[2], length[2]); ++k)
        grids.push_back({{axis_up(u, 0, i), axis_up(u, 1, j), axis_up(u, 2, k)}});
    }
  }
  return grids;
}

/// Calls body(t, first position, count) for each part of [begin, end) in one line of the grid; t are its indices.
template <class Body>
void for_each_line(const Grid& grid, int64_t begin, int64_t end, const Body& body) {
  const int64_t width = grid.axes[2].size, height = grid.axes[1].size;
  for (int64_t p = begin; p < end;) {
    const Three t{p / width / height, p / width % height, p % width};
    const int64_t n = std::min(width - t[2], end - p);
    body(t, p - begin, n);
    p += n;
  }
}

/// Where positions of a grid are in an image.
struct Target {
  int64_t channel;
  Three origin, spacing;

  Target(const Grid& grid, const ImageLayout& layout) : channel(layout.channel) {
    const Three axes = three(layout.axes, 0);
    for (size_t axis = 0; axis < 3; ++axis) {
      origin[axis] = grid.axes[axis].origin * axes[axis];
      spacing[axis] = grid.axes[axis].spacing * axes[axis];
    }
  }

  int64_t at(const Three& t) const {
    int64_t place = 0;
    for (size_t axis = 0; axis < 3; ++axis) place += origin[axis] + t[axis] * spacing[axis];
    return place;
  }
};

constexpr int64_t kElements = 131072;  // of a piece of the unfolded image, which stays in the second-level cache
constexpr int64_t kFewest = 96;        // positions of a piece, for products that pay

/// Positions of a piece.
inline int64_t piece_of(const Grid& grid, int64_t channels, int64_t results) {
  return std::max(kElements / std::max(grid.taps() * channels, results), kFewest);
}

/// to[channel][position]
template <class T>
void take_rows(const Grid& grid, const Target& target, const T* from, int64_t channels, int64_t begin, int64_t end,
               T* to) {
  for (int64_t k = 0; k < channels; ++k, to += end - begin) {
    for_each_line(grid, begin, end, [&](const Three& t, int64_t place, int64_t n) {
      const T* line = from + k * target.channel + target.at(t);
      for (int64_t i = 0; i < n; ++i) to[place + i] = line[i * target.spacing[2]];
    });
  }
}

}  // namespace nn_cpu
