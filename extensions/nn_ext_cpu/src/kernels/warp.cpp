// Images sampled at points between their pixels.
//   warp            x, points -> y
//   warp_backward   x, points, dy -> dx, dpoints; either may be absent
// x is (B, C, in), y (B, C, out), points (B, out, d), normalized to [-1, 1], x first; in and out have d = 2 or 3 axes.
// Settings:
//   channel_last   x is (B, in, C), y (B, out, C)
//   nearest        the closest pixel, halves away from zero, else the 2^d pixels around the point, weighted linearly
//   padding        what lies outside: zero, repeat (the border) or reflect
//   align_corners  -1 and 1 are the middles of the border pixels, else their outer edges; reflect mirrors there
//   flow           points is (B, d, out) in pixels, from the place of the result on, and held inside of the image
// O(points * (channels + 1) * 2^d). A thread has points of its own, or for dx channels or images of its own, so results
// repeat.
#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kChunk = 256;   // points that are treated together
constexpr int64_t kGrain = 2048;  // samples a thread
constexpr int kMostAxes = 3, kMostCorners = 8;

/// Corners of a chunk of n points: corner t of point i at [t * n + i], axis k at [k * n + i]. Index -1: outside.
struct Corners {
  int32_t* index;
  float *weight, *fraction, *slope;

  explicit Corners(Scratch& scratch)
      : index(scratch.take<int32_t>(kMostCorners * kChunk)),
        weight(scratch.take<float>(kMostCorners * kChunk)),
        fraction(scratch.take<float>(kMostAxes * kChunk)),
        slope(scratch.take<float>(kMostAxes * kChunk)) {}
  static size_t bytes() {
    return Scratch::bytes<float>(kMostCorners * kChunk) * 2 + Scratch::bytes<float>(kMostAxes * kChunk) * 2;
  }
};

enum class Padding { kZero, kRepeat, kReflect };

class Sampler {
 public:
  int64_t batch, channels, n_in, n_out;
  int n_axes, n_corners;
  bool channel_last;

  Sampler(const Signature& s, size_t y)
      : channel_last(s.args.flag("channel_last")),
        nearest_(s.args.flag("nearest")),
        align_corners_(s.args.flag("align_corners")),
        flow_(s.args.flag("flow")) {
    const Dims &x = s.contiguous(0).shape, &out = s.contiguous(y).shape;
    n_axes = static_cast<int>(x.size()) - 2;
    NN_CHECK((n_axes == 2 || n_axes == 3) && out.size() == x.size(),
             "x must have two or three spatial axes, got shape " << to_string(x));
    const int64_t first = channel_last ? 1 : 2;
    in_.assign(x.begin() + first, x.begin() + first + n_axes);
    out_.assign(out.begin() + first, out.begin() + first + n_axes);
    batch = x[0], channels = x[channel_last ? x.size() - 1 : 1], n_in = count(in_), n_out = count(out_);
    n_corners = nearest_ ? 1 : 1 << n_axes;
    NN_CHECK(s.contiguous(1).size() == batch * n_out * n_axes,
             "points must have " << n_axes << " coordinates for each place, got " << s.array(1).size());
    NN_CHECK(n_in < (int64_t{1} << 31), "images must have less than 2^31 pixels, got " << n_in);
    const auto& padding = s.args.get<std::string>("padding");
    padding_ = padding == "zero" ? Padding::kZero : (padding == "repeat" ? Padding::kRepeat : Padding::kReflect);
  }

  /// Place of a coordinate of a point in `points`.
  int64_t at(int64_t image, int64_t point, int axis) const {
    const int64_t coordinate = n_axes - 1 - axis;
    return flow_ ? (image * n_axes + coordinate) * n_out + point : (image * n_out + point) * n_axes + coordinate;
  }

