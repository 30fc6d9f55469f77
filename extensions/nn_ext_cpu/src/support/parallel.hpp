// Threads: OpenMP, which oneDNN uses too, so that both share one pool of threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include <omp.h>

namespace nn_cpu {

/// How many threads a kernel may use; starts as OMP_NUM_THREADS or the number of physical cores.
int num_threads();
void set_num_threads(int threads);

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

/// A group of threads that work through several stages together.
class Team {
 public:
  Team(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const { return rank_; }

  /// Waits until all threads have come here.
  void wait() const {
    if (size_ > 1) {
#pragma omp barrier
    }
  }

  /// Calls body(begin, end) on this thread's share of [0, n), which begins at a multiple of `align`.
  template <class Body>
  void share(int64_t n, const Body& body, int64_t align = 1) const {
    const int64_t pieces = (n + align - 1) / align;
    const int64_t begin = pieces * rank_ / size_ * align, end = std::min(n, pieces * (rank_ + 1) / size_ * align);
    if (begin < end) body(begin, end);
  }

 private:
  int rank_, size_;
};

/// Calls body(team) on at most `threads` threads. All of them run through the same calls of wait().
template <class Body>
void as_team(int threads, const Body& body) {
  if (threads <= 1 || omp_in_parallel()) {
    body(Team(0, 1));
    return;
  }
#pragma omp parallel num_threads(threads)
  body(Team(omp_get_thread_num(), omp_get_num_threads()));
}

}  // namespace nn_cpu
