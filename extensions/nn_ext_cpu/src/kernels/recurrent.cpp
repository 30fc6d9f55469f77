// Recurrent networks over sequences: L layers, D directions of time, dropout between layers.
//   recurrent           arrays x, h, c, weight_l0, weight, bias, y, h_n, c_n, mask; then the key, uint64 (2,), read at each run
//   recurrent_backward  arrays x, h, c, weight_l0, weight, bias, mask, dy, dh_n, dc_n, dx, dh, dc, dweight_l0, dweight, dbias
// x (T, B, I), y (T, B, D H), h and c and their gradients (L, D, B, H), weight_l0 (D, gates, H, I + H), weight (L - 1, D, gates, H,
// D H + H), bias (L, D, gates, H), mask (L - 1, T, B, D H) or empty; all contiguous. c is absent unless the cell has one; weight and
// bias may be absent, and gradients that nobody wants. Settings: cell (a name of vector/recurrent.cpp), num_layers, bidirectional,
// dropout (0: none).
// The products of all steps with the input are one product of matrices; those with the state run step by step, each thread on
// samples of its own (support/recurrent_layer.cpp). The backward pass computes all steps anew. O(T B H (I + H)) a layer.
#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/recurrent_layer.hpp"
#include "support/scratch.hpp"

namespace nn_cpu {
namespace {

const CellFunction* find_cell(const std::string& name) {
  const CellTable table = vectors().cells();
  for (int i = 0; i < table.count; ++i) {
    if (name == table.functions[i].name) return &table.functions[i];
  }
  NN_CHECK(false, "cell must be a name of vector/recurrent.cpp, got " << name);
  return nullptr;
}

const float* input(void* const* arrays, int position) { return static_cast<const float*>(arrays[position]); }
float* output(void* const* arrays, int position) { return static_cast<float*>(arrays[position]); }
const float* at(const float* array, int64_t start) { return array != nullptr ? array + start : nullptr; }
float* at(float* array, int64_t start) { return array != nullptr ? array + start : nullptr; }

/// Sizes of a network, and where its arrays have what belongs to a layer and a direction.
class Network {
 public:
  explicit Network(const Signature& s)
      : cell_(s.args.get<std::string>("cell")), layers_(s.args.integer("num_layers")), directions_(s.args.flag("bidirectional") ? 2 : 1),
        dropout_(s.args.get<double>("dropout")) {
    const Dims &x = s.contiguous(0).shape, &h = s.contiguous(1).shape;
    NN_CHECK(x.size() == 3 && h.size() == 4 && count(x) > 0 && count(h) > 0, "x must be (T, B, I) and h (L, D, B, H), got " << to_string(x) << " and " << to_string(h));
    steps_ = x[0], batch_ = x[1], inputs_ = x[2], hidden_ = h[3];
    const auto expect = [&](size_t position, int64_t size) {
      NN_CHECK(!s.has(position) || s.contiguous(position).size() == size, "array " << position << " must have " << size << " elements, got " << s.array(position).size());
    };
    const RecurrentLayer first = layer(0, 0), later = layer(1, 0);
    NN_CHECK(s.has(2) == first.cell->has_memory, "c must be given where the cell has one, got otherwise");
    NN_CHECK(s.has(4) == (layers_ > 1), "weight must be given for further layers, got otherwise");
    for (const size_t position : {1, 2}) expect(position, layers_ * directions_ * batch_ * hidden_);
    expect(3, directions_ * first.weight_size());
    expect(4, (layers_ - 1) * directions_ * later.weight_size());
    expect(5, layers_ * directions_ * first.bias_size());
  }

  RecurrentLayer layer(int64_t number, int64_t direction) const {
    return {find_cell(cell_), steps_, batch_, number == 0 ? inputs_ : width(), hidden_, direction == 1};
  }
  int64_t layers() const { return layers_; }
  int64_t directions() const { return directions_; }
  int64_t hidden() const { return hidden_; }
  int64_t rows() const { return steps_ * batch_; }
  int64_t width() const { return directions_ * hidden_; }
  int64_t state_size() const { return batch_ * hidden_; }
  int64_t trace_size() const { return layer(0, 0).trace_size(); }
  bool drops() const { return dropout_ > 0.0 && layers_ > 1; }
  double dropout() const { return dropout_; }

