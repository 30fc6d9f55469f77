#include "support/weight_cache.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "support/pages.hpp"
#include "support/parallel.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr size_t kMaxEntries = 64;
constexpr int kMaxPatience = 64;

std::atomic<uint64_t> clock_ticks{0};
std::atomic<int64_t> n_entries{
    0};  // of all caches: how many requests pass at least between two for one copy, where all take turns

/// The copies of the process, by layout and contents. It is never destroyed: operations may outlive everything else.
class Copies {
 public:
  static Copies& instance() {
    static auto* copies = new Copies;
    return *copies;
  }

  /// The copy that somebody else has made, or one that `pack` makes; nothing when there is no room for one.
  std::shared_ptr<WeightCache::Copy> get(const std::string& key, int64_t elements,
                                         const std::function<void(float*)>& pack) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (auto copy = living(key)) return copy;
    }
    auto memory = allocate(elements);
    if (memory == nullptr) return nullptr;
    pack(memory.get());  // not under the lock, which other threads wait for
    const std::lock_guard<std::mutex> lock(mutex_);
    if (auto copy = living(key)) return copy;
    auto copy = std::make_shared<WeightCache::Copy>();
    copy->data = std::move(memory);
    copy->bytes = bytes_of(elements);
    copy->used = clock_ticks.load(std::memory_order_relaxed);
    if (copies_.size() >= 2 * kept_) forget_dead();
    copies_[key] = copy;
    return copy;
  }

  void limit(int64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    limit_ = bytes;
    while (bytes_.load() > limit_ && evict(0)) {
    }
  }

  void clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (evict(0)) {
    }
    copies_.clear();
  }

  int64_t bytes() const { return bytes_.load(); }
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  static int64_t bytes_of(int64_t elements) { return (elements * static_cast<int64_t>(sizeof(float)) + 63) / 64 * 64; }

  std::shared_ptr<WeightCache::Copy> living(const std::string& key) const {
    const auto found = copies_.find(key);
    if (found == copies_.end()) return nullptr;
    auto copy = found->second.lock();
    return copy != nullptr && std::atomic_load(&copy->data) != nullptr ? copy : nullptr;
  }

  /// Memory for a copy, or nothing when it does not fit the budget. Copies that were used within the last round of
  /// requests stay: weights that exceed the budget would otherwise be packed anew in every run.
  std::shared_ptr<float> allocate(int64_t elements) {
    const int64_t bytes = bytes_of(elements);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (bytes > limit_) return nullptr;
      while (bytes_.load() + bytes > limit_) {
        if (!evict(static_cast<uint64_t>(n_entries.load(std::memory_order_relaxed)))) return nullptr;
      }
      bytes_ += bytes;
    }
    auto* memory = static_cast<float*>(allocate_pages(static_cast<size_t>(bytes)));
    if (memory == nullptr) {
      bytes_ -= bytes;
      throw std::bad_alloc();
    }
    return {memory, [this, bytes](float* p) {
              std::free(p);
              bytes_ -= bytes;
            }};
  }

  /// Empties the copy that was not used for longest, if that is more than `age` requests ago. Whether there was one.
  bool evict(uint64_t age) {
    std::shared_ptr<WeightCache::Copy> oldest;
    for (const auto& [key, weak] : copies_) {
      auto copy = weak.lock();
      if (copy != nullptr && std::atomic_load(&copy->data) != nullptr &&
          (oldest == nullptr || copy->used < oldest->used))
        oldest = std::move(copy);
    }
    if (oldest == nullptr || (age > 0 && clock_ticks.load(std::memory_order_relaxed) - oldest->used <= age))
      return false;
    std::atomic_store(&oldest->data, WeightCache::Packed());
    return true;
  }

  void forget_dead() {
    for (auto it = copies_.begin(); it != copies_.end();) it = it->second.expired() ? copies_.erase(it) : std::next(it);
    kept_ = std::max<size_t>(copies_.size(), 64);
  }

  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<WeightCache::Copy>> copies_;
  size_t kept_ = 64;
  int64_t limit_ = int64_t{1} << 30;
  std::atomic<int64_t> bytes_{0};
};

