#include "support/unfolding.hpp"

#include <algorithm>

#include "support/folding.hpp"
#include "support/gemm.hpp"
#include "support/grid.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/sliding.hpp"

namespace nn_cpu {
namespace {

/// The channels of one group of one image of a batch.
template <class T>
struct Source {
  const T* data;
  int64_t channels, channel;  // and the stride of channels
  Three axes;
};

/// to[position][tap][channel]
template <class T>
void unfold_positions(const Grid& grid, const Source<T>& x, int64_t begin, int64_t end, T* to) {
  const auto& [outer, middle, inner] = grid.axes;
  const auto n_inner = static_cast<int64_t>(inner.taps.size());
  const bool has_runs = grid.has_runs() && x.axes[2] == x.channels;
  const int64_t row = n_inner * x.channels;
  for_each_line(grid, begin, end, [&](Three t, int64_t, int64_t n) {
    for (int64_t i = 0; i < n; ++i, ++t[2]) {
      for (const Axis::Tap& first : outer.taps) {
        const int64_t at0 = t[0] * outer.step + first.offset;
        for (const Axis::Tap& second : middle.taps) {
          const int64_t at1 = t[1] * middle.step + second.offset;
          if (at0 < 0 || at0 >= outer.length || at1 < 0 || at1 >= middle.length) {
            to = std::fill_n(to, row, T{0});
            continue;
          }
          const T* line = x.data + at0 * x.axes[0] + at1 * x.axes[1];
          if (has_runs && n_inner > 0) {
            const int64_t start = t[2] * inner.step + inner.taps[0].offset;
            const int64_t low = std::clamp<int64_t>(-start, 0, n_inner),
                          high = std::clamp<int64_t>(inner.length - start, low, n_inner);
            to = std::fill_n(to, low * x.channels, T{0});
            to = std::copy_n(line + (start + low) * x.channels, (high - low) * x.channels, to);
            to = std::fill_n(to, (n_inner - high) * x.channels, T{0});
            continue;
          }
          for (const Axis::Tap& third : inner.taps) {
            const int64_t at2 = t[2] * inner.step + third.offset;
            to = at2 < 0 || at2 >= inner.length ? std::fill_n(to, x.channels, T{0})
                                                : std::copy_n(line + at2 * x.axes[2], x.channels, to);
          }
        }
      }
    }
  });
}

/// Values `stride` elements apart, at steps [0, n) of a line; 0 outside of [0, length).
template <class T>
void copy_line(const T* line, int64_t start, int64_t step, int64_t length, int64_t stride, int64_t n, T* to) {
  const int64_t low = std::clamp<int64_t>(start < 0 ? (-start + step - 1) / step : 0, 0, n),
                high = std::clamp<int64_t>(start < length ? (length - start + step - 1) / step : 0, low, n);
  std::fill_n(to, low, T{0});
  const T* from = line + (start + low * step) * stride;
  if (step * stride == 1) {
    std::copy_n(from, high - low, to + low);
  } else {
    for (int64_t i = low; i < high; ++i, from += step * stride) to[i] = *from;
  }
  std::fill_n(to + high, n - high, T{0});
}

/// to[channel][tap][position]
template <class T>
void unfold_rows(const Grid& grid, const Source<T>& x, int64_t begin, int64_t end, T* to) {
  const auto& [outer, middle, inner] = grid.axes;
  for (int64_t channel = 0; channel < x.channels; ++channel) {
    for (const Axis::Tap& first : outer.taps) {
      for (const Axis::Tap& second : middle.taps) {
        for (const Axis::Tap& third : inner.taps) {
          for_each_line(grid, begin, end, [&](const Three& t, int64_t place, int64_t n) {
            const int64_t at0 = t[0] * outer.step + first.offset, at1 = t[1] * middle.step + second.offset;
            if (at0 < 0 || at0 >= outer.length || at1 < 0 || at1 >= middle.length) {
              std::fill_n(to + place, n, T{0});
              return;
            }
            const T* line = x.data + channel * x.channel + at0 * x.axes[0] + at1 * x.axes[1];
            copy_line(line, t[2] * inner.step + third.offset, inner.step, inner.length, x.axes[2], n, to + place);
          });
          to += end - begin;
        }
      }
    }
  }
}

/// Whether an image is unfolded by positions, with channels next to each other, or by channels.
bool by_position(const Three& axes, int64_t channel, int64_t channels) {
  constexpr int64_t kWorthCopying = 4;
  return channel == 1 && (channels >= kWorthCopying || axes[2] == channels);
}

/// The unfolded image as a matrix (positions, taps and channels).
template <class T>
MatrixOf<T> unfold(const Grid& grid, const Source<T>& x, int64_t begin, int64_t end, T* to) {
  if (by_position(x.axes, x.channel, x.channels)) {
    unfold_positions(grid, x, begin, end, to);
    return {to, grid.taps() * x.channels};
  }
  unfold_rows(grid, x, begin, end, to);
  return {to, end - begin, true};
}

/// Calls body(column, offset of the weight) for the columns of the matrix of `unfold`.
template <class Body>
void for_each_column(const Grid& grid, const Dims& kernel_strides, bool is_by_position, int64_t channels,
                     int64_t channel, const Body& body) {
  const Three strides = three(kernel_strides, 0);
  const int64_t taps = grid.taps();
  int64_t tap = 0;
  for (const Axis::Tap& first : grid.axes[0].taps) {
    for (const Axis::Tap& second : grid.axes[1].taps) {
      for (const Axis::Tap& third : grid.axes[2].taps) {
        const int64_t place = first.number * strides[0] + second.number * strides[1] + third.number * strides[2];
        for (int64_t c = 0; c < channels; ++c)
          body(is_by_position ? tap * channels + c : c * taps + tap, place + c * channel);
        ++tap;
      }
    }
  }
}

template <class T>
Source<T> source_of(const T* data, const ImageLayout& layout, int64_t n, int64_t group, int64_t channels) {
  return {data + n * layout.batch + group * channels * layout.channel, channels, layout.channel, three(layout.axes, 0)};
}

/// One direction of a convolution: an image that is read, one that is written, and the weights between them.
template <class T>
struct Direction {
  std::vector<Grid> grids;
  int64_t batch, groups, in, out;  // channels of one group
  const T* x;
  const ImageLayout& x_layout;
  const T* weight;
  int64_t weight_group, weight_in, weight_out;
  const Dims& weight_kernel;
  const T* bias;
  T* y;
  const ImageLayout& y_layout;

