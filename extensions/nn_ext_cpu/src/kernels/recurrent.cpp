// Recurrent networks over sequences: L layers, D directions of time, dropout between layers.
//   recurrent           arrays x, h, c, weight_l0, weight, bias, y, h_n, c_n, trace, mask; then the key, uint64 (2,),
//                       read at each run
//   recurrent_backward  arrays x, h, c, weight_l0, weight, bias, trace, mask, dy, dh_n, dc_n, dx, dh, dc, dweight_l0,
//                       dweight, dbias
// x (T, B, I), y (T, B, D H), h and c and their gradients (L, D, B, H), weight_l0 (D, gates, H, I + H), weight (L - 1,
// D, gates, H, D H + H), bias (L, D, gates, H), trace (L, D, T, B, saved H) or empty, mask (L - 1, T, B, D H) or empty;
// all contiguous. c is absent unless the cell has one; weight and bias may be absent, and gradients that nobody wants.
// Settings: cell (a name of vector/recurrent.cpp), num_layers, bidirectional, dropout (0: none).
// The products of all steps with the input are one product of matrices; those with the state run step by step, each
// thread on samples of its own (support/recurrent_layer.cpp). Where the trace is empty, the backward pass computes all
// steps anew. O(T B H (I + H)) a layer.
#include <algorithm>
#include <cmath>

#include "kernels/recurrent_network.hpp"
#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

/// Writes masks of dropout: element e has lane e % 4 of Philox block e // 4.
void draw_masks(const uint64_t* key, double p, int64_t size, float* mask) {
  const auto threshold = static_cast<uint32_t>(std::ceil(p * 16777216.0));
  const auto scale = static_cast<float>(1.0 / (1.0 - p));
  constexpr int64_t kBlocks = 128;
  parallel_for(
      size, 8192,
      [&](int64_t begin, int64_t end, int) {
        uint32_t words[4 * kBlocks];
        for (int64_t start = begin; start < end; start += 4 * kBlocks) {
          const int64_t n = std::min(end - start, 4 * kBlocks);
          vectors().philox(key[0], key[1], static_cast<uint64_t>(start / 4), (n + 3) / 4, words);
          for (int64_t i = 0; i < n; ++i) mask[start + i] = (words[i] >> 8) >= threshold ? scale : 0.0f;
        }
      },
      4);
}

/// Whether the trace at `position` is kept; throws unless it is whole or empty.
bool keeps_trace(const Signature& s, size_t position, const Network& network) {
  const int64_t size = s.contiguous(position).size();
  NN_CHECK(size == 0 || size == network.traces_size(),
           "trace must have " << network.traces_size() << " elements or none, got " << size);
  return size > 0;
}

class Recurrent : public Op {
 public:
  explicit Recurrent(const Signature& s) : network_(s), keeps_trace_(keeps_trace(s, 9, network_)) {
    const int64_t states = network_.passes() * network_.state_size(),
                  masks = network_.drops() ? network_.inputs_size() : 0;
    NN_CHECK(s.contiguous(6).size() == network_.rows() * network_.width(),
             "y must have shape (T, B, D H), got " << to_string(s.array(6).shape));
    NN_CHECK(s.contiguous(7).size() == states && (!s.has(8) || s.contiguous(8).size() == states),
             "last states must have the shape of h, got others");
    NN_CHECK(s.contiguous(10).size() == masks, "mask must have " << masks << " elements, got " << s.array(10).size());
    NN_CHECK(s.contiguous(11, DType::kUInt64).size() == 2, "key must have two elements, got " << s.array(11).size());
  }

  void run(void* const* arrays) const override {
    const int64_t own_size = keeps_trace_ ? 0 : network_.traces_size();
    Scratch scratch(Scratch::bytes<float>(network_.inputs_size()) + Scratch::bytes<float>(own_size));
    auto *inputs = scratch.take<float>(network_.inputs_size()), *own = scratch.take<float>(own_size);
    float *traces = keeps_trace_ ? output(arrays, 9) : own, *mask = output(arrays, 10);
    if (network_.drops())
      draw_masks(static_cast<const uint64_t*>(arrays[11]), network_.dropout(), network_.inputs_size(), mask);
    network_.forward(arrays, mask, inputs, traces);
    network_.join(network_.layers() - 1, traces, nullptr, output(arrays, 6));
    for (int64_t k = 0; k < network_.passes(); ++k) {
      const RecurrentLayer shape = network_.layer(k / network_.directions(), k % network_.directions());
      const float* last =
          traces + k * shape.trace_size() + shape.last_step() * shape.batch * shape.saved() + shape.state_place();
      copy_states(shape, last, output(arrays, 7) + k * network_.state_size());
      if (arrays[8] != nullptr) copy_states(shape, last - shape.hidden, output(arrays, 8) + k * network_.state_size());
    }
  }

