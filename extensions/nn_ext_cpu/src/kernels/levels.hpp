// What the operations on levels share. Levels are integers of 8 bits, those of quantize_integers perhaps of 16, and
// zero points have a dtype of their own. (a - p) (b - q) is a b less products of sums and zero points, modulo 2^32.
#pragma once

#include <memory>
#include <string>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/integer_product.hpp"
#include "support/weight_cache.hpp"

namespace nn_cpu {

constexpr int64_t kGrain = 400'000;  // products of elements a thread

inline LevelType level_type(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return LevelType::kInt8;
    case DType::kUInt8:
      return LevelType::kUInt8;
    case DType::kInt16:
      return LevelType::kInt16;
    case DType::kUInt16:
      return LevelType::kUInt16;
    default:
      NN_CHECK(false, "levels must hold int8, uint8, int16 or uint16, got another dtype");
  }
}

/// An array of 8-bit levels, C-contiguous.
inline const ArrayDesc& levels(const Signature& s, size_t position) {
  NN_CHECK(s.has(position), "array " << position << " must be given, got none");
  const DType dtype = s.arrays[position]->dtype;
  NN_CHECK(dtype == DType::kInt8 || dtype == DType::kUInt8, "array " << position << " must hold int8 or uint8");
  return s.contiguous(position, dtype);
}

/// A zero point, of one element or of several; 0 where there is none.
class ZeroPoint {
 public:
  ZeroPoint(const Signature& s, size_t position) : position_(position) {
    if (!s.has(position)) return;
    const ArrayDesc& desc = s.contiguous(position, s.arrays[position]->dtype);
    type_ = level_type(desc.dtype);
    count_ = desc.size();
  }

  int64_t count() const { return count_; }
  int32_t at(void* const* arrays, int64_t i) const {
    if (count_ == 0) return 0;
    const void* data = arrays[position_];
    const int64_t k = i % count_;
    switch (type_) {
      case LevelType::kInt8:
        return static_cast<const int8_t*>(data)[k];
      case LevelType::kUInt8:
        return static_cast<const uint8_t*>(data)[k];
      case LevelType::kInt16:
        return static_cast<const int16_t*>(data)[k];
      default:
        return static_cast<const uint16_t*>(data)[k];
    }
  }

 private:
  size_t position_;
  LevelType type_ = LevelType::kInt8;
  int64_t count_ = 0;
};

/// x + y z, modulo 2^32.
inline int32_t added(int32_t x, int32_t y, int64_t z) {
  return static_cast<int32_t>(static_cast<uint32_t>(x) + static_cast<uint32_t>(y) * static_cast<uint32_t>(z));
}

inline int32_t negative(int32_t x) { return static_cast<int32_t>(-static_cast<uint32_t>(x)); }

inline int64_t quarters(int64_t bytes) { return (bytes + 3) / 4; }

/// A cache for copies that pack(bytes, copy) makes of a matrix of `bytes` numbers of 8 bits.
template <class Pack>
std::shared_ptr<WeightCache> cache_of(const std::string& layout, int64_t bytes, int64_t packed_bytes,
                                      const Pack& pack) {
  const auto packed = [pack](const float* from, float* to) {
    pack(reinterpret_cast<const uint8_t*>(from), static_cast<void*>(to));
  };
  return std::make_shared<WeightCache>(layout, bytes / 4, quarters(packed_bytes), packed, bytes % 4);
}

inline WeightCache::Packed find(const std::shared_ptr<WeightCache>& cache, const void* weights) {
  return cache == nullptr ? nullptr : cache->find(static_cast<const float*>(weights));
}

inline double product_cost(int64_t m, int64_t n, int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / 60.0;
}

}  // namespace nn_cpu
