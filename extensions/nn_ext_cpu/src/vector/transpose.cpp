// Transposition of a matrix by square tiles in registers: each of log2(lanes) steps swaps the off-diagonal halves of
// blocks.
#include <utility>

#include "support/vector.hpp"
#include "vector/lanes.hpp"

namespace nn_cpu::NN_ISA {
namespace {

/// The lanes with these numbers: those of `first` are 0 to kWidth - 1, those of `second` follow.
template <int... Number>
inline Lanes chosen(Lanes first, Lanes second) {
#ifdef __clang__
  return __builtin_shufflevector(first, second, Number...);
#else  // before version 12 GCC has only this one
  using Index = int32_t __attribute__((vector_size(kWidth * 4)));
  return __builtin_shuffle(first, second, Index{Number...});
#endif
}

/// One step of the transposition of a tile: rows i and i + Half exchange the lanes whose number differs from theirs in
/// the bit Half.
template <int Half, int... J>
inline void exchange(Lanes* rows, std::integer_sequence<int, J...>) {
  for (int i = 0; i < kWidth; ++i) {
    if ((i & Half) != 0) continue;
    const Lanes first = rows[i], second = rows[i + Half];
    rows[i] = chosen<((J & Half) == 0 ? J : kWidth + J - Half)...>(first, second);
    rows[i + Half] = chosen<((J & Half) == 0 ? J + Half : kWidth + J)...>(first, second);
  }
}

inline void transpose_lanes(Lanes* rows) {
  constexpr std::make_integer_sequence<int, kWidth> lanes{};
  if constexpr (kWidth > 8) exchange<8>(rows, lanes);
  if constexpr (kWidth > 4) exchange<4>(rows, lanes);
  exchange<2>(rows, lanes);
  exchange<1>(rows, lanes);
}

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

}  // namespace nn_cpu::NN_ISA