  /// Fills the corners of points [first, first + n) of an image.
  void find(const float* points, int64_t image, int64_t first, int64_t n, const Corners& corners) const {
    for (int64_t i = 0; i < n; ++i) {
      float low[kMostAxes];
      int64_t rest = first + i;
      for (int axis = n_axes - 1; axis >= 0; --axis) {
        const float pixel = flow_ ? static_cast<float>(rest % out_[axis]) : 0.0f;
        if (flow_) rest /= out_[axis];
        float slope;
        const float place = placed(points[at(image, first + i, axis)], pixel, in_[axis], slope);
        low[axis] = nearest_ ? std::copysign(below(std::fabs(place) + 0.5f), place) : below(place);
        corners.fraction[axis * n + i] = place - low[axis];
        corners.slope[axis * n + i] = slope;
      }
      for (int corner = 0; corner < n_corners; ++corner) {
        float weight = 1.0f;
        int64_t index = 0;
        bool inside = true;
        for (int axis = 0; axis < n_axes; ++axis) {
          const bool high = (corner >> axis & 1) != 0;
          const float number = low[axis] + (high ? 1.0f : 0.0f), fraction = corners.fraction[axis * n + i];
          if (!nearest_) weight *= high ? fraction : 1.0f - fraction;
          inside = inside && number >= 0.0f && number <= static_cast<float>(in_[axis] - 1);
          index = index * in_[axis] + (inside ? static_cast<int64_t>(number) : 0);
        }
        corners.index[corner * n + i] = inside ? static_cast<int32_t>(index) : -1;
        corners.weight[corner * n + i] = weight;
      }
    }
  }

  /// The derivatives by the coordinates, from those by the weights of the corners, which `dweight` has like the
  /// corners.
  void differentiate(const Corners& corners, const float* dweight, int64_t image, int64_t first, int64_t n,
                     float* dpoints) const {
    for (int64_t i = 0; i < n; ++i) {
      for (int axis = 0; axis < n_axes; ++axis) {
        float total = 0.0f;
        for (int corner = 0; corner < n_corners; ++corner) {
          float part = dweight[corner * n + i];
          for (int other = 0; other < n_axes; ++other) {
            const float fraction = corners.fraction[other * n + i];
            if (other != axis) part *= (corner >> other & 1) != 0 ? fraction : 1.0f - fraction;
          }
          total += (corner >> axis & 1) != 0 ? part : -part;
        }
        dpoints[at(image, first + i, axis)] = total * corners.slope[axis * n + i];
      }
    }
  }

  double work() const { return static_cast<double>(batch * n_out * (channels + 4) * n_corners); }

 private:
  /// The whole number at or below x, which is not far from an image; NaN stays.
  static float below(float x) {
    if (x != x) return x;
    const auto whole = static_cast<float>(static_cast<int32_t>(x));
    return whole > x ? whole - 1.0f : whole;
  }

  /// A coordinate in pixels, padding applied, and its derivative.
  float placed(float coordinate, float pixel, int64_t length, float& slope) const {
    const auto last = static_cast<float>(length - 1), whole = static_cast<float>(length);
    if (flow_) {
      slope = 1.0f;
      return held(coordinate + pixel, last, slope);
    }
    slope = (align_corners_ ? last : whole) / 2.0f;
    float place = align_corners_ ? (coordinate + 1.0f) * last / 2.0f : ((coordinate + 1.0f) * whole - 1.0f) / 2.0f;
    if (padding_ == Padding::kZero) {  // only so far outside that it still reads zero
      if (place < -1.0f || place > whole) slope = 0.0f;
      return place < -1.0f ? -1.0f : (place > whole ? whole : place);
    }
    if (padding_ == Padding::kReflect) {
      const float start = align_corners_ ? 0.0f : -0.5f, span = align_corners_ ? last : whole,
                  period = std::max(2.0f * span, 1.0f);
      const float distance = std::fmod(std::fabs(place - start), period);
      if (place < start) slope = -slope;
      if (distance > span) slope = -slope;
      place = (distance > span ? 2.0f * span - distance : distance) + start;
    }
    return held(place, last, slope);
  }

