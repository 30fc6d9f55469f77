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

// The block with this number of a stream; elements of different streams never meet.
__device__ Words of_stream(const uint64* key, uint64 stream, uint64 block) { return philox(key, (stream << 38) + block); }

// The logarithm of a sample of the gamma distribution (G. Marsaglia, W. W. Tsang, "A simple method for generating gamma
// variables", 2000). Attempt t of element i takes block i of a stream of its own: two lanes for a normal number, one for the
// rejection, one for the step from k + 1 to k < 1.
__device__ double log_gamma(const uint64* key, uint64 i, double k, uint64 stream) {
  const double d = (k >= 1 ? k : k + 1) - 1.0 / 3, c = 1 / sqrt(9 * d), tiny = 1.0 / 16777216.0;
  for (;; ++stream) {
    const Words words = of_stream(key, stream, i);
    const double radius = sqrt(-2.0 * log(unit(words.lane[0]) + tiny));
    const double x = radius * cos(6.283185307179586 * unit(words.lane[1]));
    const double root = 1 + c * x, v = root > 0 ? root * root * root : 0.0;
    if (v <= 0) continue;
    const double log_v = log(v);
    if (log(unit(words.lane[2]) + tiny) >= x * x / 2 + d * (1 - v + log_v)) continue;
    return log(d) + log_v + (k < 1 ? log(unit(words.lane[3]) + tiny) / k : 0.0);
  }
}

extern "C" __global__ void random_gamma(int64 n, const uint64* key, T* y, double k, double theta) {
  for (int64 i = BLOCK; i < n; i += BLOCKS) store(y[i], theta * exp(log_gamma(key, i, k, 0)));
}

// a / (a + b) of two gamma samples, from their logarithms, which do not underflow.
extern "C" __global__ void random_beta(int64 n, const uint64* key, T* y, double a, double b) {
  for (int64 i = BLOCK; i < n; i += BLOCKS)
    store(y[i], 1 / (1 + exp(log_gamma(key, i, b, 1 << 20) - log_gamma(key, i, a, 0))));
}

// Inversion: the number of successes whose cumulative probability does not exceed a uniform number.
extern "C" __global__ void random_binomial(int64 n, const uint64* key, T* y, int64 trials, double log_odds, double log_none) {
  FOR_EACH_LANE({
    const double u = unit(words.lane[k]);
    double log_ratio = 0;
    double below = exp(log_none);
    int64 successes = 0;
    while (successes < trials && below <= u) {
      ++successes;
      log_ratio += log(double(trials + 1 - successes) / double(successes)) + log_odds;
      below += exp(log_ratio + log_none);
    }
    store(y[i], double(successes));
  })
}
