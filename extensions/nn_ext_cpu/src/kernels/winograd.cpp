#include "kernels/winograd.hpp"

#include <algorithm>
#include <atomic>

#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kPanel = kWinogradPanel;
constexpr int64_t kPositions = 36;
constexpr int64_t kBlockElements = 600'000;  // of transformed inputs and outputs together: 2.4 MB

std::atomic<bool>& enabled() {
  static std::atomic<bool> flag{true};
  return flag;
}

int64_t padded(int64_t channels) { return (channels + kPanel - 1) / kPanel * kPanel; }

/// Tiles that are transformed and multiplied together; a multiple of 8 rows, which is a matrix tile.
int64_t block_tiles(const WinogradShape& s) {
  const int64_t fitting = kBlockElements / (kPositions * (s.c + s.k)) / 8 * 8;
  return std::min(s.tiles(), std::max<int64_t>(fitting, 16));
}

/// Where a tile lies.
struct Tile {
  int64_t image, row, column;  // of the first output pixel

  Tile(const WinogradShape& s, int64_t number)
      : image(number / (s.tile_rows() * s.tile_columns())), row(number / s.tile_columns() % s.tile_rows() * 4),
        column(number % s.tile_columns() * 4) {}
};

/// Pointers to the 6 x 6 input pixels of a tile; `zeros` stands for those outside.
void input_pixels(const WinogradShape& s, const float* x, const float* zeros, int64_t number, const float** pixels) {
  const Tile tile(s, number);
  for (int64_t i = 0; i < 6; ++i) {
    const int64_t row = tile.row + i - s.pad_h;
    for (int64_t j = 0; j < 6; ++j) {
      const int64_t column = tile.column + j - s.pad_w;
      const bool inside = row >= 0 && row < s.h && column >= 0 && column < s.w;
      pixels[6 * i + j] = inside ? x + ((tile.image * s.h + row) * s.w + column) * s.c : zeros;
    }
  }
}

/// Pointers to the 4 x 4 output pixels of a tile; `outside` stands for those that do not exist.
template <class T>
void output_pixels(const WinogradShape& s, T* y, T* outside, int64_t number, T** pixels) {
  const Tile tile(s, number);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      const int64_t row = tile.row + i, column = tile.column + j;
      const bool inside = row < s.oh && column < s.ow;
      pixels[4 * i + j] = inside ? y + ((tile.image * s.oh + row) * s.ow + column) * s.k : outside;
    }
  }
}

constexpr int64_t kFilterStages = 2;

/// u[position][panel of k][c][lane] from weights in the first kFilterStages stages; `lines` is room for (9 c, k) values.
void transform_filters(const WinogradShape& s, Team& team, const float* weight, float* lines, float* u) {
  const VectorTable& table = vectors();
  const int64_t stride = s.c * padded(s.k), panel_stride = s.c * kPanel;
  if (!s.turned) {
    team.share(0, 9 * s.c, [&](int64_t begin, int64_t end) {
      table.transpose(weight + begin, s.k, end - begin, 9 * s.c, lines + begin * s.k, s.k);
    }, 16);
  }
  team.share(1, s.c, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const float* g[9];
      float* line = lines + 9 * c * s.k;
      if (s.turned) table.transpose(weight + 9 * c * s.k, s.k, 9, 9, line, s.k);
      for (int64_t i = 0; i < 9; ++i) g[i] = line + (s.turned ? 8 - i : i) * s.k;
      table.winograd_filter(g, s.k, u + c * kPanel, stride, panel_stride);
    }
  });
}

}  // namespace

bool winograd_enabled() { return enabled().load(std::memory_order_relaxed); }
void enable_winograd(bool flag) { enabled() = flag; }

bool WinogradShape::pays(bool keeps_filters) const {
  // All in products a channel pair: the direct method, the 36 matrix products, transforms of pixels, and of filters.
  const double direct = 9.0 * static_cast<double>(n * oh * ow);
  const double per_tile = 40.0 + 220.0 / static_cast<double>(c) + 220.0 / static_cast<double>(k);
  return c >= 16 && k >= 16 && pad_h <= 2 && pad_w <= 2 && static_cast<double>(tiles()) * per_tile + 1200.0 < (keeps_filters ? 1.0 : 0.85) * direct;
}

int64_t WinogradShape::filter_elements() const { return kPositions * c * padded(k); }

void winograd_filters(const WinogradShape& s, const float* weight, float* filters) {
  Scratch scratch(Scratch::bytes<float>(9 * s.c * s.k));
  auto* lines = scratch.take<float>(9 * s.c * s.k);
  as_team(num_threads(), kFilterStages, [&](Team& team) { transform_filters(s, team, weight, lines, filters); });
}

