// unique(): its results have shapes that depend on values, so that it returns new arrays instead of filling given ones.
#include <pybind11/numpy.h>

#include <cstring>

#include "bindings/prepare.hpp"
#include "support/check.hpp"
#include "support/distinct.hpp"

namespace py = pybind11;

namespace nn_cpu {
namespace {

py::array_t<int64_t> array_of(const std::vector<int64_t>& numbers) {
  return py::array_t<int64_t>(static_cast<py::ssize_t>(numbers.size()), numbers.data());
}

/// The distinct elements of `x`, and the three lists of Distinct.
py::tuple unique(const py::array& x, bool in_order) {
  NN_CHECK((x.flags() & py::array::c_style) != 0, "x must be C-contiguous, got other strides");
  const DType dtype = parse_dtype(py::str(x.dtype().attr("name")));
  const auto* data = static_cast<const char*>(x.data());
  const int64_t n = x.size(), bytes = item_size(dtype);
  Distinct found;
  {
    const py::gil_scoped_release release;
    found = find_distinct(data, dtype, n, in_order);
  }
  py::array y(x.dtype(), std::vector<py::ssize_t>{static_cast<py::ssize_t>(found.first.size())});
  auto* to = static_cast<char*>(y.mutable_data());
  for (size_t i = 0; i < found.first.size(); ++i)
    std::memcpy(to + static_cast<int64_t>(i) * bytes, data + found.first[i] * bytes, static_cast<size_t>(bytes));
  return py::make_tuple(y, array_of(found.first), array_of(found.inverse), array_of(found.counts));
}

}  // namespace

void bind_distinct(py::module_& module) {
  module.def("unique", unique, py::arg("x"), py::arg("in_order"),
             "The distinct elements of x, where each first occurs, the place of each element of x, and their counts.");
}

}  // namespace nn_cpu
