#include "support/sliding.hpp"

#include <algorithm>

#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

/// Channels that are next to each other in memory are copied in blocks of a cache line.
constexpr int64_t kMaxBlock = 16;
/// The largest block of planes that is copied, in elements.
constexpr int64_t kMaxElements = 1 << 20;
/// Elements that vectors may touch beyond the end of a row.
constexpr int64_t kSlack = 16;

/// A number for each axis of a plane; a signal has one row.
struct Pair {
  int64_t rows, columns;

  Pair(const Dims& dims, int64_t missing)
      : rows(dims.size() == 2 ? dims[0] : missing), columns(dims.empty() ? missing : dims.back()) {}
  Pair(int64_t r, int64_t c) : rows(r), columns(c) {}

  int64_t area() const { return rows * columns; }
};

/// The planes of an image from one channel on.
template <class T>
struct Planes {
  T* data;
  Pair size, strides;
  int64_t channel;

  Planes(T* image, const ImageLayout& layout, const Dims& lengths, int64_t n, int64_t first)
      : data(image + n * layout.batch + first * layout.channel),
        size(lengths, 1),
        strides(layout.axes, 0),
        channel(layout.channel) {}
};

/// Copies planes into zeroed ones of `plane` elements, moved by an offset that may be negative.
template <class T>
void copy_planes(const Planes<const T>& from, int64_t count, Pair offset, Pair size, int64_t ld, int64_t plane,
                 T* memory) {
  std::fill_n(memory, count * plane, T{0});
  const int64_t top = std::max<int64_t>(0, -offset.rows), left = std::max<int64_t>(0, -offset.columns),
                bottom = std::min(from.size.rows, size.rows - offset.rows),
                right = std::min(from.size.columns, size.columns - offset.columns);
  for (int64_t i = top; i < bottom; ++i) {
    const T* line = from.data + i * from.strides.rows;
    T* target = memory + (i + offset.rows) * ld + offset.columns;
    for (int64_t j = left; j < right; ++j) {
      const T* element = line + j * from.strides.columns;
      for (int64_t c = 0; c < count; ++c) target[c * plane + j] = element[c * from.channel];
    }
  }
}

template <class T>
void write_plane(const T* plane, int64_t ld, T bias, const Planes<T>& to) {
  for (int64_t i = 0; i < to.size.rows; ++i) {
    T* line = to.data + i * to.strides.rows;
    for (int64_t j = 0; j < to.size.columns; ++j) line[j * to.strides.columns] = plane[i * ld + j] + bias;
  }
}

/// The number of planes of so many elements that are copied at once.
int64_t block_of(const ImageLayout& layout, int64_t plane) {
  return layout.channel == 1 ? std::clamp<int64_t>(kMaxElements / plane, 1, kMaxBlock) : 1;
}

/// The slide whose result is a plane of `size`.
SlideShape shape_of(const Unfolding& u, const Pair& size) {
  const Pair kernel(u.kernel, 1), dilation(u.dilation, 1);
  SlideShape s{};
  s.kh = kernel.rows, s.kw = kernel.columns, s.dh = dilation.rows, s.dw = dilation.columns;
  s.rows = size.rows, s.columns = size.columns;
  s.ldy = size.columns + kSlack;
  s.ldx = size.columns + (s.kw - 1) * s.dw + 2 * kSlack;
  return s;
}

/// The size of the planes that a slide reads.
Pair read_by(const SlideShape& s) { return {s.rows + (s.kh - 1) * s.dh, s.columns + (s.kw - 1) * s.dw}; }

/// Where a tap of a kernel is in the weights of its group.
int64_t offset_of(int64_t tap, const Unfolding& u, const WeightLayout& w) {
  const Pair kernel(u.kernel, 1), strides(w.kernel, 0);
  return tap / kernel.columns * strides.rows + tap % kernel.columns * strides.columns;
}

/// Copies the kernel of a group, from its end with `flipped`.
template <class T>
void copy_kernel(const Unfolding& u, const T* weight, const WeightLayout& w, bool flipped, T* to) {
  const int64_t taps = u.taps();
  for (int64_t tap = 0; tap < taps; ++tap) to[flipped ? taps - 1 - tap : tap] = weight[offset_of(tap, u, w)];
}

/// y = the kernels slid over x, which begins at `offset` in the planes that they read.
template <class T>
void slide_all(const Unfolding& u, bool flipped, Pair offset, const T* x, const ImageLayout& x_layout,
               const Dims& x_size, const T* weight, const WeightLayout& w, const T* bias, T* y,
               const ImageLayout& y_layout, const Dims& y_size) {
  const Pair size(y_size, 1);
  const SlideShape s = shape_of(u, size);
  const Pair read = read_by(s);
  const int64_t plane = read.rows * s.ldx, result = s.rows * s.ldy, block = block_of(x_layout, plane),
                blocks = (u.groups + block - 1) / block;
  const int64_t work = 1 + size.area() * u.taps() * block;
  parallel_for(u.batch * blocks, 1 + 65536 / work, [&](int64_t begin, int64_t end, int) {
    Scratch scratch(Scratch::bytes<T>(block * plane) + Scratch::bytes<T>(result) + Scratch::bytes<T>(u.taps()));
    auto *planes = scratch.take<T>(block * plane), *results = scratch.take<T>(result),
         *kernel = scratch.take<T>(u.taps());
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / blocks, first = item % blocks * block, count = std::min(block, u.groups - first);
      copy_planes(Planes<const T>(x, x_layout, x_size, n, first), count, offset, read, s.ldx, plane, planes);
      for (int64_t c = 0; c < count; ++c) {
        copy_kernel(u, weight + (first + c) * w.group, w, flipped, kernel);
        number_loops<T>().slide(s, planes + c * plane, kernel, results);
        write_plane(results, s.ldy, bias != nullptr ? bias[first + c] : T{0},
                    Planes<T>(y, y_layout, y_size, n, first + c));
      }
    }
  });
}

}  // namespace

