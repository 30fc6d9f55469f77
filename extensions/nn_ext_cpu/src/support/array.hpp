// The description of an array before an operation runs: dtype, shape and strides. Data arrive later, as a raw pointer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nn_cpu {

using Dims = std::vector<int64_t>;

enum class DType { kFloat32, kBFloat16, kFloat64, kInt64, kInt32, kInt16, kUInt16, kInt8, kUInt8, kUInt64, kBool };

/// Parses a dtype name as NumPy spells it; throws for one that no kernel takes.
DType parse_dtype(const std::string& name);

/// Bytes of one element.
int64_t item_size(DType dtype);

struct ArrayDesc {
  DType dtype = DType::kFloat32;
  Dims shape;
  Dims strides;  // in elements

  int64_t size() const;
  /// Elements from the first one in memory to the last one.
  int64_t extent() const;
  int64_t ndim() const { return static_cast<int64_t>(shape.size()); }
  bool contiguous() const { return dense_in_order(); }

  /// True when the elements fill one block of memory in C order (axes of length 1 do not count).
  bool dense_in_order() const;

  /// True when the memory is dense with the channel axis (1) innermost: NHWC under an NCHW shape.
  bool channels_last() const;

  /// True when the elements fill one block of memory in any order of the axes.
  bool dense() const;
};

/// Number of elements of a shape.
int64_t count(const Dims& shape);

/// Strides (elements) of a C-contiguous array.
Dims contiguous_strides(const Dims& shape);

/// Strides (elements) of an array whose axis 1 is innermost in memory.
Dims channels_last_strides(const Dims& shape);

/// Strides of `desc` read at `shape` by NumPy's broadcasting rule: 0 where an axis is repeated. Throws if impossible.
Dims broadcast_strides(const ArrayDesc& desc, const Dims& shape);

/// "(2, 3)" for messages.
std::string to_string(const Dims& shape);

}  // namespace nn_cpu