  void run() const {
    int64_t n_weights = 0;
    std::vector<int64_t> starts;
    for (const Grid& grid : grids) {
      starts.push_back(n_weights);
      n_weights += groups * out * grid.taps() * in;
    }
    Scratch scratch(Scratch::bytes<T>(n_weights));
    auto* matrices = scratch.take<T>(n_weights);
    parallel_for(static_cast<int64_t>(grids.size()) * groups, 1 + 16384 * groups / (n_weights + 1),
                 [&](int64_t begin, int64_t end, int) {
                   for (int64_t i = begin; i < end; ++i) {
                     const Grid& grid = grids[i / groups];
                     const int64_t group = i % groups;
                     arrange(grid, group, matrices + starts[i / groups] + group * out * grid.taps() * in);
                   }
                 });
    for (size_t i = 0; i < grids.size(); ++i) multiply(grids[i], matrices + starts[i]);
  }

 private:
  /// The weights of a group as a matrix (out, columns of the unfolded image).
  void arrange(const Grid& grid, int64_t group, T* to) const {
    const int64_t columns = grid.taps() * in;
    for (int64_t k = 0; k < out; ++k, to += columns) {
      const T* from = weight + group * weight_group + k * weight_out;
      for_each_column(grid, weight_kernel, by_position(three(x_layout.axes, 0), x_layout.channel, in), in, weight_in,
                      [&](int64_t column, int64_t place) { to[column] = from[place]; });
    }
  }

