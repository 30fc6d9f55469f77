#include "bindings/runner.hpp"

#include <pybind11/numpy.h>
#include <structmember.h>

#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/fusion.hpp"
#include "support/check.hpp"
#include "support/errors.hpp"

namespace py = pybind11;

namespace nn_cpu {
namespace {

/// Work below this many nanoseconds keeps the interpreter lock: releasing and taking it costs more.
constexpr double kReleaseCost = 5000.0;

/// Calls with at most this many arrays keep their pointers on the stack.
constexpr size_t kFewArrays = 24;

/// Room for `count` pointers.
class Pointers {
 public:
  explicit Pointers(size_t count) : many_(count > kFewArrays ? count : 0), data_(count > kFewArrays ? many_.data() : few_) {}
  void** data() { return data_; }

 private:
  void* few_[kFewArrays];
  std::vector<void*> many_;
  void** data_;
};

/// What an array must look like; strides are in bytes and not compared along axes of length 1.
struct Expected {
  bool present = false;
  DType dtype = DType::kFloat32;
  std::vector<py::ssize_t> shape, strides;
};

struct PreparedOp {
  std::unique_ptr<Op> op;
  std::vector<Expected> arrays;
  std::vector<int64_t> places;
};

/// One operation with its pointers.
struct Work {
  std::shared_ptr<const PreparedOp> prepared;
  std::vector<void*> pointers;
};

struct OpObject {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  std::shared_ptr<const PreparedOp> prepared;
};

struct StepObject {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  std::vector<Work> work;
  std::vector<py::object> keep;
  double cost;
};

PyTypeObject* op_type = nullptr;
PyTypeObject* step_type = nullptr;
PyObject* argument_error = PyExc_ValueError;

/// NumPy's type numbers are part of its binary interface.
bool same_dtype(DType dtype, int type_num) {
  constexpr bool kLong8 = sizeof(long) == 8;
  switch (dtype) {
    case DType::kBool: return type_num == 0;
    case DType::kUInt8: return type_num == 2;
    case DType::kInt32: return type_num == 5 || (!kLong8 && type_num == 7);
    case DType::kInt64: return type_num == 9 || (kLong8 && type_num == 7);
    case DType::kUInt64: return type_num == 10 || (kLong8 && type_num == 8);
    case DType::kFloat32: return type_num == 11;
    case DType::kFloat64: return type_num == 12;
  }
  return false;
}

bool matches(const Expected& expected, const py::detail::PyArray_Proxy* array) {
  const auto* dtype = py::detail::array_descriptor_proxy(array->descr);
  const size_t ndim = expected.shape.size();
  if (!same_dtype(expected.dtype, dtype->type_num) || static_cast<size_t>(array->nd) != ndim || dtype->byteorder == '>') {
    return false;
  }
  bool empty = false;
  for (size_t i = 0; i < ndim; ++i) {
    if (array->dimensions[i] != expected.shape[i]) return false;
    empty |= expected.shape[i] == 0;
  }
  if (empty) return true;
  for (size_t i = 0; i < ndim; ++i) {
    if (expected.shape[i] != 1 && array->strides[i] != expected.strides[i]) return false;
  }
  return true;
}

/// Reads the pointers of `arrays` into the order of the operation; false with a Python error set if one does not match.
bool read_pointers(const PreparedOp& prepared, PyObject* const* arrays, size_t count, void** arranged) {
  if (count != prepared.arrays.size()) {
    PyErr_Format(PyExc_ValueError, "number of arrays must be %zu, got %zu", prepared.arrays.size(), count);
    return false;
  }
  Pointers room(count);
  void** pointers = room.data();
  PyTypeObject* array_type = reinterpret_cast<PyTypeObject*>(py::detail::npy_api::get().PyArray_Type_);
  for (size_t i = 0; i < count; ++i) {
    const Expected& expected = prepared.arrays[i];
    pointers[i] = nullptr;
    if (!expected.present) continue;
    if (!PyObject_TypeCheck(arrays[i], array_type)) {
      PyErr_Format(PyExc_ValueError, "array %zu must be a numpy.ndarray, got %s", i, Py_TYPE(arrays[i])->tp_name);
      return false;
    }
    const auto* array = py::detail::array_proxy(arrays[i]);
    if (!matches(expected, array)) {
      const auto list = [](const auto* values, size_t n) { return to_string(Dims(values, values + n)); };
      const std::string text = "array " + std::to_string(i) + " must have the dtype that was prepared, shape " +
                               list(expected.shape.data(), expected.shape.size()) + " and strides " +
                               list(expected.strides.data(), expected.strides.size()) + " bytes, got " +
                               std::string(py::str(py::handle(array->descr))) + ", shape " + list(array->dimensions, array->nd) +
                               " and strides " + list(array->strides, array->nd);
      PyErr_SetString(PyExc_ValueError, text.c_str());
      return false;
    }
    pointers[i] = array->data;
  }
  for (size_t k = 0; k < prepared.places.size(); ++k) {
    arranged[k] = prepared.places[k] < 0 ? nullptr : pointers[prepared.places[k]];
  }
  return true;
}

/// Runs `body`, without the interpreter lock when it is long enough, and turns C++ exceptions into Python ones.
template <class Body>
PyObject* guarded(double cost, const Body& body) {
  std::string failure;
  PyObject* kind = PyExc_RuntimeError;
  PyThreadState* state = cost > kReleaseCost ? PyEval_SaveThread() : nullptr;
  try {
    body();
  } catch (const ArgumentError& error) {
    failure = error.what();
    kind = argument_error;
  } catch (const std::exception& error) {
    failure = error.what();
  }
  if (state != nullptr) PyEval_RestoreThread(state);
  if (failure.empty()) Py_RETURN_NONE;
  PyErr_SetString(kind, failure.c_str());
  return nullptr;
}

PyObject* op_call(PyObject* self, PyObject* const* arrays, size_t nargsf, PyObject* keywords) {
  const PreparedOp& prepared = *reinterpret_cast<OpObject*>(self)->prepared;
  const size_t count = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  if (keywords != nullptr && PyTuple_GET_SIZE(keywords) > 0) {
    PyErr_SetString(PyExc_TypeError, "an operation takes arrays by position, got keywords");
    return nullptr;
  }
  Pointers room(prepared.places.size());
  void** pointers = room.data();
  if (!read_pointers(prepared, arrays, count, pointers)) return nullptr;
  return guarded(prepared.op->cost(), [&] { prepared.op->run(pointers); });
}

PyObject* step_call(PyObject* self, PyObject* const*, size_t nargsf, PyObject*) {
  if (PyVectorcall_NARGS(nargsf) != 0) {
    PyErr_SetString(PyExc_TypeError, "a step takes no arguments, got some");
    return nullptr;
  }
  const auto* step = reinterpret_cast<StepObject*>(self);
  return guarded(step->cost, [step] {
    for (const Work& work : step->work) work.prepared->op->run(work.pointers.data());
  });
}

StepObject* new_step() {
  auto* step = reinterpret_cast<StepObject*>(step_type->tp_alloc(step_type, 0));
  if (step == nullptr) throw py::error_already_set();
  step->vectorcall = step_call;
  new (&step->work) std::vector<Work>();
  new (&step->keep) std::vector<py::object>();
  step->cost = 0;
  return step;
}

PyObject* op_bind(PyObject* self, PyObject* const* arrays, Py_ssize_t count) {
  const auto& prepared = reinterpret_cast<OpObject*>(self)->prepared;
  std::vector<void*> pointers(prepared->places.size());
  if (!read_pointers(*prepared, arrays, count, pointers.data())) return nullptr;
  StepObject* step = new_step();
  for (Py_ssize_t i = 0; i < count; ++i) step->keep.push_back(py::reinterpret_borrow<py::object>(arrays[i]));
  step->cost = prepared->op->cost();
  step->work.push_back({prepared, std::move(pointers)});
  return reinterpret_cast<PyObject*>(step);
}

template <class Object>
void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  auto* object = reinterpret_cast<Object*>(self);
  if constexpr (std::is_same_v<Object, OpObject>) {
    object->prepared.~shared_ptr();
  } else {
    object->work.~vector();
    object->keep.~vector();
  }
  type->tp_free(self);
  Py_DECREF(type);
}

/// Joins runs of element-wise operations in `work`.
std::vector<Work> fused(const std::vector<Work>& work) {
  std::vector<Work> result;
  FusionGroup group;
  const auto flush = [&](size_t end) {
    if (group.count() > 1) {
      auto joined = std::make_shared<PreparedOp>();
      joined->op = group.finish();
      result.push_back({std::move(joined), {}});
    } else if (group.count() == 1) {
      result.push_back(work[end - 1]);
    }
    group = FusionGroup();
  };
  for (size_t k = 0; k < work.size(); ++k) {
    const auto* op = dynamic_cast<const Pointwise*>(work[k].prepared->op.get());
    const BoundPointwise member{op, work[k].pointers.data()};
    if (op != nullptr && group.add(member)) continue;
    flush(k);
    if (op == nullptr || !group.add(member)) result.push_back(work[k]);
  }
  flush(work.size());
  return result;
}

/// One step that runs several: they are copied out, so that running needs a single call.
py::object sequence(const py::sequence& steps) {
  auto result = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(new_step()));
  auto* merged = reinterpret_cast<StepObject*>(result.ptr());
  for (const py::handle item : steps) {
    NN_CHECK(Py_TYPE(item.ptr()) == step_type, "sequence must hold steps of this module, got " << Py_TYPE(item.ptr())->tp_name);
    const auto* step = reinterpret_cast<StepObject*>(item.ptr());
    merged->work.insert(merged->work.end(), step->work.begin(), step->work.end());
    merged->keep.insert(merged->keep.end(), step->keep.begin(), step->keep.end());
    merged->cost += step->cost;
  }
  merged->work = fused(merged->work);
  return result;
}

