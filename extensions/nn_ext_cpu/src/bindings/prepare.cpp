// prepare(name, arrays, **settings): descriptions and settings in, Op out.
#include "bindings/prepare.hpp"

#include <pybind11/stl.h>

#include "bindings/runner.hpp"
#include "support/check.hpp"

namespace py = pybind11;

namespace nn_cpu {
namespace {

/// Reads an object with `shape`, `dtype` (a name) and `strides` (bytes, or None when C-contiguous).
ArrayDesc read_desc(const py::handle& object) {
  ArrayDesc desc;
  desc.dtype = parse_dtype(object.attr("dtype").cast<std::string>());
  desc.shape = object.attr("shape").cast<Dims>();
  const py::object strides = object.attr("strides");
  if (strides.is_none()) {
    desc.strides = contiguous_strides(desc.shape);
    return desc;
  }
  desc.strides = strides.cast<Dims>();
  NN_CHECK(desc.strides.size() == desc.shape.size(), "strides must be one for each axis, got " << desc.strides.size());
  for (int64_t& stride : desc.strides) {
    NN_CHECK(stride % item_size(desc.dtype) == 0, "strides must be multiples of the item size, got " << stride);
    stride /= item_size(desc.dtype);
  }
  return desc;
}

std::vector<InstructionSpec> read_program(const py::handle& list) {
  std::vector<InstructionSpec> program;
  for (const py::handle item : list) {
    const auto row = item.cast<std::tuple<std::string, int64_t, std::vector<int64_t>, std::vector<double>>>();
    program.push_back({std::get<0>(row), std::get<1>(row), std::get<2>(row), std::get<3>(row)});
  }
  return program;
}

ArgValue read_setting(const std::string& name, const py::handle& value) {
  if (name == "program") return read_program(value);
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::int_>(value)) return value.cast<int64_t>();
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  const auto list = value.cast<py::sequence>();
  if (py::len(list) > 0 && py::isinstance<py::float_>(list[0])) return value.cast<std::vector<double>>();
  return value.cast<Dims>();
}

Signature read_arrays(const py::sequence& arrays) {
  Signature signature;
  for (const py::handle item : arrays) {
    signature.arrays.push_back(item.is_none() ? std::nullopt : std::make_optional(read_desc(item)));
  }
  return signature;
}

py::object prepare(const std::string& name, const py::sequence& arrays, const py::object& views, const py::kwargs& settings) {
  const Signature given = read_arrays(arrays);
  Signature signature = views.is_none() ? given : read_arrays(views);
  NN_CHECK(signature.arrays.size() == given.arrays.size(), "views must be one for each array, got " << signature.arrays.size());
  for (size_t k = 0; k < given.arrays.size(); ++k) {
    NN_CHECK(signature.has(k) == given.has(k) && (!given.has(k) || (signature.arrays[k]->size() == given.arrays[k]->size() &&
                                                                    signature.arrays[k]->dtype == given.arrays[k]->dtype)),
             "view " << k << " must have the elements of its array, got another number or dtype");
  }
  for (const auto& [key, value] : settings) {
    const auto setting = key.cast<std::string>();
    signature.args.set(setting, read_setting(setting, value));
  }
  return wrap_op(Registry::instance().prepare(name, signature), given);
}

}  // namespace

void bind_prepare(py::module_& module) {
  module.def("prepare", prepare, py::arg("name"), py::arg("arrays"), py::arg("views") = py::none(),
             "Prepare an operation for arrays of these descriptions (None: absent); settings are keywords. Calls are checked "
             "against `arrays`; `views` are other shapes and strides of the same memory that the operation works with.");
  module.def("operations", [] { return Registry::instance().names(); }, "The names that prepare() knows.");
}

}  // namespace nn_cpu
