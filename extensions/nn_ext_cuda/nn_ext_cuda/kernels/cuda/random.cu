// Random numbers by Philox; see philox.cuh. A thread computes one block, four elements. T is what floating arrays hold.

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

extern "C" __global__ void dropout_mask(int64 n, const uint64* key, T* y, uint32 threshold, R scale) {
  FOR_EACH_LANE({ store(y[i], (words.lane[k] >> 8) >= threshold ? scale : R(0)); })
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