  int64_t place(int64_t number, int64_t direction) const { return number * directions_ + direction; }
  template <class T>
  T* weight(T* first, T* later, int64_t number, int64_t direction) const {
    const int64_t size = layer(number, 0).weight_size();
    return number == 0 ? at(first, direction * size) : at(later, place(number - 1, direction) * size);
  }

  /// Rows (T, B, D H): the states of all directions next to each other, times the mask if there is one.
  void join(int64_t number, const float* traces, const float* mask, float* y) const {
    const RecurrentLayer shape = layer(number, 0);
    for (int64_t direction = 0; direction < directions_; ++direction) {
      const float* states = traces + place(number, direction) * shape.trace_size() + shape.state_place();
      parallel_for(rows(), 16384 / hidden_ + 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; ++row) {
          const float* from = states + row * shape.saved();
          float* to = y + row * width() + direction * hidden_;
          const float* factor = at(mask, row * width() + direction * hidden_);
          for (int64_t i = 0; i < hidden_; ++i) to[i] = factor != nullptr ? from[i] * factor[i] : from[i];
        }
      });
    }
  }

  double cost() const {
    return 2000.0 + static_cast<double>(layers_ * directions_ * rows()) * static_cast<double>(layer(0, 0).weight_size()) / 50.0;
  }

  /// Runs all layers. `inputs` gets what each layer but the first one reads; `traces` what all compute.
  void forward(void* const* arrays, const float* mask, float* inputs, float* traces) const {
    for (int64_t number = 0; number < layers_; ++number) {
      const float* x = number == 0 ? input(arrays, 0) : inputs + (number - 1) * rows() * width();
      for (int64_t direction = 0; direction < directions_; ++direction) {
        const int64_t k = place(number, direction);
        const RecurrentLayer shape = layer(number, direction);
        recurrent_forward(shape, x, weight(input(arrays, 3), input(arrays, 4), number, direction),
                          at(input(arrays, 5), k * shape.bias_size()), input(arrays, 1) + k * state_size(),
                          at(input(arrays, 2), k * state_size()), traces + k * shape.trace_size());
      }
      const int64_t size = rows() * width();
      if (number < layers_ - 1) join(number, traces, at(drops() ? mask : nullptr, number * size), inputs + number * size);
    }
  }

 private:
  std::string cell_;
  int64_t layers_, directions_;
  double dropout_;
  int64_t steps_ = 0, batch_ = 0, inputs_ = 0, hidden_ = 0;
};

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

class Recurrent : public Op {
 public:
  explicit Recurrent(const Signature& s) : network_(s) {
    const int64_t states = network_.layers() * network_.directions() * network_.state_size();
    NN_CHECK(s.contiguous(6).size() == network_.rows() * network_.width(), "y must have shape (T, B, D H), got " << to_string(s.array(6).shape));
    NN_CHECK(s.contiguous(7).size() == states && (!s.has(8) || s.contiguous(8).size() == states), "last states must have the shape of h, got others");
    NN_CHECK(s.contiguous(10, DType::kUInt64).size() == 2, "key must have two elements, got " << s.array(10).size());
    const int64_t masks = network_.drops() ? (network_.layers() - 1) * network_.rows() * network_.width() : 0;
    NN_CHECK(s.contiguous(9).size() == masks, "mask must have " << masks << " elements, got " << s.array(9).size());
  }

  void run(void* const* arrays) const override {
    const int64_t size = network_.rows() * network_.width(), passes = network_.layers() * network_.directions();
    Scratch scratch(Scratch::bytes<float>((network_.layers() - 1) * size) + Scratch::bytes<float>(passes * network_.trace_size()));
    auto *inputs = scratch.take<float>((network_.layers() - 1) * size), *traces = scratch.take<float>(passes * network_.trace_size());
    float* mask = output(arrays, 9);
    if (network_.drops()) draw_masks(static_cast<const uint64_t*>(arrays[10]), network_.dropout(), (network_.layers() - 1) * size, mask);
    network_.forward(arrays, mask, inputs, traces);
    network_.join(network_.layers() - 1, traces, nullptr, output(arrays, 6));
    for (int64_t k = 0; k < passes; ++k) {
      const RecurrentLayer shape = network_.layer(k / network_.directions(), k % network_.directions());
      const float* last = traces + k * shape.trace_size() + shape.last_step() * shape.batch * shape.saved() + shape.state_place();
      copy_states(shape, last, output(arrays, 7) + k * network_.state_size());
      if (arrays[8] != nullptr) copy_states(shape, last - shape.hidden, output(arrays, 8) + k * network_.state_size());
    }
  }