  double cost() const override { return network_.cost(); }

 private:
  static void copy_states(const RecurrentLayer& shape, const float* from, float* to) {
    for (int64_t i = 0; i < shape.batch; ++i)
      std::copy_n(from + i * shape.saved(), shape.hidden, to + i * shape.hidden);
  }

  Network network_;
  bool keeps_trace_;
};

class RecurrentBackward : public Op {
 public:
  explicit RecurrentBackward(const Signature& s) : network_(s), keeps_trace_(keeps_trace(s, 6, network_)) {
    const int64_t states = network_.passes() * network_.state_size();
    NN_CHECK(s.contiguous(8).size() == network_.rows() * network_.width(),
             "dy must have shape (T, B, D H), got " << to_string(s.array(8).shape));
    NN_CHECK(s.contiguous(9).size() == states && s.has(10) == s.has(2),
             "gradients of last states must be given for each state, got others");
    for (const size_t position : {10, 11, 12, 13, 14, 15, 16}) {
      if (s.has(position)) s.contiguous(position);
    }
  }

  void run(void* const* arrays) const override {
    const int64_t states = network_.passes() * network_.state_size(), between = network_.inputs_size();
    const int64_t own_size = keeps_trace_ ? 0 : network_.traces_size(), size = network_.rows() * network_.width();
    Scratch scratch(2 * Scratch::bytes<float>(between) + Scratch::bytes<float>(own_size) +
                    2 * Scratch::bytes<float>(states));
    auto *inputs = scratch.take<float>(between), *dinputs = scratch.take<float>(between),
         *own = scratch.take<float>(own_size);
    auto *dh = scratch.take<float>(states), *dc = scratch.take<float>(states);
    const float *mask = input(arrays, 7), *traces = keeps_trace_ ? input(arrays, 6) : own;
    if (!keeps_trace_) network_.forward(arrays, mask, inputs, own);
    for (int64_t number = 0; number < network_.layers() - 1 && keeps_trace_; ++number)
      network_.make_input(number, traces, mask, inputs);
    std::copy_n(input(arrays, 9), states, dh);
    if (arrays[10] != nullptr) std::copy_n(input(arrays, 10), states, dc);
    for (int64_t number = network_.layers() - 1; number >= 0; --number) {
      const float* dy = number == network_.layers() - 1 ? input(arrays, 8) : dinputs + number * size;
      float* dx = number == 0 ? output(arrays, 11) : dinputs + (number - 1) * size;
      for (int64_t direction = 0; direction < network_.directions(); ++direction) {
        one_pass(arrays, number, direction, number == 0 ? input(arrays, 0) : inputs + (number - 1) * size, dy, dx,
                 traces, dh, dc);
      }
      if (number > 0 && network_.drops()) {
        for (int64_t i = 0; i < size; ++i) dx[i] *= mask[(number - 1) * size + i];
      }
    }
    if (arrays[12] != nullptr) std::copy_n(dh, states, output(arrays, 12));
    if (arrays[13] != nullptr) std::copy_n(dc, states, output(arrays, 13));
  }

  double cost() const override { return 3.0 * network_.cost(); }

 private:
  void one_pass(void* const* arrays, int64_t number, int64_t direction, const float* x, const float* dy, float* dx,
                const float* traces, float* dh, float* dc) const {
    const RecurrentLayer shape = network_.layer(number, direction);
    const int64_t k = network_.place(number, direction), start = k * network_.state_size();
    RecurrentGradients gradients{};
    gradients.dx = dx;
    gradients.adds_to_dx = direction > 0;
    gradients.dweight = network_.weight(output(arrays, 14), output(arrays, 15), number, direction);
    gradients.dbias = at(output(arrays, 16), k * shape.bias_size());
    gradients.dh = dh + start;
    gradients.dc = dc + start;
    recurrent_backward(shape, x, network_.weight(input(arrays, 3), input(arrays, 4), number, direction),
                       input(arrays, 1) + start, at(input(arrays, 2), start), traces + k * shape.trace_size(),
                       dy + direction * network_.hidden(), network_.width(), gradients);
  }

  Network network_;
  bool keeps_trace_;
};

}  // namespace

void register_recurrent(Registry& registry) {
  registry.add("recurrent", make<Recurrent>, 6);
  registry.add("recurrent_backward", make<RecurrentBackward>, 11);
}

}  // namespace nn_cpu
