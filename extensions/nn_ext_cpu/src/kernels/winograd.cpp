#include "kernels/winograd.hpp"

#include <algorithm>
#include <atomic>

#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kPanel = kPanelColumns;
constexpr int64_t kMaxPositions = 36, kMaxOutputs = 16;
constexpr int64_t kBlockElements = 600'000;  // of transformed inputs and outputs together: 2.4 MB
constexpr int64_t kOwnElements = 240'000;    // the same in the cache of one thread
constexpr int64_t kOwnTiles = 16;  // tiles a block for which it is worth while that each thread reads all filters

std::atomic<bool>& enabled() {
  static std::atomic<bool> flag{true};
  return flag;
}

int64_t padded(int64_t channels) { return (channels + kPanel - 1) / kPanel * kPanel; }

/// Tiles that are transformed and multiplied together; a multiple of 8 rows, which is a matrix tile.
int64_t block_tiles(const WinogradShape& s) {
  const int64_t fitting = kBlockElements / (s.positions() * (s.c + s.k)) / 8 * 8;
  return std::min(s.tiles(), std::max<int64_t>(fitting, 16));
}

const WinogradLoops& loops(const WinogradShape& s) { return s.tile == 4 ? vectors().winograd4 : vectors().winograd2; }

/// The position of a tile.
struct Tile {
  int64_t image, row, column;  // of the first output pixel

  Tile(const WinogradShape& s, int64_t number)
      : image(number / (s.tile_rows() * s.tile_columns())),
        row(number / s.tile_columns() % s.tile_rows() * s.tile),
        column(number % s.tile_columns() * s.tile) {}
};

/// Pointers to the input pixels of a tile; `zeros` stands for those outside.
void input_pixels(const WinogradShape& s, const float* x, const float* zeros, int64_t number, const float** pixels) {
  const Tile tile(s, number);
  for (int64_t i = 0; i < s.side(); ++i) {
    const int64_t row = tile.row + i - s.pad_h;
    for (int64_t j = 0; j < s.side(); ++j) {
      const int64_t column = tile.column + j - s.pad_w;
      const bool inside = row >= 0 && row < s.h && column >= 0 && column < s.w;
      *pixels++ = inside ? x + ((tile.image * s.h + row) * s.w + column) * s.c : zeros;
    }
  }
}

/// Pointers to the output pixels of a tile; `outside` stands for those that do not exist.
template <class T>
void output_pixels(const WinogradShape& s, T* y, T* outside, int64_t number, T** pixels) {
  const Tile tile(s, number);
  for (int64_t row = tile.row; row < tile.row + s.tile; ++row) {
    for (int64_t column = tile.column; column < tile.column + s.tile; ++column) {
      const bool inside = row < s.oh && column < s.ow;
      *pixels++ = inside ? y + ((tile.image * s.oh + row) * s.ow + column) * s.k : outside;
    }
  }
}

constexpr int64_t kFilterStages = 2;

/// u[position][panel of k][c][lane] from weights in the first kFilterStages stages; `lines` is room for (9 c, k)
/// values.
void transform_filters(const WinogradShape& s, Team& team, const float* weight, float* lines, float* u) {
  const VectorTable& table = vectors();
  const int64_t stride = s.c * padded(s.k), panel_stride = s.c * kPanel;
  if (!s.turned) {
    team.share(
        0, 9 * s.c,
        [&](int64_t begin, int64_t end) {
          table.transpose(weight + begin, s.k, end - begin, 9 * s.c, lines + begin * s.k, s.k);
        },
        16);
  }
  team.share(1, s.c, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const float* g[9];
      float* line = lines + 9 * c * s.k;
      if (s.turned) table.transpose(weight + 9 * c * s.k, s.k, 9, 9, line, s.k);
      for (int64_t i = 0; i < 9; ++i) g[i] = line + (s.turned ? 8 - i : i) * s.k;
      loops(s).filter(g, s.k, u + c * kPanel, stride, panel_stride);
    }
  });
}

/// How many blocks threads shall take through all stages on their own; 0 where they had better share one.
int64_t blocks_of_threads(const WinogradShape& s) {
  const int64_t threads = num_threads(), fitting = std::max<int64_t>(1, kOwnElements / (s.positions() * (s.c + s.k)));
  const int64_t rounds = (s.tiles() + threads * fitting - 1) / (threads * fitting), blocks = rounds * threads;
  return s.tiles() / blocks >= kOwnTiles ? blocks : 0;
}

/// Positions are a line of cache further apart than they need, lest all of them meet in the same few places of the
/// cache.
constexpr int64_t kGap = 16;

/// Some tiles and what is computed of them: transformed inputs v[position][tile][c] and products m[position][tile][k].
struct Block {
  int64_t first, count, v_stride, m_stride;
  float *v, *m;

