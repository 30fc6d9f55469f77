#include "support/fourier.hpp"

#include <algorithm>
#include <cmath>

#include "support/check.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr double kTurn = 6.283185307179586;

int64_t next_radix(int64_t n) {
  if (n % 4 == 0) return 4;
  for (int64_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

void append_root(std::vector<float>& numbers, int64_t place, int64_t n) {
  const double angle = -kTurn * static_cast<double>(place % n) / static_cast<double>(n);
  numbers.push_back(static_cast<float>(std::cos(angle)));
  numbers.push_back(static_cast<float>(std::sin(angle)));
}

}  // namespace

Fourier::Fourier(int64_t length) : length_(length) {
  NN_CHECK(length > 0, "signals must have elements, got " << length);
  int64_t before = 1;
  for (int64_t rest = length; rest > 1;) {
    Stage stage{next_radix(rest), 0, before, {}, {}};
    NN_CHECK(stage.radix <= kLargestFactor,
             "lengths must have prime factors of at most " << kLargestFactor << ", got " << length);
    stage.parts = rest / stage.radix;
    for (int64_t p = 0; p < stage.parts; ++p) {
      for (int64_t k = 0; k < stage.radix; ++k) append_root(stage.twiddles, p * k, rest);
    }
    for (int64_t k = 0; k < stage.radix; ++k) append_root(stage.roots, k, stage.radix);
    before *= stage.radix;
    rest = stage.parts;
    stages_.push_back(std::move(stage));
  }
}

int64_t Fourier::lanes(int64_t signals) const {
  constexpr int64_t kElements = 1 << 15;
  return std::clamp<int64_t>(std::min(signals, kElements / length_), 1, kMostLanes);
}

void Fourier::transform(int64_t lanes, float* re, float* im, float* spare_re, float* spare_im) const {
  float *from_re = re, *from_im = im, *to_re = spare_re, *to_im = spare_im;
  for (const Stage& stage : stages_) {
    vectors().fourier_stage(stage.radix, stage.parts, stage.before * lanes, stage.twiddles.data(), stage.roots.data(),
                            from_re, from_im, to_re, to_im);
    std::swap(from_re, to_re);
    std::swap(from_im, to_im);
  }
  if (from_re == re) return;
  std::copy_n(from_re, room(lanes), re);
  std::copy_n(from_im, room(lanes), im);
}

}  // namespace nn_cpu
