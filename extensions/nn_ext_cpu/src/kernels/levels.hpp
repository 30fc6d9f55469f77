// What the operations on levels share. Levels are integers of 8 bits, those of quantize_integers perhaps of 16, and
// zero points have a dtype of their own. (a - p) (b - q) is a b less products of sums and zero points, modulo 2^32.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/integer_product.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"
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

/// Where the arrays of a product of x and weights are, in the call of one that gives sums, or levels of its own.
struct ProductPlaces {
  bool to_levels;
  size_t x_zero, weight_zero, bias, y, scale = 2, zero = 3;

  explicit ProductPlaces(bool gives_levels)
      : to_levels(gives_levels),
        x_zero(gives_levels ? 4 : 2),
        weight_zero(x_zero + 1),
        bias(x_zero + 2),
        y(x_zero + 3) {}
};

/// What becomes of the sums of a product: they are the result, or divided by scales, rounded and shifted.
class ProductResult {
 public:
  /// `n`: places of the axis that scales may differ along.
  ProductResult(const Signature& s, const ProductPlaces& places, int64_t n) : places_(places), n_(n) {
    if (!places.to_levels) {
      s.contiguous(places.y, DType::kInt32);
      return;
    }
    const ArrayDesc& y = levels(s, places.y);
    type_ = level_type(y.dtype);
    count_ = s.contiguous(places.scale).size();
    NN_CHECK(count_ == 1 || count_ == n, "scale must have one number or " << n << ", got " << count_);
    NN_CHECK(levels(s, places.zero).size() == 1 && s.arrays[places.zero]->dtype == y.dtype,
             "zero point must be one level of the result");
  }

  bool to_levels() const { return places_.to_levels; }
  const ProductPlaces& places() const { return places_; }

  /// Room for the scales.
  int64_t bytes() const { return to_levels() ? Scratch::bytes<float>(n_) : 0; }

  /// The scales, one for each place of the axis, in `scratch`.
  LevelScales scales(void* const* arrays, bool by_rows, Scratch& scratch) const {
    LevelScales rule;
    if (!to_levels()) return rule;
    const auto* given = static_cast<const float*>(arrays[places_.scale]);
    auto* each = scratch.take<float>(n_);
    for (int64_t i = 0; i < n_; ++i) each[i] = given[count_ == 1 ? 0 : i];
    (by_rows ? rule.rows : rule.columns) = each;
    const void* zero = arrays[places_.zero];
    rule.type = type_;
    rule.zero_point = type_ == LevelType::kInt8 ? static_cast<int32_t>(*static_cast<const int8_t*>(zero))
                                                : static_cast<int32_t>(*static_cast<const uint8_t*>(zero));
    return rule;
  }

  /// Computes a part of the product; `offset`: where it begins in the result, whose rows are `ld` apart.
  void product(const IntegerLoops& loops, const IntegerPart& part, const IntegerTerms& terms, const LevelScales& scales,
               void* const* arrays, int64_t offset, int64_t ld) const {
    if (to_levels()) {
      integer_product_levels(loops, part, terms, scales, static_cast<uint8_t*>(arrays[places_.y]) + offset, ld);
    } else {
      integer_product(loops, part, terms, static_cast<int32_t*>(arrays[places_.y]) + offset, ld);
    }
  }

 private:
  ProductPlaces places_;
  int64_t n_, count_ = 1;
  LevelType type_ = LevelType::kUInt8;
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

/// Copies few bytes; a call of the library takes longer than most lines of an image.
inline void copy_bytes(const uint8_t* from, int64_t n, uint8_t* to) {
  if (n >= 16) {
    for (int64_t i = 0; i + 16 <= n; i += 16) std::memcpy(to + i, from + i, 16);
    std::memcpy(to + n - 16, from + n - 16, 16);
  } else if (n >= 4) {
    const int64_t half = n >= 8 ? 8 : 4;
    if (half == 8) {
      std::memcpy(to, from, 8);
      std::memcpy(to + n - 8, from + n - 8, 8);
    } else {
      std::memcpy(to, from, 4);
      std::memcpy(to + n - 4, from + n - 4, 4);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

inline double product_cost(int64_t m, int64_t n, int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / 60.0;
}

}  // namespace nn_cpu
