// Packed copies of weights that do not change from run to run, as in inference.
//
// Anybody may write to an array at any time, so a copy is valid as long as a 64-bit checksum of the weights says that they are what
// they were; reading weights once is several times cheaper than packing them. A copy is made at the second run with equal weights. Where
// they change, as in training, checks become rare: every run, every second, fourth ... 64th. A caller who knows that they did not
// change says so with TrustWeights, and nothing is read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace nn_cpu {

class WeightCache {
 public:
  using Packed = std::shared_ptr<const float>;

  /// `packed_elements`: the size of a copy. `pack(weights, packed)` makes one.
  WeightCache(int64_t elements, int64_t packed_elements, std::function<void(const float*, float*)> pack)
      : elements_(elements), packed_elements_(packed_elements), pack_(std::move(pack)) {}

  /// The packed copy of `weights`, or nothing: then the caller packs for itself. Several threads may ask.
  Packed find(const float* weights) const;

 private:
  struct Entry {
    uint64_t checksum = 0;
    Packed packed;
    int patience = 1;   // runs between two checks
    int waiting = 0;    // runs to go until the next check
    uint64_t used = 0;  // when it was last asked for
  };

  int64_t elements_, packed_elements_;
  std::function<void(const float*, float*)> pack_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<const float*, Entry> entries_;
  mutable uint64_t clock_ = 0;
};

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
