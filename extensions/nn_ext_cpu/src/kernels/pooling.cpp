// Pooling over up to three spatial dimensions of images (N, C, ...), contiguous or channels-last.
//   max_pooling, sum_pooling   x -> y
//   max_pooling_backward       x, dy -> dx (each dy goes to the first maximum of its window)
//   sum_pooling_backward       dy -> dx
// Settings: kernel, stride, pad; for sums also mean (divide by the elements of the window) and counts_pad (padding
// counts as such). See vector/pooling.cpp. Images, and chunks of channels where there are few images, run on threads;
// planes of contiguous images become lanes in groups.
#include <algorithm>

#include "kernels/planes.hpp"
#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/relayout.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

/// Images of a pooling: `images` of `lanes` channels that are adjacent in memory.
class Pool {
 public:
  Pool(const ArrayDesc& x, const ArrayDesc& y, const Args& args, bool is_sum) {
    const Dims &kernel = args.dims("kernel"), &stride = args.dims("stride"), &pad = args.dims("pad");
    const int64_t n_spatial = x.ndim() - 2;
    NN_CHECK(
        n_spatial >= 1 && n_spatial <= 3 && y.ndim() == x.ndim() && static_cast<int64_t>(kernel.size()) == n_spatial,
        "x must have one to three spatial dimensions, got shape " << to_string(x.shape));
    const bool inner = !x.contiguous() || (x.shape[1] > 1 && x.channels_last());
    NN_CHECK(inner ? x.channels_last() && y.channels_last() : y.contiguous(),
             "x and y must have the same layout, got other strides");
    shape_.lanes = inner ? x.shape[1] : 1;
    images_ = x.shape[0] * (inner ? 1 : x.shape[1]);
    for (int64_t axis = 0; axis < 3; ++axis) {
      const int64_t k = axis - (3 - n_spatial);
      const bool real = k >= 0;
      shape_.in[axis] = real ? x.shape[k + 2] : 1;
      shape_.out[axis] = real ? y.shape[k + 2] : 1;
      shape_.kernel[axis] = real ? kernel[k] : 1;
      shape_.stride[axis] = real ? stride[k] : 1;
      shape_.pad[axis] = real ? pad[k] : 0;
    }
    shape_.mean = is_sum && args.flag("mean");
    shape_.counts_pad = is_sum && args.flag("counts_pad");
  }

  const PoolShape& shape() const { return shape_; }
  int64_t x_size() const { return shape_.in[0] * shape_.in[1] * shape_.in[2] * shape_.lanes; }
  int64_t y_size() const { return shape_.out[0] * shape_.out[1] * shape_.out[2] * shape_.lanes; }
  double work() const {
    const auto window = static_cast<double>(shape_.kernel[0] * shape_.kernel[1] * shape_.kernel[2]);
    return static_cast<double>(images_ * y_size()) * window * (shape_.lanes >= 8 ? 0.1 : 0.7);
  }

  /// Whether there are enough planes of one lane to treat groups of them together.
  bool by_planes() const { return shape_.lanes == 1 && planes_pay(images_, 2 * x_size() + y_size()); }
  int64_t planes() const { return images_; }
  PoolShape shape_of(int64_t lanes) const {
    PoolShape shape = shape_;
    shape.lanes = lanes;
    return shape;
  }

  /// Calls body(offset in x, offset in y, lanes) for each image or part of one.
  template <class Body>
  void visit(const Body& body) const {
    int64_t chunk = shape_.lanes;
    if (images_ < num_threads() && work() > 20000)
      chunk = std::max<int64_t>(16, (shape_.lanes / num_threads() + 15) / 16 * 16);
    const int64_t chunks = (shape_.lanes + chunk - 1) / chunk;
    const auto grain =
        static_cast<int64_t>(20000.0 * static_cast<double>(images_ * chunks) / std::max(work(), 1.0)) + 1;
    parallel_for(images_ * chunks, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t image = item / chunks, lane = item % chunks * chunk;
        body(image * x_size() + lane, image * y_size() + lane, std::min(chunk, shape_.lanes - lane));
      }
    });
  }

 private:
  PoolShape shape_{};
  int64_t images_;
};

