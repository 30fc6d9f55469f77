// Matrix products of layers, row-major.
//   affine           x (M, D), weight (D, K), bias (K) or none -> y (M, K);  y = x weight + bias
//   affine_backward  x, weight, none, none, dy (M, K), dx (M, D), dweight (D, K), dbias (K); any of the last three may
//                    be absent
//   batch_matmul     a (B, M, K), b (B, K, N) -> y (B, M, N); a or b may be transposed in memory; a batch may be shared
//                    (stride 0)
// Arrays may be bfloat16, weights and biases are float32 then; or all are float64. Products accumulate in float32,
// those of float64 in float64; bias gradients in double. O(M D K).
#include <algorithm>

#include "kernels/narrow_products.hpp"
#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/column_sums.hpp"
#include "support/gemm.hpp"
#include "support/parallel.hpp"
#include "support/widen.hpp"

namespace nn_cpu {
namespace {

struct AffineSizes {
  int64_t m, d, k;

  AffineSizes(const ArrayDesc& x, const ArrayDesc& weight)
      : d(weight.shape.at(0)), k(weight.shape.empty() ? 0 : weight.size() / std::max<int64_t>(weight.shape[0], 1)) {
    const int64_t size = x.size();
    NN_CHECK(d > 0 && size % d == 0, "x must hold rows of " << d << " elements, got shape " << to_string(x.shape));
    m = size / d;
  }
};

template <class T>
class Affine : public Op {
 public:
  explicit Affine(const Signature& s) : size_(s.contiguous(0, kDTypeOf<T>), s.contiguous(1, kDTypeOf<T>)) {
    if (s.has(2))
      NN_CHECK(s.contiguous(2, kDTypeOf<T>).size() == size_.k,
               "bias must have " << size_.k << " elements, got " << s.array(2, kDTypeOf<T>).size());
    NN_CHECK(s.contiguous(3, kDTypeOf<T>).size() == size_.m * size_.k,
             "y must have shape (M, K), got " << to_string(s.array(3, kDTypeOf<T>).shape));
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const T*>(arrays[0]);
    const auto* weight = static_cast<const T*>(arrays[1]);
    const auto* bias = static_cast<const T*>(arrays[2]);
    auto* y = static_cast<T*>(arrays[3]);
    gemm(size_.m, size_.k, size_.d, MatrixOf<T>{x, size_.d}, MatrixOf<T>{weight, size_.k}, false, y, size_.k, bias);
  }

  bool independent_of_threads() const override { return true; }
  double cost() const override { return gemm_cost(size_.m, size_.k, size_.d); }

 private:
  AffineSizes size_;
};

template <class T>
class AffineBackward : public Op {
 public:
  explicit AffineBackward(const Signature& s) : size_(sizes(s)) {
    NN_CHECK(s.contiguous(4, kDTypeOf<T>).size() == size_.m * size_.k,
             "dy must have shape (M, K), got " << to_string(s.array(4, kDTypeOf<T>).shape));
    for (size_t position : {5, 6, 7}) {
      if (s.has(position)) s.contiguous(position, kDTypeOf<T>);
    }
    wanted_ = static_cast<int>(s.has(5)) + static_cast<int>(s.has(6));
  }

  void run(void* const* arrays) const override {
    const auto* x = static_cast<const T*>(arrays[0]);
    const auto* weight = static_cast<const T*>(arrays[1]);
    const auto* dy = static_cast<const T*>(arrays[4]);
    auto* dx = static_cast<T*>(arrays[5]);
    auto* dweight = static_cast<T*>(arrays[6]);
    auto* dbias = static_cast<T*>(arrays[7]);
    const auto [m, d, k] = size_;
    if (dx != nullptr && m > 0) gemm(m, d, k, MatrixOf<T>{dy, k}, MatrixOf<T>{weight, k, true}, adds_[0], dx, d);
    if (dweight != nullptr) {
      if (m > 0) gemm(d, k, m, MatrixOf<T>{x, d, true}, MatrixOf<T>{dy, k}, adds_[1], dweight, k);
      if (m == 0 && !adds_[1]) std::fill_n(dweight, d * k, T{0});
    }
    if (dbias != nullptr) column_sums(dy, m, k, dbias, adds_[2]);
  }

  std::unique_ptr<Op> adding(const std::vector<size_t>& positions) const override {
    auto op = std::make_unique<AffineBackward>(*this);
    for (const size_t position : positions) {
      if (position < 5) return nullptr;
      op->adds_[position - 5] = true;
    }
    return op;
  }

  bool independent_of_threads() const override { return true; }
  double cost() const override { return gemm_cost(size_.m, size_.k, size_.d) * std::max(1, wanted_); }

