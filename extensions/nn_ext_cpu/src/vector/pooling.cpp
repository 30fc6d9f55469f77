// Pooling of one image. An image is (D, H, W, lanes), lanes innermost: the channels of a channels-last image, or a single lane for
// one channel of an ordinary one. Windows are cut at the borders of the image; O(outputs * kernel * lanes).
#include "support/vector.hpp"
#include "vector/math.hpp"

namespace nn_cpu::NN_ISA {
namespace {

constexpr int64_t kLanes = 64;

/// Where a window lies along one axis: [begin, end) inside the image, and how many elements it counts for a mean.
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

/// The first largest element of a window (NaN wins), one for each lane: its value and its number.
inline void find_largest(const PoolShape& s, const float* x, int64_t n, const Span& depth, const Span& row, const Span& column,
                         float* best, int32_t* which) {
  for (int64_t i = 0; i < n; ++i) {
    best[i] = -kInfinity;
    which[i] = -1;
  }
  for_each_element(s, depth, row, column, [&](int64_t offset, int32_t number) {
    const float* from = x + offset;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float v = from[i], b = best[i];
      const bool wins = (v > b) | ((v != v) & (b == b));
      best[i] = wins ? v : b;
      which[i] = wins ? number : which[i];
    }
  });
}

void clear(const PoolShape& s, float* dx, int64_t lanes) {
  const int64_t places = s.in[0] * s.in[1] * s.in[2];
  for (int64_t place = 0; place < places; ++place) {
    for (int64_t i = 0; i < lanes; ++i) dx[place * s.lanes + i] = 0.0f;
  }
}

}  // namespace

void max_pool(const PoolShape& s, const float* x, float* y, int64_t lanes) {
  for_each_window(s, [&](int64_t place, const Span& depth, const Span& row, const Span& column) {
    for_each_chunk(lanes, [&](int64_t lane, int64_t n) {
      float best[kLanes];
      for (int64_t i = 0; i < n; ++i) best[i] = -kInfinity;
      for_each_element(s, depth, row, column, [&](int64_t offset, int32_t) {
        const float* from = x + offset + lane;
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) best[i] = larger(from[i], best[i]);
      });
      for (int64_t i = 0; i < n; ++i) y[place + lane + i] = best[i];
    });
  });
}

void max_pool_backward(const PoolShape& s, const float* x, const float* dy, float* dx, int64_t lanes) {
  clear(s, dx, lanes);
  for_each_window(s, [&](int64_t place, const Span& depth, const Span& row, const Span& column) {
    for_each_chunk(lanes, [&](int64_t lane, int64_t n) {
      float best[kLanes];
      int32_t which[kLanes];
      find_largest(s, x + lane, n, depth, row, column, best, which);
      const float* from = dy + place + lane;
      for_each_element(s, depth, row, column, [&](int64_t offset, int32_t number) {
        float* to = dx + offset + lane;
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) to[i] += which[i] == number ? from[i] : 0.0f;
      });
    });
  });
}

void sum_pool(const PoolShape& s, const float* x, float* y, int64_t lanes) {
  for_each_window(s, [&](int64_t place, const Span& depth, const Span& row, const Span& column) {
    const float scale = s.mean ? 1.0f / static_cast<float>(depth.counted * row.counted * column.counted) : 1.0f;
    for_each_chunk(lanes, [&](int64_t lane, int64_t n) {
      float total[kLanes];
      for (int64_t i = 0; i < n; ++i) total[i] = 0.0f;
      for_each_element(s, depth, row, column, [&](int64_t offset, int32_t) {
        const float* from = x + offset + lane;
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) total[i] += from[i];
      });
      for (int64_t i = 0; i < n; ++i) y[place + lane + i] = total[i] * scale;
    });
  });
}

void sum_pool_backward(const PoolShape& s, const float* dy, float* dx, int64_t lanes) {
  clear(s, dx, lanes);
  for_each_window(s, [&](int64_t place, const Span& depth, const Span& row, const Span& column) {
    const float scale = s.mean ? 1.0f / static_cast<float>(depth.counted * row.counted * column.counted) : 1.0f;
    for_each_element(s, depth, row, column, [&](int64_t offset, int32_t) {
      const float* from = dy + place;
      float* to = dx + offset;
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) to[i] += from[i] * scale;
    });
  });
}

}  // namespace nn_cpu::NN_ISA
