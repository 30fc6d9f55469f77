// Sums over the rows of a matrix: the gradient of a bias.
#pragma once

#include <cstdint>

#include "support/vector.hpp"

namespace nn_cpu {

/// out[j] = sum over rows of x (rows, columns), in double; plus out[j] if `accumulate`.
void column_sums(const float* x, int64_t rows, int64_t columns, float* out, bool accumulate = false);
void column_sums(const double* x, int64_t rows, int64_t columns, double* out, bool accumulate = false);
void column_sums(const Bf16* x, int64_t rows, int64_t columns, float* out, bool accumulate = false);

/// The same for rows that are `ld` elements apart.
void column_sums(const float* x, int64_t rows, int64_t columns, int64_t ld, float* out);

}  // namespace nn_cpu
