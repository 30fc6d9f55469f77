// Packed copies of weights that do not change from run to run, as in inference.
//
// Anybody may write to an array at any time, so a copy is valid as long as a 64-bit checksum of the weights says that
// they are what they were; reading weights once is several times cheaper than packing them. A copy is made at the
// second run with equal weights. Where they change, as in training, checks become rare: every run, every second, fourth
// ... 64th. A caller who knows that they did not change says so with TrustWeights, and nothing is read.
//
// Operations that want the same weights in the same layout, such as one convolution prepared for many sizes of images,
// share one copy. All copies of the process share one budget of bytes; when it is spent, those that were not used for
// longest make room.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "support/parallel.hpp"

namespace nn_cpu {

class WeightCache {
 public:
  using Packed = std::shared_ptr<const float>;

  /// `layout` names what pack(weights, packed) does: equal names mean equal copies of equal weights. `packed_elements`:
  /// the size of a copy. Weights of other types than float32 are counted by four bytes, and what is left
  /// over is the `tail`.
  WeightCache(std::string layout, int64_t elements, int64_t packed_elements,
              std::function<void(const float*, float*)> pack, int64_t tail = 0)
      : layout_(std::move(layout)),
        elements_(elements),
        packed_elements_(packed_elements),
        tail_(tail),
        pack_(std::move(pack)) {}
  ~WeightCache();
  WeightCache(const WeightCache&) = delete;
  WeightCache& operator=(const WeightCache&) = delete;

  /// The packed copy of `weights`, or nothing: then the caller packs for itself. Several threads may ask.
  Packed find(const float* weights) const;

  /// A copy, shared by all who hold it. `data` is empty after it had to make room.
  struct Copy {
    Packed data;  // through std::atomic_load and std::atomic_store only
    int64_t bytes = 0;
    std::atomic<uint64_t> used{0};  // when it was last asked for
  };

 private:
  struct Entry {
    uint64_t checksum = 0;
    std::shared_ptr<Copy> copy;
    int patience = 1;   // runs between two checks
    int waiting = 0;    // runs to go until the next check
    uint64_t used = 0;  // when it was last asked for
  };

  Packed packed(Entry& entry, const float* weights) const;
  uint64_t sum_of(const float* weights) const;

  std::string layout_;
  int64_t elements_, packed_elements_, tail_;
  std::function<void(const float*, float*)> pack_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<const float*, Entry> entries_;
  int generation_ = fork_generation();
};

/// The bytes that all copies may take; the default is 1 GiB. Copies beyond a smaller limit are given up.
void limit_packed_bytes(int64_t bytes);

/// The bytes that all copies take now.
int64_t packed_bytes();

/// Gives up all copies; those that are needed are made again.
void clear_packed();

/// Keeps other threads out of the table of copies while the process is forked.
void lock_packed_for_fork();
void unlock_packed_after_fork();

/// While it lives, copies on this thread are taken for valid without a look at the weights.
class TrustWeights {
 public:
  explicit TrustWeights(bool trust);
  ~TrustWeights();
  TrustWeights(const TrustWeights&) = delete;
  TrustWeights& operator=(const TrustWeights&) = delete;

 private:
  bool before_;
};

/// Whether copies are made at all; true at first.
bool packing_enabled();
void enable_packing(bool enabled);

/// A checksum of n numbers that depends on the place of each.
uint64_t checksum(const float* x, int64_t n);

}  // namespace nn_cpu
