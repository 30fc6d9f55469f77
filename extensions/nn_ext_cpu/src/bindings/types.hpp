// The Python types Op, Step and Program. They are written against CPython's vectorcall protocol because a step of a
// plan has to cost no more than a tenth of a microsecond.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/prepared.hpp"

namespace nn_cpu {

/// One operation with its pointers.
struct Work {
  std::shared_ptr<const PreparedOp> prepared;
  std::vector<void*> pointers;
};

/// The content of a Step: work in order, the arrays that it keeps alive, and its rough duration in nanoseconds.
struct StepContent {
  std::vector<Work> work;
  std::vector<pybind11::object> keep;
  double cost = 0;
};

/// An array that a program is called with: what it must look like, and the pointers (work, array) that it sets.
struct Slot {
  Expected expected;
  std::vector<std::pair<size_t, size_t>> uses;
};

/// The names of what computes some operations, each once, joined by " + "; empty where none says.
std::string implementations_of(const std::vector<const Op*>& ops);

pybind11::object new_op(std::shared_ptr<const PreparedOp> prepared);
pybind11::object new_step(StepContent content);
pybind11::object new_program(StepContent content, std::vector<Slot> slots);

/// The content of a Python Op or Step; throws if `object` is something else.
const std::shared_ptr<const PreparedOp>& content_of_op(const pybind11::handle& object);
const StepContent& content_of_step(const pybind11::handle& object);

/// Adds the types to the module, and set_argument_error().
void bind_types(pybind11::module_& module);

/// Adds chain(), sequence() and program() to the module.
void bind_combine(pybind11::module_& module);

}  // namespace nn_cpu
