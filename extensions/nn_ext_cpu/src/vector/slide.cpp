// A kernel slid over a plane with stride 1, and the gradient of the kernel. Rows of x are `ldx` elements apart
// and have (kw - 1) dw elements more than the plane of results, whose columns are rounded up to whole vectors; taps are
// `dh` rows and `dw` columns apart. Each result is a sum in the order of the taps, whatever is computed beside it.
#include "support/vector.hpp"
#include "vector/lanes.hpp"

namespace nn_cpu::NN_ISA {
namespace {

template <class T, int kRows, int kVectors>
inline void slide_block(const SlideShape& s, const T* x, const T* w, T* y) {
  LanesOf<T> sums[kRows][kVectors] = {};
  for (int64_t a = 0; a < s.kh; ++a) {
    const T* line = x + a * s.dh * s.ldx;
    for (int64_t b = 0; b < s.kw; ++b) {
      const LanesOf<T> factor = splat(*w++);
      const T* from = line + b * s.dw;
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) sums[r][v] += factor * load(from + r * s.ldx + v * kWidthOf<T>);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) store(y + r * s.ldy + v * kWidthOf<T>, sums[r][v]);
  }
}

template <class T, int kRows>
void slide_rows(const SlideShape& s, const T* x, const T* w, T* y) {
  int64_t j = 0;
  for (; j + kWidthOf<T> < s.columns; j += 2 * kWidthOf<T>) slide_block<T, kRows, 2>(s, x + j, w, y + j);
  if (j < s.columns) slide_block<T, kRows, 1>(s, x + j, w, y + j);
}

/// Elements of a plane whose products are added up in lanes before they are added to sums in double.
constexpr int64_t kPiece = 4096;

/// Adds to kTaps sums, for taps next to each other, the products of a part of dy with what they read.
template <class T, int kTaps>
void add_taps(const SlideShape& s, const T* dy, const T* x, int64_t rows, int64_t columns, double* sums) {
  LanesOf<T> lanes[kTaps] = {};
  const int64_t whole = columns / kWidthOf<T> * kWidthOf<T>;
  const int rest = static_cast<int>(columns - whole);
  for (int64_t i = 0; i < rows; ++i, dy += s.ldy, x += s.ldx) {
    for (int64_t j = 0; j < whole; j += kWidthOf<T>) {
      const LanesOf<T> gradient = load(dy + j);
      for (int t = 0; t < kTaps; ++t) lanes[t] += gradient * load(x + j + t * s.dw);
    }
    if (rest == 0) continue;
    const LanesOf<T> gradient = load_part(dy + whole, rest);
    for (int t = 0; t < kTaps; ++t) lanes[t] += gradient * load_part(x + whole + t * s.dw, rest);  // 0 * inf is NaN
  }
  for (int t = 0; t < kTaps; ++t) sums[t] += static_cast<double>(sum_of_lanes(lanes[t]));
}

}  // namespace

/// Computes the plane of results.
template <class T>
void slide(const SlideShape& s, const T* x, const T* w, T* y) {
  int64_t i = 0;
  for (; i + 4 <= s.rows; i += 4) slide_rows<T, 4>(s, x + i * s.ldx, w, y + i * s.ldy);
  for (; i < s.rows; ++i) slide_rows<T, 1>(s, x + i * s.ldx, w, y + i * s.ldy);
}

/// Adds the gradient of the kernel to sums in double.
template <class T>
void slide_gradient(const SlideShape& s, const T* x, const T* dy, double* sums) {
  const int64_t columns = s.columns < kPiece ? s.columns : kPiece, rows = kPiece / columns;
  for (int64_t i = 0; i < s.rows; i += rows) {
    const int64_t m = s.rows - i < rows ? s.rows - i : rows;
    for (int64_t j = 0; j < s.columns; j += columns) {
      const int64_t n = s.columns - j < columns ? s.columns - j : columns;
      const T* gradient = dy + i * s.ldy + j;
      for (int64_t a = 0; a < s.kh; ++a) {
        const T* from = x + (i + a * s.dh) * s.ldx + j;
        double* to = sums + a * s.kw;
        int64_t b = 0;
        for (; b + 8 <= s.kw; b += 8) add_taps<T, 8>(s, gradient, from + b * s.dw, m, n, to + b);
        for (; b + 3 <= s.kw; b += 3) add_taps<T, 3>(s, gradient, from + b * s.dw, m, n, to + b);
        for (; b < s.kw; ++b) add_taps<T, 1>(s, gradient, from + b * s.dw, m, n, to + b);
      }
    }
  }
}

template void slide<float>(const SlideShape&, const float*, const float*, float*);
template void slide<double>(const SlideShape&, const double*, const double*, double*);
template void slide_gradient<float>(const SlideShape&, const float*, const float*, double*);
template void slide_gradient<double>(const SlideShape&, const double*, const double*, double*);

}  // namespace nn_cpu::NN_ISA
