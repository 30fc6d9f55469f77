// Extremes, products and running results along one axis. Arrays are (A, C, B), the axis in the middle; y, dy and index
// of reductions are (A, B); all contiguous float32 but the index, int64.
//   extremum            x -> y, index (either may be absent); setting largest
//   extremum_backward   x, y, dy -> dx: the first element that equals y gets dy, of NaN the first NaN
//   product             x -> y
//   product_backward    x, dy -> dx
//   running             x -> y; settings product, exclusive, reverse
//   running_product_backward  x, dy -> dx; settings exclusive, reverse
// NaN is taken for the most extreme number. Products and running results accumulate in double. O(A C B); B falls into
// groups of lanes that threads share.
#include <algorithm>

#include "kernels/planes.hpp"
#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kGrain = 16384;  // elements a thread

const float* input(void* const* arrays, int position) { return static_cast<const float*>(arrays[position]); }
float* output(void* const* arrays, int position) { return static_cast<float*>(arrays[position]); }

/// The first of n elements that equals the value; of NaN the first NaN.
const float* find_first(const float* x, int64_t n, float value) {
  return value == value ? std::find(x, x + n, value) : std::find_if(x, x + n, [](float v) { return v != v; });
}

struct Axis {
  int64_t a, c, b;

  explicit Axis(const Signature& s) {
    const Dims& shape = s.contiguous(0).shape;
    NN_CHECK(shape.size() == 3 && count(shape) > 0,
             "x must be (A, C, B) with elements, got shape " << to_string(shape));
    a = shape[0], c = shape[1], b = shape[2];
    NN_CHECK(c < (int64_t{1} << 31), "the axis must have less than 2^31 elements, got " << c);
  }

  int64_t size() const { return a * c * b; }

  void expect_whole(const Signature& s, size_t position) const {
    NN_CHECK(s.contiguous(position).size() == size(),
             "array " << position << " must have the size of x, got " << s.array(position).size());
  }
  void expect_reduced(const Signature& s, size_t position) const {
    NN_CHECK(s.contiguous(position).size() == a * b,
             "array " << position << " must have an element a lane, got " << s.array(position).size());
  }

  /// Calls body(offset in x, offset in y, lanes) for each group of neighbouring lanes.
  template <class Body>
  void visit(const Body& body) const {
    const int64_t groups = (b + kMaxLanes - 1) / kMaxLanes;
    parallel_for(a * groups, std::max<int64_t>(1, kGrain / (c * std::min<int64_t>(b, kMaxLanes))),
                 [&](int64_t begin, int64_t end, int) {
                   for (int64_t item = begin; item < end; ++item) {
                     const int64_t block = item / groups, lane = item % groups * kMaxLanes;
                     body(block * c * b + lane, block * b + lane, std::min<int64_t>(kMaxLanes, b - lane));
                   }
                 });
  }
};

class Extremum : public Op {
 public:
  explicit Extremum(const Signature& s) : axis_(s), largest_(s.args.flag("largest")) {
    if (s.has(1)) axis_.expect_reduced(s, 1);
    if (s.has(2))
      NN_CHECK(s.contiguous(2, DType::kInt64).size() == axis_.a * axis_.b,
               "index must have an element a lane, got " << s.array(2, DType::kInt64).size());
  }

