// Samples altered at random, with the random bits that nn_core defines: element e of a stream has lane e % 4 of Philox
// block e // 4.
//   draw_source    -> source int64 (S, L_1 + .. + L_k), then the key, uint64 (2,) = seed, counter, read at each run:
//                  for each of S samples the place that each of the L places of each axis is read from; -1: from
//                  outside. An axis has an offset below `ranges[axis]`, drawn from its word of the sample. Settings:
//                  lengths (L), ranges, and motion:
//     crop         offset + i
//     flip         i, backwards where the offset is 1
//     constant, nearest, reflect   i + (range - 1) / 2 - offset on an axis as long as y: what lies outside is -1, the
//                  nearest place, or the one mirrored at the edges, edge elements repeated
//   random_erase   x (S, C, H, W), or (S, H, W, C) with channel_last -> y, kept (C is 1 where channels share), then the
//                  key. Settings: prob, areas, aspects, values (low and high), n, share, channel_last
//   Random erasing: Zhong et al. (2017). Patches count by sample, patch and channel; streams: 0 erase or not, 1 area, 2
//   aspect ratio, 3 first row, 4 first column, 5 new value of each element of x. Computed in double and rounded once.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr uint64_t kStreamBlocks = uint64_t{1} << 38;
constexpr int64_t kGrain = 8192;  // elements a thread

/// Words of elements [first, first + n) of a stream.
std::vector<uint32_t> words_of(const uint64_t* key, uint64_t stream, int64_t first, int64_t n) {
  const int64_t block = first / 4, n_blocks = (first + n + 3) / 4 - block;
  std::vector<uint32_t> words(static_cast<size_t>(4 * n_blocks));
  vectors().philox(key[0], key[1], stream * kStreamBlocks + static_cast<uint64_t>(block), n_blocks, words.data());
  words.erase(words.begin(), words.begin() + first % 4);
  return words;
}

double uniform(uint32_t word) { return static_cast<double>(word >> 8) / 16777216.0; }

enum class Motion { kCrop, kFlip, kConstant, kNearest, kReflect };

Motion motion_called(const std::string& name) {
  if (name == "crop") return Motion::kCrop;
  if (name == "flip") return Motion::kFlip;
  if (name == "constant") return Motion::kConstant;
  if (name == "nearest") return Motion::kNearest;
  NN_CHECK(name == "reflect", "motion must be one that draw_source knows, got " << name);
  return Motion::kReflect;
}

class DrawSource : public Op {
 public:
  explicit DrawSource(const Signature& s)
      : lengths_(s.args.dims("lengths")),
        ranges_(s.args.dims("ranges")),
        motion_(motion_called(s.args.get<std::string>("motion"))) {
    NN_CHECK(lengths_.size() == ranges_.size() && !lengths_.empty(),
             "lengths and ranges must have an entry for each axis, got " << lengths_.size());
    for (const int64_t length : lengths_) width_ += length;
    const int64_t size = s.contiguous(0, DType::kInt64).size();
    samples_ = width_ > 0 ? size / width_ : 0;
    NN_CHECK(samples_ * width_ == size, "source must have " << width_ << " numbers a sample, got " << size);
    NN_CHECK(s.contiguous(1, DType::kUInt64).size() == 2,
             "key must have two elements, got " << s.array(1, DType::kUInt64).size());
  }

  void run(void* const* arrays) const override {
    auto* source = static_cast<int64_t*>(arrays[0]);
    const auto n_axes = static_cast<int64_t>(lengths_.size());
    const std::vector<uint32_t> words = words_of(static_cast<const uint64_t*>(arrays[1]), 0, 0, samples_ * n_axes);
    for (int64_t sample = 0; sample < samples_; ++sample) {
      for (int64_t axis = 0; axis < n_axes; ++axis) {
        const auto offset =
            static_cast<int64_t>((words[sample * n_axes + axis] * static_cast<uint64_t>(ranges_[axis])) >> 32);
        for (int64_t i = 0; i < lengths_[axis]; ++i)
          *source++ = place(i, offset, lengths_[axis], (ranges_[axis] - 1) / 2);
      }
    }
  }

  double cost() const override { return 50 + 2.0 * static_cast<double>(samples_ * width_); }

 private:
  int64_t place(int64_t i, int64_t offset, int64_t length, int64_t middle) const {
    if (motion_ == Motion::kCrop) return i + offset;
    if (motion_ == Motion::kFlip) return offset == 0 ? i : length - 1 - i;
    const int64_t position = i + middle - offset;
    if (position >= 0 && position < length) return position;
    if (motion_ == Motion::kConstant) return -1;
    if (motion_ == Motion::kNearest) return std::clamp<int64_t>(position, 0, length - 1);
    const int64_t turned = (position % (2 * length) + 2 * length) % (2 * length);
    return std::min(turned, 2 * length - 1 - turned);
  }

  Dims lengths_, ranges_;
  Motion motion_;
  int64_t width_ = 0, samples_ = 0;
};

