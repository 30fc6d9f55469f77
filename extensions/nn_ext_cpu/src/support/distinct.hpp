// The distinct elements of a list of numbers: where each one first occurs, how often it does, and which of them each
// element is.
#pragma once

#include <cstdint>
#include <vector>

#include "support/array.hpp"

namespace nn_cpu {

/// Numbers of the distinct elements, in their order.
struct Distinct {
  std::vector<int64_t> first;    // where each one first occurs
  std::vector<int64_t> counts;   // how often
  std::vector<int64_t> inverse;  // for each element of the list, its place among the distinct ones
};

/// The distinct ones of n elements, the smallest first, or as they first occur. Zeros of both signs are equal, and so
/// are all NaN, which are larger than every number. Expected O(n + U log U) for U distinct ones.
Distinct find_distinct(const void* x, DType dtype, int64_t n, bool sorted);

}  // namespace nn_cpu