  Block(const WinogradShape& s, int64_t first_tile, int64_t n, float* room)
      : first(first_tile),
        count(n),
        v_stride(n * s.c + kGap),
        m_stride(n * s.k + kGap),
        v(room),
        m(room + s.positions() * v_stride) {}

  /// The room that n tiles take.
  static int64_t elements(const WinogradShape& s, int64_t n) { return s.positions() * (n * (s.c + s.k) + 2 * kGap); }
};

/// The three stages of a convolution, each for a part of a block.
struct Forward {
  const WinogradShape& s;
  const float *x, *zeros, *filters;
  const Epilogue& epilogue;
  float* y;

  int64_t panels() const { return padded(s.k) / kPanel; }
  int64_t n_products() const { return s.positions() * panels(); }

  void inputs(const Block& block, int64_t begin, int64_t end) const {
    const float* pixels[kMaxPositions];
    for (int64_t tile = begin; tile < end; ++tile) {
      input_pixels(s, x, zeros, block.first + tile, pixels);
      loops(s).input(pixels, s.c, block.v + tile * s.c, block.v_stride);
    }
  }

  /// Of each position and each panel of filters.
  void products(const Block& block, int64_t begin, int64_t end) const {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t position = item / panels(), channel = item % panels() * kPanel;
      vectors().panel_product(block.count, std::min(kPanel, s.k - channel), s.c, block.v + position * block.v_stride,
                              s.c, filters + item * s.c * kPanel, false, block.m + position * block.m_stride + channel,
                              s.k);
    }
  }

  void outputs(const Block& block, int64_t begin, int64_t end) const {
    float* pixels[kMaxOutputs];
    const float* addends[kMaxOutputs];
    for (int64_t tile = begin; tile < end; ++tile) {
      output_pixels<float>(s, y, nullptr, block.first + tile, pixels);
      if (epilogue.addend != nullptr)
        output_pixels<const float>(s, epilogue.addend, nullptr, block.first + tile, addends);
      loops(s).output(block.m + tile * s.k, block.m_stride, s.k, epilogue.scale, epilogue.shift,
                      epilogue.addend != nullptr ? addends : nullptr, epilogue.relu, pixels);
    }
  }
};

}  // namespace

bool winograd_enabled() { return enabled().load(std::memory_order_relaxed); }
void enable_winograd(bool flag) { enabled() = flag; }

std::optional<WinogradShape> fastest_winograd(const WinogradShape& shape, Weights weights) {
  if (shape.c < 16 || shape.k < 16 || shape.pad_h > 2 || shape.pad_w > 2) return std::nullopt;
  // All in products a channel pair: those of tiles with the transforms of their pixels, and what a filter costs at each
  // position; it is transformed, or read from memory where it is kept.
  const double per_filter = weights == Weights::kStay ? 10.0 : 33.0;
  const auto cost = [&](const WinogradShape& s) {
    const double per_tile = 1.11 + 6.1 / static_cast<double>(s.c) + 6.1 / static_cast<double>(s.k);
    return static_cast<double>(s.positions()) * (static_cast<double>(s.tiles()) * per_tile + per_filter);
  };
  const double products = 9.0 * static_cast<double>(shape.n * shape.oh * shape.ow);
  const double direct =
      weights == Weights::kStay ? products + 9.0 * per_filter : (weights == Weights::kChange ? 0.85 : 1.0) * products;
  WinogradShape large = shape, small = shape;
  large.tile = 4;
  small.tile = 2;
  const WinogradShape& best = weights == Weights::kStay && cost(small) < cost(large) ? small : large;
  return cost(best) < direct ? std::make_optional(best) : std::nullopt;
}

int64_t WinogradShape::filter_elements() const { return positions() * c * padded(k); }

std::string WinogradShape::filter_layout() const {
  return "winograd/" + std::to_string(tile) + '/' + std::to_string(c) + '/' + std::to_string(k) +
         (turned ? "/turned" : "");
}

void winograd_filters(const WinogradShape& s, const float* weight, float* filters) {
  Scratch scratch(Scratch::bytes<float>(9 * s.c * s.k));
  auto* lines = scratch.take<float>(9 * s.c * s.k);
  as_team(num_threads(), kFilterStages, [&](Team& team) { transform_filters(s, team, weight, lines, filters); });
}

