// Threads: OpenMP, which oneDNN uses too, so that both share one pool of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <omp.h>

namespace nn_cpu {

/// How many threads a kernel may use; starts as OMP_NUM_THREADS or the number of physical cores.
int num_threads();
void set_num_threads(int threads);

/// Whether results must not depend on the number of threads; false at first.
bool deterministic();
void set_deterministic(bool flag);

/// While it lives, num_threads() is 1 on the calling thread, if `serial` says so.
class Serial {
 public:
  explicit Serial(bool serial);
  ~Serial();
  Serial(const Serial&) = delete;
  Serial& operator=(const Serial&) = delete;

 private:
  bool before_;
};

/// Makes fork() safe: the child starts threads of its own instead of waiting for those of the parent, which it does not
/// have.
void prepare_for_forks();

/// Number of forks between the process that loaded the library and this one. Whatever other threads of the parent held
/// at the time, such as a lock, stays held for ever in the child.
int fork_generation();

/// Makes OpenMP regions of the calling thread (those of oneDNN too) as wide as num_threads().
void adopt_num_threads();

/// Calls body(begin, end, thread) on pieces of [0, n), on several threads when n exceeds `grain`.
/// Pieces begin at multiples of `align`; the split depends on n and the thread count alone, so results repeat.
template <class Body>
void parallel_for(int64_t n, int64_t grain, const Body& body, int64_t align = 1) {
  const int64_t useful = grain > 0 ? (n + grain - 1) / grain : n;
  const int threads = static_cast<int>(std::min<int64_t>(num_threads(), useful));
  if (threads <= 1 || omp_in_parallel()) {
    if (n > 0) body(int64_t{0}, n, 0);
    return;
  }
  const int64_t pieces = (n + align - 1) / align;
#pragma omp parallel num_threads(threads)
  {
    const int64_t team = omp_get_num_threads(), rank = omp_get_thread_num();
    const int64_t begin = pieces * rank / team * align;
    const int64_t end = std::min(n, pieces * (rank + 1) / team * align);
    if (begin < end) body(begin, end, static_cast<int>(rank));
  }
}

/// Threads that work through the same stages. Whoever is free takes the next piece of a stage, and a stage ends when
/// all pieces are done; so a thread that the system keeps waiting holds the others up for no longer than its piece
/// takes.
class Team {
 public:
  Team(int size, int64_t n_stages) : size_(size), counters_(static_cast<size_t>(n_stages)) {}

  /// Calls body(begin, end) on pieces of [0, n) that begin at multiples of `align`, and returns when all of them are
  /// done. Results must not depend on how [0, n) is cut. `stage` counts from 0 in the order of the calls.
  template <class Body>
  void share(int64_t stage, int64_t n, const Body& body, int64_t align = 1) {
    constexpr int64_t kPiecesEach = 4;
    Counter& counter = counters_[static_cast<size_t>(stage)];
    const int64_t pieces = size_ > 1 ? size_ * kPiecesEach : 1;
    const int64_t step = std::max<int64_t>(1, (n + pieces * align - 1) / (pieces * align)) * align;
    for (int64_t begin = counter.next.fetch_add(step); begin < n; begin = counter.next.fetch_add(step)) {
      const int64_t end = std::min(n, begin + step);
      body(begin, end);
      counter.done.fetch_add(end - begin, std::memory_order_release);
    }
    for (int turn = 0; counter.done.load(std::memory_order_acquire) < n; ++turn) {
      if (turn > 2000) std::this_thread::yield();
    }
  }

 private:
  struct alignas(64) Counter {
    std::atomic<int64_t> next{0}, done{0};
  };

  int size_;
  std::vector<Counter> counters_;
};

/// Calls body(team) on at most `threads` threads, all of which run through the same `n_stages` calls of share().
template <class Body>
void as_team(int threads, int64_t n_stages, const Body& body) {
  if (omp_in_parallel()) threads = 1;
  Team team(threads, n_stages);
  if (threads <= 1) {
    body(team);
    return;
  }
#pragma omp parallel num_threads(threads)
  body(team);
}

}  // namespace nn_cpu