  static float held(float place, float last, float& slope) {
    if (!(place > 0.0f && place < last)) slope = 0.0f;
    return place < 0.0f ? 0.0f : (place > last ? last : place);
  }

  Dims in_, out_;
  Padding padding_;
  bool nearest_, align_corners_, flow_;
};

class Warp : public Op {
 public:
  explicit Warp(const Signature& s) : sampler_(s, 2) {}

  void run(void* const* arrays) const override {
    const auto *x = static_cast<const float*>(arrays[0]), *points = static_cast<const float*>(arrays[1]);
    auto* y = static_cast<float*>(arrays[2]);
    const Sampler& s = sampler_;
    const int64_t chunks = (s.n_out + kChunk - 1) / kChunk;
    parallel_for(s.batch * chunks, kGrain / (kChunk * (s.channels + 1)) + 1, [&](int64_t begin, int64_t end, int) {
      Scratch scratch(Corners::bytes());
      const Corners corners(scratch);
      for (int64_t item = begin; item < end; ++item) {
        const int64_t image = item / chunks, first = item % chunks * kChunk, n = std::min(kChunk, s.n_out - first);
        s.find(points, image, first, n, corners);
        const float* from = x + image * s.channels * s.n_in;
        float* to = y + image * s.channels * s.n_out;
        if (s.channel_last) {
          mix(corners, n, from, to + first * s.channels);
        } else {
          for (int64_t c = 0; c < s.channels; ++c)
            vectors().sample_row(from + c * s.n_in, n, corners.index, corners.weight, s.n_corners,
                                 to + c * s.n_out + first);
        }
      }
    });
  }

  double cost() const override { return 50 + sampler_.work(); }

 private:
  void mix(const Corners& corners, int64_t n, const float* x, float* y) const {
    const int64_t channels = sampler_.channels;
    for (int64_t i = 0; i < n; ++i) {
      float* to = y + i * channels;
      std::fill_n(to, channels, 0.0f);
      for (int corner = 0; corner < sampler_.n_corners; ++corner) {
        const int64_t index = corners.index[corner * n + i];
        const float weight = corners.weight[corner * n + i], outside = weight * 0.0f;
        for (int64_t c = 0; c < channels; ++c) to[c] += index < 0 ? outside : weight * x[index * channels + c];
      }
    }
  }

  Sampler sampler_;
};

class WarpBackward : public Op {
 public:
  explicit WarpBackward(const Signature& s) : sampler_(s, 2) {
    if (s.has(3))
      NN_CHECK(s.contiguous(3).size() == s.array(0).size(), "dx must have the size of x, got " << s.array(3).size());
    if (s.has(4))
      NN_CHECK(s.contiguous(4).size() == s.array(1).size(),
               "dpoints must have the size of points, got " << s.array(4).size());
  }

  void run(void* const* arrays) const override {
    const auto *x = static_cast<const float*>(arrays[0]), *points = static_cast<const float*>(arrays[1]),
               *dy = static_cast<const float*>(arrays[2]);
    if (arrays[3] != nullptr) spread(points, dy, static_cast<float*>(arrays[3]));
    if (arrays[4] != nullptr) move(x, points, dy, static_cast<float*>(arrays[4]));
  }

  double cost() const override { return 50 + 2.0 * sampler_.work(); }

