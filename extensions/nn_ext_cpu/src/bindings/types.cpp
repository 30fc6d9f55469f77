#include "bindings/types.hpp"

#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <string>

#include "support/check.hpp"
#include "support/errors.hpp"
#include "support/weight_cache.hpp"

namespace py = pybind11;

namespace nn_cpu {
namespace {

#ifndef NN_RELEASE_COST
#define NN_RELEASE_COST 5000.0
#endif
/// Work below this many nanoseconds keeps the interpreter lock: releasing and taking it costs more.
constexpr double kReleaseCost = NN_RELEASE_COST;

struct OpObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  std::shared_ptr<const PreparedOp> prepared;
};

struct StepObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  StepContent content;
};

struct ProgramObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  StepContent content;
  std::vector<Slot> slots;
};

PyTypeObject* op_type = nullptr;
PyTypeObject* step_type = nullptr;
PyTypeObject* program_type = nullptr;
PyObject* argument_error = PyExc_ValueError;

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
  } catch (const std::bad_alloc&) {
    failure = "a kernel must get the memory that it works in, got too little of it";
    kind = PyExc_MemoryError;
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
  return guarded(prepared.op->cost(), [&] { prepared.op->execute(pointers); });
}

PyObject* run(const StepContent& content) {
  return guarded(content.cost, [&content] {
    for (const Work& work : content.work) work.prepared->op->execute(work.pointers.data());
  });
}

PyObject* step_call(PyObject* self, PyObject* const* arguments, size_t nargsf, PyObject*) {
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  if (count > 1) {
    PyErr_SetString(PyExc_TypeError, "a step takes one argument at most, whether weights are unchanged, got more");
    return nullptr;
  }
  const TrustWeights trust(count == 1 && arguments[0] == Py_True);
  return run(reinterpret_cast<StepObject*>(self)->content);
}

PyObject* program_call(PyObject* self, PyObject* const* arrays, size_t nargsf, PyObject*) {
  auto* program = reinterpret_cast<ProgramObject*>(self);
  const auto count = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  if (count != program->slots.size()) {
    PyErr_Format(PyExc_ValueError, "number of arrays must be %zu, got %zu", program->slots.size(), count);
    return nullptr;
  }
  for (size_t i = 0; i < count; ++i) {
    void* pointer = read_pointer(program->slots[i].expected, arrays[i], i);
    if (pointer == nullptr) return nullptr;
    for (const auto& [work, place] : program->slots[i].uses) program->content.work[work].pointers[place] = pointer;
  }
  return run(program->content);
}

PyObject* op_bind(PyObject* self, PyObject* const* arrays, Py_ssize_t count) {
  const auto& prepared = reinterpret_cast<OpObject*>(self)->prepared;
  std::vector<void*> pointers(prepared->places.size());
  if (!read_pointers(*prepared, arrays, static_cast<size_t>(count), pointers.data())) return nullptr;
  StepContent content;
  for (Py_ssize_t i = 0; i < count; ++i) content.keep.push_back(py::reinterpret_borrow<py::object>(arrays[i]));
  content.cost = prepared->op->cost();
  content.work.push_back({prepared, std::move(pointers)});
  return new_step(std::move(content)).release().ptr();
}

PyObject* op_weights(PyObject* self, void*) {
  const PreparedOp& prepared = *reinterpret_cast<OpObject*>(self)->prepared;
  py::list places;
  for (const size_t position : prepared.op->weights()) places.append(prepared.places[position]);
  return py::tuple(places).release().ptr();
}

PyObject* step_keeps_weights(PyObject* self, void*) {
  const auto& work = reinterpret_cast<StepObject*>(self)->content.work;
  return PyBool_FromLong(
      std::any_of(work.begin(), work.end(), [](const Work& one) { return !one.prepared->op->weights().empty(); }));
}

PyObject* op_implementation(PyObject* self, void*) {
  return PyUnicode_FromString(reinterpret_cast<OpObject*>(self)->prepared->op->implementation().c_str());
}

PyObject* step_implementation(PyObject* self, void*) {
  std::vector<const Op*> ops;
  for (const Work& one : reinterpret_cast<StepObject*>(self)->content.work) ops.push_back(one.prepared->op.get());
  return PyUnicode_FromString(implementations_of(ops).c_str());
}

PyObject* op_adding(PyObject* self, PyObject* list) {
  const PreparedOp& prepared = *reinterpret_cast<OpObject*>(self)->prepared;
  try {
    std::vector<size_t> positions;
    for (const py::handle item : py::reinterpret_borrow<py::sequence>(list)) {
      const auto place = item.cast<int64_t>();
      const auto found = std::find(prepared.places.begin(), prepared.places.end(), place);
      NN_CHECK(found != prepared.places.end(), "places must be those of arrays of the operation, got " << place);
      positions.push_back(static_cast<size_t>(found - prepared.places.begin()));
    }
    auto adding = std::make_shared<PreparedOp>();
    adding->op = prepared.op->adding(positions);
    if (adding->op == nullptr) Py_RETURN_NONE;
    adding->arrays = prepared.arrays;
    adding->places = prepared.places;
    return new_op(std::move(adding)).release().ptr();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
    return nullptr;
  }
}

