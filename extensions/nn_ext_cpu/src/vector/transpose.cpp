// Transposition of a matrix by square tiles in registers; see vector/tile.hpp.
#include "support/vector.hpp"
#include "vector/lanes.hpp"
#include "vector/tile.hpp"

namespace nn_cpu::NN_ISA {
namespace {

void whole_tile(const float* x, int64_t ldx, float* y, int64_t ldy) {
  Lanes rows[kWidth];
  for (int i = 0; i < kWidth; ++i) rows[i] = load(x + i * ldx);
  transpose_lanes(rows);
  for (int i = 0; i < kWidth; ++i) store(y + i * ldy, rows[i]);
}

/// A tile at the edge, of fewer rows or columns.
void part_tile(const float* x, int n_rows, int n_columns, int64_t ldx, float* y, int64_t ldy) {
  Lanes rows[kWidth];
  for (int i = 0; i < kWidth; ++i) {
    rows[i] = i >= n_rows ? Lanes{} : (n_columns == kWidth ? load(x + i * ldx) : load_part(x + i * ldx, n_columns));
  }
  transpose_lanes(rows);
  for (int i = 0; i < n_columns; ++i) {
    if (n_rows == kWidth) {
      store(y + i * ldy, rows[i]);
    } else {
      store_part(y + i * ldy, rows[i], n_rows);
    }
  }
}

}  // namespace

/// y (columns, rows) = x (rows, columns) transposed; ldx and ldy are the distances between rows.
void transpose(const float* x, int64_t rows, int64_t columns, int64_t ldx, float* y, int64_t ldy) {
  for (int64_t i = 0; i < rows; i += kWidth) {
    const int n_rows = static_cast<int>(rows - i < kWidth ? rows - i : kWidth);
    for (int64_t j = 0; j < columns; j += kWidth) {
      const int n_columns = static_cast<int>(columns - j < kWidth ? columns - j : kWidth);
      if (n_rows == kWidth && n_columns == kWidth) {
        whole_tile(x + i * ldx + j, ldx, y + j * ldy + i, ldy);
      } else {
        part_tile(x + i * ldx + j, n_rows, n_columns, ldx, y + j * ldy + i, ldy);
      }
    }
  }
}

void transpose(const double* x, int64_t rows, int64_t columns, int64_t ldx, double* y, int64_t ldy) {
  constexpr int64_t kTile = 8;
  for (int64_t i = 0; i < rows; i += kTile) {
    const int64_t i_end = rows - i < kTile ? rows : i + kTile;
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t k = i; k < i_end; ++k) y[j * ldy + k] = x[k * ldx + j];
    }
  }
}

}  // namespace nn_cpu::NN_ISA
