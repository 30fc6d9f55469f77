// Fourier transforms.
//   fourier         x -> y, both (A, L_1 .. L_k, 2) with real and imaginary part: transforms the axes L, times scale.
//                   Settings lengths (L), inverse, scale
//   frames          x (B, T) -> re, im (B, N / 2 + 1, F): transforms of F windowed frames, `stride` apart; `margin`
//                   samples are put before and after x, mirrored at its outer ones with reflect, else 0; with
//                   `transposed` the transpose of overlap
//   overlap         re, im -> x: adds the windowed inverse transforms of the frames up, without `margin` samples on
//                   both sides, and divides by the sum of the squared windows; with `transposed` it is the transpose of
//                   frames (without padding) instead
// Settings of the last two: window (N numbers), stride, margin. Two real frames are transformed as one complex signal.
// O(N log N) a frame.
#include <algorithm>
#include <vector>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/fourier.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

/// Working memory of a thread that transforms `lanes` signals.
struct Signals {
  float *re, *im, *spare_re, *spare_im;

  Signals(Scratch& scratch, int64_t room)
      : re(scratch.take<float>(room)),
        im(scratch.take<float>(room)),
        spare_re(scratch.take<float>(room)),
        spare_im(scratch.take<float>(room)) {}
  static size_t bytes(int64_t room) { return 4 * Scratch::bytes<float>(room); }
};

class FourierOp : public Op {
 public:
  explicit FourierOp(const Signature& s)
      : lengths_(s.args.dims("lengths")), inverse_(s.args.flag("inverse")), scale_(s.args.real("scale")) {
    size_ = s.contiguous(0).size();
    const int64_t signal = 2 * count(lengths_);
    NN_CHECK(signal > 0 && size_ % signal == 0 && s.contiguous(1).size() == size_,
             "x and y must hold whole signals, got " << size_ << " numbers");
    for (const int64_t length : lengths_) axes_.emplace_back(length);
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const float*>(arrays[0]);
    auto* y = static_cast<float*>(arrays[1]);
    int64_t behind = 1;
    for (size_t axis = axes_.size(); axis-- > 0; behind *= lengths_[axis])
      along(axes_[axis], behind, axis == 0 ? scale_ : 1.0f, axis + 1 == axes_.size() ? x : y, y);
  }

  double cost() const override { return 100 + 3.0 * static_cast<double>(size_); }

 private:
  /// One axis with `behind` signals next to each other; x may be y.
  void along(const Fourier& fourier, int64_t behind, float scale, const float* x, float* y) const {
    const int64_t n = fourier.length(), signals = size_ / 2 / n, width = fourier.lanes(signals),
                  groups = (signals + width - 1) / width;
    parallel_for(groups, 8192 / (n * width) + 1, [&](int64_t begin, int64_t end, int) {
      Scratch scratch(Signals::bytes(fourier.room(width)));
      const Signals at(scratch, fourier.room(width));
      for (int64_t group = begin; group < end; ++group) {
        const int64_t first = group * width, lanes = std::min(width, signals - first);
        const auto place = [&](int64_t lane) {
          return ((first + lane) / behind * n * behind + (first + lane) % behind) * 2;
        };
        for (int64_t lane = 0; lane < lanes; ++lane) {
          const float* from = x + place(lane);
          float *re = at.spare_re + lane * n, *im = at.spare_im + lane * n;
          for (int64_t k = 0; k < n; ++k) re[k] = from[2 * k * behind], im[k] = from[2 * k * behind + 1];
        }
        vectors().transpose(at.spare_re, lanes, n, n, at.re, lanes);
        vectors().transpose(at.spare_im, lanes, n, n, at.im, lanes);
        if (inverse_) {
          fourier.transform(lanes, at.im, at.re, at.spare_re, at.spare_im);
        } else {
          fourier.transform(lanes, at.re, at.im, at.spare_re, at.spare_im);
        }
        vectors().transpose(at.re, n, lanes, lanes, at.spare_re, n);
        vectors().transpose(at.im, n, lanes, lanes, at.spare_im, n);
        for (int64_t lane = 0; lane < lanes; ++lane) {
          float* to = y + place(lane);
          const float *re = at.spare_re + lane * n, *im = at.spare_im + lane * n;
          for (int64_t k = 0; k < n; ++k) to[2 * k * behind] = scale * re[k], to[2 * k * behind + 1] = scale * im[k];
        }
      }
    });
  }

  Dims lengths_;
  std::vector<Fourier> axes_;
  bool inverse_;
  float scale_;
  int64_t size_;
};

/// The common state of both directions of short-time transforms: frames of a batch of signals.
struct Framing {
  std::vector<double> window;
  std::vector<float> weights;  // the window in float32
  Fourier fourier;
  int64_t stride, margin, batch, samples, frames, bins;

