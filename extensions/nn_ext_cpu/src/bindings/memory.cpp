// NumPy arrays over the memory of the pool.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "bindings/prepare.hpp"
#include "support/memory_pool.hpp"

namespace py = pybind11;

namespace nn_cpu {
namespace {

/// Arrays of up to this many bytes are left to NumPy: they fit the first-level cache, wherever they begin.
constexpr size_t kSmallBytes = 16384;

/// The owner of a block: gives it back when the last array over it is gone.
py::capsule owner_of(void* block, size_t bytes) {
  struct Owned {
    void* block;
    size_t bytes;
  };
  return py::capsule(new Owned{block, bytes}, [](void* pointer) {
    auto* owned = static_cast<Owned*>(pointer);
    MemoryPool::instance().give(owned->block, owned->bytes);
    delete owned;
  });
}

py::array empty(const std::vector<py::ssize_t>& shape, const py::dtype& dtype) {
  size_t bytes = static_cast<size_t>(dtype.itemsize());
  for (const py::ssize_t length : shape) bytes *= static_cast<size_t>(length);
  if (bytes <= kSmallBytes) return py::array(dtype, shape);
  void* block = MemoryPool::instance().take(bytes);
  return py::array(dtype, shape, block, owner_of(block, bytes));
}

}  // namespace

void bind_memory(py::module_& module) {
  module.def("empty", empty, py::arg("shape"), py::arg("dtype"),
             "A new array, not initialised; large ones begin at a cache line.");
  module.attr("SMALL_BYTES") = kSmallBytes;
  module.def(
      "clear_memory_cache", [] { MemoryPool::instance().clear(); },
      "Return memory that is kept for later to the system.");
  module.def(
      "memory_in_use", [] { return MemoryPool::instance().used(); },
      "Bytes of the arrays that live now, small ones apart.");
  module.def("memory_kept", [] { return MemoryPool::instance().kept(); }, "Bytes that are kept for arrays to come.");
}

}  // namespace nn_cpu
