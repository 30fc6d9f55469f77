// Errors that depend on the values of arrays, and so show up only when an operation runs.
#pragma once

#include <stdexcept>

namespace nn_cpu {

/// Becomes nn_core's ArgumentError in Python.
struct ArgumentError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace nn_cpu
