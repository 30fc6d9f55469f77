// Elements and blocks picked from, and put to, numbered places.
//   take     x (B, P, N, Q), indices (B, M, K) -> y (B, P, K, Q): y[b, p, k] = x[b, p, place(b, k)]; any dtype
//   put      data (B, P, K, Q), indices, y (B, P, N, Q), out or none: y = 0, or out, then y[b, p, place(b, k)] = or +=
//            data[b, p, k]; out, if given, becomes y
//   one_hot  indices (R, M) -> y (R, N): 1 at the place, 0 elsewhere; a place outside gives zeros only
// A place is one index for each of the `lengths` (M of them, N is their product), the last one runs fastest; negative
// indices count from the end, others outside throw. Settings: lengths, batch (B), before (P), label (what errors call
// the indices); add. Sums add up in the order of k, each thread on blocks and columns of its own, so results repeat.
// O(B P (K + N) Q).
#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/errors.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kGrain = 16384;  // elements a thread

struct Places {
  Dims lengths;
  int64_t batch, before, n, k, q;
  std::string label;

  /// From the descriptions of the indices and of the whole array.
  Places(const Signature& s, size_t indices, const ArrayDesc& whole)
      : lengths(s.args.dims("lengths")),
        batch(s.args.integer("batch")),
        before(s.args.integer("before")),
        n(nn_cpu::count(lengths)),
        label(s.args.get<std::string>("label")) {
    const auto m = static_cast<int64_t>(lengths.size());
    const int64_t n_indices = s.contiguous(indices, DType::kInt64).size();
    NN_CHECK(m > 0 && batch > 0 && before > 0 && n_indices % (m * batch) == 0,
             "indices must have a place for each of " << m << " lengths, got " << n_indices);
    k = n_indices / (m * batch);
    NN_CHECK(n > 0 && whole.size() % (batch * before * n) == 0,
             "the array must hold whole blocks, got shape " << to_string(whole.shape));
    q = whole.size() / (batch * before * n);
  }

  int64_t part_size() const { return batch * before * k * q; }
  double size() const { return static_cast<double>(part_size()); }
  static size_t bytes(int64_t count) { return Scratch::bytes<int64_t>(count); }

  /// places[b * k + i] of all indices; throws where one is out of range.
  void find(const int64_t* indices, int64_t* places) const {
    for (int64_t b = 0; b < batch; ++b) {
      for (size_t axis = 0; axis < lengths.size(); ++axis) {
        const int64_t length = lengths[axis];
        const int64_t* row = indices + (b * static_cast<int64_t>(lengths.size()) + static_cast<int64_t>(axis)) * k;
        int64_t* out = places + b * k;
        for (int64_t i = 0; i < k; ++i) {
          if (row[i] < -length || row[i] >= length) {
            const auto [low, high] = std::minmax_element(row, row + k);
            throw ArgumentError(label + " must be in [" + std::to_string(-length) + ", " + std::to_string(length) +
                                "), got values from " + std::to_string(*low) + " to " + std::to_string(*high));
          }
          out[i] = (axis == 0 ? 0 : out[i] * length) + (row[i] < 0 ? row[i] + length : row[i]);
        }
      }
    }
  }
};

