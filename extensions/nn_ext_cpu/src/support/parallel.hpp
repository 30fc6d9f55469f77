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

}  // namespace nn_cpu