  void multiply(const Grid& grid, const T* matrices) const {
    const int64_t columns = grid.taps() * in, positions = grid.positions(), piece = piece_of(grid, in, out),
                  pieces = (positions + piece - 1) / piece;
    const double work = static_cast<double>(std::min(piece, positions)) * static_cast<double>(columns * out);
    const auto grain = static_cast<int64_t>(1 + 200'000 / (work + 1));
    parallel_for(batch * groups * pieces, grain, [&](int64_t first, int64_t last, int) {
      Scratch scratch(Scratch::bytes<T>(piece * columns) + Scratch::bytes<T>(piece * out));
      auto *unfolded = scratch.take<T>(piece * columns), *product = scratch.take<T>(piece * out);
      for (int64_t i = first; i < last; ++i) {
        const int64_t n = i / pieces / groups, group = i / pieces % groups, begin = i % pieces * piece,
                      end = std::min(positions, begin + piece), count = end - begin;
        const Source<T> source = source_of(x, x_layout, n, group, in);
        const MatrixOf<T> image = unfold(grid, source, begin, end, unfolded),
                          filters{matrices + group * out * columns, columns};
        const T* offsets = bias != nullptr ? bias + group * out : nullptr;
        T* to = y + n * y_layout.batch + group * out * y_layout.channel;
        if (y_layout.channel == 1) {
          gemm(count, out, columns, image, MatrixOf<T>{filters.data, columns, true}, false, product, out, offsets);
          put_positions(grid, begin, end, product, to);
        } else {
          const MatrixOf<T> turned{image.data, image.ld, !image.transposed};
          gemm(out, count, columns, filters, turned, false, product, count);
          put_rows(grid, begin, end, product, offsets, to);
        }
      }
    });
  }

  void put_positions(const Grid& grid, int64_t begin, int64_t end, const T* product, T* to) const {
    const Target target(grid, y_layout);
    for_each_line(grid, begin, end, [&](const Three& t, int64_t place, int64_t n) {
      T* line = to + target.at(t);
      for (int64_t i = 0; i < n; ++i) std::copy_n(product + (place + i) * out, out, line + i * target.spacing[2]);
    });
  }

  void put_rows(const Grid& grid, int64_t begin, int64_t end, const T* product, const T* offsets, T* to) const {
    const Target target(grid, y_layout);
    for (int64_t k = 0; k < out; ++k, product += end - begin) {
      const T offset = offsets != nullptr ? offsets[k] : T{0};
      for_each_line(grid, begin, end, [&](const Three& t, int64_t place, int64_t n) {
        T* line = to + k * target.channel + target.at(t);
        const int64_t step = target.spacing[2];
        for (int64_t i = 0; i < n; ++i) line[i * step] = product[place + i] + offset;
      });
    }
  }
};

/// The gradient of the weights of one group, as a matrix (small channels, columns of the unfolded image).
template <class T>
class WeightGradient {
 public:
  WeightGradient(const Unfolding& u, const T* small, const ImageLayout& small_layout, const T* large,
                 const ImageLayout& large_layout)
      : u_(u),
        grid_(grid_down(u)),
        small_(small),
        small_layout_(small_layout),
        large_(large),
        large_layout_(large_layout),
        piece_(piece_of(grid_, u.large_channels, u.small_channels)),
        columns_(grid_.taps() * u.large_channels),
        is_by_position_(by_position(three(large_layout.axes, 0), large_layout.channel, u.large_channels)) {}

  int64_t elements() const { return u_.small_channels * columns_; }
  int64_t pieces() const { return u_.batch * per_image(); }

  /// Adds what pieces [first, last) of a group give, to a sum that is 0 at first.
  void sum(int64_t group, int64_t first, int64_t last, T* total) const {
    const int64_t channels = u_.small_channels;
    Scratch scratch(Scratch::bytes<T>(piece_ * columns_) + Scratch::bytes<T>(piece_ * channels));
    auto *unfolded = scratch.take<T>(piece_ * columns_), *values = scratch.take<T>(piece_ * channels);
    std::fill_n(total, elements(), T{0});
    for (int64_t i = first; i < last; ++i) {
      const int64_t n = i / per_image(), begin = i % per_image() * piece_,
                    end = std::min(grid_.positions(), begin + piece_);
      const Source<T> source = source_of(large_, large_layout_, n, group, u_.large_channels);
      const MatrixOf<T> image = unfold(grid_, source, begin, end, unfolded);
      take_rows(grid_, Target(grid_, small_layout_),
                small_ + n * small_layout_.batch + group * channels * small_layout_.channel, channels, begin, end,
                values);
      gemm(channels, columns_, end - begin, MatrixOf<T>{values, end - begin}, image, true, total, columns_);
    }
  }

  /// Writes the sum where the weights of the group are.
  void put(const T* total, const WeightLayout& layout, T* weight) const {
    for (int64_t k = 0; k < u_.small_channels; ++k, total += columns_) {
      T* to = weight + k * layout.small;
      for_each_column(grid_, layout.kernel, is_by_position_, u_.large_channels, layout.large,
                      [&](int64_t column, int64_t place) { to[place] = total[column]; });
    }
  }