class Take : public Op {
 public:
  explicit Take(const Signature& s) : places_(s, 1, s.array(0, s.arrays.at(0)->dtype)) {
    const ArrayDesc &x = s.contiguous(0, s.arrays[0]->dtype), &y = s.contiguous(2, x.dtype);
    NN_CHECK(y.size() == places_.part_size(), "y must have " << places_.part_size() << " elements, got " << y.size());
    block_bytes_ = places_.q * item_size(x.dtype);
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const char*>(arrays[0]);
    auto* y = static_cast<char*>(arrays[2]);
    Scratch scratch(Places::bytes(places_.batch * places_.k));
    auto* places = scratch.take<int64_t>(places_.batch * places_.k);
    places_.find(static_cast<const int64_t*>(arrays[1]), places);
    const int64_t rows = places_.batch * places_.before * places_.k;
    parallel_for(rows, kGrain / places_.q + 1, [&](int64_t begin, int64_t end, int) {
      if (block_bytes_ == 4) {
        copy<4>(x, y, places, begin, end);
      } else if (block_bytes_ == 8) {
        copy<8>(x, y, places, begin, end);
      } else {
        over_rows(begin, end, places, [&](int64_t from, int64_t to) {
          std::memcpy(y + to * block_bytes_, x + from * block_bytes_, block_bytes_);
        });
      }
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + places_.size(); }

 private:
  /// Calls body(block of x, block of y) for blocks [begin, end) of y.
  template <class Body>
  void over_rows(int64_t begin, int64_t end, const int64_t* places, const Body& body) const {
    for (int64_t row = begin; row < end;) {
      const int64_t outer = row / places_.k, first = row % places_.k, count = std::min(end - row, places_.k - first);
      const int64_t* own = places + outer / places_.before * places_.k + first;
      for (int64_t i = 0; i < count; ++i) body(outer * places_.n + own[i], row + i);
      row += count;
    }
  }

  /// A size that is known becomes one instruction, which takes any address; blocks are aligned as their elements are.
  template <int64_t kBytes>
  void copy(const char* x, char* y, const int64_t* places, int64_t begin, int64_t end) const {
    over_rows(begin, end, places,
              [&](int64_t from, int64_t to) { std::memcpy(y + to * kBytes, x + from * kBytes, kBytes); });
  }

  Places places_;
  int64_t block_bytes_;
};

class Put : public Op {
 public:
  explicit Put(const Signature& s) : places_(s, 1, s.contiguous(2)), add_(s.args.flag("add")) {
    NN_CHECK(s.contiguous(0).size() == places_.part_size(),
             "data must have " << places_.part_size() << " elements, got " << s.array(0).size());
    NN_CHECK(!s.has(3) || s.contiguous(3).size() == s.array(2).size(),
             "out must have the size of y, got " << s.array(3).size());
  }

  void run(void* const* arrays) const override {
    const auto* data = static_cast<const float*>(arrays[0]);
    auto *y = static_cast<float*>(arrays[2]), *out = static_cast<float*>(arrays[3]);
    Scratch scratch(Places::bytes(places_.batch * places_.k));
    auto* places = scratch.take<int64_t>(places_.batch * places_.k);
    places_.find(static_cast<const int64_t*>(arrays[1]), places);
    const int64_t n = places_.n, k = places_.k, q = places_.q, outers = places_.batch * places_.before;
    const int64_t columns = outers >= num_threads() ? q : std::max<int64_t>(64, (q / num_threads() + 63) / 64 * 64);
    const int64_t groups = (q + columns - 1) / columns;
    parallel_for(outers * groups, std::max<int64_t>(1, kGrain / ((n + k) * std::min(columns, q))),
                 [&](int64_t begin, int64_t end, int) {
                   for (int64_t item = begin; item < end; ++item) {
                     const int64_t outer = item / groups, first = item % groups * columns,
                                   width = std::min(columns, q - first);
                     float* block = y + outer * n * q + first;
                     start(block, out != nullptr ? out + outer * n * q + first : nullptr, width);
                     const int64_t* place = places + outer / places_.before * k;
                     for (int64_t i = 0; i < k; ++i) {
                       const float* from = data + (outer * k + i) * q + first;
                       if (add_ && width == 1) {
                         block[place[i]] += *from;
                       } else if (add_) {
                         vectors().add_to(from, block + place[i] * q, width);
                       } else {
                         std::copy_n(from, width, block + place[i] * q);
                       }
                     }
                     for (int64_t row = 0; row < n && out != nullptr; ++row)
                       std::copy_n(block + row * q, width, out + (outer * n + row) * q + first);
                   }
                 });
  }

  double cost() const override {
    return 50 + places_.size() + static_cast<double>(places_.batch * places_.before * places_.n * places_.q) / 4;
  }

 private:
  /// The block before anything is put.
  void start(float* block, const float* out, int64_t width) const {
    if (width == places_.q && out == nullptr) {
      std::fill_n(block, places_.n * width, 0.0f);
      return;
    }
    for (int64_t row = 0; row < places_.n; ++row) {
      if (out != nullptr) {
        std::copy_n(out + row * places_.q, width, block + row * places_.q);
      } else {
        std::fill_n(block + row * places_.q, width, 0.0f);
      }
    }
  }

  Places places_;
  bool add_;
};

class OneHot : public Op {
 public:
  explicit OneHot(const Signature& s) : lengths_(s.args.dims("lengths")), n_(count(lengths_)) {
    const auto m = static_cast<int64_t>(lengths_.size());
    const int64_t size = s.contiguous(0, DType::kInt64).size();
    NN_CHECK(m > 0 && size % m == 0, "indices must have an entry for each of " << m << " lengths, got " << size);
    rows_ = size / m;
    NN_CHECK(s.contiguous(1).size() == rows_ * n_,
             "y must have " << rows_ * n_ << " elements, got " << s.array(1).size());
  }

  void run(void* const* arrays) const override {
    const auto* indices = static_cast<const int64_t*>(arrays[0]);
    auto* y = static_cast<float*>(arrays[1]);
    parallel_for(rows_, kGrain / n_ + 1, [&](int64_t begin, int64_t end, int) {
      std::fill(y + begin * n_, y + end * n_, 0.0f);
      for (int64_t row = begin; row < end; ++row) {
        int64_t place = 0;
        bool inside = true;
        for (size_t axis = 0; axis < lengths_.size(); ++axis) {
          const int64_t index = indices[row * static_cast<int64_t>(lengths_.size()) + static_cast<int64_t>(axis)],
                        length = lengths_[axis];
          inside &= index >= -length && index < length;
          place = place * length + (index < 0 ? index + length : index);
        }
        if (inside) y[row * n_ + place] = 1.0f;
      }
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + 0.2 * static_cast<double>(rows_ * n_); }

 private:
  Dims lengths_;
  int64_t n_, rows_ = 0;
};

}  // namespace

void register_places(Registry& registry) {
  registry.add("take", make<Take>);
  registry.add("put", make<Put>);
  registry.add("one_hot", make<OneHot>, 1);
}

}  // namespace nn_cpu
