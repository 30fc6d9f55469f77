// Fourier transforms of several signals at once: element k of signal l is at [k * lanes + l], real and imaginary parts
// apart.
#pragma once

#include <cstdint>
#include <vector>

namespace nn_cpu {

class Fourier {
 public:
  /// Lengths whose largest prime factor is small; a prime p costs p operations an element.
  static constexpr int64_t kLargestFactor = 61;
  static constexpr int64_t kMostLanes = 16;

  explicit Fourier(int64_t length);

  int64_t length() const { return length_; }

  /// How many signals are transformed together: as many as keep the working memory in the second-level cache.
  int64_t lanes(int64_t signals) const;

  /// Elements that each of `re`, `im`, `spare_re` and `spare_im` must hold.
  int64_t room(int64_t lanes) const { return length_ * lanes; }

  /// Transforms in `re` and `im`. For the inverse, without the factor 1 / length, exchange re and im.
  void transform(int64_t lanes, float* re, float* im, float* spare_re, float* spare_im) const;

 private:
  struct Stage {
    int64_t radix, parts, before;        // `before`: product of the earlier radices
    std::vector<float> twiddles, roots;  // (cos, sin)
  };

  int64_t length_;
  std::vector<Stage> stages_;
};

}  // namespace nn_cpu
