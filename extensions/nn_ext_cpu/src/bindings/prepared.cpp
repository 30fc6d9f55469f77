#include "bindings/prepared.hpp"

#include <pybind11/numpy.h>

#include <string>

namespace py = pybind11;

namespace nn_cpu {
namespace {

/// The number that NumPy gave the type of the package ml_dtypes.
int bfloat16_number() {
  static const int number = py::dtype::from_args(py::module_::import("ml_dtypes").attr("bfloat16")).num();
  return number;
}

/// NumPy's type numbers are part of its binary interface.
bool same_dtype(DType dtype, int type_num) {
  constexpr bool kLong8 = sizeof(long) == 8;
  switch (dtype) {
    case DType::kBool:
      return type_num == 0;
    case DType::kInt8:
      return type_num == 1;
    case DType::kUInt8:
      return type_num == 2;
    case DType::kInt16:
      return type_num == 3;
    case DType::kUInt16:
      return type_num == 4;
    case DType::kInt32:
      return type_num == 5 || (!kLong8 && type_num == 7);
    case DType::kInt64:
      return type_num == 9 || (kLong8 && type_num == 7);
    case DType::kUInt64:
      return type_num == 10 || (kLong8 && type_num == 8);
    case DType::kFloat32:
      return type_num == 11;
    case DType::kBFloat16:
      return type_num == bfloat16_number();
    case DType::kFloat64:
      return type_num == 12;
  }
  return false;
}

bool matches(const Expected& expected, const py::detail::PyArray_Proxy* array) {
  const auto* dtype = py::detail::array_descriptor_proxy(array->descr);
  const size_t ndim = expected.shape.size();
  if (!same_dtype(expected.dtype, dtype->type_num) || static_cast<size_t>(array->nd) != ndim ||
      dtype->byteorder == '>') {
    return false;
  }
  bool empty = false;
  for (size_t i = 0; i < ndim; ++i) {
    if (array->dimensions[i] != expected.shape[i]) return false;
    empty |= expected.shape[i] == 0;
  }
  if (empty) return true;
  for (size_t i = 0; i < ndim; ++i) {
    if (expected.shape[i] != 1 && array->strides[i] != expected.strides[i]) return false;
  }
  return true;
}

}  // namespace

std::vector<Expected> expectations(const Signature& signature) {
  std::vector<Expected> arrays;
  for (const auto& desc : signature.arrays) {
    Expected expected;
    expected.present = desc.has_value();
    if (desc) {
      expected.dtype = desc->dtype;
      expected.shape.assign(desc->shape.begin(), desc->shape.end());
      for (const int64_t stride : desc->strides) expected.strides.push_back(stride * item_size(desc->dtype));
    }
    arrays.push_back(std::move(expected));
  }
  return arrays;
}

Expected expectation(const py::array& array) {
  Expected expected;
  expected.present = true;
  expected.dtype = parse_dtype(py::str(array.dtype().attr("name")));
  expected.shape.assign(array.shape(), array.shape() + array.ndim());
  expected.strides.assign(array.strides(), array.strides() + array.ndim());
  return expected;
}

void* read_pointer(const Expected& expected, PyObject* object, size_t position) {
  auto* array_type = reinterpret_cast<PyTypeObject*>(py::detail::npy_api::get().PyArray_Type_);
  if (!PyObject_TypeCheck(object, array_type)) {
    PyErr_Format(PyExc_ValueError, "array %zu must be a numpy.ndarray, got %s", position, Py_TYPE(object)->tp_name);
    return nullptr;
  }
  const auto* array = py::detail::array_proxy(object);
  if (matches(expected, array)) return array->data;
  const auto list = [](const auto* values, size_t n) { return to_string(Dims(values, values + n)); };
  const std::string text = "array " + std::to_string(position) + " must have the dtype that was prepared, shape " +
                           list(expected.shape.data(), expected.shape.size()) + " and strides " +
                           list(expected.strides.data(), expected.strides.size()) + " bytes, got " +
                           std::string(py::str(py::handle(array->descr))) + ", shape " +
                           list(array->dimensions, array->nd) + " and strides " + list(array->strides, array->nd);
  PyErr_SetString(PyExc_ValueError, text.c_str());
  return nullptr;
}

bool read_pointers(const PreparedOp& prepared, PyObject* const* arrays, size_t count, void** arranged) {
  if (count != prepared.arrays.size()) {
    PyErr_Format(PyExc_ValueError, "number of arrays must be %zu, got %zu", prepared.arrays.size(), count);
    return false;
  }
  Pointers room(count);
  void** pointers = room.data();
  for (size_t i = 0; i < count; ++i) {
    pointers[i] = nullptr;
    if (!prepared.arrays[i].present) continue;
    pointers[i] = read_pointer(prepared.arrays[i], arrays[i], i);
    if (pointers[i] == nullptr) return false;
  }
  for (size_t k = 0; k < prepared.places.size(); ++k) {
    arranged[k] = prepared.places[k] < 0 ? nullptr : pointers[prepared.places[k]];
  }
  return true;
}

}  // namespace nn_cpu
