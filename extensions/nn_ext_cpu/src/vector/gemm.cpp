// Matrix products on one thread, for shapes that a general library packs in vain: few rows, short sums, small matrices.
// `product` keeps a tile of c in registers, reads b in place and broadcasts elements of a. `streamed_product` reads a
// large b once, in the order of its memory, for few rows. `panel_product` does as the first with
// a b that was cut into panels before, and fetches the next one ahead. `dot_product` takes b by rows along the sum.
// Sums are float32 in the order of k, in pieces (kMaxDepth), in lanes for dot_product. O(m n k).
#include "support/vector.hpp"
#include "vector/lanes.hpp"

namespace nn_cpu::NN_ISA {

template <class T>
void transpose(const T*, int64_t, int64_t, int64_t, T*, int64_t);

namespace {

constexpr int kRows = kWidth == 16 ? 8 : (kWidth == 8 ? 6 : 4);
constexpr int64_t kPanel = kPanelColumns;

/// The operands of a tile: element (i, p) of a is at a[i * a_row + p * a_col], row p of b at b + p * ldb.
template <class T>
struct OperandsOf {
  const T* a;
  int64_t a_row, a_col;
  const T* b;
  int64_t ldb;
  bool accumulate;
  const T* bias;  // a row that is added to every row of c, or nullptr
  T* c;
  int64_t ldc;
  const T* ahead = nullptr;  // what to fetch for later, while tiles are computed

  OperandsOf at(int64_t i, int64_t j) const {
    OperandsOf moved = *this;
    moved.a += i * a_row;
    moved.b += j;
    if (bias != nullptr) moved.bias += j;
    moved.c += i * ldc + j;
    return moved;
  }
};

using Operands = OperandsOf<float>;

constexpr int kLine = 16;  // numbers in a line of cache

/// c (Rows, Vectors lanes) = a b (+ c). All loops over the tile are unrolled: only then do compilers keep it in
/// registers. Unit: a_row is 1. Part: the only vector has `part` lanes. Fetch: lines to fetch for later, for each row
/// of b. With Resume the sum begins with c.
template <int Rows, int Vectors, bool Unit, bool Part, int Fetch = 0, bool Resume = false>
void tile(const Operands& o, int64_t k, int part) {
  Lanes sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    const float* from = o.c + i * o.ldc;
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v)
      sum[i][v] = !Resume ? Lanes{} : (Part ? load_part(from, part) : load(from + v * kWidth));
  }
  const float *a = o.a, *b = o.b, *ahead = o.ahead;
  for (int64_t p = 0; p < k; ++p, a += o.a_col, b += o.ldb, ahead += Fetch * kLine) {
    Lanes row[Vectors];
#pragma GCC unroll 2
    for (int line = 0; line < Fetch; ++line) __builtin_prefetch(ahead + line * kLine, 0, 2);
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) row[v] = Part ? load_part(b, part) : load(b + v * kWidth);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const Lanes x = splat(a[Unit ? i : i * o.a_row]);
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) sum[i][v] += x * row[v];
    }
  }
  const bool accumulate = o.accumulate;  // copies, because the compiler takes it that stores may change what o has
  const float* bias = o.bias;
  float* c = o.c;
  const int64_t ldc = o.ldc;
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i, c += ldc) {
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) {
      float* to = c + v * kWidth;
      Lanes total = sum[i][v];
      if (accumulate) total += Part ? load_part(to, part) : load(to);
      if (bias != nullptr) total += Part ? load_part(bias, part) : load(bias + v * kWidth);
      if (Part) {
        store_part(to, total, part);
      } else {
        store(to, total);
      }
    }
  }
}

/// tile<Rows, ...> for what is left of kRows.
template <int Vectors, bool Unit, bool Part, int Fetch = 0, bool Resume = false, int Rows = kRows>
void some_rows(int64_t rows, const Operands& o, int64_t k, int part) {
  if (rows == Rows) {
    tile<Rows, Vectors, Unit, Part, Fetch, Resume>(o, k, part);
  } else if constexpr (Rows > 1) {
    some_rows<Vectors, Unit, Part, Fetch, Resume, Rows - 1>(rows, o, k, part);
  }
}

