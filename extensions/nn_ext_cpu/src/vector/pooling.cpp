// Pooling of one image. An image is (D, H, W, lanes), lanes innermost: the channels of a channels-last image, or a
// single lane for one channel of an ordinary one. Windows are cut at the borders of the image; O(outputs * kernel *
// lanes).
#include "support/vector.hpp"
#include "vector/lanes.hpp"
#include "vector/wide_math.hpp"

namespace nn_cpu::NN_ISA {
namespace {

constexpr int64_t kLanes = 64;

/// The extent of a window along one axis: [begin, end) inside the image, and how many elements it counts for a mean.
struct Span {
  int64_t begin, end, counted;

  Span(const PoolShape& s, int axis, int64_t place) {
    const int64_t start = place * s.stride[axis] - s.pad[axis];
    const int64_t stop = start + s.kernel[axis], length = s.in[axis];
    begin = start < 0 ? 0 : start;
    end = stop > length ? length : stop;
    const int64_t padded = length + s.pad[axis];
    counted = s.counts_pad ? (stop > padded ? padded : stop) - start : end - begin;
  }
};

/// Calls window(output offset, spans) for each output place.
template <class F>
void for_each_window(const PoolShape& s, F window) {
  int64_t place = 0;
  for (int64_t d = 0; d < s.out[0]; ++d) {
    const Span depth(s, 0, d);
    for (int64_t h = 0; h < s.out[1]; ++h) {
      const Span row(s, 1, h);
      for (int64_t w = 0; w < s.out[2]; ++w, ++place) window(place * s.lanes, depth, row, Span(s, 2, w));
    }
  }
}

/// Calls element(input offset, number) for each element of a window.
template <class F>
void for_each_element(const PoolShape& s, const Span& depth, const Span& row, const Span& column, F element) {
  int32_t number = 0;
  for (int64_t d = depth.begin; d < depth.end; ++d) {
    for (int64_t h = row.begin; h < row.end; ++h) {
      const int64_t line = (d * s.in[1] + h) * s.in[2];
      for (int64_t w = column.begin; w < column.end; ++w) element((line + w) * s.lanes, number++);
    }
  }
}

/// Calls chunk(first lane, lanes) for pieces that fit into registers.
template <class F>
void for_each_chunk(int64_t count, F chunk) {
  for (int64_t lane = 0; lane < count; lane += kLanes) chunk(lane, count - lane < kLanes ? count - lane : kLanes);
}

/// Whole numbers of the size of T, in as many lanes.
template <class T>
struct WholeOf;
template <>
struct WholeOf<float> {
  using Number = int32_t;
  using Type = int32_t __attribute__((vector_size(kWidth * 4)));
};
template <>
struct WholeOf<double> {
  using Number = int64_t;
  using Type = int64_t __attribute__((vector_size(kWidth * 4)));
};
template <class T>
using WholeLanes = typename WholeOf<T>::Type;

/// Number of the first largest element of a window (NaN wins), one for each lane.
template <class T, class Load>
inline WholeLanes<T> find_largest(const PoolShape& s, const Span& depth, const Span& row, const Span& column,
                                  Load load_at) {
  LanesOf<T> best = splat(T{-kInfinity});
  WholeLanes<T> which{};  // the first one, also where all are -inf
  for_each_element(s, depth, row, column, [&](int64_t offset, int32_t number) {
    const LanesOf<T> v = load_at(offset);
    const WholeLanes<T> wins = (v > best) | ((v != v) & (best == best));
    best = wins ? v : best;
    which = wins ? WholeLanes<T>{} + static_cast<typename WholeOf<T>::Number>(number) : which;
  });
  return which;
}

/// Whether every place of the image is in exactly one window.
bool is_tiled(const PoolShape& s) {
  bool tiled = true;
  for (int axis = 0; axis < 3; ++axis)
    tiled &= s.stride[axis] == s.kernel[axis] && s.out[axis] * s.stride[axis] - s.pad[axis] >= s.in[axis];
  return tiled;
}

/// Lines [begin, end) of an image become 0.
template <class T>
void clear_lines(const PoolShape& s, T* dx, int64_t lanes, int64_t begin, int64_t end) {
  for (int64_t place = begin * s.in[2]; place < end * s.in[2]; ++place) {
    for (int64_t i = 0; i < lanes; ++i) dx[place * s.lanes + i] = T{0};
  }
}

}  // namespace

template <class T>
void max_pool(const PoolShape& s, const T* x, T* y, int64_t lanes) {
  for_each_window(s, [&](int64_t place, const Span& depth, const Span& row, const Span& column) {
    for_each_chunk(lanes, [&](int64_t lane, int64_t n) {
      T best[kLanes];
      for (int64_t i = 0; i < n; ++i) best[i] = -kInfinity;
      for_each_element(s, depth, row, column, [&](int64_t offset, int32_t) {
        const T* from = x + offset + lane;
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) best[i] = larger(from[i], best[i]);
      });
      for (int64_t i = 0; i < n; ++i) y[place + lane + i] = best[i];
    });
  });
}

