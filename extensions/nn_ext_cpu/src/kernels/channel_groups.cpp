// Group and instance normalization of channels-last images: the statistics of each group of channels of a sample come
// from sums of its channels, so that images stay as convolutions leave them.
//   standardize_channels           arrays x, beta, gamma, y, mean, variance
//   standardize_channels_backward  arrays x, -, gamma, -, mean, variance, dy, dx, dbeta, dgamma
// x, y, dy, dx are images (N, C, ...); mean and variance have an element for each sample and group, beta and gamma one
// for each channel. beta, gamma and gradients that nobody wants may be absent. Settings: groups, eps. Moments are taken
// in one pass around a few pixels of each channel, in blocks that add up in double. O(elements).
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/register.hpp"
#include "support/centres.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/relayout.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kGrain = 16384;  // elements a thread

template <class T>
const T* input(void* const* arrays, int position) {
  return static_cast<const T*>(arrays[position]);
}
template <class T>
T* output(void* const* arrays, int position) {
  return static_cast<T*>(arrays[position]);
}

/// Channels-last images as rows of channels, and their groups.
template <class T>
struct Pixels {
  int64_t samples, channels, groups, pixels;  // pixels of a sample
  T eps;

  explicit Pixels(const Signature& s)
      : samples(image(s, 0).shape[0]),
        channels(image(s, 0).shape[1]),
        groups(s.args.integer("groups")),
        pixels(image(s, 0).size() / std::max<int64_t>(samples * channels, 1)),
        eps(static_cast<T>(s.args.get<double>("eps"))) {
    NN_CHECK(groups > 0 && channels % groups == 0 && samples * pixels > 0,
             "x must have whole groups of channels, got " << channels << " channels and " << groups << " groups");
    for (const size_t position : {4, 5})
      NN_CHECK(s.contiguous(position, kDTypeOf<T>).size() == samples * groups,
               "statistics must have an element a group, got others");
    for (const size_t position : {1, 2, 8, 9})
      NN_CHECK(!s.has(position) || s.contiguous(position, kDTypeOf<T>).size() == channels,
               "parameters must have an element a channel, got others");
  }

  static const ArrayDesc& image(const Signature& s, size_t position) {
    const ArrayDesc& desc = s.array(position, kDTypeOf<T>);
    NN_CHECK(desc.ndim() >= 3 && desc.channels_last(), "array " << position << " must be channels-last, got another");
    return desc;
  }

  int64_t size_of_group() const { return pixels * (channels / groups); }
  double size() const { return static_cast<double>(samples * pixels) * static_cast<double>(channels); }
  size_t sums_bytes() const { return Scratch::bytes<double>(2 * samples * channels * num_threads()); }

  /// Calls body(sample, offset of the first element, rows, thread) on threads, for pieces that cover all pixels.
  template <class Body>
  void visit(const Body& body) const {
    parallel_for(samples * pixels, std::max<int64_t>(1, kGrain / channels),
                 [&](int64_t begin, int64_t end, int thread) {
                   while (begin < end) {
                     const int64_t sample = begin / pixels, stop = std::min(end, (sample + 1) * pixels);
                     body(sample, begin * channels, stop - begin, thread);
                     begin = stop;
                   }
                 });
  }

  /// Two sums for each sample and channel, of which `take(sample, offset, rows, first, second)` adds up a piece; the
  /// second ones follow samples * channels first ones.
  template <class Take>
  double* sum(Scratch& scratch, const Take& take) const {
    const int64_t count = samples * channels, teams = num_threads();
    auto* sums = scratch.take<double>(2 * count * teams);
    std::fill_n(sums, 2 * count * teams, 0.0);
    visit([&](int64_t sample, int64_t offset, int64_t rows, int thread) {
      double* own = sums + 2 * count * thread + sample * channels;
      take(sample, offset, rows, own, own + count);
    });
    for (int64_t team = 1; team < teams; ++team) {
      for (int64_t i = 0; i < 2 * count; ++i) sums[i] += sums[2 * count * team + i];
    }
    return sums;
  }

  /// Calls body(group of all samples, its first channel among those of all samples, one of the channels of a sample).
  template <class Body>
  void each_group(const Body& body) const {
    const int64_t width = channels / groups;
    for (int64_t group = 0; group < samples * groups; ++group)
      body(group, group * width, group % groups * width, width);
  }
};

template <class T>
class StandardizeChannels : public Op {
 public:
  explicit StandardizeChannels(const Signature& s) : size_(s) { Pixels<T>::image(s, 3); }

  void run(void* const* arrays) const override {
    const T *x = input<T>(arrays, 0), *beta = input<T>(arrays, 1), *gamma = input<T>(arrays, 2);
    T *y = output<T>(arrays, 3), *mean = output<T>(arrays, 4), *variance = output<T>(arrays, 5);
    const int64_t channels = size_.channels, count = size_.samples * channels;
    Scratch scratch(3 * Scratch::bytes<T>(count) + Scratch::bytes<T>(channels) + size_.sums_bytes());
    T *first = scratch.take<T>(count), *centre = scratch.take<T>(count), *scale = scratch.take<T>(count),
      *shift = scratch.take<T>(channels);
    for (int64_t sample = 0; sample < size_.samples; ++sample) {
      centres(
          x + sample * size_.pixels * channels, size_.pixels, channels, 1,
          [channels](int64_t pixel) { return pixel * channels; }, [](T value) { return value; },
          first + sample * channels);
    }
    for (int64_t c = 0; c < channels; ++c) shift[c] = beta != nullptr ? beta[c] : T{0};
    const RowLoops<T>& table = row_loops<T>();
    const double* sums = size_.sum(scratch, [&](int64_t sample, int64_t offset, int64_t rows, double* s1, double* s2) {
      table.column_moments(x + offset, rows, channels, first + sample * channels, s1, s2);
    });
    size_.each_group([&](int64_t group, int64_t start, int64_t channel, int64_t width) {
      take_moments(first + start, sums + start, sums + count + start, width, mean[group], variance[group]);
      const double rate = 1.0 / std::sqrt(static_cast<double>(variance[group]) + size_.eps);
      for (int64_t c = 0; c < width; ++c) {
        centre[start + c] = mean[group];
        scale[start + c] = static_cast<T>(gamma != nullptr ? gamma[channel + c] * rate : rate);
      }
    });
    size_.visit([&](int64_t sample, int64_t offset, int64_t rows, int) {
      table.column_standardize(x + offset, nullptr, rows, channels, centre + sample * channels,
                               scale + sample * channels, shift, false, y + offset);
    });
  }