void winograd_forward(const WinogradShape& s, const float* x, const float* weight, const float* filters, const Epilogue& epilogue,
                      float* y) {
  const VectorTable& table = vectors();
  const int64_t block = block_tiles(s), wide_k = padded(s.k), panels = wide_k / kPanel;
  const int64_t n_lines = filters == nullptr ? 9 * s.c * s.k : 0, n_filters = filters == nullptr ? s.filter_elements() : 0;
  Scratch scratch(Scratch::bytes<float>(n_lines) + Scratch::bytes<float>(n_filters) + Scratch::bytes<float>(kPositions * block * s.c) +
                  Scratch::bytes<float>(kPositions * block * s.k) + Scratch::bytes<float>(s.c));
  auto* lines = scratch.take<float>(n_lines);
  auto* made = scratch.take<float>(n_filters);
  const float* u = filters == nullptr ? made : filters;
  auto* v = scratch.take<float>(kPositions * block * s.c);
  auto* m = scratch.take<float>(kPositions * block * s.k);
  auto* zeros = scratch.take<float>(s.c);
  std::fill_n(zeros, s.c, 0.0f);
  const int64_t n_blocks = (s.tiles() + block - 1) / block;
  as_team(num_threads(), kFilterStages + 3 * n_blocks, [&](Team& team) {
    int64_t stage = kFilterStages;
    if (filters == nullptr) transform_filters(s, team, weight, lines, made);
    for (int64_t first = 0; first < s.tiles(); first += block) {
      const int64_t count = std::min(block, s.tiles() - first);
      team.share(stage++, count, [&](int64_t begin, int64_t end) {
        const float* pixels[36];
        for (int64_t tile = begin; tile < end; ++tile) {
          input_pixels(s, x, zeros, first + tile, pixels);
          table.winograd_input(pixels, s.c, v + tile * s.c, block * s.c);
        }
      });
      team.share(stage++, kPositions * panels, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t position = item / panels, panel = item % panels;
          table.product(count, std::min(kPanel, s.k - panel * kPanel), s.c, v + position * block * s.c, s.c, 1,
                        u + position * s.c * wide_k + panel * s.c * kPanel, kPanel, false, nullptr, m + position * block * s.k + panel * kPanel, s.k);
        }
      });
      team.share(stage++, count, [&](int64_t begin, int64_t end) {
        float* pixels[16];
        const float* addends[16];
        for (int64_t tile = begin; tile < end; ++tile) {
          output_pixels<float>(s, y, nullptr, first + tile, pixels);
          if (epilogue.addend != nullptr) output_pixels<const float>(s, epilogue.addend, nullptr, first + tile, addends);
          table.winograd_output(m + tile * s.k, block * s.k, s.k, epilogue.scale, epilogue.shift,
                                epilogue.addend != nullptr ? addends : nullptr, epilogue.relu, pixels);
        }
      });
    }
  });
}

void winograd_weights(const WinogradShape& s, const float* x, const float* dy, float* dweight) {
  const VectorTable& table = vectors();
  const int64_t block = block_tiles(s), wide_k = padded(s.k), panels = wide_k / kPanel;
  Scratch scratch(Scratch::bytes<float>(9 * s.c * s.k) + Scratch::bytes<float>(kPositions * s.c * wide_k) +
                  Scratch::bytes<float>(kPositions * block * s.c) + Scratch::bytes<float>(kPositions * block * wide_k) +
                  Scratch::bytes<float>(std::max(s.c, s.k)));
  auto* lines = scratch.take<float>(9 * s.c * s.k);
  auto* du = scratch.take<float>(kPositions * s.c * wide_k);
  auto* v = scratch.take<float>(kPositions * block * s.c);
  auto* dm = scratch.take<float>(kPositions * block * wide_k);
  auto* zeros = scratch.take<float>(std::max(s.c, s.k));
  std::fill_n(zeros, std::max(s.c, s.k), 0.0f);
  const int64_t n_blocks = (s.tiles() + block - 1) / block;
  as_team(num_threads(), 2 * n_blocks + 2, [&](Team& team) {
    int64_t stage = 0;
    for (int64_t first = 0; first < s.tiles(); first += block) {
      const int64_t count = std::min(block, s.tiles() - first);
      team.share(stage++, count, [&](int64_t begin, int64_t end) {
        const float *in[36], *out[16];
        for (int64_t tile = begin; tile < end; ++tile) {
          input_pixels(s, x, zeros, first + tile, in);
          table.winograd_input(in, s.c, v + tile * s.c, block * s.c);
          output_pixels<const float>(s, dy, zeros, first + tile, out);
          table.winograd_gradient(out, s.k, dm + tile * kPanel, block * wide_k, block * kPanel);
        }
      });
      team.share(stage++, kPositions * panels, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t position = item / panels, panel = item % panels;
          table.product(s.c, kPanel, count, v + position * block * s.c, 1, s.c, dm + position * block * wide_k + panel * block * kPanel,
                        kPanel, first > 0, nullptr, du + position * s.c * wide_k + panel * s.c * kPanel, kPanel);
        }
      });
    }
    team.share(stage++, s.c, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        float* dg[9];
        for (int64_t i = 0; i < 9; ++i) dg[i] = lines + (9 * c + i) * s.k;
        table.winograd_weight(du + c * kPanel, s.c * wide_k, s.c * kPanel, s.k, dg);
      }
    });
    team.share(stage++, s.k, [&](int64_t begin, int64_t end) {
      table.transpose(lines + begin, 9 * s.c, end - begin, s.k, dweight + begin * 9 * s.c, 9 * s.c);
    }, 16);
  });
}

}  // namespace nn_cpu
