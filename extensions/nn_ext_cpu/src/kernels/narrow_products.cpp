// Weights, biases and their gradients stay float32: oneDNN rounds weights as it packs them, and adds up in float32. O(M
// D K).
#include "kernels/narrow_products.hpp"

#ifdef NN_ONEDNN

#include <algorithm>

#include "support/check.hpp"
#include "support/column_sums.hpp"
#include "support/engine.hpp"
#include "support/gemm.hpp"

namespace nn_cpu {
namespace {

using dnnl::memory;

/// x, y and weight as matrices (M, D), (M, K) and, as oneDNN wants it, (K, D).
struct Matrices {
  ArrayDesc x, weight, y;

  Matrices(const ArrayDesc& x_given, const ArrayDesc& weight_given, const ArrayDesc& y_given) {
    const int64_t d = weight_given.shape.at(0), k = weight_given.size() / std::max<int64_t>(d, 1);
    NN_CHECK(d > 0 && k > 0 && x_given.size() % d == 0,
             "x must hold rows of " << d << " elements, got shape " << to_string(x_given.shape));
    const int64_t m = x_given.size() / d;
    NN_CHECK(m > 0 && y_given.size() == m * k, "y must have shape (M, K), got " << to_string(y_given.shape));
    x = {x_given.dtype, {m, d}, {d, 1}};
    weight = {weight_given.dtype, {k, d}, {1, k}};
    y = {y_given.dtype, {m, k}, {k, 1}};
  }

  double cost() const { return gemm_cost(x.shape[0], y.shape[1], x.shape[1]); }
};

/// A bias as a vector.
memory::desc vector_desc(const Signature& s, size_t position) {
  if (!s.has(position)) return {};
  const ArrayDesc& bias = s.contiguous(position);
  return memory_desc({bias.dtype, {bias.size()}, {1}});
}

using Forward = dnnl::inner_product_forward;

Forward::primitive_desc forward_desc(const Matrices& matrices, const memory::desc& bias) {
  return described<Forward::primitive_desc>(dnnl::prop_kind::forward_training, memory_desc(matrices.x),
                                            any_layout(matrices.weight, matrices.x.dtype), bias,
                                            memory_desc(matrices.y), user_scratchpad());
}

class Affine : public Op {
 public:
  explicit Affine(const Signature& s) {
    const Matrices matrices(s.contiguous_floating(0), s.contiguous_floating(1), s.contiguous_floating(3));
    const memory::desc bias = vector_desc(s, 2);
    const auto desc = forward_desc(matrices, bias);
    primitive_ = Primitive(Forward(desc), desc.scratchpad_desc());
    primitive_.input(DNNL_ARG_SRC, 0, memory_desc(matrices.x), desc.src_desc());
    primitive_.input(DNNL_ARG_WEIGHTS, 1, memory_desc(matrices.weight), desc.weights_desc(), /*cached=*/true);
    if (s.has(2)) primitive_.input(DNNL_ARG_BIAS, 2, bias, desc.bias_desc());
    primitive_.output(DNNL_ARG_DST, 3, memory_desc(matrices.y), desc.dst_desc());
    cost_ = matrices.cost();
  }

  void run(void* const* arrays) const override { primitive_.run(arrays); }
  std::vector<size_t> weights() const override { return primitive_.weights(); }
  std::string implementation() const override { return primitive_.implementation(); }
  double cost() const override { return cost_; }

 private:
  Primitive primitive_;
  double cost_;
};

class AffineBackward : public Op {
 public:
  explicit AffineBackward(const Signature& s) {
    const Matrices matrices(s.contiguous_floating(s.has(0) ? 0 : 5), s.contiguous_floating(s.has(1) ? 1 : 6),
                            s.contiguous_floating(4));
    m_ = matrices.x.shape[0], d_ = matrices.x.shape[1], k_ = matrices.y.shape[1];
    if (s.has(5)) prepare_data(matrices, forward_desc(matrices, {}));
    if (s.has(6)) prepare_weight(matrices);
    s.array(4, DType::kBFloat16);  // the sum below reads it
    if (s.has(7))
      NN_CHECK(s.contiguous(7).size() == k_, "dbias must have " << k_ << " elements, got " << s.array(7).size());
    cost_ = 2 * matrices.cost();
  }

  void run(void* const* arrays) const override {
    if (data_) data_->run(arrays);
    if (weight_) weight_->run(arrays);
    if (arrays[7] != nullptr) column_sums(static_cast<const Bf16*>(arrays[4]), m_, k_, static_cast<float*>(arrays[7]));
  }
  std::string implementation() const override {
    return joined({data_ ? data_->implementation() : "", weight_ ? weight_->implementation() : ""});
  }
  double cost() const override { return cost_; }