template <class T, bool IsMax>
class Pooling : public Op {
 public:
  explicit Pooling(const Signature& s) : pool_(s.array(0, kDTypeOf<T>), s.array(1, kDTypeOf<T>), s.args, !IsMax) {}

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const T*>(arrays[0]);
    auto* y = static_cast<T*>(arrays[1]);
    const auto loop = IsMax ? number_loops<T>().max_pool : number_loops<T>().sum_pool;
    if (pool_.by_planes()) {
      const PlanesOf<T> planes[] = {{const_cast<T*>(x), pool_.x_size()}, {y, pool_.y_size()}};
      with_planes_as_lanes(planes, 1, pool_.planes(),
                           [&](T* const* at, int64_t lanes) { loop(pool_.shape_of(lanes), at[0], at[1], lanes); });
      return;
    }
    pool_.visit([&](int64_t at_x, int64_t at_y, int64_t lanes) { loop(pool_.shape(), x + at_x, y + at_y, lanes); });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + pool_.work(); }

 private:
  Pool pool_;
};

template <class T>
class MaxPoolingBackward : public Op {
 public:
  explicit MaxPoolingBackward(const Signature& s)
      : pool_(s.array(0, kDTypeOf<T>), s.array(1, kDTypeOf<T>), s.args, false) {}

  void run(void* const* arrays) const override {
    const auto *x = static_cast<const T*>(arrays[0]), *dy = static_cast<const T*>(arrays[1]);
    auto* dx = static_cast<T*>(arrays[2]);
    if (pool_.by_planes()) {
      const PlanesOf<T> planes[] = {
          {const_cast<T*>(x), pool_.x_size()}, {const_cast<T*>(dy), pool_.y_size()}, {dx, pool_.x_size()}};
      with_planes_as_lanes(planes, 2, pool_.planes(), [&](T* const* at, int64_t lanes) {
        number_loops<T>().max_pool_backward(pool_.shape_of(lanes), at[0], at[1], at[2], lanes);
      });
      return;
    }
    pool_.visit([&](int64_t at_x, int64_t at_y, int64_t lanes) {
      number_loops<T>().max_pool_backward(pool_.shape(), x + at_x, dy + at_y, dx + at_x, lanes);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + 2 * pool_.work(); }

 private:
  Pool pool_;
};

template <class T>
class SumPoolingBackward : public Op {
 public:
  explicit SumPoolingBackward(const Signature& s)
      : pool_(s.array(1, kDTypeOf<T>), s.array(0, kDTypeOf<T>), s.args, true) {}

  void run(void* const* arrays) const override {
    const auto* dy = static_cast<const T*>(arrays[0]);
    auto* dx = static_cast<T*>(arrays[1]);
    if (pool_.by_planes()) {
      const PlanesOf<T> planes[] = {{const_cast<T*>(dy), pool_.y_size()}, {dx, pool_.x_size()}};
      with_planes_as_lanes(planes, 1, pool_.planes(), [&](T* const* at, int64_t lanes) {
        number_loops<T>().sum_pool_backward(pool_.shape_of(lanes), at[0], at[1], lanes);
      });
      return;
    }
    pool_.visit([&](int64_t at_x, int64_t at_y, int64_t lanes) {
      number_loops<T>().sum_pool_backward(pool_.shape(), dy + at_y, dx + at_x, lanes);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + pool_.work(); }

 private:
  Pool pool_;
};

template <class T>
using MaxPooling = Pooling<T, true>;
template <class T>
using SumPooling = Pooling<T, false>;

}  // namespace

void register_pooling(Registry& registry) {
  registry.add(
      "max_pooling", [](const Signature& s) { return with_alike_images(s, make_for_numbers<MaxPooling>, {0}, {1}); },
      1);
  registry.add(
      "max_pooling_backward",
      [](const Signature& s) { return with_alike_images(s, make_for_numbers<MaxPoolingBackward>, {0, 1}, {2}); }, 2);
  registry.add(
      "sum_pooling", [](const Signature& s) { return with_alike_images(s, make_for_numbers<SumPooling>, {0}, {1}); },
      1);
  registry.add(
      "sum_pooling_backward",
      [](const Signature& s) { return with_alike_images(s, make_for_numbers<SumPoolingBackward>, {0}, {1}); }, 1);
}

}  // namespace nn_cpu