  Framing(const Signature& s, size_t x, size_t re)
      : window(s.args.get<std::vector<double>>("window")),
        weights(window.begin(), window.end()),
        fourier(static_cast<int64_t>(window.size())),
        stride(s.args.integer("stride")),
        margin(s.args.integer("margin")) {
    const Dims &signal = s.contiguous(x).shape, &spectrum = s.contiguous(re).shape;
    bins = fourier.length() / 2 + 1;
    NN_CHECK(signal.size() == 2 && spectrum.size() == 3 && spectrum[1] == bins && spectrum[0] == signal[0],
             "spectra must be (B, N / 2 + 1, F), got " << to_string(spectrum));
    NN_CHECK(s.contiguous(re + 1).size() == s.array(re).size(),
             "re and im must have one size, got " << s.array(re + 1).size());
    batch = signal[0], samples = signal[1], frames = spectrum[2];
    NN_CHECK(stride > 0 && (frames - 1) * stride + fourier.length() <= samples + 2 * margin,
             "frames must lie within the samples, got " << frames);
  }

  double cost() const { return 100 + 4.0 * static_cast<double>(batch * frames * fourier.length()); }

  /// Samples from the begin of the first frame to the end of the last one.
  int64_t covered() const { return (frames - 1) * stride + fourier.length(); }

  /// The squared windows of all frames, added up where they overlap.
  std::vector<float> window_sums() const {
    std::vector<double> sums(static_cast<size_t>(covered()));
    for (int64_t frame = 0; frame < frames; ++frame) {
      for (int64_t k = 0; k < fourier.length(); ++k) sums[frame * stride + k] += window[k] * window[k];
    }
    return {sums.begin(), sums.end()};
  }
};

class Frames : public Op {
 public:
  explicit Frames(const Signature& s)
      : f_(s, 0, 1), reflect_(s.args.flag("reflect")), transposed_(s.args.flag("transposed")) {
    if (transposed_) sums_ = f_.window_sums();
    NN_CHECK(!reflect_ || f_.margin < f_.samples,
             "x must have more than " << f_.margin << " samples to be mirrored, got " << f_.samples);
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const float*>(arrays[0]);
    auto *re = static_cast<float*>(arrays[1]), *im = static_cast<float*>(arrays[2]);
    const int64_t n = f_.fourier.length(), width = f_.fourier.lanes((f_.frames + 1) / 2),
                  groups = (f_.frames + 2 * width - 1) / (2 * width);
    parallel_for(f_.batch * groups, 8192 / (n * width) + 1, [&](int64_t begin, int64_t end, int) {
      Scratch scratch(Signals::bytes(f_.fourier.room(width)));
      const Signals at(scratch, f_.fourier.room(width));
      for (int64_t item = begin; item < end; ++item) {
        const int64_t signal = item / groups, first = item % groups * 2 * width,
                      count = std::min(2 * width, f_.frames - first), lanes = (count + 1) / 2;
        // Lane l has frame first + l as real part, and as imaginary part frame first + lanes + l, if there is one.
        for (int64_t lane = 0; lane < lanes; ++lane) {
          read(x + signal * f_.samples, first + lane, at.spare_re + lane * n);
          if (lanes + lane < count) {
            read(x + signal * f_.samples, first + lanes + lane, at.spare_im + lane * n);
          } else {
            std::fill_n(at.spare_im + lane * n, n, 0.0f);
          }
        }
        vectors().transpose(at.spare_re, lanes, n, n, at.re, lanes);
        vectors().transpose(at.spare_im, lanes, n, n, at.im, lanes);
        f_.fourier.transform(lanes, at.re, at.im, at.spare_re, at.spare_im);
        for (int64_t bin = 0; bin < f_.bins; ++bin) {
          const int64_t mirrored = (n - bin) % n, to = (signal * f_.bins + bin) * f_.frames + first;
          const float *a = at.re + bin * lanes, *b = at.im + bin * lanes, *c = at.re + mirrored * lanes,
                      *d = at.im + mirrored * lanes;
          const float half = transposed_ ? (mirrored == bin ? 0.5f : 1.0f) / static_cast<float>(n) : 0.5f;
          for (int64_t lane = 0; lane < lanes; ++lane) {
            re[to + lane] = half * (a[lane] + c[lane]);
            im[to + lane] = half * (b[lane] - d[lane]);
          }
          for (int64_t lane = 0; lane < count - lanes; ++lane) {
            re[to + lanes + lane] = half * (b[lane] + d[lane]);
            im[to + lanes + lane] = half * (c[lane] - a[lane]);
          }
        }
      }
    });
  }

  double cost() const override { return f_.cost(); }

