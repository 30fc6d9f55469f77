// Batch normalization (Ioffe and Szegedy, 2015) over all axes but one, with the ReLU and the sum of its fused form.
//   batch_normalization           arrays x, beta, gamma, mean, variance, z, y, batch_mean, batch_variance
//   batch_normalization_backward  arrays x, -, gamma, mean, variance, -, y, batch_mean, batch_variance,
//                                 dy, dx, dbeta, dgamma, -, -, dz
// x, y, z, dy, dx, dz are viewed as (A, C, B) in memory order; statistics and parameters have C elements. beta, gamma,
// z and running statistics may be absent, as may gradients that nobody wants. Settings: axis, batch_stat, decay_rate,
// eps, relu. Images may be bfloat16, all else is float32 then; or all is
// float64. Moments are taken in one pass around a few elements of
// each channel, in float32 blocks that add up in double; so the variance does not cancel. The running variance moves
// towards the unbiased one. Two passes over x, O(A C B).
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/register.hpp"
#include "support/bfloat16.hpp"
#include "support/blocks.hpp"
#include "support/centres.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/relayout.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kGrain = 16384;  // elements a thread

double to_number(double x) { return x; }
float to_number(float x) { return x; }
float to_number(Bf16 x) { return to_float(x); }

/// x as (A, C, B) around the channel axis; channels are innermost (B = 1) in channels-last memory.
struct Channels : Blocks {
  using Blocks::Blocks;

  int64_t count() const { return a * b; }

  /// Numbers near to the mean of each channel.
  template <class T, class R>
  void take_centres(const T* x, R* centre) const {
    centres(
        x, count(), c, b, [this](int64_t i) { return i / b * c * b + i % b; },
        [](T value) -> R { return to_number(value); }, centre);
  }

  /// Calls columns(first row, rows, thread) on threads where channels are innermost, else row(offset, channel) for each
  /// run of B elements, all of a channel on one thread.
  template <class Columns, class Row>
  void visit(const Columns& columns, const Row& row) const {
    if (b == 1) {
      parallel_for(a, std::max<int64_t>(1, kGrain / std::max<int64_t>(c, 1)),
                   [&](int64_t begin, int64_t end, int thread) { columns(begin, end - begin, thread); });
      return;
    }
    parallel_for(c, std::max<int64_t>(1, kGrain / std::max<int64_t>(a * b, 1)), [&](int64_t begin, int64_t end, int) {
      for (int64_t i = 0; i < a; ++i) {
        for (int64_t channel = begin; channel < end; ++channel) row((i * c + channel) * b, channel);
      }
    });
  }
};

/// Per-channel sums of two quantities: one pair of vectors for each thread, added up at the end.
class Sums {
 public:
  Sums(Scratch& scratch, int64_t channels)
      : channels_(channels), teams_(num_threads()), data_(scratch.take<double>(2 * channels * teams_)) {
    std::fill_n(data_, 2 * channels_ * teams_, 0.0);
  }
  static size_t bytes(int64_t channels) { return Scratch::bytes<double>(2 * channels * num_threads()); }

  double* first(int thread) { return data_ + 2 * channels_ * thread; }
  double* second(int thread) { return first(thread) + channels_; }
  void finish() {
    for (int64_t team = 1; team < teams_; ++team) {
      for (int64_t i = 0; i < 2 * channels_; ++i) data_[i] += data_[2 * channels_ * team + i];
    }
  }

 private:
  int64_t channels_, teams_;
  double* data_;
};

struct Settings {
  bool batch_stat, relu;
  double decay_rate, eps;

  explicit Settings(const Args& args)
      : batch_stat(args.flag("batch_stat")),
        relu(args.flag("relu")),
        decay_rate(args.get<double>("decay_rate")),
        eps(args.get<double>("eps")) {}
};

/// Whether elements have the same order in memory; strides of axes of length 1, and of empty arrays, mean nothing.
bool alike(const ArrayDesc& a, const ArrayDesc& b) {
  if (a.shape != b.shape) return false;
  if (a.size() == 0) return true;
  for (size_t axis = 0; axis < a.shape.size(); ++axis) {
    if (a.shape[axis] != 1 && a.strides[axis] != b.strides[axis]) return false;
  }
  return true;
}

void check_alike(const Signature& s, std::initializer_list<size_t> positions) {
  for (size_t position : positions) {
    const ArrayDesc& x = *s.arrays.at(0);
    if (!s.has(position)) continue;
    const ArrayDesc& other = s.array(position, x.dtype);
    NN_CHECK(alike(other, x), "array " << position << " must have the shape and strides of x, got others");
  }
}

