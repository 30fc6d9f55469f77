// Memory of arrays that live from one step to the next: what is given back is handed out again, without asking the
// system, whose fresh pages cost more to touch than most kernels take to fill them.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace nn_cpu {

/// 64-byte aligned blocks. Those in use and those kept for later together never exceed the most that was in use at one
/// time.
class MemoryPool {
 public:
  /// The pool of this process; it is never destroyed, because arrays may outlive everything else.
  static MemoryPool& instance();

  /// A block of at least `bytes`; throws std::bad_alloc when the system has none.
  void* take(size_t bytes);
  /// Takes back a block that `take(bytes)` gave.
  void give(void* block, size_t bytes);
  /// Returns to the system what is kept for later.
  void clear();

  size_t used() const;
  size_t kept() const;

  /// Keeps other threads out while the process is forked, so that the child finds the pool whole and unlocked.
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  void shrink_to(size_t kept);

  mutable std::mutex mutex_;
  std::map<size_t, std::vector<void*>> free_;  // by size, which take() rounds up
  size_t used_ = 0, kept_ = 0, peak_ = 0;
};

}  // namespace nn_cpu
