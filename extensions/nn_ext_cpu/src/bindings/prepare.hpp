#pragma once

#include <pybind11/pybind11.h>

namespace nn_cpu {

/// Adds prepare() and operations() to the module.
void bind_prepare(pybind11::module_& module);

/// Adds the functions that read and change the state of the library: threads, vector width, what it was built with.
void bind_settings(pybind11::module_& module);

/// Adds empty() and what concerns its memory to the module.
void bind_memory(pybind11::module_& module);

/// Adds unique() to the module.
void bind_distinct(pybind11::module_& module);

}  // namespace nn_cpu