 private:
  int64_t per_image() const { return (grid_.positions() + piece_ - 1) / piece_; }

  const Unfolding& u_;
  Grid grid_;
  const T* small_;
  const ImageLayout& small_layout_;
  const T* large_;
  const ImageLayout& large_layout_;
  int64_t piece_, columns_;
  bool is_by_position_;
};

}  // namespace

ImageLayout::ImageLayout(const ArrayDesc& image)
    : batch(image.strides[0]), channel(image.strides[1]), axes(image.strides.begin() + 2, image.strides.end()) {
  if (image.shape[1] == 1) channel = 0;  // its stride means nothing
}

template <class T>
void unfold_down(const Unfolding& u, const T* large, const ImageLayout& large_layout, const T* weight,
                 const WeightLayout& w, const T* bias, T* small, const ImageLayout& small_layout) {
  if (is_sliding(u)) return slide_down(u, large, large_layout, weight, w, bias, small, small_layout);
  Direction<T>{{grid_down(u)}, u.batch, u.groups,    u.large_channels, u.small_channels, large,
               large_layout,   weight,  w.group,     w.large,          w.small,          w.kernel,
               bias,           small,   small_layout}
      .run();
}

template <class T>
void unfold_up(const Unfolding& u, const T* small, const ImageLayout& small_layout, const T* weight,
               const WeightLayout& w, const T* bias, T* large, const ImageLayout& large_layout) {
  if (is_sliding(u)) return slide_up(u, small, small_layout, weight, w, bias, large, large_layout);
  if (is_better_folded(u)) return fold_up(u, small, small_layout, weight, w, bias, large, large_layout);
  Direction<T>{grids_up(u),  u.batch, u.groups,    u.small_channels, u.large_channels, small,
               small_layout, weight,  w.group,     w.small,          w.large,          w.kernel,
               bias,         large,   large_layout}
      .run();
}

template <class T>
void unfold_weights(const Unfolding& u, const T* small, const ImageLayout& small_layout, const T* large,
                    const ImageLayout& large_layout, T* dweight, const WeightLayout& w) {
  if (is_sliding(u)) return slide_weights(u, small, small_layout, large, large_layout, dweight, w);
  const WeightGradient<T> gradient(u, small, small_layout, large, large_layout);
  if (u.groups >= num_threads()) {
    parallel_for(u.groups, 1, [&](int64_t begin, int64_t end, int) {
      Scratch scratch(Scratch::bytes<T>(gradient.elements()));
      auto* total = scratch.take<T>(gradient.elements());
      for (int64_t group = begin; group < end; ++group) {
        gradient.sum(group, 0, gradient.pieces(), total);
        gradient.put(total, w, dweight + group * w.group);
      }
    });
    return;
  }
  const int64_t n = gradient.elements(), most = num_threads();
  Scratch scratch(Scratch::bytes<T>(n * most));
  auto* totals = scratch.take<T>(n * most);
  for (int64_t group = 0; group < u.groups; ++group) {
    std::fill_n(totals, n * most, T{0});
    parallel_for(gradient.pieces(), 1,
                 [&](int64_t begin, int64_t end, int thread) { gradient.sum(group, begin, end, totals + thread * n); });
    for (int64_t thread = 1; thread < most; ++thread) {
      for (int64_t i = 0; i < n; ++i) totals[i] += totals[thread * n + i];
    }
    gradient.put(totals, w, dweight + group * w.group);
  }
}

template void unfold_down(const Unfolding&, const float*, const ImageLayout&, const float*, const WeightLayout&,
                          const float*, float*, const ImageLayout&);
template void unfold_up(const Unfolding&, const float*, const ImageLayout&, const float*, const WeightLayout&,
                        const float*, float*, const ImageLayout&);
template void unfold_weights(const Unfolding&, const float*, const ImageLayout&, const float*, const ImageLayout&,
                             float*, const WeightLayout&);
template void unfold_down(const Unfolding&, const double*, const ImageLayout&, const double*, const WeightLayout&,
                          const double*, double*, const ImageLayout&);
template void unfold_up(const Unfolding&, const double*, const ImageLayout&, const double*, const WeightLayout&,
                        const double*, double*, const ImageLayout&);
template void unfold_weights(const Unfolding&, const double*, const ImageLayout&, const double*, const ImageLayout&,
                             double*, const WeightLayout&);

}  // namespace nn_cpu
