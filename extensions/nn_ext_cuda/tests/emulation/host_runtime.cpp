// Runs the kernels that are compiled with host_cuda.hpp.
// The threads of a block are fibers. One runs until it waits at a barrier or at an exchange within its warp; then another
// that is ready runs, in the order of the launch: a kernel that needs a barrier where it has none gives other numbers in
// another order. A wait that no thread can end is an error, with the lines at which threads wait.
#include <ucontext.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "host_cuda.hpp"

dim3 gridDim, blockDim, blockIdx, threadIdx;
unsigned char* dynamic_shared;

namespace emulation {
#ifdef __SANITIZE_ADDRESS__
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr size_t kStack = 256 * 1024;
constexpr size_t kGuard = kSanitized ? 0 : 64;  // bytes after dynamic shared memory; the sanitizer has its own
constexpr unsigned kMaxThreads = 1024;
enum class State { fresh, ready, waiting, done };
// What a thread waits for: all threads of the block, or those lanes of its warp that `mask` names.
struct Wait { Site site; bool of_block; unsigned mask, source; };
// Where a thread goes on: what the compiler saves for its built-in jump.
struct Place { void* words[5]; };
struct Fiber { ucontext_t context; Place place; bool begun; dim3 index; State state; Wait wait; uint64_t value, result; };

static Fiber fibers[kMaxThreads];
static unsigned n_threads, current, n_waiting, n_done;
static ucontext_t scheduler;
static Place scheduler_place;
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

// Other threads run until the current one is resumed: the next one that is ready goes on at once, without the scheduler if it has
// begun. Saving and restoring a place takes no system call, which the sanitizer cannot follow.
[[noreturn]] __attribute__((noinline)) static void go_to(Place& place) { __builtin_longjmp(place.words, 1); }
__attribute__((noinline)) static void leave() {
  Fiber& self = fibers[current];
  if (kSanitized) {
    swapcontext(&self.context, &scheduler);
    return;
  }
  const int next = failure.empty() ? next_thread() : -1;
  if (__builtin_setjmp(self.place.words)) return;
  if (next < 0 || !fibers[next].begun) go_to(scheduler_place);
  current = next;
  threadIdx = fibers[next].index;
  go_to(fibers[next].place);
}
__attribute__((noinline)) static void resume(unsigned k) {
  Fiber& fiber = fibers[k];
  current = k;
  threadIdx = fiber.index;
  if (kSanitized) {
    swapcontext(&scheduler, &fiber.context);
    return;
  }
  if (__builtin_setjmp(scheduler_place.words)) return;
  if (fiber.begun) go_to(fiber.place);
  fiber.begun = true;
  setcontext(&fiber.context);
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
  for (unsigned n = last - first; all && n > 0; --n) {  // the one that comes last in the order of threads is asked first
    const unsigned k = order == 1 ? last - n : first + n - 1;
    if (is_awaited(k, wait)) all = k < n_threads && waits_for_the_same(fibers[k], wait);
  }
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
void block_barrier(Site site) { wait({site, true, 0xffffffffu, 0}); }

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
    if (!kSanitized && fibers[k].state == State::done) continue;  // it waits at the end of entry(), for any kernel
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

const char* launch(const Grid& grid, bool with_fibers, Section shared, void (*to_call)(const void*), const void* kernel) {
  gridDim = {unsigned(grid.blocks[0]), unsigned(grid.blocks[1]), unsigned(grid.blocks[2])};
  blockDim = {unsigned(grid.threads[0]), unsigned(grid.threads[1]), unsigned(grid.threads[2])};
  kernel_ = kernel;
  call = to_call;
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
    if (shared.first) poison(shared.first, shared.last);
    run_block(with_fibers);
    for (const unsigned char* p = memory + grid.shared_bytes; p != end; ++p)
      if (*p != 0xff) fail("something was written beyond the " + std::to_string(grid.shared_bytes) + " bytes of dynamic shared memory");
    if (!failure.empty()) break;
  }
  std::free(memory);
  return failure.empty() ? nullptr : failure.c_str();
}

unsigned lane() { return current % 32; }
uint64_t exchanged(Site site, unsigned mask, uint64_t value, unsigned source) {
  const unsigned self = current;
  if (!(mask >> lane() & 1) || !(mask >> source & 1)) {
    fail("thread " + std::to_string(self) + " reads lane " + std::to_string(source) + at(site) + ", and the mask lacks one of them");
    leave();
  }
  fibers[self].value = value;
  wait({site, false, mask, source});
  return fibers[self].result;
}
}  // namespace emulation