 private:
  void prepare_data(const Matrices& matrices, const Forward::primitive_desc& forward) {
    const auto desc = described<dnnl::inner_product_backward_data::primitive_desc>(
        memory_desc(matrices.x), any_layout(matrices.weight, matrices.x.dtype), memory_desc(matrices.y), forward,
        user_scratchpad());
    data_.emplace(dnnl::inner_product_backward_data(desc), desc.scratchpad_desc());
    data_->input(DNNL_ARG_DIFF_DST, 4, memory_desc(matrices.y), desc.diff_dst_desc());
    data_->input(DNNL_ARG_WEIGHTS, 1, memory_desc(matrices.weight), desc.weights_desc());
    data_->output(DNNL_ARG_DIFF_SRC, 5, memory_desc(matrices.x), desc.diff_src_desc());
  }

  /// x^T dy, in the layout of the user's weights; the primitive for gradients of weights would need them unpacked.
  void prepare_weight(const Matrices& matrices) {
    const ArrayDesc x{matrices.x.dtype, {d_, m_}, {1, d_}}, weight{DType::kFloat32, {d_, k_}, {k_, 1}};
    const auto desc = described<dnnl::matmul::primitive_desc>(memory_desc(x), memory_desc(matrices.y),
                                                              memory_desc(weight), user_scratchpad());
    weight_.emplace(dnnl::matmul(desc), desc.scratchpad_desc());
    weight_->input(DNNL_ARG_SRC, 0, memory_desc(x), desc.src_desc());
    weight_->input(DNNL_ARG_WEIGHTS, 4, memory_desc(matrices.y), desc.weights_desc());
    weight_->output(DNNL_ARG_DST, 6, memory_desc(weight), desc.dst_desc());
  }

  int64_t m_, d_, k_;
  std::optional<Primitive> data_, weight_;
  double cost_;
};

class BatchMatmul : public Op {
 public:
  explicit BatchMatmul(const Signature& s) {
    const ArrayDesc a = turned(s.floating(0), s.args.flag("transpose_a")),
                    b = turned(s.floating(1), s.args.flag("transpose_b"));
    const ArrayDesc& y = s.floating(2);
    const auto desc =
        described<dnnl::matmul::primitive_desc>(memory_desc(a), memory_desc(b), memory_desc(y), user_scratchpad());
    primitive_ = Primitive(dnnl::matmul(desc), desc.scratchpad_desc());
    primitive_.input(DNNL_ARG_SRC, 0, memory_desc(a), desc.src_desc());
    primitive_.input(DNNL_ARG_WEIGHTS, 1, memory_desc(b), desc.weights_desc());
    primitive_.output(DNNL_ARG_DST, 2, memory_desc(y), desc.dst_desc());
    cost_ = static_cast<double>(y.shape[0]) * gemm_cost(y.shape[1], y.shape[2], a.shape[2]);
  }

  void run(void* const* arrays) const override { primitive_.run(arrays); }
  std::string implementation() const override { return primitive_.implementation(); }
  double cost() const override { return cost_; }

 private:
  static ArrayDesc turned(ArrayDesc desc, bool transpose) {
    NN_CHECK(desc.ndim() == 3, "operand must have rank 3, got shape " << to_string(desc.shape));
    if (transpose) {
      std::swap(desc.shape[1], desc.shape[2]);
      std::swap(desc.strides[1], desc.strides[2]);
    }
    return desc;
  }

  Primitive primitive_;
  double cost_;
};

/// oneDNN takes arrays with elements only.
bool can_multiply(const Signature& s) {
  bool has_elements = true;
  for (const auto& desc : s.arrays) has_elements &= !desc || desc->size() > 0;
  return has_elements && multiplies_bfloat16();
}

}  // namespace

std::unique_ptr<Op> make_narrow_affine(const Signature& s) {
  return can_multiply(s) ? by_onednn(s, make<Affine>, 3) : nullptr;
}

std::unique_ptr<Op> make_narrow_affine_backward(const Signature& s) {
  return can_multiply(s) ? by_onednn(s, make<AffineBackward>, 5) : nullptr;
}

std::unique_ptr<Op> make_narrow_batch_matmul(const Signature& s) {
  return can_multiply(s) ? by_onednn(s, make<BatchMatmul>, 2) : nullptr;
}

}  // namespace nn_cpu

#else

namespace nn_cpu {

std::unique_ptr<Op> make_narrow_affine(const Signature&) { return nullptr; }
std::unique_ptr<Op> make_narrow_affine_backward(const Signature&) { return nullptr; }
std::unique_ptr<Op> make_narrow_batch_matmul(const Signature&) { return nullptr; }

}  // namespace nn_cpu

#endif
