#include "support/array.hpp"

#include <algorithm>
#include <numeric>

#include "support/check.hpp"

namespace nn_cpu {

DType parse_dtype(const std::string& name) {
  if (name == "float32") return DType::kFloat32;
  if (name == "bfloat16") return DType::kBFloat16;
  if (name == "float64") return DType::kFloat64;
  if (name == "int64") return DType::kInt64;
  if (name == "int32") return DType::kInt32;
  if (name == "int16") return DType::kInt16;
  if (name == "uint16") return DType::kUInt16;
  if (name == "int8") return DType::kInt8;
  if (name == "uint8") return DType::kUInt8;
  if (name == "uint64") return DType::kUInt64;
  if (name == "bool") return DType::kBool;
  NN_CHECK(false,
           "dtype must be one of float32, bfloat16, float64, int64, int32, int16, uint16, int8, uint8, uint64, bool, "
           "got "
               << name);
}

int64_t item_size(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kBFloat16:
    case DType::kInt16:
    case DType::kUInt16:
      return 2;
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kBool:
      return 1;
    default:
      return 8;
  }
}

int64_t count(const Dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
}

int64_t ArrayDesc::size() const { return count(shape); }

int64_t ArrayDesc::extent() const {
  if (size() == 0) return 0;
  int64_t last = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) last += (shape[axis] - 1) * strides[axis];
  return last + 1;
}

namespace {

/// Whether walking the axes in `order` (outermost first) meets the elements one after another in memory.
bool dense_along(const ArrayDesc& desc, const Dims& order) {
  int64_t expected = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    if (desc.shape[*axis] == 1) continue;
    if (desc.strides[*axis] != expected) return false;
    expected *= desc.shape[*axis];
  }
  return true;
}

Dims iota(int64_t n) {
  Dims order(n);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Dims channels_last_order(int64_t ndim) {
  Dims order = iota(ndim);
  if (ndim > 2) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

Dims strides_along(const Dims& shape, const Dims& order) {
  Dims strides(shape.size());
  int64_t stride = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    strides[*axis] = stride;
    stride *= std::max<int64_t>(shape[*axis], 1);
  }
  return strides;
}

}  // namespace

bool ArrayDesc::dense_in_order() const { return size() == 0 || dense_along(*this, iota(ndim())); }

bool ArrayDesc::channels_last() const { return size() == 0 || dense_along(*this, channels_last_order(ndim())); }

bool ArrayDesc::dense() const {
  Dims order = iota(ndim());
  std::stable_sort(order.begin(), order.end(), [this](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  return size() == 0 || dense_along(*this, order);
}

Dims contiguous_strides(const Dims& shape) { return strides_along(shape, iota(shape.size())); }

Dims channels_last_strides(const Dims& shape) { return strides_along(shape, channels_last_order(shape.size())); }

Dims broadcast_strides(const ArrayDesc& desc, const Dims& shape) {
  NN_CHECK(desc.shape.size() <= shape.size(),
           "rank must be at most " << shape.size() << " to broadcast, got shape " << to_string(desc.shape));
  Dims strides(shape.size(), 0);
  const size_t skipped = shape.size() - desc.shape.size();
  for (size_t axis = 0; axis < desc.shape.size(); ++axis) {
    const int64_t length = shape[axis + skipped];
    NN_CHECK(desc.shape[axis] == length || desc.shape[axis] == 1,
             "shape must broadcast to " << to_string(shape) << ", got " << to_string(desc.shape));
    if (desc.shape[axis] == length && length != 1) strides[axis + skipped] = desc.strides[axis];
  }
  return strides;
}

std::string to_string(const Dims& shape) {
  std::ostringstream text;
  text << "(";
  for (size_t axis = 0; axis < shape.size(); ++axis) text << (axis ? ", " : "") << shape[axis];
  text << (shape.size() == 1 ? ",)" : ")");
  return text.str();
}

}  // namespace nn_cpu
