// Numbers near to the means of channels, for sums around them: the smaller a sum is, the less it rounds.
#pragma once

#include <cmath>
#include <cstdint>

namespace nn_cpu {

/// centre[c] = the mean of four values of channel c, those at x[place(i) + c * stride] for four i < count. It is exact
/// where they are equal, and the first of them, or 0, where it would not be finite. `number` makes an R of a value.
template <class R, class T, class Place, class ToNumber>
void centres(const T* x, int64_t count, int64_t channels, int64_t stride, const Place& place, const ToNumber& number,
             R* centre) {
  const T* rows[4];
  for (int64_t i = 0; i < 4; ++i) rows[i] = count > 0 ? x + place(i * count / 4) : nullptr;
  for (int64_t c = 0; c < channels; ++c) {
    centre[c] = R{0};
    if (count == 0) continue;
    const int64_t at = c * stride;
    const R first = number(rows[0][at]);
    const R mean = ((first + number(rows[1][at])) + (number(rows[2][at]) + number(rows[3][at]))) * R{0.25};
    if (std::isfinite(mean)) {
      centre[c] = mean;
    } else if (std::isfinite(first)) {
      centre[c] = first;
    }
  }
}

}  // namespace nn_cpu
