// Products of levels, and levels of numbers.
//   matmul_integers      a (A, M, K), b (B, K, N), zero points of one element or of M and N or none, bias (N) or none
//                        -> y (max(A, B), M, N), int32; A and B are equal, or one of them is 1
//   matmul_levels        the same with scale and zero point of y after b; the scale has one element or N -> y, levels
//   quantize_integers    x float32, scale float32, zero point -> y of the dtype of the zero point
//   integers_to_floats   x int8, uint8 or int32 -> y float32
// Scales and zero points of quantize_integers have one element, or one for each place of the setting `axis`. Sums are
// exact and wrap around as int32. O(M K N).
#include <algorithm>
#include <vector>

#include "kernels/levels.hpp"
#include "support/blocks.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"

namespace nn_cpu {
namespace {

class MatmulIntegers : public Op {
 public:
  MatmulIntegers(const Signature& s, const ProductPlaces& places)
      : a_zero_(s, places.x_zero),
        b_zero_(s, places.weight_zero),
        bias_(places.bias),
        result_(s, places, levels(s, 1).shape.back()) {
    const ArrayDesc &a = levels(s, 0), &b = levels(s, 1), &y = *s.arrays[places.y];
    NN_CHECK(a.ndim() == 3 && b.ndim() == 3 && y.ndim() == 3, "operands must have rank 3, got others");
    batch_ = y.shape[0], m_ = a.shape[1], k_ = a.shape[2], n_ = b.shape[2];
    NN_CHECK(b.shape[1] == k_ && y.shape[1] == m_ && y.shape[2] == n_, "operands must have matching axes, got others");
    shares_a_ = a.shape[0] == 1, shares_b_ = b.shape[0] == 1;
    a_step_ = shares_a_ ? 0 : m_ * k_, b_step_ = shares_b_ ? 0 : k_ * n_;
    a_signed_ = a.dtype == DType::kInt8, b_signed_ = b.dtype == DType::kInt8;
    if (s.has(bias_)) NN_CHECK(s.contiguous(bias_, DType::kInt32).size() == n_, "bias must have " << n_ << " elements");
    if (!shares_b_) return;
    const bool sign = b_signed_;
    const int64_t k = k_, n = n_;
    const std::string layout =
        std::string("integers ") + (sign ? "s" : "u") + std::to_string(k) + "x" + std::to_string(n) + isa_;
    cache_ = cache_of(layout, k * n, right_bytes(loops_, n, k), [=, &loops = loops_](const uint8_t* from, void* to) {
      prepare_right(loops, {from, sign}, n, k, n, true, to);
    });
  }

  void run(void* const* arrays) const override {
    const auto *a = static_cast<const uint8_t*>(arrays[0]), *b = static_cast<const uint8_t*>(arrays[1]);
    if (batch_ * m_ * n_ == 0) return;
    Scratch kept_scales(result_.bytes());
    const LevelScales scales = result_.scales(arrays, false, kept_scales);
    const WeightCache::Packed kept = find(cache_, b);
    if (shares_b_) {
      Scratch scratch(kept == nullptr ? Scratch::bytes<char>(right_bytes(loops_, n_, k_)) : 0);
      const void* right = kept.get();
      if (right == nullptr) right = packed(b, scratch);
      const int64_t rows = shares_a_ ? m_ : batch_ * m_;
      one(arrays, a, rows, right, scales, 0);
      return;
    }
    parallel_for(batch_, kGrain / std::max<int64_t>(m_ * n_ * k_, 1) + 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        Scratch scratch(Scratch::bytes<char>(right_bytes(loops_, n_, k_)));
        one(arrays, a + i * a_step_, m_, packed(b + i * b_step_, scratch), scales, i * m_ * n_);
      }
    });
  }

  std::vector<size_t> weights() const override {
    return cache_ != nullptr ? std::vector<size_t>{1} : std::vector<size_t>{};
  }
  bool independent_of_threads() const override { return true; }
  std::string implementation() const override { return "integer product, " + isa_; }
  double cost() const override { return static_cast<double>(batch_) * product_cost(m_, n_, k_); }

 private:
  const void* packed(const uint8_t* b, Scratch& scratch) const {
    auto* memory = scratch.take<char>(right_bytes(loops_, n_, k_));
    prepare_right(loops_, {b, b_signed_}, n_, k_, n_, a_zero_.count() > 0, memory);
    return memory;
  }

