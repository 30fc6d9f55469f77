#include "support/integer_product.hpp"

#include <algorithm>
#include <vector>

namespace nn_cpu {
namespace {

constexpr int64_t kPanelBytes = 16384;  // of a panel that stays in the first-level cache
constexpr int64_t kRows = 96;           // of a piece of the left matrix that stays in the second-level cache
constexpr int64_t kMostColumns = 32;    // of a panel
constexpr int64_t kLeftBytes = 262144;  // of a left matrix that stays in the second-level cache

int64_t rounded(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

int64_t panel_bytes(const IntegerLoops& loops, int64_t n, int64_t k) {
  return rounded(rounded(n, loops.columns) * integer_depth(k) * 2, 64);
}

/// Numbers of a column that are multiplied before those of the next panel are.
int64_t piece_depth(const IntegerLoops& loops) { return kPanelBytes / 2 / loops.columns; }

const int32_t* moved(const int32_t* vector, int64_t by) { return vector == nullptr ? nullptr : vector + by; }

/// The terms of the elements from row i and column j on.
IntegerTerms at(const IntegerTerms& terms, int64_t i, int64_t j) {
  IntegerTerms part{moved(terms.rows, i), moved(terms.columns, j), {}};
  for (int k = 0; k < 2; ++k) part.outer[k] = {moved(terms.outer[k].rows, i), moved(terms.outer[k].columns, j)};
  return part;
}

}  // namespace

int64_t left_bytes(int64_t m, int64_t k) {
  return rounded(m * integer_depth(k) * 2, 64) + m * static_cast<int64_t>(sizeof(int32_t));
}

int16_t* left_rows(void* memory) { return static_cast<int16_t*>(memory); }

int32_t* left_sums(void* memory, int64_t m, int64_t k) {
  return reinterpret_cast<int32_t*>(static_cast<char*>(memory) + rounded(m * integer_depth(k) * 2, 64));
}

void prepare_left(const IntegerLoops& loops, Bytes a, int64_t ld, int64_t m, int64_t k, void* memory) {
  int16_t* rows = left_rows(memory);
  int32_t* sums = left_sums(memory, m, k);
  const int64_t depth = integer_depth(k);
  for (int64_t i = 0; i < m; ++i, rows += depth) {
    sums[i] = loops.widen(a.data + i * ld, k, a.is_signed, rows);
    if (depth > k) rows[k] = 0;
  }
}

int64_t right_bytes(const IntegerLoops& loops, int64_t n, int64_t k) {
  return panel_bytes(loops, n, k) + n * static_cast<int64_t>(sizeof(int32_t));
}

int32_t* right_sums(const IntegerLoops& loops, void* memory, int64_t n, int64_t k) {
  return reinterpret_cast<int32_t*>(static_cast<char*>(memory) + panel_bytes(loops, n, k));
}

void prepare_right(const IntegerLoops& loops, Bytes b, int64_t ld, int64_t k, int64_t n, bool with_sums, void* memory) {
  loops.pack(b.data, ld, k, n, b.is_signed, static_cast<int16_t*>(memory));
  if (!with_sums) return;
  const std::vector<int16_t> ones(static_cast<size_t>(integer_depth(k)), int16_t{1});
  integer_product(loops, {1, n, k, ones.data(), integer_depth(k), memory, 0}, {}, right_sums(loops, memory, n, k), n);
}

void integer_product(const IntegerLoops& loops, const IntegerPart& part, const IntegerTerms& terms, int32_t* c,
                     int64_t ldc) {
  const int64_t depth = integer_depth(part.k), step = piece_depth(loops);
  const auto* panels = static_cast<const int16_t*>(part.right) + part.first * depth;
  for (int64_t i = 0; i < part.m; i += kRows) {
    const int64_t rows = std::min(kRows, part.m - i);
    for (int64_t p = 0; p < std::max<int64_t>(depth, 1); p += step) {
      const int64_t piece = std::min(step, depth - p);
      const bool last = p + step >= depth;
      for (int64_t j = 0; j < part.n; j += loops.columns) {
        const int64_t columns = std::min(loops.columns, part.n - j);
        loops.product(rows, columns, piece, part.a + i * part.lda + p, part.lda, panels + j * depth + p * loops.columns,
                      2 * loops.columns, p > 0, c + i * ldc + j, ldc);
        if (last) loops.adjust(rows, columns, at(terms, i, j), c + i * ldc + j, ldc);
      }
    }
  }
}

void integer_product_levels(const IntegerLoops& loops, const IntegerPart& part, const IntegerTerms& terms,
                            const LevelScales& scales, uint8_t* y, int64_t ldy) {
  const int64_t depth = integer_depth(part.k), step = piece_depth(loops), width = loops.columns;
  const auto* panels = static_cast<const int16_t*>(part.right) + part.first * depth;
  const auto block = [&](int64_t i, int64_t j) {
    int32_t sums[kRows * kMostColumns];
    const int64_t rows = std::min(kRows, part.m - i);
    for (int64_t p = 0; p < std::max<int64_t>(depth, 1); p += step) {
      loops.product(rows, width, std::min(step, depth - p), part.a + i * part.lda + p, part.lda,
                    panels + j * depth + p * width, 2 * width, p > 0, sums, width);
    }
    LevelScales own = scales;
    if (own.rows != nullptr) own.rows += i;
    if (own.columns != nullptr) own.columns += j;
    loops.requantize(rows, std::min(width, part.n - j), at(terms, i, j), sums, width, own, y + i * ldy + j, ldy);
  };
  // what is larger than the second-level cache is read once
  if (part.m * depth * 2 <= kLeftBytes) {
    for (int64_t j = 0; j < part.n; j += width) {
      for (int64_t i = 0; i < part.m; i += kRows) block(i, j);
    }
  } else {
    for (int64_t i = 0; i < part.m; i += kRows) {
      for (int64_t j = 0; j < part.n; j += width) block(i, j);
    }
  }
}

}  // namespace nn_cpu
