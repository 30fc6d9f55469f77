// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011): ten rounds of two 32 x 32 -> 64 bit products for each block of
// four words. Blocks are independent, so that a vector of them is computed at a time.
#include "support/vector.hpp"

namespace nn_cpu::NN_ISA {

/// words[4 * i + lane] of blocks first, first + 1, ...; the upper half of the counter and the key are `counter` and
/// `seed`.
void philox(uint64_t seed, uint64_t counter, uint64_t first, int64_t n_blocks, uint32_t* words) {
#pragma omp simd
  for (int64_t i = 0; i < n_blocks; ++i) {
    const uint64_t block = first + static_cast<uint64_t>(i);
    uint64_t c0 = block & 0xffffffffu, c1 = block >> 32, c2 = counter & 0xffffffffu, c3 = counter >> 32;
    uint64_t k0 = seed & 0xffffffffu, k1 = seed >> 32;
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = c0 * 0xd2511f53u, p1 = c2 * 0xcd9e8d57u;
      c0 = (p1 >> 32) ^ c1 ^ k0;
      c2 = (p0 >> 32) ^ c3 ^ k1;
      c1 = p1 & 0xffffffffu;
      c3 = p0 & 0xffffffffu;
      k0 = (k0 + 0x9e3779b9u) & 0xffffffffu;
      k1 = (k1 + 0xbb67ae85u) & 0xffffffffu;
    }
    words[4 * i] = static_cast<uint32_t>(c0);
    words[4 * i + 1] = static_cast<uint32_t>(c1);
    words[4 * i + 2] = static_cast<uint32_t>(c2);
    words[4 * i + 3] = static_cast<uint32_t>(c3);
  }
}

/// y = x and mask = scale where the upper 24 bits of the word reach `threshold`, else 0.
void drop(const float* x, const uint32_t* words, uint32_t threshold, float scale, int64_t n, float* y, float* mask) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float m = static_cast<int32_t>(words[i] >> 8) >= static_cast<int32_t>(threshold) ? scale : 0.0f;
    mask[i] = m;
    y[i] = x[i] * m;
  }
}

}  // namespace nn_cpu::NN_ISA
