// Random numbers by Philox4x32-10 (J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11), the same
// bits as every backend draws: element i is lane i % 4 of the block with the counter (i / 4, counter) under the key
// (seed). A thread computes one block, four elements. `key` holds seed and counter on the device, so that a recorded
// graph draws new numbers at each replay. T is what floating arrays hold.

struct Words { uint32 lane[4]; };

__device__ Words philox(const uint64* key, uint64 block) {
  uint32 c0 = uint32(block), c1 = uint32(block >> 32), c2 = uint32(key[1]), c3 = uint32(key[1] >> 32);
  uint32 k0 = uint32(key[0]), k1 = uint32(key[0] >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint32 high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
    const uint32 high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

__device__ double unit(uint32 word) { return double(word >> 8) * (1.0 / 16777216.0); }

#define BLOCK (blockIdx.x * int64(blockDim.x) + threadIdx.x)
#define BLOCKS (int64(gridDim.x) * blockDim.x)
#define FOR_EACH_LANE(body)                                    \
  for (int64 block = BLOCK; block * 4 < n; block += BLOCKS) {  \
    const Words words = philox(key, block);                    \
    for (int k = 0; k < 4 && block * 4 + k < n; ++k) {         \
      const int64 i = block * 4 + k;                           \
      body                                                     \
    }                                                          \
  }

// mask: `scale` where the upper 24 bits reach `threshold`, else 0; y = x mask.
extern "C" __global__ void dropout(int64 n, const uint64* key, const T* x, T* y, T* mask, uint32 threshold, R scale) {
  FOR_EACH_LANE({
    store(mask[i], (words.lane[k] >> 8) >= threshold ? scale : R(0));
    store(y[i], R(load(x[i])) * R(load(mask[i])));
  })
}

extern "C" __global__ void uniform(int64 n, const uint64* key, T* y, double low, double span) {
  FOR_EACH_LANE({ store(y[i], low + span * unit(words.lane[k])); })
}

// Box-Muller on the lanes 0, 1 and 2, 3.
extern "C" __global__ void normal(int64 n, const uint64* key, T* y, double mean, double deviation) {
  FOR_EACH_LANE({
    const double radius = sqrt(-2.0 * log(unit(words.lane[k & 2]) + 1.0 / 16777216.0));
    const double angle = 6.283185307179586 * unit(words.lane[k | 1]);
    store(y[i], mean + deviation * (radius * (k % 2 ? sin(angle) : cos(angle))));
  })
}

extern "C" __global__ void integers(int64 n, const uint64* key, int64* y, int64 low, uint64 count) {
  FOR_EACH_LANE({ y[i] = low + int64((words.lane[k] * count) >> 32); })
}
