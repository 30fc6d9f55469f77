// unique(): its results have shapes that depend on values, so that it returns new arrays instead of filling given ones.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstring>
#include <string>
#include <vector>

#include "bindings/prepare.hpp"
#include "support/check.hpp"
#include "support/distinct.hpp"

namespace py = pybind11;

namespace nn_cpu {
namespace {

py::array_t<int64_t> array_of(const std::vector<int64_t>& numbers) {
  return py::array_t<int64_t>(static_cast<py::ssize_t>(numbers.size()), numbers.data());
}

/// Those of the distinct elements of `x` and the three lists of Distinct that are `wanted`. `x` is of `kind`, whose
/// name NumPy works out anew whenever it is asked for.
py::tuple unique(const py::array& x, const std::string& kind, bool in_order, const std::vector<int>& wanted) {
  NN_CHECK((x.flags() & py::array::c_style) != 0, "x must be C-contiguous, got other strides");
  const DType dtype = parse_dtype(kind);
  const auto* data = static_cast<const char*>(x.data());
  const int64_t n = x.size(), bytes = item_size(dtype);
  NN_CHECK(x.itemsize() == bytes, "x must be of " << kind << ", got items of " << x.itemsize() << " bytes");
  Distinct found;
  {
    const py::gil_scoped_release release;
    found = find_distinct(data, dtype, n, in_order);
  }
  py::tuple results(wanted.size());
  for (size_t k = 0; k < wanted.size(); ++k) {
    const int number = wanted[k];
    NN_CHECK(number >= 0 && number <= 3, "wanted must be numbers from 0 to 3, got " << number);
    if (number > 0) {
      results[k] = array_of(number == 1 ? found.first : number == 2 ? found.inverse : found.counts);
      continue;
    }
    py::array y(x.dtype(), std::vector<py::ssize_t>{static_cast<py::ssize_t>(found.first.size())});
    auto* to = static_cast<char*>(y.mutable_data());
    for (size_t i = 0; i < found.first.size(); ++i)
      std::memcpy(to + static_cast<int64_t>(i) * bytes, data + found.first[i] * bytes, static_cast<size_t>(bytes));
    results[k] = std::move(y);
  }
  return results;
}

}  // namespace

void bind_distinct(py::module_& module) {
  module.def("unique", unique, py::arg("x"), py::arg("dtype"), py::arg("in_order"), py::arg("wanted"),
             "Those wanted of: 0, the distinct elements of x; 1, where each first occurs; 2, the place of each element "
             "of x; 3, their counts.");
}

}  // namespace nn_cpu
