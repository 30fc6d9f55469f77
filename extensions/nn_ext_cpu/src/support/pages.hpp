// Memory from the system, on large pages where it fills some: streaming through small ones waits for address
// translation.
#pragma once

#include <cstddef>
#include <cstdlib>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace nn_cpu {

constexpr size_t kHugePage = size_t{2} << 20;

/// At least `bytes`, aligned to a cache line or to a large page; nullptr when the system has none. For std::free.
inline void* allocate_pages(size_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
#ifdef __linux__
  if (memory != nullptr && alignment == kHugePage) madvise(memory, rounded, MADV_HUGEPAGE);
#endif
  return memory;
}

}  // namespace nn_cpu