  double cost() const override { return 200 + 0.4 * size_.size(); }

 private:
  /// The moments of a group from the sums of its channels around `first`. A mean that is no number has no variance.
  void take_moments(const T* first, const double* s1, const double* s2, int64_t width, T& mean, T& variance) const {
    const auto pixels = static_cast<double>(size_.pixels), size = static_cast<double>(size_.size_of_group());
    double total = 0.0, squares = 0.0;
    for (int64_t c = 0; c < width; ++c) total += first[c] * pixels + s1[c];
    const double centre = total / size;
    for (int64_t c = 0; c < width; ++c) {
      const double distance = first[c] - centre;
      squares += s2[c] + distance * (2.0 * s1[c] + pixels * distance);
    }
    mean = static_cast<T>(centre);
    variance =
        std::isfinite(centre) ? static_cast<T>(std::max(squares / size, 0.0)) : std::numeric_limits<T>::quiet_NaN();
  }

  Pixels<T> size_;
};

template <class T>
class StandardizeChannelsBackward : public Op {
 public:
  explicit StandardizeChannelsBackward(const Signature& s) : size_(s) {
    Pixels<T>::image(s, 6);
    if (s.has(7)) Pixels<T>::image(s, 7);
  }

  void run(void* const* arrays) const override {
    const T *x = input<T>(arrays, 0), *gamma = input<T>(arrays, 2), *mean = input<T>(arrays, 4),
            *variance = input<T>(arrays, 5), *dy = input<T>(arrays, 6);
    T *dx = output<T>(arrays, 7), *dbeta = output<T>(arrays, 8), *dgamma = output<T>(arrays, 9);
    const int64_t channels = size_.channels, count = size_.samples * channels;
    Scratch scratch(4 * Scratch::bytes<T>(count) + size_.sums_bytes());
    T *centre = scratch.take<T>(count), *p = scratch.take<T>(count), *q = scratch.take<T>(count),
      *r = scratch.take<T>(count);
    size_.each_group(
        [&](int64_t group, int64_t start, int64_t, int64_t width) { std::fill_n(centre + start, width, mean[group]); });
    const RowLoops<T>& table = row_loops<T>();
    double* sums = size_.sum(scratch, [&](int64_t sample, int64_t offset, int64_t rows, double* s1, double* s2) {
      table.column_products(dy + offset, nullptr, x + offset, rows, channels, centre + sample * channels, s1, s2);
    });
    double* products = sums + count;
    const auto size = static_cast<double>(size_.size_of_group());
    size_.each_group([&](int64_t group, int64_t start, int64_t channel, int64_t width) {
      const double rate = 1.0 / std::sqrt(static_cast<double>(variance[group]) + size_.eps);
      double sum = 0.0, product = 0.0;
      for (int64_t c = 0; c < width; ++c) {
        const double factor = gamma != nullptr ? gamma[channel + c] : 1.0;
        sum += factor * sums[start + c];
        product += factor * products[start + c];
        p[start + c] = static_cast<T>(rate * factor);
        products[start + c] *= rate;  // what dgamma adds up
      }
      std::fill_n(q + start, width, static_cast<T>(-rate * rate * rate * product / size));
      std::fill_n(r + start, width, static_cast<T>(-rate * sum / size));
    });
    add_samples(sums, dbeta);
    add_samples(products, dgamma);
    if (dx == nullptr) return;
    size_.visit([&](int64_t sample, int64_t offset, int64_t rows, int) {
      const int64_t start = sample * channels;
      table.column_gradient(dy + offset, nullptr, x + offset, rows, channels, centre + start, p + start, q + start,
                            r + start, dx + offset);
    });
  }

  double cost() const override { return 200 + 0.8 * size_.size(); }

 private:
  /// The sums of all samples, for each channel.
  void add_samples(const double* sums, T* gradient) const {
    for (int64_t c = 0; c < size_.channels && gradient != nullptr; ++c) {
      double total = 0.0;
      for (int64_t sample = 0; sample < size_.samples; ++sample) total += sums[sample * size_.channels + c];
      gradient[c] = static_cast<T>(total);
    }
  }

  Pixels<T> size_;
};

}  // namespace

void register_channel_groups(Registry& registry) {
  registry.add(
      "standardize_channels",
      [](const Signature& s) { return with_alike_images(s, make_for_numbers<StandardizeChannels>, {0}, {3}); }, 3);
  registry.add(
      "standardize_channels_backward",
      [](const Signature& s) {
        return with_alike_images(s, make_for_numbers<StandardizeChannelsBackward>, {0, 6}, {7});
      },
      7);
}

}  // namespace nn_cpu