  double cost() const override { return network_.cost(); }

 private:
  static void copy_states(const RecurrentLayer& shape, const float* from, float* to) {
    for (int64_t i = 0; i < shape.batch; ++i) std::copy_n(from + i * shape.saved(), shape.hidden, to + i * shape.hidden);
  }

  Network network_;
};

class RecurrentBackward : public Op {
 public:
  explicit RecurrentBackward(const Signature& s) : network_(s) {
    const int64_t states = network_.layers() * network_.directions() * network_.state_size();
    NN_CHECK(s.contiguous(7).size() == network_.rows() * network_.width(), "dy must have shape (T, B, D H), got " << to_string(s.array(7).shape));
    NN_CHECK(s.contiguous(8).size() == states && s.has(9) == s.has(2), "gradients of last states must be given for each state, got others");
    for (const size_t position : {9, 10, 11, 12, 13, 14, 15}) {
      if (s.has(position)) s.contiguous(position);
    }
  }

  void run(void* const* arrays) const override {
    const int64_t size = network_.rows() * network_.width(), passes = network_.layers() * network_.directions();
    const int64_t states = passes * network_.state_size(), between = (network_.layers() - 1) * size;
    Scratch scratch(Scratch::bytes<float>(between) * 2 + Scratch::bytes<float>(passes * network_.trace_size()) + 2 * Scratch::bytes<float>(states));
    auto *inputs = scratch.take<float>(between), *traces = scratch.take<float>(passes * network_.trace_size());
    auto *dinputs = scratch.take<float>(between), *dh = scratch.take<float>(states), *dc = scratch.take<float>(states);
    const float* mask = input(arrays, 6);
    network_.forward(arrays, mask, inputs, traces);
    std::copy_n(input(arrays, 8), states, dh);
    if (arrays[9] != nullptr) std::copy_n(input(arrays, 9), states, dc);
    for (int64_t number = network_.layers() - 1; number >= 0; --number) {
      const float* dy = number == network_.layers() - 1 ? input(arrays, 7) : dinputs + number * size;
      float* dx = number == 0 ? output(arrays, 10) : dinputs + (number - 1) * size;
      for (int64_t direction = 0; direction < network_.directions(); ++direction) {
        one_pass(arrays, number, direction, number == 0 ? input(arrays, 0) : inputs + (number - 1) * size, dy, dx, traces, dh, dc);
      }
      if (number > 0 && network_.drops()) {
        for (int64_t i = 0; i < size; ++i) dx[i] *= mask[(number - 1) * size + i];
      }
    }
    if (arrays[11] != nullptr) std::copy_n(dh, states, output(arrays, 11));
    if (arrays[12] != nullptr) std::copy_n(dc, states, output(arrays, 12));
  }

  double cost() const override { return 3.0 * network_.cost(); }

 private:
  void one_pass(void* const* arrays, int64_t number, int64_t direction, const float* x, const float* dy, float* dx, const float* traces,
                float* dh, float* dc) const {
    const RecurrentLayer shape = network_.layer(number, direction);
    const int64_t k = network_.place(number, direction), start = k * network_.state_size();
    RecurrentGradients gradients{};
    gradients.dx = dx;
    gradients.adds_to_dx = direction > 0;
    gradients.dweight = network_.weight(output(arrays, 13), output(arrays, 14), number, direction);
    gradients.dbias = at(output(arrays, 15), k * shape.bias_size());
    gradients.dh = dh + start;
    gradients.dc = dc + start;
    recurrent_backward(shape, x, network_.weight(input(arrays, 3), input(arrays, 4), number, direction), input(arrays, 1) + start,
                       at(input(arrays, 2), start), traces + k * shape.trace_size(), dy + direction * network_.hidden(), network_.width(),
                       gradients);
  }

  Network network_;
};

}  // namespace

void register_recurrent(Registry& registry) {
  registry.add("recurrent", make<Recurrent>);
  registry.add("recurrent_backward", make<RecurrentBackward>);
}

}  // namespace nn_cpu