/// Rows [0, m) of a column of tiles. Inlined: short tiles would wait for operands that are copied from call to call.
template <int Rows, int Vectors, bool Unit, bool Part, bool Resume>
[[gnu::always_inline]] inline void column(int64_t m, const Operands& o, int64_t k, int part) {
  int64_t i = 0;
  for (; i + Rows <= m; i += Rows) tile<Rows, Vectors, Unit, Part, 0, Resume>(o.at(i, 0), k, part);
  for (; i < m; i += kRows)
    some_rows<Vectors, Unit, Part, 0, Resume>(m - i < kRows ? m - i : kRows, o.at(i, 0), k, part);
}

/// All columns of some rows, from left to right; tiles are Rows x Vectors.
template <int Rows, int Vectors, bool Unit, bool Resume = false>
void rows(int64_t m, int64_t n, const Operands& o, int64_t k) {
  int64_t j = 0;
  for (; j + Vectors * kWidth <= n; j += Vectors * kWidth)
    column<Rows, Vectors, Unit, false, Resume>(m, o.at(0, j), k, 0);
  for (; Vectors > 1 && j + kWidth <= n; j += kWidth) column<Rows, 1, Unit, false, Resume>(m, o.at(0, j), k, 0);
  if (j < n) column<Rows, 1, Unit, true, Resume>(m, o.at(0, j), k, static_cast<int>(n - j));
}

/// Between kRows and 2 kRows rows of one piece: one tile is as high as the matrix, so that b is read once.
void few_rows(int64_t m, int64_t n, const Operands& o, int64_t k) {
  constexpr int64_t kSpan = 2 * kRows;
  float turned[2 * kRows * kSpan];
  for (int64_t p = 0; p < k; p += kSpan) {
    const int64_t depth = k - p < kSpan ? k - p : kSpan;
    Operands part = o;
    part.b += p * o.ldb;
    part.a += p * o.a_col;
    if (o.a_row != 1) {
      transpose(part.a, m, depth, o.a_row, turned, m);
      part.a = turned;
      part.a_row = 1;
      part.a_col = m;
    }
    if (p + depth < k) part.bias = nullptr;
    if (p == 0) {
      rows<2 * kRows, 1, true>(m, n, part, depth);
    } else {
      rows<2 * kRows, 1, true, true>(m, n, part, depth);
    }
  }
}

/// Some columns of c: a (Rows, Depth) b, plus c if o.accumulate; x has the numbers of a.
template <class T, int Rows, int Depth, bool Part>
[[gnu::always_inline]] inline void streamed_columns(const OperandsOf<T>& o, const LanesOf<T> (&x)[Rows][Depth],
                                                    int part) {
  LanesOf<T> sum[Rows];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    const T* c = o.c + i * o.ldc;
    sum[i] = !o.accumulate ? LanesOf<T>{} : (Part ? load_part(c, part) : load(c));
  }
#pragma GCC unroll 16
  for (int p = 0; p < Depth; ++p) {
    const T* b = o.b + p * o.ldb;
    const LanesOf<T> row = Part ? load_part(b, part) : load(b);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) sum[i] += x[i][p] * row;
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    if (Part) {
      store_part(o.c + i * o.ldc, sum[i], part);
    } else {
      store(o.c + i * o.ldc, sum[i]);
    }
  }
}

/// All columns of c for Depth rows of b.
template <class T, int Rows, int Depth>
void streamed_piece(int64_t n, const OperandsOf<T>& o) {
  LanesOf<T> x[Rows][Depth];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
    for (int p = 0; p < Depth; ++p) x[i][p] = splat(o.a[i * o.a_row + p * o.a_col]);
  }
  int64_t j = 0;
  for (; j + kWidthOf<T> <= n; j += kWidthOf<T>) streamed_columns<T, Rows, Depth, false>(o.at(0, j), x, 0);
  if (j < n) streamed_columns<T, Rows, Depth, true>(o.at(0, j), x, static_cast<int>(n - j));
}