/// The description of x, which holds T.
template <class T>
const ArrayDesc& images_of(const Signature& s) {
  if constexpr (std::is_same_v<T, double>) return s.array(0, DType::kFloat64);
  return s.floating(0);
}

template <class T>
class BatchNormalization : public Op {
 public:
  explicit BatchNormalization(const Signature& s)
      : blocks_(images_of<T>(s), s.args.integer("axis")), settings_(s.args) {
    check_alike(s, {5, 6});
  }

  void run(void* const* arrays) const override {
    const auto *x = static_cast<const T*>(arrays[0]), *z = static_cast<const T*>(arrays[5]);
    const R *beta = input(arrays, 1), *gamma = input(arrays, 2);
    auto* y = static_cast<T*>(arrays[6]);
    const int64_t channels = blocks_.c;
    Scratch scratch(2 * Scratch::bytes<R>(channels) + Sums::bytes(channels));
    auto *scale = scratch.take<R>(channels), *shift = scratch.take<R>(channels);
    const R *mean = input(arrays, 3), *variance = input(arrays, 4);
    if (settings_.batch_stat) {
      take_statistics(arrays, scratch, shift);
    } else {
      std::copy_n(mean, channels, output(arrays, 7));
      std::copy_n(variance, channels, output(arrays, 8));
    }
    mean = input(arrays, 7);
    variance = input(arrays, 8);
    for (int64_t c = 0; c < channels; ++c) {
      // rounded once: what is rounded here scales all elements of a channel
      const double rate = 1.0 / std::sqrt(static_cast<double>(variance[c]) + static_cast<R>(settings_.eps));
      scale[c] = static_cast<R>(gamma != nullptr ? gamma[c] * rate : rate);
      shift[c] = beta != nullptr ? beta[c] : R{0};
    }
    const RowLoops<T>& table = row_loops<T>();
    const bool relu = settings_.relu;
    blocks_.visit(
        [&](int64_t row, int64_t rows, int) {
          const int64_t start = row * channels;
          table.column_standardize(x + start, z != nullptr ? z + start : nullptr, rows, channels, mean, scale, shift,
                                   relu, y + start);
        },
        [&](int64_t start, int64_t c) {
          table.row_standardize(x + start, z != nullptr ? z + start : nullptr, blocks_.b, mean[c], scale[c], shift[c],
                                relu, y + start);
        });
  }

  double cost() const override { return 500 + 0.4 * static_cast<double>(blocks_.size()); }

 private:
  using R = ParameterOf<T>;
  static const R* input(void* const* arrays, int position) { return static_cast<const R*>(arrays[position]); }
  static R* output(void* const* arrays, int position) { return static_cast<R*>(arrays[position]); }

  /// Writes batch_mean and batch_variance, and moves the running statistics.
  void take_statistics(void* const* arrays, Scratch& scratch, R* shift) const {
    const auto* x = static_cast<const T*>(arrays[0]);
    R *batch_mean = output(arrays, 7), *batch_variance = output(arrays, 8);
    R *mean = output(arrays, 3), *variance = output(arrays, 4);
    const int64_t channels = blocks_.c, count = blocks_.count();
    Sums sums(scratch, channels);
    blocks_.take_centres(x, shift);
    const RowLoops<T>& table = row_loops<T>();
    blocks_.visit(
        [&](int64_t row, int64_t rows, int thread) {
          table.column_moments(x + row * channels, rows, channels, shift, sums.first(thread), sums.second(thread));
        },
        [&](int64_t start, int64_t c) {
          table.row_moments(x + start, blocks_.b, shift[c], sums.first(0) + c, sums.second(0) + c);
        });
    sums.finish();
    const double n = static_cast<double>(std::max<int64_t>(count, 1));
    for (int64_t c = 0; c < channels; ++c) {
      const double offset = sums.first(0)[c] / n;
      const double spread = std::max(sums.second(0)[c] / n - offset * offset, 0.0);
      batch_mean[c] = static_cast<R>(shift[c] + offset);
      batch_variance[c] = std::isnan(offset) ? batch_mean[c] : static_cast<R>(spread);
      if (count == 0) continue;
      const R keep = static_cast<R>(settings_.decay_rate), move = R{1} - keep;
      const auto unbiased = static_cast<R>(spread * n / std::max(n - 1.0, 1.0));
      if (mean != nullptr) mean[c] = keep * mean[c] + move * batch_mean[c];
      if (variance != nullptr) variance[c] = keep * variance[c] + move * unbiased;
    }
  }

  Channels blocks_;
  Settings settings_;
};

