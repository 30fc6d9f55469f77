// The inner loops of large matrix products: copies of blocks of both operands in the order in which they are read, and
// the product of two such blocks (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008).
// A tile of c stays in registers; a panel of b, which is kColumns wide, in the first-level cache; a block of a in the
// second-level one. Sums are of the type of the operands, in the order of k. The stack pointer is left to the compiler,
// so that a signal may arrive at any instruction.
#include "support/vector.hpp"
#include "vector/lanes.hpp"
#include "vector/tile.hpp"

namespace nn_cpu::NN_ISA {
namespace {

// A tile of kRows x 2 vectors, a row of b and a broadcast number fill the registers.
constexpr int kRows = kWidth == 16 ? 12 : (kWidth == 8 ? 6 : 4);
template <class T>
constexpr int kColumns = 2 * kWidthOf<T>;
template <class T>
constexpr int kLine = 64 / sizeof(T);  // numbers in a line of cache

/// Lines of x in one piece each: to[p * Width + i] = x[i * ld + p]. Where Width is no multiple of kWidth, a vector
/// reaches into the next row of the panel, which is written after it.
template <int Width>
void pack_lines(const double* x, int64_t ld, int count, int64_t depth, double* to) {
  for (int64_t p = 0; p < depth; ++p, to += Width) {
    for (int i = 0; i < Width; ++i) to[i] = i < count ? x[i * ld + p] : 0.0;
  }
}

template <int Width>
void pack_lines(const float* x, int64_t ld, int count, int64_t depth, float* to) {
  for (int64_t p = 0; p < depth; p += kWidth) {
    const int part = static_cast<int>(depth - p < kWidth ? depth - p : kWidth);
    for (int first = 0; first < Width; first += kWidth) {
      Lanes rows[kWidth];
#pragma GCC unroll 16
      for (int i = 0; i < kWidth; ++i) {
        const float* from = x + (first + i) * ld + p;
        rows[i] = first + i >= count ? Lanes{} : (part == kWidth ? load(from) : load_part(from, part));
      }
      transpose_lanes(rows);
      for (int i = 0; i < part; ++i) {
        float* row = to + (p + i) * Width + first;
        if (row + kWidth <= to + depth * Width) {
          store(row, rows[i]);
        } else {
          __builtin_memcpy(row, &rows[i], sizeof(float) * (Width - first < kWidth ? Width - first : kWidth));
        }
      }
    }
  }
}

/// Lines of x next to each other: to[line / Width * Width * depth + p * Width + line % Width] = x[p * ld + line]. Each
/// row of x is read once, from left to right.
template <int Width, class T>
void pack_columns(const T* x, int64_t ld, int64_t lines, int64_t depth, T* to) {
  for (int64_t p = 0; p < depth; ++p, x += ld, to += Width) {
    int64_t line = 0;
    T* panel = to;
    for (; line + Width <= lines; line += Width, panel += Width * depth)
      __builtin_memcpy(panel, x + line, sizeof(T) * Width);
    if (line == lines) continue;
    for (int i = 0; i < Width; ++i) panel[i] = line + i < lines ? x[line + i] : T{0};
  }
}

template <int Width, class T>
void pack(const T* x, int64_t ld, bool by_columns, int64_t lines, int64_t depth, T* to) {
  if (by_columns) {
    pack_columns<Width>(x, ld, lines, depth, to);
    return;
  }
  for (int64_t line = 0; line < lines; line += Width, to += Width * depth) {
    pack_lines<Width>(x + line * ld, ld, static_cast<int>(lines - line < Width ? lines - line : Width), depth, to);
  }
}

template <class T>
struct Tile {
  bool accumulate;
  const T* bias;  // a row that is added to every row of c, or nullptr
  T* c;
  int64_t ldc;
};

/// c (Rows, kColumns<T>) = a b for panels of both. All loops over the tile are unrolled: only then do compilers keep it
/// in registers.
template <int Rows, class T>
void multiply(const T* a, const T* b, int64_t k, const Tile<T>& tile) {
  using Lanes = LanesOf<T>;
  constexpr int kWidth = kWidthOf<T>, kColumns = NN_ISA::kColumns<T>;
  T* c = tile.c;
  const int64_t ldc = tile.ldc;
  Lanes sum[Rows][2];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    sum[i][0] = sum[i][1] = Lanes{};
    __builtin_prefetch(c + i * ldc, 1);
    __builtin_prefetch(c + i * ldc + kColumns - 1, 1);
  }
#pragma GCC unroll 4
  for (int64_t p = 0; p < k; ++p, a += kRows, b += kColumns) {
    const Lanes b0 = load(b), b1 = load(b + kWidth);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const Lanes x = splat(a[i]);
      sum[i][0] += x * b0;
      sum[i][1] += x * b1;
    }
  }
  const bool accumulate = tile.accumulate;
  const T* bias = tile.bias;
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i, c += ldc) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      Lanes total = sum[i][v];
      if (accumulate) total += load(c + v * kWidth);
      if (bias != nullptr) total += load(bias + v * kWidth);
      store(c + v * kWidth, total);
    }
  }
}