template <class Object>
void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  auto* object = reinterpret_cast<Object*>(self);
  if constexpr (std::is_same_v<Object, OpObject>) {
    object->prepared.~shared_ptr();
  } else {
    object->content.~StepContent();
  }
  if constexpr (std::is_same_v<Object, ProgramObject>) object->slots.~vector();
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* make_type(const char* name, size_t size, size_t offset, destructor dealloc, PyMethodDef* methods,
                        PyGetSetDef* properties, const char* doc) {
  static PyMemberDef members[3][2];
  static int made = 0;
  PyMemberDef* member = members[made++];
  member[0] = {"__vectorcalloffset__", T_PYSSIZET, static_cast<Py_ssize_t>(offset), READONLY, nullptr};
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_members, member},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
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
    {"accumulating", op_adding, METH_O,
     "Return the operation that adds to the arrays at these places instead of overwriting them, or None where there is "
     "none."},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef no_methods[] = {{nullptr, nullptr, 0, nullptr}};
PyGetSetDef op_properties[] = {
    {"weights", op_weights, nullptr, "Places of the arrays of which packed copies are kept.", nullptr},
    {"implementation", op_implementation, nullptr, "What computes it, where there is a choice; else an empty text.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyGetSetDef step_properties[] = {
    {"keeps_weights", step_keeps_weights, nullptr,
     "Whether packed copies of arrays are kept; a call with True trusts these.", nullptr},
    {"implementation", step_implementation, nullptr, "What computes it, where there is a choice; else an empty text.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyGetSetDef no_properties[] = {{nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

std::string implementations_of(const std::vector<const Op*>& ops) {
  std::vector<std::string> names;
  for (const Op* op : ops) names.push_back(op->implementation());
  return joined(names);
}

py::object new_op(std::shared_ptr<const PreparedOp> prepared) {
  auto* object = reinterpret_cast<OpObject*>(op_type->tp_alloc(op_type, 0));
  if (object == nullptr) throw py::error_already_set();
  object->vectorcall = op_call;
  new (&object->prepared) std::shared_ptr<const PreparedOp>(std::move(prepared));
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(object));
}

py::object new_step(StepContent content) {
  auto* object = reinterpret_cast<StepObject*>(step_type->tp_alloc(step_type, 0));
  if (object == nullptr) throw py::error_already_set();
  object->vectorcall = step_call;
  new (&object->content) StepContent(std::move(content));
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(object));
}

py::object new_program(StepContent content, std::vector<Slot> slots) {
  auto* object = reinterpret_cast<ProgramObject*>(program_type->tp_alloc(program_type, 0));
  if (object == nullptr) throw py::error_already_set();
  object->vectorcall = program_call;
  new (&object->content) StepContent(std::move(content));
  new (&object->slots) std::vector<Slot>(std::move(slots));
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(object));
}

const std::shared_ptr<const PreparedOp>& content_of_op(const py::handle& object) {
  NN_CHECK(Py_TYPE(object.ptr()) == op_type,
           "chain must hold operations of this module, got " << Py_TYPE(object.ptr())->tp_name);
  return reinterpret_cast<OpObject*>(object.ptr())->prepared;
}

const StepContent& content_of_step(const py::handle& object) {
  NN_CHECK(Py_TYPE(object.ptr()) == step_type,
           "sequence must hold steps of this module, got " << Py_TYPE(object.ptr())->tp_name);
  return reinterpret_cast<StepObject*>(object.ptr())->content;
}

void bind_types(py::module_& module) {
  op_type = make_type("nn_ext_cpu._native.Op", sizeof(OpObject), offsetof(OpObject, vectorcall), deallocate<OpObject>,
                      op_methods, op_properties,
                      "A prepared operation: call it with its arrays in order, or bind() it to them.");
  step_type =
      make_type("nn_ext_cpu._native.Step", sizeof(StepObject), offsetof(StepObject, vectorcall), deallocate<StepObject>,
                no_methods, step_properties, "Operations bound to arrays; a call without arguments runs them.");
  program_type = make_type("nn_ext_cpu._native.Program", sizeof(ProgramObject), offsetof(ProgramObject, vectorcall),
                           deallocate<ProgramObject>, no_methods, no_properties,
                           "Operations that run on the arrays that it is called with.");
  module.attr("Op") = py::handle(reinterpret_cast<PyObject*>(op_type));
  module.attr("Step") = py::handle(reinterpret_cast<PyObject*>(step_type));
  module.attr("Program") = py::handle(reinterpret_cast<PyObject*>(program_type));
  module.def(
      "set_argument_error", [](const py::object& type) { argument_error = py::object(type).release().ptr(); },
      py::arg("error"),
      "Choose the exception for values of arrays that an operation does not take; ValueError at first.");
}

}  // namespace nn_cpu