template <class T>
class BatchNormalizationBackward : public Op {
 public:
  explicit BatchNormalizationBackward(const Signature& s)
      : blocks_(images_of<T>(s), s.args.integer("axis")), settings_(s.args) {
    check_alike(s, {6, 9, 10, 15});
  }

  void run(void* const* arrays) const override {
    const auto *x = static_cast<const T*>(arrays[0]), *dy = static_cast<const T*>(arrays[9]);
    const auto* y = settings_.relu ? static_cast<const T*>(arrays[6]) : nullptr;
    const R* gamma = input(arrays, 2);
    const R *mean = input(arrays, settings_.batch_stat ? 7 : 3),
            *variance = input(arrays, settings_.batch_stat ? 8 : 4);
    auto *dx = static_cast<T*>(arrays[10]), *dz = static_cast<T*>(arrays[15]);
    R *dbeta = output(arrays, 11), *dgamma = output(arrays, 12);
    const int64_t channels = blocks_.c;
    Scratch scratch(3 * Scratch::bytes<R>(channels) + Sums::bytes(channels));
    auto *p = scratch.take<R>(channels), *q = scratch.take<R>(channels), *r = scratch.take<R>(channels);
    Sums sums(scratch, channels);
    const RowLoops<T>& table = row_loops<T>();
    const auto at = [](const T* array, int64_t start) { return array != nullptr ? array + start : nullptr; };
    blocks_.visit(
        [&](int64_t row, int64_t rows, int thread) {
          const int64_t start = row * channels;
          table.column_products(dy + start, at(y, start), x + start, rows, channels, mean, sums.first(thread),
                                sums.second(thread));
        },
        [&](int64_t start, int64_t c) {
          table.row_products(dy + start, at(y, start), x + start, blocks_.b, mean[c], sums.first(0) + c,
                             sums.second(0) + c);
        });
    sums.finish();
    const double n = static_cast<double>(std::max<int64_t>(blocks_.count(), 1));
    for (int64_t c = 0; c < channels; ++c) {
      const double rate = 1.0 / std::sqrt(static_cast<double>(variance[c]) + static_cast<R>(settings_.eps));
      const double of_dy = sums.first(0)[c], of_products = sums.second(0)[c] * rate;
      if (dbeta != nullptr) dbeta[c] = static_cast<R>(of_dy);
      if (dgamma != nullptr) dgamma[c] = static_cast<R>(of_products);
      const double scale = rate * (gamma != nullptr ? gamma[c] : R{1});
      const double slope = settings_.batch_stat ? -scale * rate * of_products / n : 0.0;
      p[c] = static_cast<R>(scale);
      q[c] = static_cast<R>(slope);
      r[c] = static_cast<R>(settings_.batch_stat ? -scale * of_dy / n : 0.0);
    }
    if (dx != nullptr) {
      blocks_.visit(
          [&](int64_t row, int64_t rows, int) {
            const int64_t start = row * channels;
            table.column_gradient(dy + start, at(y, start), x + start, rows, channels, mean, p, q, r, dx + start);
          },
          [&](int64_t start, int64_t c) {
            table.row_gradient(dy + start, at(y, start), x + start, blocks_.b, mean[c], p[c], q[c], r[c], dx + start);
          });
    }
    if (dz != nullptr) {
      parallel_for(blocks_.size(), kGrain, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) dz[i] = y == nullptr || to_number(y[i]) > R{0} ? dy[i] : T{};
      });
    }
  }

  double cost() const override { return 500 + 0.6 * static_cast<double>(blocks_.size()); }

 private:
  using R = ParameterOf<T>;
  static const R* input(void* const* arrays, int position) { return static_cast<const R*>(arrays[position]); }
  static R* output(void* const* arrays, int position) { return static_cast<R*>(arrays[position]); }

  Channels blocks_;
  Settings settings_;
};

/// The operation on images of the type of x.
template <template <class> class Operation>
std::unique_ptr<Op> for_images(const Signature& s) {
  if (is_wide(s)) return make<Operation<double>>(s);
  return s.floating(0).dtype == DType::kBFloat16 ? make<Operation<Bf16>>(s) : make<Operation<float>>(s);
}

}  // namespace

void register_normalization(Registry& registry) {
  registry.add("batch_normalization",
               [](const Signature& s) { return with_alike_images(s, for_images<BatchNormalization>, {0, 5}, {6}); });
  registry.add("batch_normalization_backward", [](const Signature& s) {
    return with_alike_images(s, for_images<BatchNormalizationBackward>, {0, 6, 9}, {10, 15});
  });
}

}  // namespace nn_cpu
