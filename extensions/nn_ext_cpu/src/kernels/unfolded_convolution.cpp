#include "kernels/unfolded_convolution.hpp"

#include <algorithm>

#include "support/check.hpp"
#include "support/sliding.hpp"
#include "support/unfolding.hpp"

namespace nn_cpu {
namespace {

/// The images and weights of a call, as Unfolding has them: the large image is x of a convolution, y of a
/// deconvolution.
struct Operands {
  Unfolding shape;
  ImageLayout large, small;
  WeightLayout weight;

  /// `weight` is (K, C / G, kernel) for a convolution, (C, K / G, kernel) for a deconvolution.
  Operands(const Args& args, const ArrayDesc& large_image, const ArrayDesc& small_image, const ArrayDesc& weights)
      : large(large_image), small(small_image) {
    const int64_t groups = args.integer("group"), filters = weights.shape[0] / groups;
    const auto spatial = [](const Dims& dims) { return Dims(dims.begin() + 2, dims.end()); };
    shape = {large_image.shape[0],
             groups,
             filters,
             large_image.shape[1] / groups,
             spatial(small_image.shape),
             spatial(large_image.shape),
             spatial(weights.shape),
             args.dims("stride"),
             args.dims("dilation"),
             args.dims("pad")};
    NN_CHECK(small_image.shape[1] == weights.shape[0] && large_image.shape[1] == groups * weights.shape[1],
             "channels must be those of the weights, got others");
    weight = {weights.strides[0] * filters, weights.strides[0], weights.strides[1], spatial(weights.strides)};
  }

  std::string implementation() const { return is_sliding(shape) ? "sliding kernel" : "unfolded product"; }

  double cost() const {
    return 2000.0 + static_cast<double>(shape.batch * shape.groups * shape.small_channels * shape.large_channels) *
                        static_cast<double>(shape.taps() * count(shape.small_size)) / 50.0;
  }
};

enum Place { kX, kWeight, kBias, kY, kDy, kDx, kDweight, kDbias };

template <bool kTransposed, class T>
class Convolution : public Op {
 public:
  explicit Convolution(const Signature& s)
      : of_(s.args, s.array(kTransposed ? kY : kX, kDTypeOf<T>), s.array(kTransposed ? kX : kY, kDTypeOf<T>),
            s.array(kWeight, kDTypeOf<T>)) {
    if (s.has(kBias)) s.contiguous(kBias, kDTypeOf<T>);
  }

  void run(void* const* arrays) const override {
    const auto *x = static_cast<const T*>(arrays[kX]), *weight = static_cast<const T*>(arrays[kWeight]),
               *bias = static_cast<const T*>(arrays[kBias]);
    auto* y = static_cast<T*>(arrays[kY]);
    if constexpr (kTransposed) {
      unfold_up(of_.shape, x, of_.small, weight, of_.weight, bias, y, of_.large);
    } else {
      unfold_down(of_.shape, x, of_.large, weight, of_.weight, bias, y, of_.small);
    }
  }

  std::string implementation() const override { return of_.implementation(); }

  double cost() const override { return of_.cost(); }

 private:
  Operands of_;
};

template <bool kTransposed, class T>
class ConvolutionBackward : public Op {
 public:
  explicit ConvolutionBackward(const Signature& s)
      : of_(s.args, kTransposed ? s.array(kDy, kDTypeOf<T>) : x_of(s),
            kTransposed ? x_of(s) : s.array(kDy, kDTypeOf<T>),
            s.array(s.has(kWeight) ? kWeight : kDweight, kDTypeOf<T>)),
        dx_(s.array(s.has(kDx) ? kDx : kX, kDTypeOf<T>)),
        dy_(s.array(kDy, kDTypeOf<T>)) {
    const ArrayDesc& weight = s.array(s.has(kDweight) ? kDweight : kWeight, kDTypeOf<T>);
    dweight_ = Operands(s.args, kTransposed ? dy_ : x_of(s), kTransposed ? x_of(s) : dy_, weight).weight;
    if (s.has(kDbias)) s.contiguous(kDbias, kDTypeOf<T>);
  }

  void run(void* const* arrays) const override {
    const auto *x = static_cast<const T*>(arrays[kX]), *weight = static_cast<const T*>(arrays[kWeight]),
               *dy = static_cast<const T*>(arrays[kDy]);
    auto *dx = static_cast<T*>(arrays[kDx]), *dweight = static_cast<T*>(arrays[kDweight]),
         *dbias = static_cast<T*>(arrays[kDbias]);
    if (dx != nullptr && kTransposed) unfold_down(of_.shape, dy, of_.large, weight, of_.weight, kNoBias, dx, dx_);
    if (dx != nullptr && !kTransposed) unfold_up(of_.shape, dy, of_.small, weight, of_.weight, kNoBias, dx, dx_);
    if (dweight != nullptr) {
      unfold_weights(of_.shape, kTransposed ? x : dy, of_.small, kTransposed ? dy : x, of_.large, dweight, dweight_);
    }
    if (dbias != nullptr) sum(dy, dbias);
  }

  std::string implementation() const override { return of_.implementation(); }

  double cost() const override { return 2 * of_.cost(); }

 private:
  static constexpr const T* kNoBias = nullptr;

  static const ArrayDesc& x_of(const Signature& s) { return s.array(s.has(kX) ? kX : kDx, kDTypeOf<T>); }

  /// The gradient of the bias: sums of dy over everything but channels, in double.
  void sum(const T* dy, T* dbias) const {
    const Dims& shape = dy_.shape;
    parallel_for(shape[1], 1 + 16384 * shape[1] / (dy_.size() + 1), [&](int64_t begin, int64_t end, int) {
      for (int64_t k = begin; k < end; ++k) {
        double total = 0;
        Dims index(shape.size(), 0);
        const size_t last = shape.size() - 1;
        for (bool more = true; more;) {
          const T* line = dy + k * dy_.strides[1];
          for (size_t axis = 0; axis < last; ++axis) line += axis == 1 ? 0 : index[axis] * dy_.strides[axis];
          for (int64_t i = 0; i < shape[last]; ++i) total += static_cast<double>(line[i * dy_.strides[last]]);
          more = false;
          for (size_t axis = last; axis-- > 0 && !more;) {
            if (axis == 1) continue;
            more = ++index[axis] < shape[axis];
            if (!more) index[axis] = 0;
          }
        }
        dbias[k] = static_cast<T>(total);
      }
    });
  }

  Operands of_;
  ImageLayout dx_;
  WeightLayout dweight_;
  ArrayDesc dy_;
};

template <template <bool, class> class OpOf, bool kTransposed>
std::unique_ptr<Op> make_unfolded(const Signature& s) {
  if (is_wide(s)) return std::make_unique<OpOf<kTransposed, double>>(s);
  return std::make_unique<OpOf<kTransposed, float>>(s);
}

}  // namespace

std::unique_ptr<Op> make_unfolded_convolution(const Signature& s) { return make_unfolded<Convolution, false>(s); }
std::unique_ptr<Op> make_unfolded_convolution_backward(const Signature& s) {
  return make_unfolded<ConvolutionBackward, false>(s);
}
std::unique_ptr<Op> make_unfolded_deconvolution(const Signature& s) { return make_unfolded<Convolution, true>(s); }
std::unique_ptr<Op> make_unfolded_deconvolution_backward(const Signature& s) {
  return make_unfolded<ConvolutionBackward, true>(s);
}

}  // namespace nn_cpu
