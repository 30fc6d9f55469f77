#include "support/blocked_product.hpp"

#include <algorithm>

#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kRows = 192;                          // a block of a with these rows stays in the second-level cache
constexpr int64_t kMaxRows = 2048, kMaxColumns = 3072;  // of a and b that are packed at a time
constexpr int64_t kPanels = 8;      // panels of b that are packed at a time where only one block of a reads them
constexpr double kGrain = 4.4e6;    // bytes of products of elements that are worth a thread's while
constexpr int64_t kPiecesEach = 4;  // pieces for a thread, so that a slow one holds up the others for a piece only

int64_t parts_of(int64_t length, int64_t most) { return (length + most - 1) / most; }

/// Cuts [0, length) into pieces of about the same size: multiples of `step`, and at most about `most`.
struct Cut {
  int64_t length, size, count;

  Cut(int64_t length, int64_t most, int64_t step)
      : length(length),
        size(parts_of(parts_of(length, parts_of(length, most)), step) * step),
        count(parts_of(length, size)) {}

  int64_t start(int64_t i) const { return i * size; }
  int64_t width(int64_t i) const { return std::min(size, length - i * size); }
};

/// Part of an operand.
template <class T>
MatrixOf<T> at(const MatrixOf<T>& matrix, int64_t row, int64_t column) {
  const int64_t place = matrix.transposed ? column * matrix.ld + row : row * matrix.ld + column;
  return {matrix.data + place, matrix.ld, matrix.transposed};
}

template <class T>
struct Result {
  T* c;
  int64_t ldc;
  bool accumulate;
  const T* bias;  // or nullptr

  Result at(int64_t row, int64_t column) const {
    return {c + row * ldc + column, ldc, accumulate, bias != nullptr ? bias + column : nullptr};
  }
};

/// c (m, n) = a b for one piece of the sum, and an a of at most kMaxRows rows.
template <class T>
class Slice {
 public:
  Slice(int64_t m, int64_t n, int64_t k, MatrixOf<T> a, MatrixOf<T> b, Result<T> result)
      : m_(m), n_(n), k_(k), a_(a), b_(b), result_(result) {}

  /// Packs rows of a into `packed`.
  void pack_a(Team& team, int64_t stage, T* packed) const {
    const auto body = [&](int64_t begin, int64_t end) {
      const MatrixOf<T> part = at(a_, begin, 0);
      table_.pack_rows(part.data, part.ld, part.transposed, end - begin, k_, packed + begin * k_);
    };
    team.share(stage, m_, body, table_.tile_rows);
  }

  /// Packs all columns of b into `packed`.
  void pack_b(Team& team, int64_t stage, T* packed) const {
    const auto body = [&](int64_t begin, int64_t end) { pack_columns(begin, end - begin, packed + begin * k_); };
    team.share(stage, n_, body, table_.tile_columns);
  }

  /// Multiplies packed operands; b is packed piece by piece if `packed_b` is nullptr.
  void multiply(Team& team, int64_t stage, int threads, const T* packed_a, const T* packed_b) const {
    const Cut rows(m_, kRows, table_.tile_rows);
    const int64_t parts = threads > 1 ? parts_of(kPiecesEach * threads, rows.count) : 1,
                  most = packed_b != nullptr ? parts_of(n_, parts) : kPanels * table_.tile_columns;
    const Cut columns(n_, most, table_.tile_columns);
    team.share(stage, rows.count * columns.count, [&](int64_t begin, int64_t end) {
      Scratch scratch(packed_b != nullptr ? 0 : Scratch::bytes<T>(columns.size * k_));
      auto* own = packed_b != nullptr ? nullptr : scratch.take<T>(columns.size * k_);
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t i = piece / columns.count, j = piece % columns.count, column = columns.start(j);
        if (own != nullptr) pack_columns(column, columns.width(j), own);
        const Result<T> result = result_.at(rows.start(i), column);
        table_.block_product(rows.width(i), columns.width(j), k_, packed_a + rows.start(i) * k_,
                             own != nullptr ? own : packed_b + column * k_, result.accumulate, result.bias, result.c,
                             result.ldc);
      }
    });
  }

 private:
  void pack_columns(int64_t column, int64_t count, T* to) const {
    const MatrixOf<T> part = at(b_, 0, column);
    table_.pack_columns(part.data, part.ld, part.transposed, count, k_, to);
  }

  const NumberLoops<T>& table_ = number_loops<T>();
  int64_t m_, n_, k_;
  MatrixOf<T> a_, b_;
  Result<T> result_;
};

}  // namespace

template <class T>
void blocked_product(int64_t m, int64_t n, int64_t k, MatrixOf<T> a, MatrixOf<T> b, bool accumulate, T* c, int64_t ldc,
                     const T* bias) {
  const NumberLoops<T>& table = number_loops<T>();
  const Cut rows(m, kMaxRows, table.tile_rows), columns(n, kMaxColumns, table.tile_columns), depth(k, kMaxDepth, 8);
  const bool shares_b = m > kRows;
  const int64_t size_of_a = rows.size * depth.size, size_of_b = shares_b ? columns.size * depth.size : 0;
  Scratch scratch(Scratch::bytes<T>(size_of_a) + Scratch::bytes<T>(size_of_b));
  auto *packed_a = scratch.take<T>(size_of_a), *packed_b = shares_b ? scratch.take<T>(size_of_b) : nullptr;
  const double work = sizeof(T) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const int threads = static_cast<int>(std::clamp(work / kGrain, 1.0, static_cast<double>(num_threads())));
  as_team(threads, columns.count * depth.count * (2 * rows.count + 1), [&](Team& team) {
    int64_t stage = 0;
    for (int64_t j = 0; j < columns.count; ++j) {
      for (int64_t p = 0; p < depth.count; ++p) {
        for (int64_t i = 0; i < rows.count; ++i) {
          const int64_t row = rows.start(i), first = depth.start(p), column = columns.start(j);
          const Result<T> result{c, ldc, accumulate || p > 0, p > 0 ? nullptr : bias};
          const Slice<T> slice(rows.width(i), columns.width(j), depth.width(p), at(a, row, first), at(b, first, column),
                               result.at(row, column));
          if (shares_b && i == 0) slice.pack_b(team, stage++, packed_b);
          slice.pack_a(team, stage++, packed_a);
          slice.multiply(team, stage++, threads, packed_a, packed_b);
        }
      }
    }
  });
}

template void blocked_product(int64_t, int64_t, int64_t, MatrixOf<float>, MatrixOf<float>, bool, float*, int64_t,
                              const float*);
template void blocked_product(int64_t, int64_t, int64_t, MatrixOf<double>, MatrixOf<double>, bool, double*, int64_t,
                              const double*);

}  // namespace nn_cpu