bool is_sliding(const Unfolding& u) {
  const auto is_one = [](int64_t n) { return n == 1; };
  if (u.small_channels != 1 || u.large_channels != 1 || u.kernel.empty() || u.kernel.size() > 2 ||
      !std::all_of(u.stride.begin(), u.stride.end(), is_one) || count(u.small_size) == 0 || count(u.large_size) == 0)
    return false;
  const auto fits = [&](const Dims& size) {
    const SlideShape s = shape_of(u, Pair(size, 1));
    return read_by(s).rows * s.ldx <= kMaxElements;
  };
  return fits(u.small_size) && fits(u.large_size);
}

template <class T>
void slide_down(const Unfolding& u, const T* large, const ImageLayout& large_layout, const T* weight,
                const WeightLayout& w, const T* bias, T* small, const ImageLayout& small_layout) {
  slide_all(u, false, Pair(u.pad, 0), large, large_layout, u.large_size, weight, w, bias, small, small_layout,
            u.small_size);
}

template <class T>
void slide_up(const Unfolding& u, const T* small, const ImageLayout& small_layout, const T* weight,
              const WeightLayout& w, const T* bias, T* large, const ImageLayout& large_layout) {
  const Pair kernel(u.kernel, 1), dilation(u.dilation, 1), pad(u.pad, 0);
  const Pair offset((kernel.rows - 1) * dilation.rows - pad.rows,
                    (kernel.columns - 1) * dilation.columns - pad.columns);
  slide_all(u, true, offset, small, small_layout, u.small_size, weight, w, bias, large, large_layout, u.large_size);
}

template <class T>
void slide_weights(const Unfolding& u, const T* small, const ImageLayout& small_layout, const T* large,
                   const ImageLayout& large_layout, T* dweight, const WeightLayout& w) {
  const SlideShape s = shape_of(u, Pair(u.small_size, 1));
  const Pair read = read_by(s), size(s.rows, s.columns), pad(u.pad, 0);
  const int64_t plane = read.rows * s.ldx, gradient = s.rows * s.ldy,
                per_thread = std::max<int64_t>(1, u.groups / num_threads()),
                block = std::min(per_thread, std::max(block_of(large_layout, plane), block_of(small_layout, plane))),
                blocks = (u.groups + block - 1) / block;
  const int64_t work = 1 + u.batch * size.area() * u.taps() * block;
  parallel_for(blocks, 1 + 65536 / work, [&](int64_t begin, int64_t end, int) {
    Scratch scratch(Scratch::bytes<T>(block * plane) + Scratch::bytes<T>(block * gradient) +
                    Scratch::bytes<double>(block * u.taps()));
    auto *planes = scratch.take<T>(block * plane), *gradients = scratch.take<T>(block * gradient);
    auto* sums = scratch.take<double>(block * u.taps());
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first = item * block, count = std::min(block, u.groups - first);
      std::fill_n(sums, block * u.taps(), 0.0);
      for (int64_t n = 0; n < u.batch; ++n) {
        const Planes<const T> x(large, large_layout, u.large_size, n, first),
            dy(small, small_layout, u.small_size, n, first);
        copy_planes(x, count, pad, read, s.ldx, plane, planes);
        copy_planes(dy, count, Pair(0, 0), size, s.ldy, gradient, gradients);
        for (int64_t c = 0; c < count; ++c)
          number_loops<T>().slide_gradient(s, planes + c * plane, gradients + c * gradient, sums + c * u.taps());
      }
      for (int64_t c = 0; c < count; ++c) {
        T* to = dweight + (first + c) * w.group;
        for (int64_t tap = 0; tap < u.taps(); ++tap)
          to[offset_of(tap, u, w)] = static_cast<T>(sums[c * u.taps() + tap]);
      }
    }
  });
}

template void slide_down(const Unfolding&, const float*, const ImageLayout&, const float*, const WeightLayout&,
                         const float*, float*, const ImageLayout&);
template void slide_up(const Unfolding&, const float*, const ImageLayout&, const float*, const WeightLayout&,
                       const float*, float*, const ImageLayout&);
template void slide_weights(const Unfolding&, const float*, const ImageLayout&, const float*, const ImageLayout&,
                            float*, const WeightLayout&);
template void slide_down(const Unfolding&, const double*, const ImageLayout&, const double*, const WeightLayout&,
                         const double*, double*, const ImageLayout&);
template void slide_up(const Unfolding&, const double*, const ImageLayout&, const double*, const WeightLayout&,
                       const double*, double*, const ImageLayout&);
template void slide_weights(const Unfolding&, const double*, const ImageLayout&, const double*, const ImageLayout&,
                            double*, const WeightLayout&);

}  // namespace nn_cpu
