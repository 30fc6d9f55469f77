// prepare(name, arrays, **settings): descriptions and settings in, Op out.
#include "bindings/prepare.hpp"

#include <pybind11/stl.h>

#include <numeric>

#include "bindings/types.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"

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

/// Descriptions in the order of the operation: those of `arrays` at `places` (-1: absent), with the shapes of `views`.
Signature arranged(const Signature& arrays, const std::vector<int64_t>& places, const py::object& views) {
  Signature signature = views.is_none() ? Signature{} : read_arrays(views);
  if (views.is_none()) {
    for (const int64_t place : places) signature.arrays.push_back(place < 0 ? std::nullopt : arrays.arrays.at(place));
  }
  NN_CHECK(signature.arrays.size() == places.size(),
           "views must be " << places.size() << ", got " << signature.arrays.size());
  for (size_t k = 0; k < places.size(); ++k) {
    const bool given = places[k] >= 0 && arrays.has(places[k]);
    NN_CHECK(signature.has(k) == given, "view " << k << " must be given with its array and only then, got otherwise");
    if (!given) continue;
    const ArrayDesc &view = *signature.arrays[k], &array = *arrays.arrays[places[k]];
    NN_CHECK(view.size() == array.size() && view.dtype == array.dtype,
             "view " << k << " must have the elements of its array, got shapes " << to_string(view.shape) << " and "
                     << to_string(array.shape));
  }
  return signature;
}

py::object prepare(const std::string& name, const py::sequence& arrays, const py::object& views,
                   const py::object& places, const py::kwargs& settings) {
  const Signature given = read_arrays(arrays);
  std::vector<int64_t> order(given.arrays.size());
  std::iota(order.begin(), order.end(), 0);
  if (!places.is_none()) order = places.cast<std::vector<int64_t>>();
  Signature signature = arranged(given, order, views);
  for (const auto& [key, value] : settings) {
    const auto setting = key.cast<std::string>();
    signature.args.set(setting, read_setting(setting, value));
  }
  auto prepared = std::make_shared<PreparedOp>();
  {
    // oneDNN plans its loops and cuts its sums for the threads that OpenMP has now, and runs on as many later.
    const Serial serial(deterministic());
    adopt_num_threads();
    prepared->op = Registry::instance().prepare(name, signature);
  }
  prepared->arrays = expectations(given);
  prepared->places = std::move(order);
  return new_op(std::move(prepared));
}

}  // namespace

void bind_prepare(py::module_& module) {
  module.def(
      "prepare", prepare, py::arg("name"), py::arg("arrays"), py::arg("views") = py::none(),
      py::arg("places") = py::none(),
      "Prepare an operation for arrays of these descriptions (None: absent); settings are keywords. Calls are checked "
      "against `arrays`. The operation sees them in the order `places` (-1: absent), with the shapes and strides of "
      "`views`.");
  module.def("operations", [] { return Registry::instance().names(); }, "The names that prepare() knows.");
}

}  // namespace nn_cpu
