// Products of matrices of 8-bit integers with exact sums, which wrap around as int32. Panels are
// those of the loops of one instruction set, which the same loops have to read.
#pragma once

#include <cstdint>

#include "support/integer_loops.hpp"

namespace nn_cpu {

/// Numbers of 8 bits, with a sign or without one.
struct Bytes {
  const uint8_t* data;
  bool is_signed;
};

/// k as rows of the left matrix have it: even.
inline int64_t integer_depth(int64_t k) { return k + k % 2; }

/// The left matrix: rows of int16, and the sum of each. Bytes that m rows take.
int64_t left_bytes(int64_t m, int64_t k);
int16_t* left_rows(void* memory);
int32_t* left_sums(void* memory, int64_t m, int64_t k);

/// Widens m rows, which are `ld` apart.
void prepare_left(const IntegerLoops& loops, Bytes a, int64_t ld, int64_t m, int64_t k, void* memory);

/// The right matrix: panels of int16, and the sum of each column where they are wanted. Bytes that n columns take.
int64_t right_bytes(const IntegerLoops& loops, int64_t n, int64_t k);
int32_t* right_sums(const IntegerLoops& loops, void* memory, int64_t n, int64_t k);

/// Cuts the matrix b (k, n) into panels.
void prepare_right(const IntegerLoops& loops, Bytes b, int64_t ld, int64_t k, int64_t n, bool with_sums, void* memory);

/// A part of a product that the calling thread computes: the rows of the left matrix from `a` on, which are `lda`
/// apart, and the columns of the right one from `first` on, a multiple of those of a panel.
struct IntegerPart {
  int64_t m, n, k;
  const int16_t* a;
  int64_t lda;
  const void* right;
  int64_t first;
};

/// c (m, n) = a b, and `terms`.
void integer_product(const IntegerLoops& loops, const IntegerPart& part, const IntegerTerms& terms, int32_t* c,
                     int64_t ldc);

/// The levels y (m, n) of a b, and `terms`: sums stay in the first-level cache.
void integer_product_levels(const IntegerLoops& loops, const IntegerPart& part, const IntegerTerms& terms,
                            const LevelScales& scales, uint8_t* y, int64_t ldy);

}  // namespace nn_cpu