  /// Of one matrix b; several matrices a may follow each other. `offset`: where the result begins.
  void one(void* const* arrays, const uint8_t* a, int64_t m, const void* right, const LevelScales& scales,
           int64_t offset) const {
    const bool by_columns = n_ >= m;
    const int64_t lines = by_columns ? n_ : m, work = std::max<int64_t>((by_columns ? m : n_) * k_, 1);
    const int64_t align = by_columns ? loops_.columns : 1;
    parallel_for(
        lines, kGrain / work + 1,
        [&](int64_t begin, int64_t end, int) {
          if (by_columns) {
            part(arrays, a, {0, m}, right, {begin, end - begin}, scales, offset);
          } else {
            part(arrays, a, {begin, end - begin}, right, {0, n_}, scales, offset);
          }
        },
        align);
  }

  /// Some rows or columns.
  struct Lines {
    int64_t first, count;
  };

  void part(void* const* arrays, const uint8_t* a, Lines rows, const void* right, Lines columns, LevelScales scales,
            int64_t offset) const {
    const int64_t piece = std::min<int64_t>(rows.count, std::max<int64_t>(kNumbers / std::max<int64_t>(k_, 1), 96));
    const int64_t n = columns.count;
    Scratch scratch(Scratch::bytes<char>(left_bytes(piece, k_)) + Scratch::bytes<int32_t>(2 * n) +
                    Scratch::bytes<int32_t>(2 * piece));
    auto* left = scratch.take<char>(left_bytes(piece, k_));
    auto *of_columns = scratch.take<int32_t>(2 * n), *of_rows = scratch.take<int32_t>(2 * piece);
    IntegerTerms terms = column_terms(arrays, right, columns.first, n, of_columns);
    if (scales.columns != nullptr) scales.columns += columns.first;
    for (int64_t i = rows.first; i < rows.first + rows.count; i += piece) {
      const int64_t count = std::min(piece, rows.first + rows.count - i);
      prepare_left(loops_, {a + i * k_, a_signed_}, k_, count, k_, left);
      row_terms(arrays, left_sums(left, count, k_), i, count, of_rows, terms);
      const IntegerPart product{count, n, k_, left_rows(left), integer_depth(k_), right, columns.first};
      result_.product(loops_, product, terms, scales, arrays, offset + i * n_ + columns.first, n_);
    }
  }

  /// The bias, and what one zero point of all rows gives; the zero points of columns where they differ.
  IntegerTerms column_terms(void* const* arrays, const void* right, int64_t first, int64_t n, int32_t* memory) const {
    IntegerTerms terms;
    const auto* bias = static_cast<const int32_t*>(arrays[bias_]);
    const int32_t* sums = right_sums(loops_, const_cast<void*>(right), n_, k_);
    if (bias != nullptr || a_zero_.count() == 1) {
      const int32_t zero = negative(a_zero_.at(arrays, 0));
      for (int64_t j = 0; j < n; ++j) {
        memory[j] = bias != nullptr ? bias[first + j] : 0;
        if (a_zero_.count() == 1) memory[j] = added(memory[j], zero, sums[first + j]);
      }
      terms.columns = memory;
    }
    if (a_zero_.count() > 1) terms.outer[0].columns = sums + first;
    if (b_zero_.count() > 1) {
      for (int64_t j = 0; j < n; ++j) memory[n + j] = b_zero_.at(arrays, first + j);
      terms.outer[1].columns = memory + n;
    }
    return terms;
  }

  /// -q (sum - K p) for each row, and -p.
  void row_terms(void* const* arrays, const int32_t* sums, int64_t first, int64_t m, int32_t* memory,
                 IntegerTerms& terms) const {
    if (a_zero_.count() > 1) {
      for (int64_t i = 0; i < m; ++i) memory[i] = negative(a_zero_.at(arrays, first + i));
      terms.outer[0].rows = memory;
    }
    if (b_zero_.count() == 0) return;
    int32_t* shares = memory + m;
    for (int64_t i = 0; i < m; ++i) shares[i] = added(negative(sums[i]), a_zero_.at(arrays, first + i), k_);
    if (b_zero_.count() > 1) {
      terms.outer[1].rows = shares;
      return;
    }
    const int32_t zero = b_zero_.at(arrays, 0);
    for (int64_t i = 0; i < m; ++i) shares[i] = added(0, zero, shares[i]);
    terms.rows = shares;
  }

  static constexpr int64_t kNumbers = 131072;  // of the left matrix that are widened at once

  const IntegerLoops& loops_ = *vectors().integers;
  std::string isa_ = vectors().isa;
  ZeroPoint a_zero_, b_zero_;
  size_t bias_;
  ProductResult result_;
  int64_t batch_, m_, k_, n_, a_step_, b_step_;
  bool shares_a_, shares_b_;
  bool a_signed_, b_signed_;
  std::shared_ptr<WeightCache> cache_;
};

