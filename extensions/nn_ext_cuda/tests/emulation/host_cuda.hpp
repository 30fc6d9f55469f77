// CUDA C on the host: enough of it to run the kernels of this package block by block, for tests without a device.
// The threads of a block are fibers that take turns at barriers and at exchanges within a warp, so a run is
// deterministic, and a kernel that needs a barrier where it has none gives wrong numbers.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define NN_HOST
#define __device__
#define __global__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __shared__ static
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
static dim3 gridDim, blockDim, blockIdx, threadIdx;
alignas(64) static unsigned char dynamic_shared[1 << 17];

inline float float_of_bits(uint32_t bits) { float x; std::memcpy(&x, &bits, 4); return x; }
inline uint32_t bits_of_float(float x) { uint32_t bits; std::memcpy(&bits, &x, 4); return bits; }
struct half_t; struct bfloat_t;

namespace emulation {
struct Fiber { ucontext_t context; dim3 index; bool done; unsigned block_waits, warp_waits; };
static std::vector<Fiber> fibers;
static std::vector<char> stacks;
static ucontext_t scheduler;
static unsigned current;
static std::function<void()> body;
static uint64_t exchange[2048];
constexpr size_t kStack = 64 * 1024;

inline void entry() { body(); fibers[current].done = true; swapcontext(&fibers[current].context, &scheduler); }
inline void yield() { const unsigned self = current; swapcontext(&fibers[self].context, &scheduler); threadIdx = fibers[self].index; }
inline void wait(unsigned Fiber::*count, unsigned first, unsigned last) {
  const unsigned mine = ++(fibers[current].*count);
  for (bool all = false; !all;) {
    all = true;
    for (unsigned k = first; k < last; ++k) all = all && (fibers[k].done || fibers[k].*count >= mine);
    if (!all) yield();
  }
}
inline void block_barrier() { wait(&Fiber::block_waits, 0, fibers.size()); }
inline void warp_barrier() {
  const unsigned first = current / 32 * 32;
  wait(&Fiber::warp_waits, first, std::min<unsigned>(first + 32, fibers.size()));
}
inline void run_block(bool with_fibers) {
  const unsigned n = blockDim.x * blockDim.y * blockDim.z;
  auto index = [](unsigned k) { return dim3{k % blockDim.x, k / blockDim.x % blockDim.y, k / blockDim.x / blockDim.y}; };
  if (!with_fibers) {
    for (unsigned k = 0; k < n; ++k) { threadIdx = index(k); body(); }
    return;
  }
  fibers.assign(n, Fiber{});
  stacks.resize(n * kStack);
  for (unsigned k = 0; k < n; ++k) {
    getcontext(&fibers[k].context);
    fibers[k].context.uc_stack.ss_sp = &stacks[k * kStack];
    fibers[k].context.uc_stack.ss_size = kStack;
    fibers[k].context.uc_link = &scheduler;
    fibers[k].index = index(k);
    makecontext(&fibers[k].context, entry, 0);
  }
  for (bool alive = true; alive;) {
    alive = false;
    for (current = 0; current < n; ++current) {
      if (fibers[current].done) continue;
      alive = true;
      threadIdx = fibers[current].index;
      swapcontext(&scheduler, &fibers[current].context);
    }
  }
}
inline void launch(const unsigned* dims, bool with_fibers, std::function<void()> kernel) {
  gridDim = {dims[0], dims[1], dims[2]};
  blockDim = {dims[3], dims[4], dims[5]};
  body = std::move(kernel);
  for (unsigned z = 0; z < gridDim.z; ++z)
    for (unsigned y = 0; y < gridDim.y; ++y)
      for (unsigned x = 0; x < gridDim.x; ++x) {
        blockIdx = {x, y, z};
        std::memset(dynamic_shared, 0xff, sizeof dynamic_shared);  // NaN: shared memory is not zero
        run_block(with_fibers);
      }
}
template <class V>
V exchanged(V value, unsigned lane) {
  static_assert(sizeof(V) <= 8, "one register or two");
  std::memcpy(&exchange[current], &value, sizeof value);
  warp_barrier();
  const unsigned source = current / 32 * 32 + lane % 32;
  V result = value;
  if (source < fibers.size()) std::memcpy(&result, &exchange[source], sizeof result);
  warp_barrier();
  return result;
}
}  // namespace emulation

inline void __syncthreads() { emulation::block_barrier(); }
template <class V>
V __shfl_xor_sync(unsigned, V value, int mask) { return emulation::exchanged(value, (emulation::current % 32) ^ mask); }
template <class V>
V __shfl_up_sync(unsigned, V value, int by) {
  const unsigned lane = emulation::current % 32;
  return emulation::exchanged(value, lane >= unsigned(by) ? lane - by : lane);
}
template <class V>
V __shfl_down_sync(unsigned, V value, int by) {
  const unsigned lane = emulation::current % 32;
  return emulation::exchanged(value, lane + by < 32 ? lane + by : lane);
}

// The conversions that the prelude leaves to the machine.
struct half_t { unsigned short bits; };
inline float load(half_t x) { _Float16 h; std::memcpy(&h, &x, 2); return float(h); }
inline void store(half_t& y, float x) { const _Float16 h = _Float16(x); std::memcpy(&y, &h, 2); }
