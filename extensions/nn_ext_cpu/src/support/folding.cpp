#include "support/folding.hpp"

#include <algorithm>

#include "support/gemm.hpp"
#include "support/grid.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

/// Adds n values to every `step`-th place of a line of `length` places, the first of them at `start`; those outside are
/// dropped. Places are `stride` elements apart.
template <class T>
void add_line(const T* values, int64_t n, int64_t start, int64_t step, int64_t length, int64_t stride, T* line) {
  const int64_t low = std::clamp<int64_t>(start < 0 ? (-start + step - 1) / step : 0, 0, n),
                high = std::clamp<int64_t>(start < length ? (length - start + step - 1) / step : 0, low, n);
  T* to = line + (start + low * step) * stride;
  if (step * stride == 1) {
    number_loops<T>().add_to(values + low, to, high - low);
  } else {
    for (int64_t i = low; i < high; ++i, to += step * stride) *to += values[i];
  }
}

template <class T>
struct Folding {
  const Unfolding& u;
  const T* small;
  const ImageLayout& small_layout;
  const T* weight;
  const WeightLayout& w;
  const T* bias;
  T* large;
  const ImageLayout& large_layout;

  Grid grid = grid_down(u);
  int64_t taps = grid.taps();

  void run() const {
    // a thread has images or channels of its own
    const int64_t images = u.batch * u.groups, channels = images >= num_threads() ? u.large_channels : 1,
                  parts = u.large_channels / channels;
    parallel_for(images * parts, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        one(i / parts / u.groups, i / parts % u.groups, i % parts * channels, channels);
    });
  }

 private:
  /// Some channels of a group of an image.
  void one(int64_t n, int64_t group, int64_t first, int64_t channels) const {
    const int64_t rows = channels * taps, depth = u.small_channels, positions = grid.positions(),
                  piece = std::min(piece_of(grid, channels, depth), std::max<int64_t>(positions, 1));
    Scratch scratch(Scratch::bytes<T>(rows * depth) + Scratch::bytes<T>(depth * piece) +
                    Scratch::bytes<T>(rows * piece));
    auto *matrix = scratch.take<T>(rows * depth), *values = scratch.take<T>(depth * piece),
         *product = scratch.take<T>(rows * piece);
    arrange(group, first, channels, matrix);
    const Target target(grid, small_layout);
    const T* from = small + n * small_layout.batch + group * depth * small_layout.channel;
    const int64_t channel = group * u.large_channels + first;
    T* to = large + n * large_layout.batch + channel * large_layout.channel;
    fill(bias != nullptr ? bias + channel : nullptr, channels, to);
    for (int64_t begin = 0; begin < positions; begin += piece) {
      const int64_t end = std::min(positions, begin + piece), count = end - begin;
      take_rows(grid, target, from, depth, begin, end, values);
      gemm(rows, count, depth, MatrixOf<T>{matrix, depth}, MatrixOf<T>{values, count}, false, product, count);
      add(channels, begin, end, product, to);
    }
  }

  /// The weights as a matrix (channels and taps, small channels).
  void arrange(int64_t group, int64_t first, int64_t channels, T* to) const {
    const Three strides = three(w.kernel, 0);
    for (int64_t c = 0; c < channels; ++c) {
      for_each_tap([&](const Axis::Tap& a, const Axis::Tap& b, const Axis::Tap& d) {
        const T* from = weight + group * w.group + (first + c) * w.large + a.number * strides[0] +
                        b.number * strides[1] + d.number * strides[2];
        for (int64_t k = 0; k < u.small_channels; ++k) *to++ = from[k * w.small];
      });
    }
  }

  void fill(const T* offsets, int64_t channels, T* to) const {
    const Three size = three(u.large_size, 1), strides = three(large_layout.axes, 0);
    for (int64_t c = 0; c < channels; ++c) {
      const T value = offsets != nullptr ? offsets[c] : T{0};
      for (int64_t i = 0; i < size[0]; ++i) {
        for (int64_t j = 0; j < size[1]; ++j) {
          T* line = to + c * large_layout.channel + i * strides[0] + j * strides[1];
          for (int64_t k = 0; k < size[2]; ++k) line[k * strides[2]] = value;
        }
      }
    }
  }

  void add(int64_t channels, int64_t begin, int64_t end, const T* product, T* to) const {
    const auto& [outer, middle, inner] = grid.axes;
    const Three strides = three(large_layout.axes, 0);
    for (int64_t c = 0; c < channels; ++c) {
      for_each_tap([&, &outer = outer, &middle = middle, &inner = inner](const Axis::Tap& a, const Axis::Tap& b,
                                                                         const Axis::Tap& d) {
        for_each_line(grid, begin, end, [&](const Three& t, int64_t place, int64_t n) {
          const int64_t at0 = t[0] * outer.step + a.offset, at1 = t[1] * middle.step + b.offset;
          if (at0 < 0 || at0 >= outer.length || at1 < 0 || at1 >= middle.length) return;
          T* line = to + c * large_layout.channel + at0 * strides[0] + at1 * strides[1];
          add_line(product + place, n, t[2] * inner.step + d.offset, inner.step, inner.length, strides[2], line);
        });
        product += end - begin;
      });
    }
  }

  template <class Body>
  void for_each_tap(const Body& body) const {
    for (const Axis::Tap& a : grid.axes[0].taps) {
      for (const Axis::Tap& b : grid.axes[1].taps) {
        for (const Axis::Tap& d : grid.axes[2].taps) body(a, b, d);
      }
    }
  }
};

}  // namespace

bool is_better_folded(const Unfolding& u) { return 2 * u.large_channels <= u.small_channels; }

template <class T>
void fold_up(const Unfolding& u, const T* small, const ImageLayout& small_layout, const T* weight,
             const WeightLayout& w, const T* bias, T* large, const ImageLayout& large_layout) {
  Folding<T>{u, small, small_layout, weight, w, bias, large, large_layout}.run();
}

template void fold_up(const Unfolding&, const float*, const ImageLayout&, const float*, const WeightLayout&,
                      const float*, float*, const ImageLayout&);
template void fold_up(const Unfolding&, const double*, const ImageLayout&, const double*, const WeightLayout&,
                      const double*, double*, const ImageLayout&);

}  // namespace nn_cpu
