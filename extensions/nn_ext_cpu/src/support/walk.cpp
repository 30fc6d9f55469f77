#include "support/walk.hpp"

#include <algorithm>
#include <numeric>

#include "support/check.hpp"

namespace nn_cpu {

Walk::Walk(const Dims& full_shape, const std::vector<Dims>& full_strides, size_t leader) {
  NN_CHECK(full_shape.size() <= 16, "rank must be at most 16, got " << full_shape.size());
  std::vector<size_t> order;
  for (size_t axis = 0; axis < full_shape.size(); ++axis) {
    size *= full_shape[axis];
    if (full_shape[axis] != 1) order.push_back(axis);
  }
  const Dims& leading = full_strides[leader];
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    // a broadcast axis of the leader says nothing about order
    return leading[a] != 0 && leading[b] != 0 && leading[a] > leading[b];
  });
  strides.resize(full_strides.size());
  for (size_t axis : order) {
    bool merges = !shape.empty();
    for (size_t k = 0; k < full_strides.size() && merges; ++k) {
      merges = strides[k].back() == full_strides[k][axis] * full_shape[axis];
    }
    if (merges) {
      shape.back() *= full_shape[axis];
      for (size_t k = 0; k < full_strides.size(); ++k) strides[k].back() = full_strides[k][axis];
    } else {
      shape.push_back(full_shape[axis]);
      for (size_t k = 0; k < full_strides.size(); ++k) strides[k].push_back(full_strides[k][axis]);
    }
  }
  if (shape.empty()) {
    shape.push_back(1);
    for (Dims& dims : strides) dims.push_back(1);
  }
}

bool Walk::dense(size_t k) const {
  int64_t expected = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (strides[k][axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

bool Walk::constant(size_t k) const {
  return std::all_of(strides[k].begin(), strides[k].end(), [](int64_t stride) { return stride == 0; });
}

}  // namespace nn_cpu
