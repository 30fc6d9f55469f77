// CUDA C on the host: enough of it to run the kernels of this package block by block, for tests without a device.
// host_runtime.cpp runs the threads of a block. It is compiled once, and this header, which every kernel includes, is short:
// with the runtime in it, the runtime was nine tenths of the work for a kernel.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#define NN_HOST
#define __device__
#define __global__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
// In a section of its own, so that what one block leaves there is not there for the next one.
#define __shared__ static __attribute__((section("nn_shared")))
#define __syncthreads() emulation::block_barrier({__COUNTER__, __LINE__})
#define __shfl_xor_sync(...) emulation::shuffled_xor({__COUNTER__, __LINE__}, __VA_ARGS__)
#define __shfl_up_sync(...) emulation::shuffled_up({__COUNTER__, __LINE__}, __VA_ARGS__)
#define __shfl_down_sync(...) emulation::shuffled_down({__COUNTER__, __LINE__}, __VA_ARGS__)
using std::abs; using std::max; using std::min;
using std::acos; using std::acosh; using std::asin; using std::asinh; using std::atan; using std::atan2; using std::atanh;
using std::ceil; using std::cos; using std::cosh; using std::erf; using std::exp; using std::expm1; using std::fabs;
using std::floor; using std::fmod; using std::isinf; using std::isnan; using std::ldexp; using std::log; using std::log1p;
using std::log2; using std::pow; using std::rint;
using std::round; using std::sin; using std::sinh; using std::sqrt; using std::tan; using std::tanh; using std::trunc;
template <class V> V rsqrt(V x) { return 1 / std::sqrt(x); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline void sincos(double x, double* s, double* c) { *s = std::sin(x); *c = std::cos(x); }
inline float fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline uint32_t __umulhi(uint32_t a, uint32_t b) { return uint32_t((uint64_t(a) * b) >> 32); }
template <class V> V __ldg(const V* p) { return *p; }

struct dim3 { unsigned x = 1, y = 1, z = 1; };
extern dim3 gridDim, blockDim, blockIdx, threadIdx;
extern unsigned char* dynamic_shared;
extern "C" __attribute__((weak, visibility("hidden"))) unsigned char __start_nn_shared[], __stop_nn_shared[];

inline float float_of_bits(uint32_t bits) { float x; std::memcpy(&x, &bits, 4); return x; }
inline uint32_t bits_of_float(float x) { uint32_t bits; std::memcpy(&bits, &x, 4); return bits; }
struct half_t; struct bfloat_t;

namespace emulation {
struct Site { int number, line; };
struct Grid { uint64_t blocks[3], threads[3], shared_bytes, order, first_block, last_block; char* stacks; };
// The static shared memory of a library, which is a section of it.
struct Section { unsigned char *first, *last; };

// Run a kernel; returns nothing or what it did wrong.
const char* launch(const Grid& grid, bool with_fibers, Section shared, void (*call)(const void*), const void* kernel);
void block_barrier(Site site);
// The number of the lane of the current thread.
unsigned lane();
// Give `value` to the lanes of the warp in `mask`, and take that of the lane `source`, which must take part too.
uint64_t exchanged(Site site, unsigned mask, uint64_t value, unsigned source);

template <class Kernel>
const char* launch(const Grid& grid, bool with_fibers, const Kernel& kernel) {
  const auto call = [](const void* it) { (*static_cast<const Kernel*>(it))(); };
  return launch(grid, with_fibers, {__start_nn_shared, __stop_nn_shared}, call, &kernel);
}
template <class V>
V exchanged(Site site, unsigned mask, V value, unsigned source) {
  static_assert(sizeof(V) <= 8, "one register or two");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchanged(site, mask, bits, source);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class V>
V shuffled_xor(Site site, unsigned mask, V value, int by) { return exchanged<V>(site, mask, value, lane() ^ by); }
template <class V>
V shuffled_up(Site site, unsigned mask, V value, int by) {
  return exchanged<V>(site, mask, value, lane() >= unsigned(by) ? lane() - by : lane());
}
template <class V>
V shuffled_down(Site site, unsigned mask, V value, int by) {
  return exchanged<V>(site, mask, value, lane() + by < 32 ? lane() + by : lane());
}
}  // namespace emulation

// The conversions that the prelude leaves to the machine.
struct half_t { unsigned short bits; };
inline float load(half_t x) { _Float16 h; std::memcpy(&h, &x, 2); return float(h); }
inline void store(half_t& y, float x) { const _Float16 h = _Float16(x); std::memcpy(&y, &h, 2); }
