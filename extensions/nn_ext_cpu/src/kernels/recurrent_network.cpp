#include "kernels/recurrent_network.hpp"

#include <algorithm>

#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/vector.hpp"

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

}  // namespace

Network::Network(const Signature& s)
    : cell_(s.args.get<std::string>("cell")),
      layers_(s.args.integer("num_layers")),
      directions_(s.args.flag("bidirectional") ? 2 : 1),
      dropout_(s.args.get<double>("dropout")) {
  const Dims &x = s.contiguous(0).shape, &h = s.contiguous(1).shape;
  NN_CHECK(x.size() == 3 && h.size() == 4 && count(x) > 0 && count(h) > 0,
           "x must be (T, B, I) and h (L, D, B, H), got " << to_string(x) << " and " << to_string(h));
  steps_ = x[0], batch_ = x[1], inputs_ = x[2], hidden_ = h[3];
  const auto expect = [&](size_t position, int64_t size) {
    NN_CHECK(!s.has(position) || s.contiguous(position).size() == size,
             "array " << position << " must have " << size << " elements, got " << s.array(position).size());
  };
  const RecurrentLayer first = layer(0, 0), later = layer(1, 0);
  NN_CHECK(s.has(2) == first.cell->has_memory, "c must be given where the cell has one, got otherwise");
  NN_CHECK(s.has(4) == (layers_ > 1), "weight must be given for further layers, got otherwise");
  for (const size_t position : {1, 2}) expect(position, layers_ * directions_ * batch_ * hidden_);
  expect(3, directions_ * first.weight_size());
  expect(4, (layers_ - 1) * directions_ * later.weight_size());
  expect(5, layers_ * directions_ * first.bias_size());
}

RecurrentLayer Network::layer(int64_t number, int64_t direction) const {
  return {find_cell(cell_), steps_, batch_, number == 0 ? inputs_ : width(), hidden_, direction == 1};
}

void Network::join(int64_t number, const float* traces, const float* mask, float* y) const {
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

void Network::make_input(int64_t number, const float* traces, const float* mask, float* inputs) const {
  const int64_t start = number * rows() * width();
  join(number, traces, drops() ? mask + start : nullptr, inputs + start);
}

double Network::cost() const {
  return 2000.0 +
         static_cast<double>(layers_ * directions_ * rows()) * static_cast<double>(layer(0, 0).weight_size()) / 50.0;
}

void Network::forward(void* const* arrays, const float* mask, float* inputs, float* traces) const {
  for (int64_t number = 0; number < layers_; ++number) {
    const float* x = number == 0 ? input(arrays, 0) : inputs + (number - 1) * rows() * width();
    for (int64_t direction = 0; direction < directions_; ++direction) {
      const int64_t k = place(number, direction);
      const RecurrentLayer shape = layer(number, direction);
      recurrent_forward(shape, x, weight(input(arrays, 3), input(arrays, 4), number, direction),
                        at(input(arrays, 5), k * shape.bias_size()), input(arrays, 1) + k * state_size(),
                        at(input(arrays, 2), k * state_size()), traces + k * shape.trace_size());
    }
    if (number < layers_ - 1) make_input(number, traces, mask, inputs);
  }
}

}  // namespace nn_cpu
