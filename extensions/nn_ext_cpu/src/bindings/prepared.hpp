// An operation as Python holds it: with what its arrays must look like, and in which order it takes them.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "support/op.hpp"

namespace nn_cpu {

/// The properties that an array must have; strides are in bytes and not compared along axes of length 1.
struct Expected {
  bool present = false;
  DType dtype = DType::kFloat32;
  std::vector<Py_ssize_t> shape, strides;
};

/// `places[k]` is the position in the call of the operation's array k, or -1.
struct PreparedOp {
  std::unique_ptr<Op> op;
  std::vector<Expected> arrays;
  std::vector<int64_t> places;
};

/// Calls with at most this many arrays keep their pointers on the stack.
constexpr size_t kFewArrays = 24;

/// Room for `count` pointers.
class Pointers {
 public:
  explicit Pointers(size_t count)
      : many_(count > kFewArrays ? count : 0), data_(count > kFewArrays ? many_.data() : few_) {}
  void** data() { return data_; }

 private:
  void* few_[kFewArrays];
  std::vector<void*> many_;
  void** data_;
};

/// Expectations for the arrays of `signature`.
std::vector<Expected> expectations(const Signature& signature);

/// The expectation that `array` meets.
Expected expectation(const pybind11::array& array);

/// The address of the elements of `object`, array number `position` of a call; nullptr with a Python error set if it is
/// no array that looks as expected.
void* read_pointer(const Expected& expected, PyObject* object, size_t position);

/// Reads the pointers of `arrays` into the order of the operation; false with a Python error set if one does not match.
bool read_pointers(const PreparedOp& prepared, PyObject* const* arrays, size_t count, void** arranged);

}  // namespace nn_cpu
