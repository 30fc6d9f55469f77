// CUDA C on the host: enough of it to run the kernels of this package block by block, for tests without a device.
// The threads of a block are fibers. One runs until it waits at a barrier or at an exchange within its warp; then another
// that is ready runs, in the order of the launch: a kernel that needs a barrier where it has none gives other numbers in
// another order. A wait that no thread can end is an error, with the lines at which threads wait.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

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
static dim3 gridDim, blockDim, blockIdx, threadIdx;
static unsigned char* dynamic_shared;
extern "C" __attribute__((weak, visibility("hidden"))) unsigned char __start_nn_shared[], __stop_nn_shared[];

inline float float_of_bits(uint32_t bits) { float x; std::memcpy(&x, &bits, 4); return x; }
inline uint32_t bits_of_float(float x) { uint32_t bits; std::memcpy(&bits, &x, 4); return bits; }
struct half_t; struct bfloat_t;

namespace emulation {
#ifdef __SANITIZE_ADDRESS__
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr size_t kStack = 256 * 1024;
constexpr size_t kGuard = kSanitized ? 0 : 64;  // bytes after dynamic shared memory; the sanitizer has its own
constexpr unsigned kMaxThreads = 1024;
enum class State { ready, waiting, done };
struct Site { int number, line; };
// What a thread waits for: all threads of the block, or those lanes of its warp that `mask` names.
struct Wait { Site site; bool of_block; unsigned mask, source; };
struct Fiber { ucontext_t context; jmp_buf place; bool begun; dim3 index; State state; Wait wait; uint64_t value, result; };

static Fiber fibers[kMaxThreads];
static unsigned n_threads, current, n_waiting, n_done;
static ucontext_t scheduler;
static jmp_buf scheduler_place;
static void (*call)(const void* kernel);
static const void* kernel_;
static std::vector<uint64_t> in_order;  // the threads of a block
static std::string failure;
static uint64_t number;

// Threads that can run.
struct Ready {
  uint64_t words[kMaxThreads / 64];
  void add(unsigned k) { words[k / 64] |= uint64_t(1) << k % 64; }
  void remove(unsigned k) { words[k / 64] &= ~(uint64_t(1) << k % 64); }
  int first_from(unsigned k) const {
    for (unsigned w = k / 64; w < kMaxThreads / 64; ++w)
      if (const uint64_t left = words[w] & (w == k / 64 ? ~uint64_t(0) << k % 64 : ~uint64_t(0))) return w * 64 + __builtin_ctzll(left);
    return -1;
  }
  int last() const {
    for (int w = kMaxThreads / 64 - 1; w >= 0; --w)
      if (words[w]) return w * 64 + 63 - __builtin_clzll(words[w]);
    return -1;
  }
};
static Ready ready;

static uint64_t drawn(uint64_t below) {
  number = number * 6364136223846793005u + 1442695040888963407u;
  return (number >> 33) % below;
}
// The order of threads and blocks: the lowest number first, the highest first, or any by the seed.
static uint64_t order;
static int next_thread() {
  if (order == 0) return ready.first_from(0);
  if (order == 1) return ready.last();
  const int k = ready.first_from(drawn(n_threads));
  return k >= 0 ? k : ready.first_from(0);
}
static std::vector<uint64_t> ordered(uint64_t first, uint64_t last) {
  std::vector<uint64_t> all(last - first);
  for (uint64_t k = first; k < last; ++k) all[k - first] = order == 1 ? last - 1 - (k - first) : k;
  for (uint64_t k = last - first; order > 1 && k > 1; --k) std::swap(all[k - 1], all[drawn(k)]);
  return all;
}

// Other threads run until the current one is resumed. Saving and restoring a place takes no system call, which the sanitizer
// cannot follow.
static void leave() {
  Fiber& self = fibers[current];
  if (kSanitized) swapcontext(&self.context, &scheduler);
  else if (!_setjmp(self.place)) _longjmp(scheduler_place, 1);
}
static void resume(unsigned k) {
  Fiber& fiber = fibers[k];
  current = k;
  threadIdx = fiber.index;
  if (kSanitized) swapcontext(&scheduler, &fiber.context);
  else if (!_setjmp(scheduler_place)) {
    if (fiber.begun) _longjmp(fiber.place, 1);
    fiber.begun = true;
    setcontext(&fiber.context);
  }
}
static void entry() {
  for (;;) {  // once for each block
    call(kernel_);
    fibers[current].state = State::done;
    ready.remove(current);
    ++n_done;
    leave();
  }
}

static unsigned warp_of(unsigned k) { return k / 32 * 32; }
static bool waits_for_the_same(const Fiber& fiber, const Wait& wait) {
  return fiber.state == State::waiting && fiber.wait.site.number == wait.site.number && fiber.wait.mask == wait.mask;
}
// Whether a thread is among those that the current one waits for.
static bool is_awaited(unsigned k, const Wait& wait) { return wait.of_block || (wait.mask >> k % 32 & 1); }
static unsigned first_awaited(unsigned self, const Wait& wait) { return wait.of_block ? 0 : warp_of(self); }
static unsigned last_awaited(unsigned self, const Wait& wait) { return wait.of_block ? n_threads : warp_of(self) + 32; }

static void wait(const Wait& wait) {
  Fiber& self = fibers[current];
  self.state = State::waiting;
  self.wait = wait;
  ++n_waiting;
  const unsigned first = first_awaited(current, wait), last = last_awaited(current, wait);
  bool all = !wait.of_block || n_waiting == n_threads;
  for (unsigned k = first; all && k < last; ++k)
    if (is_awaited(k, wait)) all = k < n_threads && waits_for_the_same(fibers[k], wait);
  if (!all) {
    ready.remove(current);
    return leave();
  }
  for (unsigned k = first; k < last; ++k) {
    if (!is_awaited(k, wait)) continue;
    if (!wait.of_block) fibers[k].result = fibers[warp_of(k) + fibers[k].wait.source].value;
    fibers[k].state = State::ready;
    ready.add(k);
    --n_waiting;
  }
}
static void block_barrier(Site site) { wait({site, true, 0xffffffffu, 0}); }

static std::string at(const Site& site) { return " at line " + std::to_string(site.line); }
static void fail(const std::string& text) {
  if (failure.empty()) failure = text;
}
// Why the threads that wait cannot go on.
static std::string stuck() {
  unsigned self = 0;
  while (fibers[self].state != State::waiting) ++self;
  const Wait& wait = fibers[self].wait;
  std::string text = "thread " + std::to_string(self) + " waits" + at(wait.site) + " for ";
  for (unsigned k = first_awaited(self, wait); k < last_awaited(self, wait); ++k) {
    if (!is_awaited(k, wait) || (k < n_threads && waits_for_the_same(fibers[k], wait))) continue;
    text += "thread " + std::to_string(k);
    if (k >= n_threads) return text + ", which does not exist: the block has " + std::to_string(n_threads);
    if (fibers[k].state == State::done) return text + ", which has returned";
    return text + ", which waits" + at(fibers[k].wait.site);
  }
  return text + "nobody";
}

static void prepare(bool with_fibers, char* stacks) {
  n_threads = blockDim.x * blockDim.y * blockDim.z;
  for (unsigned k = 0; k < n_threads; ++k)
    fibers[k].index = {k % blockDim.x, k / blockDim.x % blockDim.y, k / blockDim.x / blockDim.y};
  in_order = ordered(0, n_threads);
  if (!with_fibers) return;
  getcontext(&scheduler);
  for (unsigned k = 0; k < n_threads; ++k) {
    fibers[k].context = scheduler;
    fibers[k].context.uc_stack.ss_sp = stacks + k * kStack;
    fibers[k].context.uc_stack.ss_size = kStack;
    fibers[k].begun = false;
    makecontext(&fibers[k].context, entry, 0);
  }
}
static void run_block(bool with_fibers) {
  if (!with_fibers) {
    for (const uint64_t k : in_order) { threadIdx = fibers[k].index; call(kernel_); }
    return;
  }
  n_waiting = n_done = 0;
  for (unsigned k = 0; k < n_threads; ++k) { fibers[k].state = State::ready; ready.add(k); }
  for (int k; failure.empty() && (k = next_thread()) >= 0;) resume(k);
  if (failure.empty() && n_done == n_threads) return;
  if (failure.empty()) fail(stuck());
  ready = Ready{};
}
// Not a number, and no index: memory of a block is not zero. The sanitizer would object to what is between variables.
__attribute__((no_sanitize("address", "undefined"))) static void poison(volatile unsigned char* first, volatile unsigned char* last) {
  while (first != last) *first++ = 0xff;
}

struct Grid { uint64_t blocks[3], threads[3], shared_bytes, order, first_block, last_block; char* stacks; };
template <class Kernel>
const char* launch(const Grid& grid, bool with_fibers, const Kernel& kernel) {
  gridDim = {unsigned(grid.blocks[0]), unsigned(grid.blocks[1]), unsigned(grid.blocks[2])};
  blockDim = {unsigned(grid.threads[0]), unsigned(grid.threads[1]), unsigned(grid.threads[2])};
  kernel_ = &kernel;
  call = [](const void* it) { (*static_cast<const Kernel*>(it))(); };
  order = grid.order;
  number = order;
  failure.clear();
  prepare(with_fibers, grid.stacks);
  unsigned char* const memory = (unsigned char*)std::malloc(grid.shared_bytes + kGuard);
  unsigned char* const end = memory + grid.shared_bytes + kGuard;
  dynamic_shared = memory;
  for (const uint64_t k : ordered(grid.first_block, grid.last_block)) {
    blockIdx = {unsigned(k % gridDim.x), unsigned(k / gridDim.x % gridDim.y), unsigned(k / gridDim.x / gridDim.y)};
    poison(memory, end);
    if (__start_nn_shared) poison(__start_nn_shared, __stop_nn_shared);
    run_block(with_fibers);
    for (const unsigned char* p = memory + grid.shared_bytes; p != end; ++p)
      if (*p != 0xff) fail("something was written beyond the " + std::to_string(grid.shared_bytes) + " bytes of dynamic shared memory");
    if (!failure.empty()) break;
  }
  std::free(memory);
  return failure.empty() ? nullptr : failure.c_str();
}

// The value of the lane `source` of the warp, which must take part too.
template <class V>
V exchanged(Site site, unsigned mask, V value, unsigned source) {
  static_assert(sizeof(V) <= 8, "one register or two");
  const unsigned self = current, lane = self % 32;
  if (!(mask >> lane & 1) || !(mask >> source & 1)) {
    fail("thread " + std::to_string(self) + " reads lane " + std::to_string(source) + at(site) + ", and the mask lacks one of them");
    leave();
  }
  std::memcpy(&fibers[self].value, &value, sizeof value);
  wait({site, false, mask, source});
  V result;
  std::memcpy(&result, &fibers[self].result, sizeof result);
  return result;
}
template <class V>
V shuffled_xor(Site site, unsigned mask, V value, int by) { return exchanged(site, mask, value, (current % 32) ^ by); }
template <class V>
V shuffled_up(Site site, unsigned mask, V value, int by) {
  const unsigned lane = current % 32;
  return exchanged(site, mask, value, lane >= unsigned(by) ? lane - by : lane);
}
template <class V>
V shuffled_down(Site site, unsigned mask, V value, int by) {
  const unsigned lane = current % 32;
  return exchanged(site, mask, value, lane + by < 32 ? lane + by : lane);
}
}  // namespace emulation

// The conversions that the prelude leaves to the machine.
struct half_t { unsigned short bits; };
inline float load(half_t x) { _Float16 h; std::memcpy(&h, &x, 2); return float(h); }
inline void store(half_t& y, float x) { const _Float16 h = _Float16(x); std::memcpy(&y, &h, 2); }
