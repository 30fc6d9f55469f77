// Sums over the rows of a matrix: the gradient of a bias.
#pragma once

#include <cstdint>

namespace nn_cpu {

/// out[j] = sum over rows of x (rows, columns), in double; plus out[j] if `accumulate`.
void column_sums(const float* x, int64_t rows, int64_t columns, float* out, bool accumulate = false);

}  // namespace nn_cpu
