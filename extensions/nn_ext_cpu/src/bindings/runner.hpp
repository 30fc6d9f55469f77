// The Python types Op and Step. They are written against CPython's vectorcall protocol because a step of a plan has to
// cost no more than a tenth of a microsecond.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "support/op.hpp"

namespace nn_cpu {

/// Adds the types Op and Step, and the function sequence(), to the module.
void bind_runner(pybind11::module_& module);

/// A Python Op that owns `op`; calls are checked against the descriptions in `signature`, and pointer `places[k]` of a call is
/// the operation's array k (-1: absent).
pybind11::object wrap_op(std::unique_ptr<Op> op, const Signature& signature, const std::vector<int64_t>& places);

}  // namespace nn_cpu
