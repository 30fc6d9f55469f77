// Transposition of a matrix by square tiles in registers; see vector/tile.hpp.
#include "support/vector.hpp"
#include "vector/lanes.hpp"
#include "vector/tile.hpp"

namespace nn_cpu::NN_ISA {
namespace {

template <class T>
void whole_tile(const T* x, int64_t ldx, T* y, int64_t ldy) {
  constexpr int kLanes = kWidthOf<T>;
  LanesOf<T> rows[kLanes];
  for (int i = 0; i < kLanes; ++i) rows[i] = load(x + i * ldx);
  transpose_lanes(rows);
  for (int i = 0; i < kLanes; ++i) store(y + i * ldy, rows[i]);
}

/// A tile at the edge, of fewer rows or columns.
template <class T>
void part_tile(const T* x, int n_rows, int n_columns, int64_t ldx, T* y, int64_t ldy) {
  constexpr int kLanes = kWidthOf<T>;
  LanesOf<T> rows[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    rows[i] =
        i >= n_rows ? LanesOf<T>{} : (n_columns == kLanes ? load(x + i * ldx) : load_part(x + i * ldx, n_columns));
  }
  transpose_lanes(rows);
  for (int i = 0; i < n_columns; ++i) {
    if (n_rows == kLanes) {
      store(y + i * ldy, rows[i]);
    } else {
      store_part(y + i * ldy, rows[i], n_rows);
    }
  }
}

/// Rows [0, n_rows) of a column of tiles.
template <class T>
void tiles(const T* x, int64_t n_rows, int64_t columns, int64_t ldx, T* y, int64_t ldy) {
  constexpr int64_t kLanes = kWidthOf<T>;
  for (int64_t j = 0; j < columns; j += kLanes) {
    const int n_columns = static_cast<int>(columns - j < kLanes ? columns - j : kLanes);
    if (n_rows == kLanes && n_columns == kLanes) {
      whole_tile(x + j, ldx, y + j * ldy, ldy);
    } else {
      part_tile(x + j, static_cast<int>(n_rows), n_columns, ldx, y + j * ldy, ldy);
    }
  }
}

}  // namespace

/// y (columns, rows) = x (rows, columns) transposed; ldx and ldy are the distances between rows.
template <class T>
void transpose(const T* x, int64_t rows, int64_t columns, int64_t ldx, T* y, int64_t ldy) {
  constexpr int64_t kLanes = kWidthOf<T>;
  for (int64_t i = 0; i < rows; i += kLanes)
    tiles(x + i * ldx, rows - i < kLanes ? rows - i : kLanes, columns, ldx, y + i, ldy);
}

template void transpose(const float*, int64_t, int64_t, int64_t, float*, int64_t);
template void transpose(const double*, int64_t, int64_t, int64_t, double*, int64_t);

}  // namespace nn_cpu::NN_ISA