/// The places of an image that a patch covers, empty where it is not erased.
struct Patch {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

class RandomErase : public Op {
 public:
  explicit RandomErase(const Signature& s)
      : prob_(s.args.get<double>("prob")),
        areas_(s.args.get<std::vector<double>>("areas")),
        aspects_(s.args.get<std::vector<double>>("aspects")),
        values_(s.args.get<std::vector<double>>("values")),
        n_(s.args.integer("n")),
        share_(s.args.flag("share")),
        last_(s.args.flag("channel_last")) {
    const Dims& shape = s.contiguous(0).shape;
    NN_CHECK(shape.size() == 4 && areas_.size() == 2 && aspects_.size() == 2 && values_.size() == 2,
             "x must be a batch of images, got shape " << to_string(shape));
    samples_ = shape[0], channels_ = shape[last_ ? 3 : 1], height_ = shape[last_ ? 1 : 2],
    width_ = shape[last_ ? 2 : 3];
    const int64_t size = samples_ * channels_ * height_ * width_;
    NN_CHECK(s.contiguous(1).size() == size, "y must have the size of x, got " << s.array(1).size());
    NN_CHECK(s.contiguous(2).size() * (share_ ? channels_ : 1) == size,
             "kept must have an element for each place, got " << s.array(2).size());
    NN_CHECK(s.contiguous(3, DType::kUInt64).size() == 2,
             "key must have two elements, got " << s.array(3, DType::kUInt64).size());
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const float*>(arrays[0]);
    auto *y = static_cast<float*>(arrays[1]), *kept = static_cast<float*>(arrays[2]);
    const auto* key = static_cast<const uint64_t*>(arrays[3]);
    const int64_t masks = share_ ? 1 : channels_;
    const std::vector<Patch> patches = draw_patches(key, masks);
    const int64_t image = channels_ * height_ * width_;
    parallel_for(samples_, kGrain / std::max<int64_t>(1, image) + 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t sample = begin; sample < end; ++sample) {
        std::copy_n(x + sample * image, image, y + sample * image);
        std::fill_n(kept + sample * masks * height_ * width_, masks * height_ * width_, 1.0f);
        for (int64_t i = 0; i < n_ * masks; ++i)
          erase(patches[sample * n_ * masks + i], sample, i % masks, masks, key, y, kept);
      }
    });
  }

  double cost() const override { return 50 + static_cast<double>(samples_ * channels_ * height_ * width_); }

 private:
  std::vector<Patch> draw_patches(const uint64_t* key, int64_t masks) const {
    const int64_t count = samples_ * n_ * masks;
    std::vector<uint32_t> words[5];
    for (uint64_t stream = 0; stream < 5; ++stream) words[stream] = words_of(key, stream, 0, count);
    std::vector<Patch> patches(static_cast<size_t>(count));
    const auto between = [](const std::vector<double>& limits, uint32_t word) {
      return limits[0] + (limits[1] - limits[0]) * uniform(word);
    };
    const auto height = static_cast<double>(height_), width = static_cast<double>(width_);
    for (int64_t i = 0; i < count; ++i) {
      if (uniform(words[0][i]) >= prob_) continue;
      const double area = between(areas_, words[1][i]) * (height * width), aspect = between(aspects_, words[2][i]);
      const double rows = std::min(std::sqrt(area * aspect), height),
                   columns = std::min(std::sqrt(area / aspect), width);
      const double row = uniform(words[3][i]) * (height - rows), column = uniform(words[4][i]) * (width - columns);
      patches[i] = {first_inside(row, height_), first_inside(row + rows, height_), first_inside(column, width_),
                    first_inside(column + columns, width_)};
    }
    return patches;
  }

  /// The first place whose middle does not lie before `border`.
  static int64_t first_inside(double border, int64_t length) {
    return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(border - 0.5)), 0, length);
  }

  void erase(const Patch& patch, int64_t sample, int64_t mask, int64_t masks, const uint64_t* key, float* y,
             float* kept) const {
    const int64_t columns = patch.right - patch.left;
    if (columns <= 0) return;
    for (int64_t row = patch.top; row < patch.bottom; ++row) {
      if (last_) {
        const int64_t place = (sample * height_ + row) * width_ + patch.left;
        for (int64_t i = 0; i < columns; ++i) kept[(place + i) * masks + mask] = 0.0f;
        if (share_) {
          renew(key, place * channels_, columns * channels_, 1, y);
        } else {
          renew(key, place * channels_ + mask, (columns - 1) * channels_ + 1, channels_, y);
        }
        continue;
      }
      std::fill_n(kept + ((sample * masks + mask) * height_ + row) * width_ + patch.left, columns, 0.0f);
      for (int64_t channel = share_ ? 0 : mask; channel < (share_ ? channels_ : mask + 1); ++channel) {
        renew(key, ((sample * channels_ + channel) * height_ + row) * width_ + patch.left, columns, 1, y);
      }
    }
  }

  /// New values for every `step`-th of n elements of y.
  void renew(const uint64_t* key, int64_t first, int64_t n, int64_t step, float* y) const {
    const std::vector<uint32_t> words = words_of(key, 5, first, n);
    for (int64_t i = 0; i < n; i += step)
      y[first + i] = static_cast<float>(values_[0] + (values_[1] - values_[0]) * uniform(words[i]));
  }

  double prob_;
  std::vector<double> areas_, aspects_, values_;
  int64_t n_, samples_, channels_, height_, width_;
  bool share_, last_;
};

}  // namespace

void register_moves(Registry& registry) {
  registry.add("draw_source", make<DrawSource>);
  registry.add("random_erase", make<RandomErase>, 1);
}

}  // namespace nn_cpu
