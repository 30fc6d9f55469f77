// Elements picked and put along one axis by an index for each element, and along all axes by an index for each place of
// an axis.
//   pick_along   x, indices int64 -> y, zero beyond the indices: y[i, .., j] = x[i, .., indices[i, .., j], .., j];
//                setting axis
//   add_along    data, indices, out -> y: y = out, then y[i, .., indices[i, .., j], .., j] += data[i, .., j]; setting
//                axis
//                out may be absent: 0. Only the part of data that indices cover is added. Negative indices count from
//                the end, others outside throw. Setting label: what errors call the indices.
//   pick_axes    x (S, D_1 .. D_k), source int64 (S, L_1 + .. + L_k) -> y (S, L_1 .. L_k): y[s, i, j] = x[s,
//                source_1[i], source_2[j]]; where a source is negative: setting value
//   add_axes     dy (S, L_1 .. L_k), source -> dx (S, D_1 .. D_k): the elements added up where they were picked
// Sums run in the order of the elements, a thread has lines or samples of its own, so results repeat. O(elements).
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/errors.hpp"
#include "support/parallel.hpp"
#include "support/walk.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kGrain = 8192;  // elements a thread

/// The indices seen as (A, C, B) around the axis; arrays that they are used with have strides of their own over the
/// same places.
struct Along {
  Dims shape;  // of the indices
  int64_t a = 1, c, b = 1, length;
  std::string label;

  /// `whole` is the array whose axis the indices number.
  Along(const Signature& s, const ArrayDesc& whole)
      : shape(s.contiguous(1, DType::kInt64).shape), label(s.args.get<std::string>("label")) {
    const auto axis = static_cast<size_t>(s.args.integer("axis"));
    NN_CHECK(axis < shape.size() && whole.ndim() == static_cast<int64_t>(shape.size()),
             "indices must have the rank of the array, got " << to_string(shape));
    for (size_t k = 0; k < shape.size(); ++k) {
      NN_CHECK(k == axis || shape[k] <= whole.shape[k],
               "indices must not be longer than the array, got " << to_string(shape));
      if (k < axis) a *= shape[k];
      if (k > axis) b *= shape[k];
    }
    c = shape[axis];
    length = whole.shape[axis];
  }

  int64_t size() const { return a * c * b; }

  void check(const int64_t* indices) const {
    std::atomic<bool> outside = false;
    const auto most = static_cast<uint64_t>(2 * length);
    parallel_for(size(), 4 * kGrain, [&](int64_t begin, int64_t end, int) {
      bool any = false;
      for (int64_t i = begin; i < end; ++i) any |= static_cast<uint64_t>(indices[i] + length) >= most;
      if (any) outside = true;
    });
    if (!outside) return;
    const auto [low, high] = std::minmax_element(indices, indices + size());
    throw ArgumentError(label + " must be in [" + std::to_string(-length) + ", " + std::to_string(length) +
                        "), got values from " + std::to_string(*low) + " to " + std::to_string(*high));
  }

  int64_t place(int64_t index) const { return index < 0 ? index + length : index; }

  /// Calls body(place of an index, k, offset of its line in `first`, offset in `second`) for each index, k its place
  /// along the axis. The arrays start at the same corner. Neighbouring lines are treated together where they are
  /// neighbours in memory.
  template <class Body>
  void visit(const ArrayDesc& first, const ArrayDesc& second, int64_t axis, const Body& body) const {
    Dims lines = shape, first_strides = first.strides, second_strides = second.strides,
         index_strides = contiguous_strides(shape);
    for (Dims* dims : {&lines, &first_strides, &second_strides, &index_strides}) {
      dims->erase(dims->begin() + axis);
      if (dims->empty()) dims->push_back(1);
    }
    const int64_t steps[3] = {first_strides.back(), second_strides.back(), index_strides.back()};
    parallel_for(a * b, kGrain / std::max<int64_t>(c, 1) + 1, [&](int64_t begin, int64_t end, int) {
      for_each_run_of<3>(lines, {&first_strides, &second_strides, &index_strides}, begin, end - begin,
                         [&](const auto& offsets, int64_t, int64_t n) {
                           const auto visit_one = [&](int64_t i, int64_t k) {
                             body(offsets[2] + i * steps[2] + k * b, k, offsets[0] + i * steps[0],
                                  offsets[1] + i * steps[1]);
                           };
                           if (b > 1) {
                             for (int64_t k = 0; k < c; ++k) {
                               for (int64_t i = 0; i < n; ++i) visit_one(i, k);
                             }
                           } else {
                             for (int64_t i = 0; i < n; ++i) {
                               for (int64_t k = 0; k < c; ++k) visit_one(i, k);
                             }
                           }
                         });
    });
  }
};