  void run(void* const* arrays) const override {
    const float* x = input(arrays, 0);
    float* y = output(arrays, 1);
    auto* index = static_cast<int64_t*>(arrays[2]);
    const VectorTable& table = vectors();
    axis_.visit([&](int64_t from, int64_t to, int64_t lanes) {
      float values[kMaxLanes];
      int32_t places[kMaxLanes];
      if (axis_.b == 1) {
        const float* row = x + from;
        values[0] = largest_ ? table.max(row, axis_.c) : table.min(row, axis_.c);
        places[0] = 0;
        if (index != nullptr) places[0] = static_cast<int32_t>(find_first(row, axis_.c, values[0]) - row);
      } else {
        table.extremum(largest_, x + from, axis_.c, axis_.b, lanes, values, places);
      }
      if (y != nullptr) std::copy_n(values, lanes, y + to);
      if (index != nullptr) std::copy_n(places, lanes, index + to);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + 0.4 * static_cast<double>(axis_.size()); }

 private:
  Axis axis_;
  bool largest_;
};

class ExtremumBackward : public Op {
 public:
  explicit ExtremumBackward(const Signature& s) : axis_(s) {
    axis_.expect_reduced(s, 1);
    axis_.expect_reduced(s, 2);
    axis_.expect_whole(s, 3);
  }

  void run(void* const* arrays) const override {
    const float *x = input(arrays, 0), *y = input(arrays, 1), *dy = input(arrays, 2);
    float* dx = output(arrays, 3);
    axis_.visit([&](int64_t from, int64_t to, int64_t lanes) {
      if (axis_.b > 1) {
        vectors().extremum_gradient(x + from, y + to, dy + to, axis_.c, axis_.b, lanes, dx + from);
        return;
      }
      std::fill_n(dx + from, axis_.c, 0.0f);
      const float* found = find_first(x + from, axis_.c, y[to]);
      if (found < x + from + axis_.c) dx[found - x] = dy[to];
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + 0.6 * static_cast<double>(axis_.size()); }

 private:
  Axis axis_;
};

class Product : public Op {
 public:
  explicit Product(const Signature& s) : axis_(s) { axis_.expect_reduced(s, 1); }

  void run(void* const* arrays) const override {
    axis_.visit([&](int64_t from, int64_t to, int64_t lanes) {
      vectors().product_of(input(arrays, 0) + from, axis_.c, axis_.b, lanes, output(arrays, 1) + to);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + static_cast<double>(axis_.size()); }

 private:
  Axis axis_;
};

class ProductBackward : public Op {
 public:
  explicit ProductBackward(const Signature& s) : axis_(s) {
    axis_.expect_reduced(s, 1);
    axis_.expect_whole(s, 2);
  }

  void run(void* const* arrays) const override {
    if (axis_.b == 1 && planes_pay(axis_.a, 2 * axis_.c)) {
      const Planes rows[] = {{const_cast<float*>(input(arrays, 0)), axis_.c},
                             {const_cast<float*>(input(arrays, 1)), 1},
                             {output(arrays, 2), axis_.c}};
      with_planes_as_lanes(rows, 2, axis_.a, [&](float* const* at, int64_t lanes) {
        vectors().product_gradient(at[0], at[1], axis_.c, lanes, lanes, at[2]);
      });
      return;
    }
    axis_.visit([&](int64_t from, int64_t to, int64_t lanes) {
      vectors().product_gradient(input(arrays, 0) + from, input(arrays, 1) + to, axis_.c, axis_.b, lanes,
                                 output(arrays, 2) + from);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + 2.0 * static_cast<double>(axis_.size()); }

 private:
  Axis axis_;
};

class Running : public Op {
 public:
  explicit Running(const Signature& s)
      : axis_(s),
        product_(s.args.flag("product")),
        exclusive_(s.args.flag("exclusive")),
        reverse_(s.args.flag("reverse")) {
    axis_.expect_whole(s, 1);
  }

  void run(void* const* arrays) const override {
    const auto loop = product_ ? vectors().running_product : vectors().running_sum;
    if (axis_.b == 1 && planes_pay(axis_.a, 2 * axis_.c)) {
      const Planes rows[] = {{const_cast<float*>(input(arrays, 0)), axis_.c}, {output(arrays, 1), axis_.c}};
      with_planes_as_lanes(rows, 1, axis_.a, [&](float* const* at, int64_t lanes) {
        loop(exclusive_, reverse_, at[0], axis_.c, lanes, lanes, at[1]);
      });
      return;
    }
    axis_.visit([&](int64_t from, int64_t, int64_t lanes) {
      loop(exclusive_, reverse_, input(arrays, 0) + from, axis_.c, axis_.b, lanes, output(arrays, 1) + from);
    });
  }

  double cost() const override { return 50 + static_cast<double>(axis_.size()); }

 private:
  Axis axis_;
  bool product_, exclusive_, reverse_;
};

class RunningProductBackward : public Op {
 public:
  explicit RunningProductBackward(const Signature& s)
      : axis_(s), exclusive_(s.args.flag("exclusive")), reverse_(s.args.flag("reverse")) {
    axis_.expect_whole(s, 1);
    axis_.expect_whole(s, 2);
  }

  void run(void* const* arrays) const override {
    const float *x = input(arrays, 0), *dy = input(arrays, 1);
    float* dx = output(arrays, 2);
    const auto loop = vectors().running_product_gradient;
    if (axis_.b == 1 && planes_pay(axis_.a, 3 * axis_.c)) {
      const Planes rows[] = {{const_cast<float*>(x), axis_.c}, {const_cast<float*>(dy), axis_.c}, {dx, axis_.c}};
      with_planes_as_lanes(rows, 2, axis_.a, [&](float* const* at, int64_t lanes) {
        loop(exclusive_, reverse_, at[0], at[1], axis_.c, lanes, lanes, at[2]);
      });
      return;
    }
    axis_.visit([&](int64_t from, int64_t, int64_t lanes) {
      loop(exclusive_, reverse_, x + from, dy + from, axis_.c, axis_.b, lanes, dx + from);
    });
  }

  double cost() const override { return 50 + 2.0 * static_cast<double>(axis_.size()); }

 private:
  Axis axis_;
  bool exclusive_, reverse_;
};

}  // namespace

void register_along(Registry& registry) {
  registry.add("extremum", make<Extremum>, 1);
  registry.add("extremum_backward", make<ExtremumBackward>, 3);
  registry.add("product", make<Product>, 1);
  registry.add("product_backward", make<ProductBackward>, 2);
  registry.add("running", make<Running>, 1);
  registry.add("running_product_backward", make<RunningProductBackward>, 2);
}

}  // namespace nn_cpu
