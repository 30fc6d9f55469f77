#include "support/parallel.hpp"

#include <atomic>
#include <utility>

#include "support/check.hpp"
#include "support/memory_pool.hpp"
#include "support/weight_cache.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define NN_HAS_FORK
#endif

namespace nn_cpu {
namespace {

/// The backend sets the number when it is made.
std::atomic<int>& threads() {
  static std::atomic<int> count{1};
  return count;
}

std::atomic<int> generation{0};
std::atomic<bool> is_deterministic{false};
thread_local bool is_serial = false;

#ifdef NN_HAS_FORK
/// A child has the calling thread alone, whose OpenMP pool would wait at a barrier for workers that do not exist. So
/// the pool is given up before the fork, and parent and child start one anew in their next parallel region.
void before_fork() {
  omp_pause_resource_all(omp_pause_soft);
  MemoryPool::instance().lock_for_fork();
  lock_packed_for_fork();
}

void in_parent() {
  unlock_packed_after_fork();
  MemoryPool::instance().unlock_after_fork();
}

void in_child() {
  unlock_packed_after_fork();
  MemoryPool::instance().unlock_after_fork();
  generation.fetch_add(1, std::memory_order_relaxed);
}
#endif

}  // namespace

void prepare_for_forks() {
#ifdef NN_HAS_FORK
  NN_CHECK(pthread_atfork(before_fork, in_parent, in_child) == 0,
           "the system must take handlers of forks, got an error");
#endif
}

int fork_generation() { return generation.load(std::memory_order_relaxed); }

bool deterministic() { return is_deterministic.load(std::memory_order_relaxed); }
void set_deterministic(bool flag) { is_deterministic.store(flag, std::memory_order_relaxed); }

Serial::Serial(bool serial) : before_(is_serial) { is_serial = before_ || serial; }
Serial::~Serial() { is_serial = before_; }

int num_threads() { return is_serial ? 1 : threads().load(std::memory_order_relaxed); }

void set_num_threads(int count) {
  NN_CHECK(count >= 1, "number of threads must be at least 1, got " << count);
  threads().store(count, std::memory_order_relaxed);
}

void adopt_num_threads() {
  if (omp_get_max_threads() != num_threads()) omp_set_num_threads(num_threads());
}

}  // namespace nn_cpu
