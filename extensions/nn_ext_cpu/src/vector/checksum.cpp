// A checksum of float32 numbers by their bits: 64-bit words are mixed and multiplied in 32 independent lanes, which are
// mixed in the end. The constants are those of the hash function FNV-1a. It is there to notice changes, not to
// withstand an attacker.
#include "support/vector.hpp"

namespace nn_cpu::NN_ISA {

uint64_t checksum(const float* x, int64_t n, uint64_t seed) {
  constexpr int kLanes = 32;
  constexpr uint64_t kPrime = 0x100000001b3u;
  uint64_t lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = 0xcbf29ce484222325u + seed + static_cast<uint64_t>(i);
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    uint64_t words[kLanes];
    __builtin_memcpy(words, x + i, sizeof(words));
    for (int j = 0; j < kLanes; ++j) lanes[j] = ((lanes[j] ^ words[j]) * kPrime) ^ (lanes[j] >> 29);
  }
  for (; i < n; ++i) {
    uint32_t word = 0;
    __builtin_memcpy(&word, x + i, sizeof(word));
    lanes[i % kLanes] = (lanes[i % kLanes] ^ word) * kPrime;
  }
  uint64_t total = seed;
  for (const uint64_t lane : lanes) total = ((total ^ lane) * kPrime) ^ (total >> 31);
  return total;
}

}  // namespace nn_cpu::NN_ISA