template <class T, int Rows = kStreamedRows>
void streamed_rows(int64_t m, int64_t n, const OperandsOf<T>& o, int64_t k) {
  if (m == Rows) {
    constexpr int kStep = Rows <= 2 ? 8 : 4;
    OperandsOf<T> piece = o;
    for (int64_t p = 0; p < k;) {
      const bool whole = p + kStep <= k;
      if (whole) {
        streamed_piece<T, Rows, kStep>(n, piece);
      } else {
        streamed_piece<T, Rows, 1>(n, piece);
      }
      const int64_t step = whole ? kStep : 1;
      p += step;
      piece.a += step * o.a_col;
      piece.b += step * o.ldb;
      piece.accumulate = true;
    }
  } else if constexpr (Rows > 1) {
    streamed_rows<T, Rows - 1>(m, n, o, k);
  }
}

/// rows<kRows, 2, Unit> on copies of pieces of b, whose rows would meet in the same few places of the cache. k is at
/// most kMaxDepth.
template <bool Unit>
void copied_columns(int64_t m, int64_t n, const Operands& o, int64_t k) {
  constexpr int64_t kStep = 2 * kWidth;
  alignas(64) float piece[kMaxDepth * kStep];
  int64_t j = 0;
  for (; j + kStep <= n; j += kStep) {
    for (int64_t p = 0; p < k; ++p) {
#pragma GCC unroll 2
      for (int64_t v = 0; v < kStep; v += kWidth) store(piece + p * kStep + v, load(o.b + p * o.ldb + j + v));
    }
    Operands part = o.at(0, j);
    part.b = piece;
    part.ldb = kStep;
    column<kRows, 2, Unit, false, false>(m, part, k, 0);
  }
  if (j < n) rows<kRows, 2, Unit>(m, n - j, o.at(0, j), k);
}

template <bool Unit>
void many_rows(int64_t m, int64_t n, const Operands& o, int64_t k) {
  if (k <= 64) {  // b stays in cache, and c goes to memory once, row by row
    for (int64_t i = 0; i < m; i += kRows) rows<kRows, 2, Unit>(m - i < kRows ? m - i : kRows, n, o.at(i, 0), k);
    return;
  }
  const int64_t piece = depth_of_pieces(k);
  for (int64_t p = 0; p < k; p += piece) {  // a column of tiles reads a piece of b
    Operands part = o;
    part.b += p * o.ldb;
    part.a += p * o.a_col;
    part.accumulate = o.accumulate || p > 0;
    if (p > 0) part.bias = nullptr;
    const int64_t depth = k - p < piece ? k - p : piece;
    if (m > 2 * kRows && o.ldb % 512 == 0) {
      copied_columns<Unit>(m, n, part, depth);
    } else {
      rows<kRows, 2, Unit>(m, n, part, depth);
    }
  }
}

}  // namespace

/// c (m, n) = a b, plus c if `accumulate`, plus `bias` in each row if there is one; element (i, p) of a is at
/// a[i * a_row + p * a_col], and one of the two is 1.
void product(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_row, int64_t a_col, const float* b, int64_t ldb,
             bool accumulate, const float* bias, float* c, int64_t ldc) {
  const Operands o{a, a_row, a_col, b, ldb, accumulate, bias, c, ldc};
  if (m > kRows && m <= 2 * kRows && n >= 128 && k >= 64 && k <= kMaxDepth && !accumulate) {
    few_rows(m, n, o, k);
  } else if (a_row == 1) {
    many_rows<true>(m, n, o, k);
  } else {
    many_rows<false>(m, n, o, k);
  }
}

/// c (m, n) = a b for one piece, at most kStreamedRows rows, and a b that comes from memory. It is read from its
/// beginning to its end while c stays in cache, some of its rows at a time, so that what is fetched ahead is what comes
/// next.
template <class T>
void streamed_product(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b,
                      int64_t ldb, T* c, int64_t ldc) {
  streamed_rows(m, n, OperandsOf<T>{a, a_row, a_col, b, ldb, false, nullptr, c, ldc}, k);
}

