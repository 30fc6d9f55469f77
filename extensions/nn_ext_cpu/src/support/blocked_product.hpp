// Large matrix products, block by block.
#pragma once

#include "support/gemm.hpp"

namespace nn_cpu {

/// gemm() for products that pay for copies of both operands: O(m n k) time, less than 6 MB of working memory. Each
/// element is summed in the order of k, on any number of threads.
template <class T>
void blocked_product(int64_t m, int64_t n, int64_t k, MatrixOf<T> a, MatrixOf<T> b, bool accumulate, T* c, int64_t ldc,
                     const T* bias);

}  // namespace nn_cpu