/// Operations on the same arrays, run in order as one.
class Chain : public Op {
 public:
  explicit Chain(std::vector<std::shared_ptr<const PreparedOp>> members) : members_(std::move(members)) {}

  void run(void* const* arrays) const override {
    for (const auto& member : members_) {
      Pointers arranged(member->places.size());
      for (size_t k = 0; k < member->places.size(); ++k) {
        arranged.data()[k] = member->places[k] < 0 ? nullptr : arrays[member->places[k]];
      }
      member->op->run(arranged.data());
    }
  }

  double cost() const override {
    double total = 0;
    for (const auto& member : members_) total += member->op->cost();
    return total;
  }

 private:
  std::vector<std::shared_ptr<const PreparedOp>> members_;
};

py::object new_op(std::shared_ptr<const PreparedOp> prepared) {
  auto* object = reinterpret_cast<OpObject*>(op_type->tp_alloc(op_type, 0));
  if (object == nullptr) throw py::error_already_set();
  object->vectorcall = op_call;
  new (&object->prepared) std::shared_ptr<const PreparedOp>(std::move(prepared));
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(object));
}

py::object chain(const py::sequence& ops) {
  std::vector<std::shared_ptr<const PreparedOp>> members;
  for (const py::handle item : ops) {
    NN_CHECK(Py_TYPE(item.ptr()) == op_type, "chain must hold operations of this module, got " << Py_TYPE(item.ptr())->tp_name);
    members.push_back(reinterpret_cast<OpObject*>(item.ptr())->prepared);
    NN_CHECK(members.back()->arrays.size() == members.front()->arrays.size(), "operations of a chain must be prepared for the same arrays, got others");
  }
  NN_CHECK(!members.empty(), "chain must hold an operation, got none");
  auto prepared = std::make_shared<PreparedOp>();
  prepared->arrays = members.front()->arrays;
  prepared->places.resize(prepared->arrays.size());
  std::iota(prepared->places.begin(), prepared->places.end(), 0);
  prepared->op = std::make_unique<Chain>(std::move(members));
  return new_op(std::move(prepared));
}

