// The arrays of a recurrent network of several layers and directions: which parts belong to which, and the way through
// the layers.
#pragma once

#include <cstdint>
#include <string>

#include "support/op.hpp"
#include "support/recurrent_layer.hpp"

namespace nn_cpu {

inline const float* input(void* const* arrays, int position) { return static_cast<const float*>(arrays[position]); }
inline float* output(void* const* arrays, int position) { return static_cast<float*>(arrays[position]); }

/// array + start, or nullptr where there is no array.
template <class T>
T* at(T* array, int64_t start) {
  return array != nullptr ? array + start : nullptr;
}

/// Sizes of a network, and where its arrays have what belongs to a layer and a direction.
class Network {
 public:
  explicit Network(const Signature& s);

  RecurrentLayer layer(int64_t number, int64_t direction) const;
  int64_t layers() const { return layers_; }
  int64_t directions() const { return directions_; }
  int64_t hidden() const { return hidden_; }
  int64_t rows() const { return steps_ * batch_; }
  int64_t width() const { return directions_ * hidden_; }
  int64_t state_size() const { return batch_ * hidden_; }
  int64_t passes() const { return layers_ * directions_; }
  /// Of the traces of all layers and directions, and of what all layers but the first one read.
  int64_t traces_size() const { return passes() * layer(0, 0).trace_size(); }
  int64_t inputs_size() const { return (layers_ - 1) * rows() * width(); }
  bool drops() const { return dropout_ > 0.0 && layers_ > 1; }
  double dropout() const { return dropout_; }

  int64_t place(int64_t number, int64_t direction) const { return number * directions_ + direction; }
  template <class T>
  T* weight(T* first, T* later, int64_t number, int64_t direction) const {
    const int64_t size = layer(number, 0).weight_size();
    return number == 0 ? at(first, direction * size) : at(later, place(number - 1, direction) * size);
  }

  /// y (T, B, D H): the states of all directions next to each other, times the mask if there is one.
  void join(int64_t number, const float* traces, const float* mask, float* y) const;

  /// Makes the input of the layer after `number` from the traces.
  void make_input(int64_t number, const float* traces, const float* mask, float* inputs) const;

  double cost() const;

  /// Runs all layers. `inputs` gets what each layer but the first one reads; `traces` what all compute.
  void forward(void* const* arrays, const float* mask, float* inputs, float* traces) const;

 private:
  std::string cell_;
  int64_t layers_, directions_;
  double dropout_;
  int64_t steps_ = 0, batch_ = 0, inputs_ = 0, hidden_ = 0;
};

}  // namespace nn_cpu