class PickAlong : public Op {
 public:
  explicit PickAlong(const Signature& s)
      : along_(s, s.contiguous(0)), axis_(s.args.integer("axis")), x_(s.array(0)), y_(s.contiguous(2)) {
    NN_CHECK(y_.ndim() == x_.ndim(), "y must have the rank of x, got " << to_string(y_.shape));
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const float*>(arrays[0]);
    const auto* indices = static_cast<const int64_t*>(arrays[1]);
    auto* y = static_cast<float*>(arrays[2]);
    along_.check(indices);
    if (y_.size() != along_.size()) std::fill_n(y, y_.size(), 0.0f);
    const int64_t x_step = x_.strides[axis_], y_step = y_.strides[axis_];
    along_.visit(x_, y_, axis_, [&](int64_t at, int64_t k, int64_t from, int64_t to) {
      y[to + k * y_step] = x[from + along_.place(indices[at]) * x_step];
    });
  }

  double cost() const override { return 50 + 2.0 * static_cast<double>(along_.size()); }

 private:
  Along along_;
  int64_t axis_;
  ArrayDesc x_, y_;
};

class AddAlong : public Op {
 public:
  explicit AddAlong(const Signature& s)
      : along_(s, s.contiguous(3)), axis_(s.args.integer("axis")), data_(s.contiguous(0)), y_(s.array(3)) {
    NN_CHECK(!s.has(2) || s.contiguous(2).size() == y_.size(),
             "out must have the size of y, got " << s.array(2).size());
    for (int64_t k = 0; k < data_.ndim(); ++k)
      NN_CHECK(along_.shape[k] <= data_.shape[k],
               "indices must not be longer than data, got " << to_string(along_.shape));
  }

  void run(void* const* arrays) const override {
    const auto *data = static_cast<const float*>(arrays[0]), *out = static_cast<const float*>(arrays[2]);
    const auto* indices = static_cast<const int64_t*>(arrays[1]);
    auto* y = static_cast<float*>(arrays[3]);
    along_.check(indices);
    parallel_for(y_.size(), 4 * kGrain, [&](int64_t begin, int64_t end, int) {
      if (out == nullptr) {
        std::fill(y + begin, y + end, 0.0f);
      } else {
        std::memcpy(y + begin, out + begin, (end - begin) * sizeof(float));
      }
    });
    const int64_t data_step = data_.strides[axis_], y_step = y_.strides[axis_];
    along_.visit(data_, y_, axis_, [&](int64_t at, int64_t k, int64_t from, int64_t to) {
      y[to + along_.place(indices[at]) * y_step] += data[from + k * data_step];
    });
  }

  double cost() const override { return 50 + 2.0 * static_cast<double>(along_.size() + y_.size()); }

 private:
  Along along_;
  int64_t axis_;
  ArrayDesc data_, y_;
};

/// Samples whose elements are picked along all axes; `inner` are the lengths that are numbered, `outer` the numbers of
/// sources.
struct Maps {
  int64_t samples, inner_size, outer_size, n_sources = 0;
  Dims inner_strides, inner_lengths, outer;

  Maps(const ArrayDesc& inner, const ArrayDesc& outer_desc, const ArrayDesc& source) : samples(inner.shape.at(0)) {
    NN_CHECK(inner.ndim() == outer_desc.ndim() && inner.ndim() >= 2 && outer_desc.shape[0] == samples,
             "arrays must be (S, ...) of one rank, got " << to_string(inner.shape));
    inner_strides.assign(inner.strides.begin() + 1, inner.strides.end());
    outer.assign(outer_desc.shape.begin() + 1, outer_desc.shape.end());
    for (const int64_t length : outer) n_sources += length;
    NN_CHECK(source.size() == samples * n_sources,
             "source must have " << n_sources << " numbers a sample, got " << source.size());
    inner_lengths.assign(inner.shape.begin() + 1, inner.shape.end());
    inner_size = samples > 0 ? inner.size() / samples : 0;
    outer_size = samples > 0 ? outer_desc.size() / samples : 0;
  }

  /// Throws where a source is at or beyond the length of its axis; below 0 it is outside.
  void check(const int64_t* source) const {
    for (int64_t sample = 0; sample < samples; ++sample) {
      for (size_t axis = 0; axis < outer.size(); ++axis) {
        for (int64_t i = 0; i < outer[axis]; ++i, ++source) {
          if (*source >= inner_lengths[axis]) {
            throw ArgumentError("source must be in [-1, " + std::to_string(inner_lengths[axis]) + ") along axis " +
                                std::to_string(axis) + " of a sample, got " + std::to_string(*source));
          }
        }
      }
    }
  }