/// The levels of numbers.
class QuantizeIntegers : public Op {
 public:
  explicit QuantizeIntegers(const Signature& s)
      : blocks_(s.contiguous(0), s.args.integer("axis")),
        type_(level_type(s.arrays.at(3).value_or(ArrayDesc{}).dtype)),
        scales_(s.contiguous(1).size()),
        zero_(s, 2) {
    s.contiguous(3, s.arrays[3]->dtype);
    for (const int64_t count : {scales_, zero_.count()})
      NN_CHECK(count == 1 || count == blocks_.c, "scales must be one number or those of the axis, got " << count);
    is_uniform_ = scales_ == 1 && zero_.count() == 1;
    item_ = item_size(s.arrays[3]->dtype);
  }

  void run(void* const* arrays) const override {
    const auto [a, c, b] = blocks_;
    const auto* x = static_cast<const float*>(arrays[0]);
    const auto* scale = static_cast<const float*>(arrays[1]);
    auto* y = static_cast<char*>(arrays[3]);
    const int64_t n = is_uniform_ ? 1 : c;
    Scratch scratch(Scratch::bytes<float>(n) + Scratch::bytes<int32_t>(n));
    auto* scales = scratch.take<float>(n);
    auto* zeros = scratch.take<int32_t>(n);
    for (int64_t i = 0; i < n; ++i) {
      scales[i] = scale[scales_ == 1 ? 0 : i];
      zeros[i] = zero_.at(arrays, i);
    }
    const auto quantize = [&](int64_t begin, int64_t count, int64_t k, bool each) {
      loops_.quantize(x + begin, count, scales + k, zeros + k, each, type_, y + begin * item_);
    };
    constexpr int64_t kPiece = 16384;
    if (is_uniform_) {
      const auto body = [&](int64_t begin, int64_t end, int) { quantize(begin, end - begin, 0, false); };
      parallel_for(a * c * b, kPiece, body, 64);
    } else if (b == 1) {
      parallel_for(a, kPiece / c + 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) quantize(i * c, c, 0, true);
      });
    } else {
      parallel_for(a * c, kPiece / b + 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) quantize(i * b, b, i % c, false);
      });
    }
  }

  bool independent_of_threads() const override { return true; }
  double cost() const override { return static_cast<double>(blocks_.size()) * 0.6; }

 private:
  const IntegerLoops& loops_ = *vectors().integers;
  Blocks blocks_;
  LevelType type_;
  int64_t scales_, item_;
  ZeroPoint zero_;
  bool is_uniform_;
};

/// Integers as floating-point numbers.
class IntegersToFloats : public Op {
 public:
  explicit IntegersToFloats(const Signature& s) {
    NN_CHECK(s.has(0), "array 0 must be given, got none");
    dtype_ = s.arrays[0]->dtype;
    NN_CHECK(dtype_ == DType::kInt8 || dtype_ == DType::kUInt8 || dtype_ == DType::kInt32,
             "array 0 must hold int8, uint8 or int32");
    size_ = s.contiguous(0, dtype_).size();
    NN_CHECK(s.contiguous(1).size() == size_, "arrays must have equal sizes, got others");
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const char*>(arrays[0]);
    auto* y = static_cast<float*>(arrays[1]);
    const int64_t item = item_size(dtype_);
    parallel_for(
        size_, 16384, [&](int64_t begin, int64_t end, int) { convert(x + begin * item, end - begin, y + begin); }, 64);
  }

  bool independent_of_threads() const override { return true; }
  double cost() const override { return static_cast<double>(size_) * 0.2; }

 private:
  void convert(const void* x, int64_t n, float* y) const {
    if (dtype_ == DType::kInt32) {
      const auto* sums = static_cast<const int32_t*>(x);
      for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(sums[i]);
      return;
    }
    const float one = 1.0f;
    const int32_t zero = 0;
    loops_.dequantize(x, n, &one, &zero, false, level_type(dtype_), y);
  }

  const IntegerLoops& loops_ = *vectors().integers;
  DType dtype_;
  int64_t size_;
};

template <bool ToLevels>
std::unique_ptr<Op> make_matmul(const Signature& s) {
  return std::make_unique<MatmulIntegers>(s, ProductPlaces(ToLevels));
}

}  // namespace

void register_integers(Registry& registry) {
  registry.add("matmul_integers", make_matmul<false>);
  registry.add("matmul_levels", make_matmul<true>);
  registry.add("quantize_integers", make<QuantizeIntegers>);
  registry.add("integers_to_floats", make<IntegersToFloats>);
}

}  // namespace nn_cpu
