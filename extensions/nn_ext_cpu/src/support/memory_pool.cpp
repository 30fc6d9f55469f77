#include "support/memory_pool.hpp"

#include <cstdlib>
#include <new>

#include "support/pages.hpp"

namespace nn_cpu {
namespace {

/// Sizes are rounded up by at most an eighth, so that arrays of about one size share blocks; large ones to whole large
/// pages.
size_t rounded(size_t bytes) {
  size_t step = 4096;
  while (step * 16 <= bytes) step *= 2;
  if (bytes >= 4 * kHugePage && step < kHugePage) step = kHugePage;
  return (bytes + step - 1) / step * step;
}

}  // namespace

MemoryPool& MemoryPool::instance() {
  static auto* pool = new MemoryPool;
  return *pool;
}

void* MemoryPool::take(size_t bytes) {
  const size_t size = rounded(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = free_.find(size); found != free_.end() && !found->second.empty()) {
    void* block = found->second.back();
    found->second.pop_back();
    kept_ -= size;
    used_ += size;
    return block;
  }
  if (used_ + size > peak_) peak_ = used_ + size;
  shrink_to(peak_ - used_ - size);
  void* block = allocate_pages(size);
  if (block == nullptr) {
    shrink_to(0);
    block = allocate_pages(size);
    if (block == nullptr) throw std::bad_alloc();
  }
  used_ += size;
  return block;
}

void MemoryPool::give(void* block, size_t bytes) {
  const size_t size = rounded(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  free_[size].push_back(block);
  used_ -= size;
  kept_ += size;
}

void MemoryPool::clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  shrink_to(0);
  peak_ = used_;
}

size_t MemoryPool::used() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return used_;
}

size_t MemoryPool::kept() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return kept_;
}

void MemoryPool::shrink_to(size_t kept) {
  for (auto entry = free_.begin(); kept_ > kept && entry != free_.end();) {
    auto& [size, blocks] = *entry;
    for (; kept_ > kept && !blocks.empty(); blocks.pop_back(), kept_ -= size) std::free(blocks.back());
    entry = blocks.empty() ? free_.erase(entry) : std::next(entry);
  }
}

}  // namespace nn_cpu
