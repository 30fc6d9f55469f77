#include "kernels/integer_winograd.hpp"

#include <algorithm>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "support/scratch.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kPositions = 16;
constexpr int64_t kFilters = 24;         // that are multiplied before they are transformed back
constexpr int64_t kBlockBytes = 393216;  // of transformed images
constexpr int64_t kMostColumns = 32;     // of a panel

int64_t rounded(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

/// Copies a few bytes; a call of the library takes longer than most rows of tiles.
inline void copy_few(const uint8_t* from, int64_t n, uint8_t* to) {
  for (; n >= 16; n -= 16, from += 16, to += 16) std::memcpy(to, from, 16);
  if (n & 8) std::memcpy(to, from, 8), from += 8, to += 8;
  if (n & 4) std::memcpy(to, from, 4), from += 4, to += 4;
  if (n & 2) std::memcpy(to, from, 2), from += 2, to += 2;
  if (n & 1) *to = *from;
}

inline void copy_few(const int32_t* from, int64_t n, int32_t* to) { std::memcpy(to, from, static_cast<size_t>(n) * 4); }

/// to[2 i] = first[i], to[2 i + 1] = second[i]
inline void interleave(const uint8_t* first, const uint8_t* second, int64_t n, uint8_t* to) {
#ifdef __SSE2__
  for (int64_t i = 0; i < n; i += 8) {  // panels have 8 columns and more
    const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(first + i)),
                  y = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(second + i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i), _mm_unpacklo_epi8(x, y));
  }
#else
  for (int64_t i = 0; i < n; ++i) to[2 * i] = first[i], to[2 * i + 1] = second[i];
#endif
}

inline void interleave(const int32_t* first, const int32_t* second, int64_t n, int32_t* to) {
  for (int64_t i = 0; i < n; ++i) to[2 * i] = first[i], to[2 * i + 1] = second[i];
}

/// Transformed images, their products, and what is made of these. Numbers of two channels follow each other in a pair:
/// v[position][pair of channels][tile].
class Block {
 public:
  Block(const IntegerLoops& loops, const IntegerWinograd& s, const WinogradPart& part)
      : loops_(loops), s_(s), part_(part), tiles_(part.rows * s.tile_columns()), width_(loops.columns) {
    // whole panels, room for the vectors of the last row, and no line of cache that all pairs share
    pitch_ = rounded(tiles_, width_) + width_ + 16;
  }

  int64_t panels() const { return (tiles_ + width_ - 1) / width_; }
  /// Pairs of numbers of a position.
  int64_t position_size() const { return s_.depth() / 2 * pitch_; }

  /// Transforms an image.
  void inputs(const uint8_t* x, int32_t zero_point, uint32_t* to) const {
    const int64_t tiles = s_.tile_columns(), size = 4 * loops_.winograd_padded(tiles), lines = 2 * part_.rows + 2;
    const int64_t room = size / 2 + 4 * width_;
    Scratch scratch(Scratch::bytes<uint32_t>(lines * size) + Scratch::bytes<uint32_t>(room));
    auto *h = scratch.take<uint32_t>(lines * size), *line = scratch.take<uint32_t>(room);
    std::fill_n(line, room, 0u);
    for (int64_t channel = 0; channel < s_.channels; channel += 2) {
      const uint8_t *even = x + channel * s_.h * s_.w, *odd = even + s_.h * s_.w;
      for (int64_t i = 0; i < lines; ++i) {
        const int64_t row = 2 * part_.first_row + i - s_.pad_h;
        if (row < 0 || row >= s_.h) {
          std::fill_n(h + i * size, size, 0u);
          continue;
        }
        loops_.winograd_line(even + row * s_.w, channel + 1 < s_.channels ? odd + row * s_.w : nullptr, s_.x_signed,
                             zero_point, s_.w, s_.pad_w, tiles, line, h + i * size);
      }
      uint32_t* pair = to + channel / 2 * pitch_;
      for (int64_t row = 0; row < part_.rows; ++row) {
        loops_.winograd_columns(h + 2 * row * size, size, tiles, pair + row * tiles, position_size());
      }
    }
  }

  /// A number of filters from `first` on; `u` are all filters at the first position.
  void filters(const uint32_t* v, const int16_t* u, int64_t first, int64_t n, const int32_t* bias,
               const LevelScales& scales, const ProductResult& result, void* const* arrays, int64_t offset) const {
    int32_t m[kPositions * kMostColumns * kFilters];
    const int64_t depth = s_.depth(), step = 8192 / width_;
    for (int64_t panel = 0; panel < panels(); ++panel) {
      for (int64_t position = 0; position < kPositions; ++position) {
        const auto* right = reinterpret_cast<const int16_t*>(v + position * position_size() + panel * width_);
        const int16_t* left = u + (position * s_.filters + first) * depth;
        for (int64_t p = 0; p < depth; p += step) {
          loops_.product(n, width_, std::min(step, depth - p), left + p, depth, right + p * pitch_, 2 * pitch_, p > 0,
                         m + position * width_, kPositions * width_);
        }
      }
      for (int64_t k = 0; k < n; ++k) {
        int32_t y[4 * kMostColumns];
        loops_.winograd_output(m + k * kPositions * width_, width_, y);
        const int64_t filter = first + k, place = offset + filter * s_.oh * s_.ow;
        if (result.to_levels()) {
          LevelScales own = scales;
          own.rows += filter;
          IntegerTerms terms;
          terms.rows = bias + filter;
          uint8_t levels[4 * kMostColumns];
          loops_.requantize(1, 4 * width_, terms, y, 0, own, levels, 0);
          write(levels, panel, static_cast<uint8_t*>(arrays[result.places().y]) + place);
        } else {
          for (int64_t i = 0; i < 4 * width_; ++i) y[i] = added(y[i], bias[filter], 1);
          write(y, panel, static_cast<int32_t*>(arrays[result.places().y]) + place);
        }
      }
    }
  }

