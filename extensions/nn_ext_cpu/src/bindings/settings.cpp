#include <pybind11/stl.h>

#include "bindings/prepare.hpp"
#include "kernels/register.hpp"
#include "kernels/winograd.hpp"
#include "support/fourier.hpp"
#include "support/gemm.hpp"
#include "support/parallel.hpp"
#include "support/vector.hpp"
#include "support/weight_cache.hpp"

namespace py = pybind11;

namespace nn_cpu {

void bind_settings(py::module_& module) {
  module.def("num_threads", num_threads, "How many threads a kernel may use.");
  module.def("set_num_threads", set_num_threads, py::arg("threads"), "Change the number of threads; at least 1.");
  module.def("set_deterministic", set_deterministic, py::arg("flag"),
             "Let results of operations that are prepared from now on be the same on any number of threads, or not.");
  module.def("winograd_enabled", winograd_enabled, "Whether 3 x 3 convolutions may use Winograd's method.");
  module.def("enable_winograd", enable_winograd, py::arg("enabled"),
             "Let 3 x 3 convolutions that are prepared from now on use Winograd's method, or not.");
  module.def("enable_packing", enable_packing, py::arg("enabled"),
             "Let kernels keep weights in a layout of their own, or not.");
  module.def("limit_packed_bytes", limit_packed_bytes, py::arg("limit"),
             "Bound the memory of all weights that are kept in another layout.");
  module.def("packed_bytes", packed_bytes, "Bytes of the weights that are kept in another layout.");
  module.def("clear_packed", clear_packed, py::call_guard<py::gil_scoped_release>(),
             "Give up the weights that are kept in another layout.");
  module.def("isa", [] { return vectors().isa; }, "The instruction set in use: baseline, avx2 or avx512.");
  module.def("select_isa", select_isa, py::arg("isa"), "Use another instruction set that this machine has.");
  module.def("multiplies_bfloat16", multiplies_bfloat16,
             "Whether products of bfloat16 matrices run as such, and not on float32 copies.");
  module.def("bfloat16_products", bfloat16_products, "What runs products of bfloat16 matrices on this machine.");
  module.def("has_onednn", has_onednn, "Whether the library was built with oneDNN.");
  module.attr("LARGEST_FACTOR") = Fourier::kLargestFactor;
  module.def("updates", update_names, "The solvers that the operation `update` knows.");
  module.def(
      "pointwise_functions",
      [] {
        const BlockTable<float> table = vectors().pointwise();
        std::vector<std::string> names;
        for (int i = 0; i < table.count; ++i) names.emplace_back(table.functions[i].name);
        return names;
      },
      "The names of the element-wise functions that a program may use.");
}

}  // namespace nn_cpu