 private:
  /// x is absent where only dx is wanted, weight where only dweight is: the gradients have the same shapes.
  static AffineSizes sizes(const Signature& s) {
    const size_t x = s.has(0) ? 0 : 5, weight = s.has(1) ? 1 : 6;
    if (s.has(x) && s.has(weight)) return {s.contiguous(x, kDTypeOf<T>), s.contiguous(weight, kDTypeOf<T>)};
    NN_CHECK(false, "affine_backward must be given x or dx, and weight or dweight, got neither");
  }

  AffineSizes size_;
  int wanted_ = 0;
  bool adds_[3] = {};  // to what is in dx, dweight, dbias
};

/// One operand of a batched product: the layout of a matrix in memory, and the distance of the matrices of a batch.
struct Operand {
  int64_t ld, batch_stride;
  bool transposed;

  Operand(const ArrayDesc& desc, bool swap) {
    NN_CHECK(desc.ndim() == 3, "operand must have rank 3, got shape " << to_string(desc.shape));
    batch_stride = desc.shape[0] == 1 ? 0 : desc.strides[0];
    const int64_t rows = desc.strides[1], columns = desc.strides[2];
    const bool by_rows = columns == 1 || desc.shape[2] == 1 || desc.size() == 0;
    NN_CHECK(by_rows || rows == 1 || desc.shape[1] == 1,
             "operand must have rows or columns in one piece, got strides " << to_string(desc.strides));
    ld = std::max<int64_t>(by_rows ? std::max(rows, desc.shape[2]) : std::max(columns, desc.shape[1]), 1);
    transposed = by_rows == swap;
  }
};

template <class T>
class BatchMatmul : public Op {
 public:
  /// Settings `transpose_a`, `transpose_b`: the matrices are read by columns.
  explicit BatchMatmul(const Signature& s)
      : a_(s.array(0, kDTypeOf<T>), s.args.flag("transpose_a")),
        b_(s.array(1, kDTypeOf<T>), s.args.flag("transpose_b")),
        batch_(s.contiguous(2, kDTypeOf<T>).shape[0]),
        m_(s.array(2, kDTypeOf<T>).shape[1]),
        n_(s.array(2, kDTypeOf<T>).shape[2]),
        k_(s.array(0, kDTypeOf<T>).shape[s.args.flag("transpose_a") ? 1 : 2]) {}

  void run(void* const* arrays) const override {
    const auto* a = static_cast<const T*>(arrays[0]);
    const auto* b = static_cast<const T*>(arrays[1]);
    auto* y = static_cast<T*>(arrays[2]);
    const auto one = [&](int64_t i) {
      gemm(m_, n_, k_, MatrixOf<T>{a + i * a_.batch_stride, a_.ld, a_.transposed},
           MatrixOf<T>{b + i * b_.batch_stride, b_.ld, b_.transposed}, false, y + i * m_ * n_, n_);
    };
    if (k_ == 0) std::fill_n(y, batch_ * m_ * n_, T{0});
    if (k_ == 0 || m_ * n_ == 0) return;
    if (batch_ < num_threads()) {
      for (int64_t i = 0; i < batch_; ++i) one(i);
      return;
    }
    const auto grain = std::max<int64_t>(1, static_cast<int64_t>(20000.0 / gemm_cost(m_, n_, k_)));
    parallel_for(batch_, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) one(i);
    });
  }

  bool independent_of_threads() const override { return true; }
  double cost() const override { return static_cast<double>(batch_) * gemm_cost(m_, n_, k_); }

 private:
  Operand a_, b_;
  int64_t batch_, m_, n_, k_;
};

/// `narrow` for bfloat16 where the machine has such products, else the operation on float32 or float64.
template <template <class> class OpOf>
std::unique_ptr<Op> for_dtype(const Signature& s, Factory narrow, size_t first_output) {
  const bool is_narrow = std::any_of(s.arrays.begin(), s.arrays.end(),
                                     [](const auto& desc) { return desc && desc->dtype == DType::kBFloat16; });
  auto op = is_narrow ? narrow(s) : nullptr;
  return op != nullptr ? std::move(op) : with_wide_arrays(s, make_for_numbers<OpOf>, first_output);
}

}  // namespace

void register_linear(Registry& registry) {
  registry.add("affine", [](const Signature& s) { return for_dtype<Affine>(s, make_narrow_affine, 3); });
  registry.add("affine_backward",
               [](const Signature& s) { return for_dtype<AffineBackward>(s, make_narrow_affine_backward, 5); });
  registry.add("batch_matmul",
               [](const Signature& s) { return for_dtype<BatchMatmul>(s, make_narrow_batch_matmul, 2); });
}

}  // namespace nn_cpu