template <class T>
void max_pool_backward(const PoolShape& s, const T* x, const T* dy, T* dx, int64_t lanes) {
  const bool tiled = is_tiled(s);
  int64_t cleared =
      0;  // lines of dx that are written already, if only by 0: shortly before windows reach them, while in cache
  const auto clear_up_to = [&](int64_t line) {
    if (!tiled && line > cleared) clear_lines(s, dx, lanes, cleared, line);
    cleared = line > cleared ? line : cleared;
  };
  for_each_window(s, [&](int64_t place, const Span& depth, const Span& row, const Span& column) {
    clear_up_to(depth.end - depth.begin > 1 ? depth.end * s.in[1] : (depth.end - 1) * s.in[1] + row.end);
    for (int64_t lane = 0; lane < lanes; lane += kWidthOf<T>) {
      if (lane + kWidthOf<T> <= lanes) {
        const WholeLanes<T> which =
            find_largest<T>(s, depth, row, column, [&](int64_t offset) { return load(x + offset + lane); });
        const LanesOf<T> gradient = load(dy + place + lane);
        for_each_element(s, depth, row, column, [&](int64_t offset, int32_t number) {
          T* to = dx + offset + lane;
          const LanesOf<T> part = which == static_cast<typename WholeOf<T>::Number>(number) ? gradient : LanesOf<T>{};
          store(to, tiled ? part : load(to) + part);
        });
        continue;
      }
      const int n = static_cast<int>(lanes - lane);
      const WholeLanes<T> which =
          find_largest<T>(s, depth, row, column, [&](int64_t offset) { return load_part(x + offset + lane, n); });
      const LanesOf<T> gradient = load_part(dy + place + lane, n);
      for_each_element(s, depth, row, column, [&](int64_t offset, int32_t number) {
        T* to = dx + offset + lane;
        const LanesOf<T> part = which == static_cast<typename WholeOf<T>::Number>(number) ? gradient : LanesOf<T>{};
        store_part(to, tiled ? part : load_part(to, n) + part, n);
      });
    }
  });
  clear_up_to(s.in[0] * s.in[1]);
}

template <class T>
void sum_pool(const PoolShape& s, const T* x, T* y, int64_t lanes) {
  for_each_window(s, [&](int64_t place, const Span& depth, const Span& row, const Span& column) {
    const T scale = s.mean ? T{1} / static_cast<T>(depth.counted * row.counted * column.counted) : T{1};
    for_each_chunk(lanes, [&](int64_t lane, int64_t n) {
      T total[kLanes];
      for (int64_t i = 0; i < n; ++i) total[i] = T{0};
      for_each_element(s, depth, row, column, [&](int64_t offset, int32_t) {
        const T* from = x + offset + lane;
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) total[i] += from[i];
      });
      for (int64_t i = 0; i < n; ++i) y[place + lane + i] = total[i] * scale;
    });
  });
}

template <class T>
void sum_pool_backward(const PoolShape& s, const T* dy, T* dx, int64_t lanes) {
  clear_lines(s, dx, lanes, 0, s.in[0] * s.in[1]);
  for_each_window(s, [&](int64_t place, const Span& depth, const Span& row, const Span& column) {
    const T scale = s.mean ? T{1} / static_cast<T>(depth.counted * row.counted * column.counted) : T{1};
    for_each_element(s, depth, row, column, [&](int64_t offset, int32_t) {
      const T* from = dy + place;
      T* to = dx + offset;
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) to[i] += from[i] * scale;
    });
  });
}

template void max_pool(const PoolShape&, const float*, float*, int64_t);
template void max_pool_backward(const PoolShape&, const float*, const float*, float*, int64_t);
template void sum_pool(const PoolShape&, const float*, float*, int64_t);
template void sum_pool_backward(const PoolShape&, const float*, float*, int64_t);
template void max_pool(const PoolShape&, const double*, double*, int64_t);
template void max_pool_backward(const PoolShape&, const double*, const double*, double*, int64_t);
template void sum_pool(const PoolShape&, const double*, double*, int64_t);
template void sum_pool_backward(const PoolShape&, const double*, double*, int64_t);

}  // namespace nn_cpu::NN_ISA