void winograd_forward(const WinogradShape& s, const float* x, const float* weight, const float* filters,
                      const Epilogue& epilogue, float* y) {
  const int64_t n_lines = filters == nullptr ? 9 * s.c * s.k : 0,
                n_filters = filters == nullptr ? s.filter_elements() : 0;
  const int64_t own_blocks = blocks_of_threads(s),
                block = own_blocks > 0 ? (s.tiles() + own_blocks - 1) / own_blocks : block_tiles(s);
  const int64_t n_blocks = own_blocks > 0 ? own_blocks : (s.tiles() + block - 1) / block;
  const int64_t n_shared = own_blocks > 0 ? 0 : Block::elements(s, block);
  Scratch scratch(Scratch::bytes<float>(n_lines) + Scratch::bytes<float>(n_filters) + Scratch::bytes<float>(n_shared) +
                  Scratch::bytes<float>(s.c));
  auto* lines = scratch.take<float>(n_lines);
  auto* made = scratch.take<float>(n_filters);
  auto* shared = scratch.take<float>(n_shared);
  auto* zeros = scratch.take<float>(s.c);
  std::fill_n(zeros, s.c, 0.0f);
  const Forward forward{s, x, zeros, filters == nullptr ? made : filters, epilogue, y};
  as_team(num_threads(), kFilterStages + (own_blocks > 0 ? 1 : 3 * n_blocks), [&](Team& team) {
    int64_t stage = kFilterStages;
    if (filters == nullptr) transform_filters(s, team, weight, lines, made);
    if (own_blocks > 0) {
      team.share(stage, n_blocks, [&](int64_t begin, int64_t end) {
        Scratch own(Scratch::bytes<float>(Block::elements(s, block)));
        auto* room = own.take<float>(Block::elements(s, block));
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = s.tiles() * i / n_blocks;
          const Block part(s, first, s.tiles() * (i + 1) / n_blocks - first, room);
          forward.inputs(part, 0, part.count);
          forward.products(part, 0, forward.n_products());
          forward.outputs(part, 0, part.count);
        }
      });
      return;
    }
    for (int64_t first = 0; first < s.tiles(); first += block) {
      const Block part(s, first, std::min(block, s.tiles() - first), shared);
      team.share(stage++, part.count, [&](int64_t begin, int64_t end) { forward.inputs(part, begin, end); });
      team.share(stage++, forward.n_products(),
                 [&](int64_t begin, int64_t end) { forward.products(part, begin, end); });
      team.share(stage++, part.count, [&](int64_t begin, int64_t end) { forward.outputs(part, begin, end); });
    }
  });
}

void winograd_weights(const WinogradShape& s, const float* x, const float* dy, float* dweight) {
  const VectorTable& table = vectors();
  const int64_t block = block_tiles(s), wide_k = padded(s.k), panels = wide_k / kPanel;
  const int64_t v_stride = block * s.c + kGap, dm_stride = block * wide_k + kGap;
  Scratch scratch(Scratch::bytes<float>(9 * s.c * s.k) + Scratch::bytes<float>(s.positions() * s.c * wide_k) +
                  Scratch::bytes<float>(s.positions() * v_stride) + Scratch::bytes<float>(s.positions() * dm_stride) +
                  Scratch::bytes<float>(std::max(s.c, s.k)));
  auto* lines = scratch.take<float>(9 * s.c * s.k);
  auto* du = scratch.take<float>(s.positions() * s.c * wide_k);
  auto* v = scratch.take<float>(s.positions() * v_stride);
  auto* dm = scratch.take<float>(s.positions() * dm_stride);
  auto* zeros = scratch.take<float>(std::max(s.c, s.k));
  std::fill_n(zeros, std::max(s.c, s.k), 0.0f);
  const int64_t n_blocks = (s.tiles() + block - 1) / block;
  as_team(num_threads(), 2 * n_blocks + 2, [&](Team& team) {
    int64_t stage = 0;
    for (int64_t first = 0; first < s.tiles(); first += block) {
      const int64_t count = std::min(block, s.tiles() - first);
      team.share(stage++, count, [&](int64_t begin, int64_t end) {
        const float *in[kMaxPositions], *out[kMaxOutputs];
        for (int64_t tile = begin; tile < end; ++tile) {
          input_pixels(s, x, zeros, first + tile, in);
          loops(s).input(in, s.c, v + tile * s.c, v_stride);
          output_pixels<const float>(s, dy, zeros, first + tile, out);
          loops(s).gradient(out, s.k, dm + tile * kPanel, dm_stride, block * kPanel);
        }
      });
      team.share(stage++, s.positions() * panels, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t position = item / panels, panel = item % panels;
          table.product(s.c, kPanel, count, v + position * v_stride, 1, s.c,
                        dm + position * dm_stride + panel * block * kPanel, kPanel, first > 0, nullptr,
                        du + position * s.c * wide_k + panel * s.c * kPanel, kPanel);
        }
      });
    }
    team.share(stage++, s.c, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        float* dg[9];
        for (int64_t i = 0; i < 9; ++i) dg[i] = lines + (9 * c + i) * s.k;
        loops(s).weight(du + c * kPanel, s.c * wide_k, s.c * kPanel, s.k, dg);
      }
    });
    team.share(
        stage++, s.k,
        [&](int64_t begin, int64_t end) {
          table.transpose(lines + begin, 9 * s.c, end - begin, s.k, dweight + begin * 9 * s.c, 9 * s.c);
        },
        16);
  });
}

}  // namespace nn_cpu