  /// Calls body(offset of the picked line, sources along the last axis, first element outside, outside) for each line
  /// of a sample.
  template <class Body>
  void lines(const int64_t* source, const Body& body) const {
    const size_t last = outer.size() - 1;
    const int64_t n = outer[last], n_lines = n > 0 ? outer_size / n : 0;
    const int64_t* last_source = source + n_sources - n;
    for (int64_t line = 0; line < n_lines; ++line) {
      int64_t rest = line, offset = 0;
      const int64_t* end = last_source;
      bool outside = false;
      for (size_t axis = last; axis-- > 0;) {
        end -= outer[axis];
        const int64_t place = end[rest % outer[axis]];
        rest /= outer[axis];
        outside |= place < 0;
        offset += place * inner_strides[axis];
      }
      body(offset, last_source, line * n, outside);
    }
  }

  /// 1 or -1 where the sources of a sample along the last axis follow each other up or down, all inside; else 0.
  int64_t common_step(const int64_t* source) const {
    const int64_t n = outer.back();
    const int64_t* places = source + n_sources - n;
    if (places[0] < 0) return 0;
    const int64_t step = n > 1 && places[1] < places[0] ? -1 : 1;
    for (int64_t i = 1; i < n; ++i) {
      if (places[i] != places[i - 1] + step || places[i] < 0) return 0;
    }
    return step;
  }

  double size() const { return static_cast<double>(samples * (inner_size + outer_size)); }
};

class PickAxes : public Op {
 public:
  explicit PickAxes(const Signature& s)
      : maps_(s.contiguous(0), s.contiguous(2), s.contiguous(1, DType::kInt64)), value_(s.args.real("value")) {}

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const float*>(arrays[0]);
    const auto* source = static_cast<const int64_t*>(arrays[1]);
    auto* y = static_cast<float*>(arrays[2]);
    maps_.check(source);
    const int64_t n = maps_.outer.back();
    parallel_for(maps_.samples, kGrain / (maps_.outer_size + 1) + 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t sample = begin; sample < end; ++sample) {
        const float* from = x + sample * maps_.inner_size;
        const int64_t* own = source + sample * maps_.n_sources;
        const int64_t step = n > 0 ? maps_.common_step(own) : 0;
        maps_.lines(own, [&](int64_t offset, const int64_t* last, int64_t first, bool outside) {
          float* to = y + sample * maps_.outer_size + first;
          if (outside) {
            std::fill_n(to, n, value_);
          } else if (step == 1) {
            std::copy_n(from + offset + last[0], n, to);
          } else if (step == -1) {
            std::reverse_copy(from + offset + last[n - 1], from + offset + last[0] + 1, to);
          } else {
            for (int64_t i = 0; i < n; ++i) to[i] = last[i] < 0 ? value_ : from[offset + last[i]];
          }
        });
      }
    });
  }

  double cost() const override { return 50 + maps_.size(); }

 private:
  Maps maps_;
  float value_;
};

class AddAxes : public Op {
 public:
  explicit AddAxes(const Signature& s) : maps_(s.contiguous(2), s.contiguous(0), s.contiguous(1, DType::kInt64)) {}

  void run(void* const* arrays) const override {
    const auto* dy = static_cast<const float*>(arrays[0]);
    const auto* source = static_cast<const int64_t*>(arrays[1]);
    auto* dx = static_cast<float*>(arrays[2]);
    maps_.check(source);
    const int64_t n = maps_.outer.back();
    parallel_for(maps_.samples, kGrain / (maps_.outer_size + 1) + 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t sample = begin; sample < end; ++sample) {
        float* to = dx + sample * maps_.inner_size;
        std::fill_n(to, maps_.inner_size, 0.0f);
        const int64_t* own = source + sample * maps_.n_sources;
        const int64_t step = n > 0 ? maps_.common_step(own) : 0;
        maps_.lines(own, [&](int64_t offset, const int64_t* last, int64_t first, bool outside) {
          const float* from = dy + sample * maps_.outer_size + first;
          if (outside) return;
          if (step == 1) {
            float* line = to + offset + last[0];
            for (int64_t i = 0; i < n; ++i) line[i] += from[i];
          } else if (step == -1) {
            float* line = to + offset + last[n - 1];
            for (int64_t i = 0; i < n; ++i) line[i] += from[n - 1 - i];
          } else {
            for (int64_t i = 0; i < n; ++i) {
              if (last[i] >= 0) to[offset + last[i]] += from[i];
            }
          }
        });
      }
    });
  }

  double cost() const override { return 50 + maps_.size(); }

 private:
  Maps maps_;
};

}  // namespace

void register_axes(Registry& registry) {
  registry.add("pick_along", make<PickAlong>, 2);
  registry.add("add_along", make<AddAlong>, 3);
  registry.add("pick_axes", make<PickAxes>, 2);
  registry.add("add_axes", make<AddAxes>, 2);
}

}  // namespace nn_cpu