 private:
  /// dx: each element of dy goes to the corners of its point.
  void spread(const float* points, const float* dy, float* dx) const {
    const Sampler& s = sampler_;
    const int64_t wide = s.batch >= num_threads() ? s.channels : std::max<int64_t>(1, s.channels / num_threads());
    const int64_t groups = (s.channels + wide - 1) / std::max<int64_t>(1, wide);
    parallel_for(s.batch * groups, kGrain / (s.n_out * wide + 1) + 1, [&](int64_t begin, int64_t end, int) {
      Scratch scratch(Corners::bytes());
      const Corners corners(scratch);
      for (int64_t item = begin; item < end; ++item) {
        const int64_t image = item / groups, channel = item % groups * wide,
                      stop = std::min(s.channels, channel + wide);
        const float* from = dy + image * s.channels * s.n_out;
        float* to = dx + image * s.channels * s.n_in;
        const int64_t point = s.channel_last ? s.channels : 1, of_y = s.channel_last ? 1 : s.n_out,
                      of_x = s.channel_last ? 1 : s.n_in;
        for (int64_t c = channel; c < stop; ++c) {
          for (int64_t i = 0; i < s.n_in; ++i) to[c * of_x + i * point] = 0.0f;
        }
        for (int64_t first = 0; first < s.n_out; first += kChunk) {
          const int64_t n = std::min(kChunk, s.n_out - first);
          s.find(points, image, first, n, corners);
          for (int corner = 0; corner < s.n_corners; ++corner) {
            const int32_t* index = corners.index + corner * n;
            const float* weight = corners.weight + corner * n;
            if (s.channel_last) {
              for (int64_t i = 0; i < n; ++i) {
                for (int64_t c = channel; c < stop && index[i] >= 0; ++c)
                  to[index[i] * point + c] += weight[i] * from[(first + i) * point + c];
              }
              continue;
            }
            for (int64_t c = channel; c < stop; ++c) {
              for (int64_t i = 0; i < n; ++i) {
                if (index[i] >= 0) to[c * of_x + index[i]] += weight[i] * from[c * of_y + first + i];
              }
            }
          }
        }
      }
    });
  }

  /// dpoints: the products of dy with the corners, summed over channels, times the derivatives of the weights.
  void move(const float* x, const float* points, const float* dy, float* dpoints) const {
    const Sampler& s = sampler_;
    const int64_t chunks = (s.n_out + kChunk - 1) / kChunk;
    const int64_t point = s.channel_last ? s.channels : 1, of_y = s.channel_last ? 1 : s.n_out,
                  of_x = s.channel_last ? 1 : s.n_in;
    parallel_for(s.batch * chunks, kGrain / (kChunk * (s.channels + 1)) + 1, [&](int64_t begin, int64_t end, int) {
      Scratch scratch(Corners::bytes() + Scratch::bytes<float>(kMostCorners * kChunk));
      const Corners corners(scratch);
      auto* dweight = scratch.take<float>(kMostCorners * kChunk);
      for (int64_t item = begin; item < end; ++item) {
        const int64_t image = item / chunks, first = item % chunks * kChunk, n = std::min(kChunk, s.n_out - first);
        s.find(points, image, first, n, corners);
        const float *from = dy + image * s.channels * s.n_out, *pixels = x + image * s.channels * s.n_in;
        std::fill_n(dweight, s.n_corners * n, 0.0f);
        for (int corner = 0; corner < s.n_corners; ++corner) {
          const int32_t* index = corners.index + corner * n;
          float* total = dweight + corner * n;
          for (int64_t c = 0; c < s.channels && !s.channel_last; ++c)
            vectors().add_sampled_products(pixels + c * of_x, index, from + c * of_y + first, n, total);
          for (int64_t i = 0; i < n && s.channel_last; ++i) {
            for (int64_t c = 0; c < s.channels && index[i] >= 0; ++c)
              total[i] += pixels[index[i] * point + c] * from[(first + i) * point + c];
          }
        }
        s.differentiate(corners, dweight, image, first, n, dpoints);
      }
    });
  }

  Sampler sampler_;
};

}  // namespace

void register_warp(Registry& registry) {
  registry.add("warp", make<Warp>, 2);
  registry.add("warp_backward", make<WarpBackward>, 3);
}

}  // namespace nn_cpu
