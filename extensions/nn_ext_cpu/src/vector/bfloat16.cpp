// Conversions between float32 and bfloat16, and between layouts.
#include "vector/bfloat16.hpp"

namespace nn_cpu::NN_ISA {

void widen(const Bf16* x, int64_t n, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = value(x[i]);
}

void narrow(const float* x, int64_t n, Bf16* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) put(y[i], x[i]);
}

/// y[i] = x[places[i]].
void copy_places(const float* x, const int32_t* places, int64_t n, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[places[i]];
}

void narrow_places(const float* x, const int32_t* places, int64_t n, Bf16* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) put(y[i], x[places[i]]);
}

/// Narrows x and then widens it.
void round(int64_t n, float* x) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    Bf16 y;
    put(y, x[i]);
    x[i] = value(y);
  }
}

}  // namespace nn_cpu::NN_ISA