 private:
  /// Two by two results of each tile of a panel.
  template <class T>
  void write(const T* from, int64_t panel, T* y) const {
    T lines[2][2 * kMostColumns];
    for (int64_t i = 0; i < 2; ++i) {
      interleave(from + 2 * i * width_, from + (2 * i + 1) * width_, width_, lines[i]);
    }
    const int64_t tiles = s_.tile_columns(), first = panel * width_, count = std::min(width_, tiles_ - first);
    int64_t row = part_.first_row + first / tiles, column = first % tiles;
    for (int64_t t = 0, n = 0; t < count; t += n, column = 0, ++row) {
      n = std::min(count - t, tiles - column);
      const int64_t places = std::min(2 * n, s_.ow - 2 * column);
      for (int64_t i = 0; i < std::min<int64_t>(2, s_.oh - 2 * row); ++i) {
        copy_few(lines[i] + 2 * t, places, y + (2 * row + i) * s_.ow + 2 * column);
      }
    }
  }

  const IntegerLoops& loops_;
  const IntegerWinograd& s_;
  const WinogradPart& part_;
  int64_t tiles_, width_, pitch_;
};

}  // namespace

bool IntegerWinograd::is_faster(int64_t columns) const {
  constexpr int64_t kExact = 900;  // channels: 9 * 900 products of 255 * 255 stay below 2^29
  if (channels < 16 || filters < 16 || channels > kExact || pad_h > 2 || pad_w > 2) return false;
  const int64_t tiles = tile_rows() * tile_columns();
  // transforms take about as long as the products of 24 channels, and filters come from farther away
  const double products = 16.0 * static_cast<double>(rounded(tiles, columns)) * static_cast<double>(channels + 24),
               direct = 9.0 * static_cast<double>(rounded(oh * ow, columns)) * static_cast<double>(channels + 8);
  return products < 0.85 * direct;
}

void IntegerWinograd::transform_filters(const uint8_t* weight, void* to) const {
  auto* u = static_cast<int16_t*>(to);
  const int64_t size = filters * depth();
  if (depth() > channels) std::fill_n(u, kPositions * size, int16_t{0});
  const auto number = [&](int64_t i) {
    return weight_signed ? static_cast<int>(static_cast<int8_t>(weight[i])) : static_cast<int>(weight[i]);
  };
  const auto along = [](const int* g, int* y, int64_t step) {
    y[0] = 2 * g[0], y[step] = g[0] + g[1] + g[2], y[2 * step] = g[0] - g[1] + g[2], y[3 * step] = 2 * g[2];
  };
  for (int64_t k = 0; k < filters; ++k) {
    for (int64_t c = 0; c < channels; ++c, weight += 9) {
      int half[12], whole[16];  // (4, 3), then (4, 4)
      for (int64_t j = 0; j < 3; ++j) {
        const int g[3] = {number(j), number(3 + j), number(6 + j)};
        along(g, half + j, 3);
      }
      for (int64_t i = 0; i < 4; ++i) along(half + 3 * i, whole + 4 * i, 1);
      for (int64_t position = 0; position < kPositions; ++position) {
        u[position * size + k * depth() + c] = static_cast<int16_t>(whole[position]);
      }
    }
  }
}

std::string IntegerWinograd::layout() const {
  return std::string("integer winograd ") + (weight_signed ? "s" : "u") + std::to_string(filters) + "x" +
         std::to_string(channels);
}

int64_t winograd_rows(const IntegerWinograd& s) {
  const int64_t row_bytes = kPositions * s.depth() * 2 * s.tile_columns();
  return std::clamp<int64_t>(kBlockBytes / row_bytes, 1, s.tile_rows());
}

void integer_winograd(const IntegerLoops& loops, const IntegerWinograd& s, const WinogradPart& part, const uint8_t* x,
                      int32_t zero_point, const int16_t* filters, const int32_t* bias, const LevelScales& scales,
                      const ProductResult& result, void* const* arrays, int64_t offset) {
  const Block block(loops, s, part);
  Scratch scratch(Scratch::bytes<uint32_t>(kPositions * block.position_size()));
  auto* v = scratch.take<uint32_t>(kPositions * block.position_size());
  block.inputs(x, zero_point, v);
  for (int64_t k = 0; k < part.filters; k += kFilters) {
    block.filters(v, filters, part.first_filter + k, std::min(kFilters, part.filters - k), bias, scales, result, arrays,
                  offset);
  }
}

}  // namespace nn_cpu