/// c (m, n) = a (m, k) b, plus c if `accumulate`, for a contiguous panel b of kPanel columns, of which the first n
/// count. The memory after the panel, which is likely to be the next one, is fetched into the second-level cache
/// meanwhile.
void panel_product(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, bool accumulate,
                   float* c, int64_t ldc) {
  constexpr int64_t kStep = 2 * kWidth;
  const int64_t tiles = (m + kRows - 1) / kRows;
  const int64_t most = depth_of_pieces(k);
  for (int64_t p = 0; p < k; p += most) {
    const int64_t depth = k - p < most ? k - p : most, lines = depth * kPanel / kLine;
    const float *piece = b + p * kPanel, *ahead = piece + depth * kPanel;
    int64_t fetched = 0;
    for (int64_t j = 0; j < n; j += kStep) {
      for (int64_t tile = 0; tile < tiles; ++tile) {  // of about as many rows each
        const int64_t i = m * tile / tiles, rows = m * (tile + 1) / tiles - i;
        const Operands o{
            a + i * lda + p,        lda, 1, piece + j, kPanel, accumulate || p > 0, nullptr, c + i * ldc + j, ldc,
            ahead + fetched * kLine};
        if (n - j < kStep) {
          many_rows<false>(rows, n - j, o, depth);
        } else if (fetched == lines) {
          some_rows<2, false, false>(rows, o, depth, 0);
        } else if (tiles == 1) {
          some_rows<2, false, false, 2>(rows, o, depth, 0);
          fetched += 2 * depth;
        } else {
          some_rows<2, false, false, 1>(rows, o, depth, 0);
          fetched += depth;
        }
      }
    }
  }
}

namespace {

template <class T, int Rows, int Columns>
void dot_tile(int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, bool accumulate, T* c, int64_t ldc) {
  LanesOf<T> sum[Rows][Columns];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < Columns; ++j) sum[i][j] = LanesOf<T>{};
  }
  int64_t p = 0;
  for (; p + kWidthOf<T> <= k; p += kWidthOf<T>) {
    LanesOf<T> y[Columns];
#pragma GCC unroll 16
    for (int j = 0; j < Columns; ++j) y[j] = load(b + j * ldb + p);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const LanesOf<T> x = load(a + i * lda + p);
#pragma GCC unroll 16
      for (int j = 0; j < Columns; ++j) sum[i][j] += x * y[j];
    }
  }
  if (p < k) {
    const int part = static_cast<int>(k - p);
    LanesOf<T> y[Columns];
#pragma GCC unroll 16
    for (int j = 0; j < Columns; ++j) y[j] = load_part(b + j * ldb + p, part);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const LanesOf<T> x = load_part(a + i * lda + p, part);
#pragma GCC unroll 16
      for (int j = 0; j < Columns; ++j) sum[i][j] += x * y[j];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < Columns; ++j) c[i * ldc + j] = sum_of_lanes(sum[i][j]) + (accumulate ? c[i * ldc + j] : T{0});
  }
}

template <class T, int Columns>
void dot_rows(int64_t m, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, bool accumulate, T* c,
              int64_t ldc) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) dot_tile<T, 4, Columns>(k, a + i * lda, lda, b, ldb, accumulate, c + i * ldc, ldc);
  for (; i < m; ++i) dot_tile<T, 1, Columns>(k, a + i * lda, lda, b, ldb, accumulate, c + i * ldc, ldc);
}

}  // namespace

/// c (m, n) = a (m, k) b^T with b (n, k), plus c if `accumulate`.
template <class T>
void dot_product(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, bool accumulate,
                 T* c, int64_t ldc) {
  constexpr int kColumns = kWidth == 16 ? 6 : 2;
  int64_t j = 0;
  for (; m == 1 && j + 8 <= n; j += 8) dot_tile<T, 1, 8>(k, a, lda, b + j * ldb, ldb, accumulate, c + j, ldc);
  for (; j + kColumns <= n; j += kColumns)
    dot_rows<T, kColumns>(m, k, a, lda, b + j * ldb, ldb, accumulate, c + j, ldc);
  for (; j < n; ++j) dot_rows<T, 1>(m, k, a, lda, b + j * ldb, ldb, accumulate, c + j, ldc);
}

template void streamed_product(int64_t, int64_t, int64_t, const float*, int64_t, int64_t, const float*, int64_t, float*,
                               int64_t);
template void streamed_product(int64_t, int64_t, int64_t, const double*, int64_t, int64_t, const double*, int64_t,
                               double*, int64_t);
template void dot_product(int64_t, int64_t, int64_t, const float*, int64_t, const float*, int64_t, bool, float*,
                          int64_t);
template void dot_product(int64_t, int64_t, int64_t, const double*, int64_t, const double*, int64_t, bool, double*,
                          int64_t);

}  // namespace nn_cpu::NN_ISA