/// multiply<Rows> for what is left of kRows.
template <int Rows = kRows, class T>
void multiply_some(int64_t rows, const T* a, const T* b, int64_t k, const Tile<T>& tile) {
  if (rows == Rows) {
    multiply<Rows>(a, b, k, tile);
  } else if constexpr (Rows > 1) {
    multiply_some<Rows - 1>(rows, a, b, k, tile);
  }
}

/// The same for a tile that has only `columns` of kColumns.
template <class T>
void multiply_edge(int64_t rows, int64_t columns, const T* a, const T* b, int64_t k, const Tile<T>& tile) {
  constexpr int kColumns = NN_ISA::kColumns<T>;
  alignas(64) T whole[kRows * kColumns];
  multiply_some(rows, a, b, k, Tile<T>{false, nullptr, whole, kColumns});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      T total = whole[i * kColumns + j];
      if (tile.accumulate) total += tile.c[i * tile.ldc + j];
      if (tile.bias != nullptr) total += tile.bias[j];
      tile.c[i * tile.ldc + j] = total;
    }
  }
}

}  // namespace

extern const int64_t kTileRows = kRows;

template <class T>
int64_t tile_columns() {
  return kColumns<T>;
}

/// Panels of kTileRows rows of a (rows, depth), one after the other, each by columns. Missing rows are 0.
template <class T>
void pack_rows(const T* a, int64_t ld, bool transposed, int64_t rows, int64_t depth, T* to) {
  pack<kRows>(a, ld, transposed, rows, depth, to);
}

/// Panels of tile_columns() columns of b (depth, columns), one after the other, each by rows. Missing columns of the
/// last one are 0.
template <class T>
void pack_columns(const T* b, int64_t ld, bool transposed, int64_t columns, int64_t depth, T* to) {
  pack<kColumns<T>>(b, ld, !transposed, columns, depth, to);
}

/// c (m, n) = a b for packed a and b, plus c if `accumulate`, plus `bias` in each row if there is one. While a panel of
/// b is multiplied, the next one is fetched into the second-level cache.
template <class T>
void block_product(int64_t m, int64_t n, int64_t k, const T* a, const T* b, bool accumulate, const T* bias, T* c,
                   int64_t ldc) {
  constexpr int kColumns = NN_ISA::kColumns<T>;
  for (int64_t j = 0; j < n; j += kColumns, b += kColumns * k) {
    const T *rows = a, *ahead = b + kColumns * k;
    const int64_t share = kColumns * k * kRows / m;
    for (int64_t i = 0; i < m; i += kRows, rows += kRows * k, ahead += share) {
      for (int64_t line = 0; line < share; line += kLine<T>) __builtin_prefetch(ahead + line, 0, 2);
      const Tile<T> tile{accumulate, bias != nullptr ? bias + j : nullptr, c + i * ldc + j, ldc};
      const int64_t height = m - i < kRows ? m - i : kRows;
      if (n - j < kColumns) {
        multiply_edge(height, n - j, rows, b, k, tile);
      } else if (height == kRows) {
        multiply<kRows>(rows, b, k, tile);
      } else {
        multiply_some(height, rows, b, k, tile);
      }
    }
  }
}

template int64_t tile_columns<float>();
template void pack_rows<float>(const float*, int64_t, bool, int64_t, int64_t, float*);
template void pack_columns<float>(const float*, int64_t, bool, int64_t, int64_t, float*);
template void block_product<float>(int64_t, int64_t, int64_t, const float*, const float*, bool, const float*, float*,
                                   int64_t);
template int64_t tile_columns<double>();
template void pack_rows<double>(const double*, int64_t, bool, int64_t, int64_t, double*);
template void pack_columns<double>(const double*, int64_t, bool, int64_t, int64_t, double*);
template void block_product<double>(int64_t, int64_t, int64_t, const double*, const double*, bool, const double*,
                                    double*, int64_t);

}  // namespace nn_cpu::NN_ISA
