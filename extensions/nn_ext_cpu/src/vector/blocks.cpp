// The inner loops of large matrix products: copies of blocks of both operands in the order in which they are read, and
// the product of two such blocks (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008).
// A tile of c stays in registers; a panel of b, which is kColumns wide, in the first-level cache; a block of a in the
// second-level one. Sums are float32 in the order of k. The stack pointer is left to the compiler, so that a signal may
// arrive at any instruction.
#include "support/vector.hpp"
#include "vector/lanes.hpp"
#include "vector/tile.hpp"

namespace nn_cpu::NN_ISA {
namespace {

// A tile of kRows x 2 vectors, a row of b and a broadcast number fill the registers.
constexpr int kRows = kWidth == 16 ? 12 : (kWidth == 8 ? 6 : 4);
constexpr int kColumns = 2 * kWidth;
constexpr int kLine = 16;  // numbers in a line of cache

/// Lines of x in one piece each: to[p * Width + i] = x[i * ld + p]. Where Width is no multiple of kWidth, a vector
/// reaches into the next row of the panel, which is written after it.
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
template <int Width>
void pack_columns(const float* x, int64_t ld, int64_t lines, int64_t depth, float* to) {
  for (int64_t p = 0; p < depth; ++p, x += ld, to += Width) {
    int64_t line = 0;
    float* panel = to;
    for (; line + Width <= lines; line += Width, panel += Width * depth)
      __builtin_memcpy(panel, x + line, sizeof(float) * Width);
    if (line == lines) continue;
    for (int i = 0; i < Width; ++i) panel[i] = line + i < lines ? x[line + i] : 0.0f;
  }
}

template <int Width>
void pack(const float* x, int64_t ld, bool by_columns, int64_t lines, int64_t depth, float* to) {
  if (by_columns) {
    pack_columns<Width>(x, ld, lines, depth, to);
    return;
  }
  for (int64_t line = 0; line < lines; line += Width, to += Width * depth) {
    pack_lines<Width>(x + line * ld, ld, static_cast<int>(lines - line < Width ? lines - line : Width), depth, to);
  }
}

struct Tile {
  bool accumulate;
  const float* bias;  // a row that is added to every row of c, or nullptr
  float* c;
  int64_t ldc;
};

/// c (Rows, kColumns) = a b for panels of both. All loops over the tile are unrolled: only then do compilers keep it in
/// registers.
template <int Rows>
void multiply(const float* a, const float* b, int64_t k, const Tile& tile) {
  float* c = tile.c;
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
  const float* bias = tile.bias;
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
template <int Rows = kRows>
void multiply_some(int64_t rows, const float* a, const float* b, int64_t k, const Tile& tile) {
  if (rows == Rows) {
    multiply<Rows>(a, b, k, tile);
  } else if constexpr (Rows > 1) {
    multiply_some<Rows - 1>(rows, a, b, k, tile);
  }
}

/// The same for a tile that has only `columns` of kColumns.
void multiply_edge(int64_t rows, int64_t columns, const float* a, const float* b, int64_t k, const Tile& tile) {
  alignas(64) float whole[kRows * kColumns];
  multiply_some(rows, a, b, k, {false, nullptr, whole, kColumns});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      float total = whole[i * kColumns + j];
      if (tile.accumulate) total += tile.c[i * tile.ldc + j];
      if (tile.bias != nullptr) total += tile.bias[j];
      tile.c[i * tile.ldc + j] = total;
    }
  }
}

}  // namespace

extern const int64_t kTileRows = kRows, kTileColumns = kColumns;

/// Panels of kTileRows rows of a (rows, depth), one after the other, each by columns. Missing rows are 0.
void pack_rows(const float* a, int64_t ld, bool transposed, int64_t rows, int64_t depth, float* to) {
  pack<kRows>(a, ld, transposed, rows, depth, to);
}

/// Panels of kTileColumns columns of b (depth, columns), one after the other, each by rows. Missing columns of the
/// last one are 0.
void pack_columns(const float* b, int64_t ld, bool transposed, int64_t columns, int64_t depth, float* to) {
  pack<kColumns>(b, ld, !transposed, columns, depth, to);
}

/// c (m, n) = a b for packed a and b, plus c if `accumulate`, plus `bias` in each row if there is one. While a panel of
/// b is multiplied, the next one is fetched into the second-level cache.
void block_product(int64_t m, int64_t n, int64_t k, const float* a, const float* b, bool accumulate, const float* bias,
                   float* c, int64_t ldc) {
  for (int64_t j = 0; j < n; j += kColumns, b += kColumns * k) {
    const float *rows = a, *ahead = b + kColumns * k;
    const int64_t share = kColumns * k * kRows / m;
    for (int64_t i = 0; i < m; i += kRows, rows += kRows * k, ahead += share) {
      for (int64_t line = 0; line < share; line += kLine) __builtin_prefetch(ahead + line, 0, 2);
      const Tile tile{accumulate, bias != nullptr ? bias + j : nullptr, c + i * ldc + j, ldc};
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

}  // namespace nn_cpu::NN_ISA