thread_local bool trusting = false;

std::atomic<bool>& enabled() {
  static std::atomic<bool> flag{true};
  return flag;
}

}  // namespace

bool packing_enabled() { return enabled().load(std::memory_order_relaxed); }
void enable_packing(bool flag) { enabled() = flag; }

TrustWeights::TrustWeights(bool trust) : before_(trusting) { trusting = trust; }
TrustWeights::~TrustWeights() { trusting = before_; }

uint64_t checksum(const float* x, int64_t n) {
  constexpr int64_t kPiece = 65536;
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  std::vector<uint64_t> sums(static_cast<size_t>(pieces));
  parallel_for(pieces, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t k = begin; k < end; ++k)
      sums[k] = vectors().checksum(x + k * kPiece, std::min(kPiece, n - k * kPiece), static_cast<uint64_t>(k));
  });
  uint64_t total = 0;
  for (const uint64_t sum : sums) total = (total ^ sum) * 0x100000001b3u + (total >> 31);
  return total;
}

WeightCache::Packed WeightCache::find(const float* weights) const {
  if (!packing_enabled()) return nullptr;
  // A thread of the parent may have held the lock when this process was forked; that lock never opens.
  std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
  if (generation_ == fork_generation()) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return nullptr;
  }
  if (entries_.size() >= kMaxEntries && entries_.count(weights) == 0) {
    --n_entries;
    entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                    [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
  const bool known = entries_.count(weights) != 0;
  if (!known) ++n_entries;
  Entry& entry = entries_[weights];
  entry.used = clock_ticks.fetch_add(1, std::memory_order_relaxed) + 1;
  if (trusting && entry.copy != nullptr) {
    entry.copy->used.store(entry.used, std::memory_order_relaxed);
    if (auto data = std::atomic_load(&entry.copy->data)) return data;
  }
  if (entry.waiting > 0) {
    --entry.waiting;
    return nullptr;
  }
  const uint64_t sum = sum_of(weights);
  if (known && sum == entry.checksum) {
    entry.patience = 1;
    return packed(entry, weights);
  }
  entry.copy.reset();
  entry.checksum = sum;
  if (known) {
    entry.patience = std::min(2 * entry.patience, kMaxPatience);
    entry.waiting = entry.patience - 1;
  }
  return nullptr;
}

uint64_t WeightCache::sum_of(const float* weights) const {
  const uint64_t sum = checksum(weights, elements_);
  if (tail_ == 0) return sum;
  float last = 0.0f;
  std::memcpy(&last, weights + elements_, static_cast<size_t>(tail_));
  return vectors().checksum(&last, 1, sum);
}

WeightCache::Packed WeightCache::packed(Entry& entry, const float* weights) const {
  if (entry.copy != nullptr) {
    entry.copy->used.store(entry.used, std::memory_order_relaxed);
    if (auto data = std::atomic_load(&entry.copy->data)) return data;
  }
  const std::string key = layout_ + '/' + std::to_string(elements_) + '/' + std::to_string(entry.checksum);
  entry.copy = Copies::instance().get(key, packed_elements_, [&](float* memory) { pack_(weights, memory); });
  return entry.copy == nullptr ? nullptr : std::atomic_load(&entry.copy->data);
}

WeightCache::~WeightCache() { n_entries -= static_cast<int64_t>(entries_.size()); }

void limit_packed_bytes(int64_t bytes) { Copies::instance().limit(bytes); }
int64_t packed_bytes() { return Copies::instance().bytes(); }
void clear_packed() { Copies::instance().clear(); }
void lock_packed_for_fork() { Copies::instance().lock(); }
void unlock_packed_after_fork() { Copies::instance().unlock(); }

}  // namespace nn_cpu
