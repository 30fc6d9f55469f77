// Transforms of Winograd's F(2x2, 3x3) in integers. Inputs of 9 bits with a sign become numbers of 11, filters, which
// are twice as large along each axis so that they are whole, of 12; the sums of their products are four times those of
// the convolution, exactly.
#include <cstdint>

#include "support/integer_loops.hpp"
#include "vector/lanes.hpp"

namespace nn_cpu::NN_ISA {

namespace {

constexpr int64_t kColumns = 2 * kWidth;  // of a panel
using Whole = int32_t __attribute__((vector_size(kWidth * 4)));
using Sums = uint32_t __attribute__((vector_size(kWidth * 4)));  // unsigned numbers wrap around
using Pairs = int16_t __attribute__((vector_size(kWidth * 4)));  // numbers of two channels in each place

Pairs pairs(const uint32_t* p) {
  Pairs v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

Sums sums(const int32_t* p) {
  Sums v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

void store(Pairs v, uint32_t* p) { __builtin_memcpy(p, &v, sizeof(v)); }

/// Each second place from p on.
Pairs every_second(const uint32_t* p) {
  Sums low, high;
  __builtin_memcpy(&low, p, sizeof(low));
  __builtin_memcpy(&high, p + kWidth, sizeof(high));
#if defined(__AVX512F__)
  const Sums places = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
#elif defined(__AVX__)
  const Sums places = {0, 2, 4, 6, 8, 10, 12, 14};
#else
  const Sums places = {0, 2, 4, 6};
#endif
  return reinterpret_cast<Pairs>(__builtin_shuffle(low, high, places));
}

template <class Byte>
void paired(const Byte* __restrict__ even, const Byte* __restrict__ odd, int32_t zero_point, int64_t n,
            uint32_t* __restrict__ y) {
  for (int64_t i = 0; i < n; ++i) {
    const int32_t a = even[i] - zero_point, b = odd[i] - zero_point;
    y[i] = static_cast<uint32_t>(a & 0xffff) | static_cast<uint32_t>(b) << 16;
  }
}

template <class Byte>
void alone(const Byte* __restrict__ even, int32_t zero_point, int64_t n, uint32_t* __restrict__ y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<uint32_t>((even[i] - zero_point) & 0xffff);
}

template <class Byte>
void centred(const uint8_t* even, const uint8_t* odd, int32_t zero_point, int64_t n, uint32_t* y) {
  if (odd != nullptr) {
    paired(reinterpret_cast<const Byte*>(even), reinterpret_cast<const Byte*>(odd), zero_point, n, y);
  } else {
    alone(reinterpret_cast<const Byte*>(even), zero_point, n, y);
  }
}

}  // namespace

/// Tiles of a row as loops write them: whole vectors.
int64_t winograd_padded(int64_t tiles) { return (tiles + kWidth - 1) / kWidth * kWidth; }

/// The four differences and sums h (4, padded tiles) of a line of two channels, whose numbers of 16 bits follow each
/// other: tile t has the places from 2 t - pad on, and those beyond the n of the line are zeros. `line`: room for
/// 2 * padded tiles + 2 * vectors, zeros but for what this function has written for the same n and pad. `odd` is
/// nullptr where there is no second channel.
void winograd_line(const uint8_t* even, const uint8_t* odd, bool is_signed, int32_t zero_point, int64_t n, int64_t pad,
                   int64_t tiles, uint32_t* line, uint32_t* h) {
  const int64_t padded = winograd_padded(tiles), places = 2 * tiles + 2, read = n < places - pad ? n : places - pad;
  if (is_signed) {
    centred<int8_t>(even, odd, zero_point, read, line + pad);
  } else {
    centred<uint8_t>(even, odd, zero_point, read, line + pad);
  }
  for (int64_t t = 0; t < padded; t += kWidth) {
    const Pairs d0 = every_second(line + 2 * t), d1 = every_second(line + 2 * t + 1),
                d2 = every_second(line + 2 * t + 2), d3 = every_second(line + 2 * t + 3);
    store(d0 - d2, h + t);
    store(d1 + d2, h + padded + t);
    store(d2 - d1, h + 2 * padded + t);
    store(d1 - d3, h + 3 * padded + t);
  }
}

/// The transforms of a row of tiles: to[position * stride + tile] for 16 positions, and what follows the last tile up
/// to whole vectors. `h`: what winograd_line gives for the four lines of the tiles, which are `ldh` apart.
void winograd_columns(const uint32_t* h, int64_t ldh, int64_t tiles, uint32_t* to, int64_t stride) {
  const int64_t padded = winograd_padded(tiles);
  for (int64_t j = 0; j < 4; ++j, h += padded, to += stride) {
    for (int64_t t = 0; t < padded; t += kWidth) {
      const Pairs p0 = pairs(h + t), p1 = pairs(h + ldh + t), p2 = pairs(h + 2 * ldh + t), p3 = pairs(h + 3 * ldh + t);
      store(p0 - p2, to + t);
      store(p1 + p2, to + 4 * stride + t);
      store(p2 - p1, to + 8 * stride + t);
      store(p1 - p3, to + 12 * stride + t);
    }
  }
}

/// The four results y (2, 2, columns of a panel) of products m[position * stride + column].
void winograd_output(const int32_t* m, int64_t stride, int32_t* y) {
  for (int64_t v = 0; v < kColumns; v += kWidth) {
    Sums line[2][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const int32_t* p = m + j * stride + v;
      const Sums p0 = sums(p), p1 = sums(p + 4 * stride), p2 = sums(p + 8 * stride), p3 = sums(p + 12 * stride);
      line[0][j] = p0 + p1 + p2;
      line[1][j] = p1 - p2 - p3;
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const Whole first = reinterpret_cast<Whole>(line[i][0] + line[i][1] + line[i][2]) >> 2,
                  second = reinterpret_cast<Whole>(line[i][1] - line[i][2] - line[i][3]) >> 2;
      __builtin_memcpy(y + 2 * i * kColumns + v, &first, sizeof(first));
      __builtin_memcpy(y + (2 * i + 1) * kColumns + v, &second, sizeof(second));
    }
  }
}

}  // namespace nn_cpu::NN_ISA