 private:
  /// The windowed samples of a frame.
  void read(const float* x, int64_t frame, float* to) const {
    const int64_t start = frame * f_.stride - f_.margin, n = f_.fourier.length();
    if (transposed_) {
      const int64_t end = f_.covered() - 2 * f_.margin;
      for (int64_t k = 0; k < n; ++k) {
        const int64_t place = start + k;
        to[k] = place >= 0 && place < end ? x[place] / sums_[place + f_.margin] * f_.weights[k] : 0.0f;
      }
      return;
    }
    if (start >= 0 && start + n <= f_.samples) {
      for (int64_t k = 0; k < n; ++k) to[k] = x[start + k] * f_.weights[k];
      return;
    }
    for (int64_t k = 0; k < n; ++k) {
      int64_t place = start + k;
      if (reflect_ && place < 0) place = -place;
      if (reflect_ && place >= f_.samples) place = 2 * (f_.samples - 1) - place;
      const bool inside = place >= 0 && place < f_.samples;
      to[k] = inside ? x[place] * f_.weights[k] : 0.0f;
    }
  }

  Framing f_;
  bool reflect_, transposed_;
  std::vector<float> sums_;
};

class Overlap : public Op {
 public:
  explicit Overlap(const Signature& s) : f_(s, 2, 0), transposed_(s.args.flag("transposed")), covered_(f_.covered()) {
    NN_CHECK(covered_ == f_.samples + 2 * f_.margin, "x must have the samples that frames cover, got " << f_.samples);
    if (!transposed_) sums_ = f_.window_sums();
  }

  void run(void* const* arrays) const override {
    const auto *re = static_cast<const float*>(arrays[0]), *im = static_cast<const float*>(arrays[1]);
    auto* x = static_cast<float*>(arrays[2]);
    const int64_t n = f_.fourier.length(), width = f_.fourier.lanes((f_.frames + 1) / 2), room = f_.fourier.room(width);
    parallel_for(f_.batch, 1, [&](int64_t begin, int64_t end, int) {
      Scratch scratch(Signals::bytes(room) + Scratch::bytes<float>(covered_));
      const Signals at(scratch, room);
      auto* total = scratch.take<float>(covered_);
      for (int64_t signal = begin; signal < end; ++signal) {
        std::fill_n(total, covered_, 0.0f);
        for (int64_t first = 0; first < f_.frames; first += 2 * width) {
          const int64_t count = std::min(2 * width, f_.frames - first), lanes = (count + 1) / 2;
          for (int64_t bin = 0; bin < f_.bins; ++bin) load(re, im, signal, first, count, lanes, bin, at);
          f_.fourier.transform(lanes, at.im, at.re, at.spare_re, at.spare_im);
          vectors().transpose(at.re, n, lanes, lanes, at.spare_re, n);
          vectors().transpose(at.im, n, lanes, lanes, at.spare_im, n);
          for (int64_t frame = 0; frame < count; ++frame) {
            const float* from = (frame < lanes ? at.spare_re : at.spare_im) + frame % lanes * n;
            float* to = total + (first + frame) * f_.stride;
            for (int64_t k = 0; k < n; ++k) to[k] += from[k] * f_.weights[k];
          }
        }
        float* out = x + signal * f_.samples;
        for (int64_t i = 0; i < f_.samples; ++i)
          out[i] = transposed_ ? total[f_.margin + i] : total[f_.margin + i] / sums_[f_.margin + i];
      }
    });
  }

  double cost() const override { return f_.cost(); }

 private:
  /// A bin of two groups of frames, s and t, as s + i t, and its mirror image as conj(s) + i conj(t); scaled for the
  /// inverse.
  void load(const float* re, const float* im, int64_t signal, int64_t first, int64_t count, int64_t lanes, int64_t bin,
            const Signals& at) const {
    const int64_t n = f_.fourier.length(), from = (signal * f_.bins + bin) * f_.frames + first;
    const bool single = bin == 0 || 2 * bin == n;  // such bins are real and have no mirror image
    const float scale = transposed_ ? (single ? 1.0f : 0.5f) : 1.0f / static_cast<float>(n);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const bool paired = lanes + lane < count;
      const float s_re = scale * re[from + lane], s_im = single ? 0.0f : scale * im[from + lane];
      const float t_re = paired ? scale * re[from + lanes + lane] : 0.0f,
                  t_im = paired && !single ? scale * im[from + lanes + lane] : 0.0f;
      at.re[bin * lanes + lane] = s_re - t_im;
      at.im[bin * lanes + lane] = s_im + t_re;
      if (single) continue;
      at.re[(n - bin) * lanes + lane] = s_re + t_im;
      at.im[(n - bin) * lanes + lane] = t_re - s_im;
    }
  }

  Framing f_;
  bool transposed_;
  int64_t covered_;
  std::vector<float> sums_;
};

}  // namespace

void register_fourier(Registry& registry) {
  registry.add("fourier", make<FourierOp>, 1);
  registry.add("frames", make<Frames>, 1);
  registry.add("overlap", make<Overlap>, 2);
}

}  // namespace nn_cpu