PyTypeObject* make_type(const char* name, size_t size, size_t offset, destructor dealloc, PyMethodDef* methods, const char* doc) {
  static PyMemberDef members[2][2];
  static int made = 0;
  PyMemberDef* member = members[made++];
  member[0] = {"__vectorcalloffset__", T_PYSSIZET, static_cast<Py_ssize_t>(offset), READONLY, nullptr};
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_members, member},
      {Py_tp_methods, methods},
      {Py_tp_doc, const_cast<char*>(doc)},
      {0, nullptr},
  };
  PyType_Spec spec = {name, static_cast<int>(size), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw py::error_already_set();
  return reinterpret_cast<PyTypeObject*>(type);
}

PyMethodDef op_methods[] = {
    {"bind", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(op_bind)), METH_FASTCALL,
     "Return a Step that runs this operation on the arrays each time it is called."},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef no_methods[] = {{nullptr, nullptr, 0, nullptr}};

}  // namespace

py::object wrap_op(std::unique_ptr<Op> op, const Signature& signature, const std::vector<int64_t>& places) {
  auto prepared = std::make_shared<PreparedOp>();
  prepared->places = places;
  for (const auto& desc : signature.arrays) {
    Expected expected;
    expected.present = desc.has_value();
    if (desc) {
      expected.dtype = desc->dtype;
      expected.shape.assign(desc->shape.begin(), desc->shape.end());
      for (const int64_t stride : desc->strides) expected.strides.push_back(stride * item_size(desc->dtype));
    }
    prepared->arrays.push_back(std::move(expected));
  }
  prepared->op = std::move(op);
  return new_op(std::move(prepared));
}

void bind_runner(py::module_& module) {
  op_type = make_type("nn_ext_cpu._native.Op", sizeof(OpObject), offsetof(OpObject, vectorcall), deallocate<OpObject>, op_methods,
                      "A prepared operation: call it with its arrays in order, or bind() it to them.");
  step_type = make_type("nn_ext_cpu._native.Step", sizeof(StepObject), offsetof(StepObject, vectorcall), deallocate<StepObject>,
                        no_methods, "Operations bound to arrays; a call without arguments runs them.");
  module.attr("Op") = py::handle(reinterpret_cast<PyObject*>(op_type));
  module.attr("Step") = py::handle(reinterpret_cast<PyObject*>(step_type));
  module.def(
      "set_argument_error", [](const py::object& type) { argument_error = py::object(type).release().ptr(); }, py::arg("error"),
      "Choose the exception for values of arrays that an operation does not take; ValueError at first.");
  module.def("chain", chain, py::arg("ops"), "Join operations that were prepared for the same arrays into one.");
  module.def("sequence", sequence, py::arg("steps"), "Merge steps into one that runs them in order.");
}

}  // namespace nn_cpu
