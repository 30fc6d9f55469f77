"""The function inside a graph: the same results and gradients as its kernel, and none of what it must not read."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_core.context import context_scope
from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.graph.apply import operator, operator_of
from nn_core.engine.graph.compile import needed_data
from nn_core.engine.graph.grad import grad
from nn_core.testing.assertions import assert_identical, require
from nn_core.testing.cases import Case
from nn_core.testing.checks.forward import compare
from nn_core.testing.expected import Numbers, Truth, truth_of
from nn_core.testing.tolerance import CHAIN
from nn_core.variable import Variable, forward_all


class Graph:
    """One function between variables, and a root whose gradients are those of the truth."""

    def __init__(self, case: Case) -> None:
        self.case = case
        inputs = truth_of(case.spec, case.sample, case.dtype).inputs
        self.inputs = [_variable(array, case.dtype) for array in inputs]
        results = operator_of(case.spec)(*self.inputs, **case.sample.args)
        self.results: list[Variable] = list(results) if isinstance(results, tuple) else [results]
        #: The input that gets its gradient as values.
        self.kept = self.inputs[-1] if case.spec.has("keeps_gradient") else None

    @property
    def truth(self) -> Truth:
        """The expected results of the graph, given the random numbers that the forward pass drew."""
        node = self.results[0].producer
        assert node is not None
        key = None if node.key is None else (int(node.key[0]), int(node.key[1]))
        return truth_of(self.case.spec, self.case.sample, self.case.dtype, key)

    def root(self) -> Variable:
        """Return a variable whose gradient hands the gradients of the truth to the results."""
        pairs = [(y, dy) for y, dy in zip(self.results, self.truth.grads, strict=True) if dy.dtype.kind == "f"]
        if len(self.results) == 1:
            return self.results[0]
        total = None
        for y, dy in pairs:
            term = operator("sum")(operator("mul2")(y, _variable(dy, self.case.dtype)))
            total = term if total is None else operator("add2")(total, term)
        assert total is not None
        return total

    def backward(self, root: Variable, **flags: Any) -> list[Numbers | None]:
        """Return the gradients of the inputs, from zero."""
        for variable in self.inputs:
            if variable is not None:
                variable.grad.zero()
        root.backward(self.truth.grads[0] if root is self.results[0] else 1, **flags)
        return [
            None if variable is None or not variable.need_grad else np.array(self._gradient_of(variable).get_data("r"))
            for variable in self.inputs
        ]

    def _gradient_of(self, variable: Variable) -> NdArray:
        if variable is not self.kept:
            return variable.grad
        require(
            not np.any(variable.grad.get_data("r")), f"{self.case}: a gradient that is kept as values must go nowhere else"
        )
        return variable.data


def check_graph(case: Case) -> None:
    """In a graph the function gives the true results and gradients, whatever is cleared, and reads what it declares."""
    with context_scope(case.context):
        graph = Graph(case)
        root = graph.root() if _has_gradient(graph) else None
        _check_results(graph, root)
        if root is None:
            return
        gradients = graph.backward(root)
        _require_inputs(graph)
        _compare(graph, gradients, "in a graph")
        _poison(graph)
        _require_same(case, graph.backward(root), gradients, "after what the gradient must not read became NaN")
    if not case.spec.updates and not case.spec.has("seeded"):
        with context_scope(case.context):
            _check_cleared(case, gradients)
            _check_grad(case)


def _has_gradient(graph: Graph) -> bool:
    needed = any(variable is not None and variable.need_grad for variable in graph.inputs)
    floats = any(true.dtype.kind == "f" for true in graph.truth.visible)
    return graph.case.spec.differentiable and graph.case.sample.gradient and needed and floats


def _check_results(graph: Graph, root: Variable | None) -> None:
    case, shapes = graph.case, [true.shape for true in graph.truth.visible]
    require(len(graph.results) == len(shapes), f"{case}: {len(shapes)} results, got {len(graph.results)}")
    if not case.spec.has("dynamic_shape"):
        for n, (result, shape) in enumerate(zip(graph.results, shapes, strict=True)):
            require(result.shape == shape, f"{case}: result {n} must have shape {shape}, got {result.shape}")
    forward_all([root] if root is not None else graph.results)
    for n, (result, true) in enumerate(zip(graph.results, graph.truth.visible, strict=True)):
        compare(case, graph.truth, result.data.get_data("r"), true, f"result {n} in a graph")


def _require_inputs(graph: Graph) -> None:
    """Require that the passes leave the data of leaves alone, except for those in `updates` and where a gradient is kept."""
    for n, (variable, true) in enumerate(zip(graph.inputs, graph.truth.after, strict=True)):
        if variable is not None and true is not None and variable is not graph.kept:
            compare(graph.case, graph.truth, variable.data.get_data("r"), true, f"input {n} after both passes")


def _compare(graph: Graph, gradients: Sequence[Numbers | None], where: str) -> None:
    for n, (given, true, source) in enumerate(zip(gradients, graph.truth.gradients, graph.truth.inputs, strict=True)):
        if given is not None and source is not None:
            expected = 0 * source if true is None else true
            compare(graph.case, graph.truth, given, expected, f"gradient {n} {where}", chain=CHAIN)


def _poison(graph: Graph) -> None:
    """Overwrite the data of all inputs and outputs that `backward.needs` does not declare."""
    node = graph.results[0].producer
    assert node is not None
    reads_inputs, reads_outputs = needed_data(node)
    storages = [None if value is None else value.storage for value in node.inputs] + list(node.storages)
    flags = [*reads_inputs, *reads_outputs]
    given = [(storage.data, needed) for storage, needed in zip(storages, flags, strict=True) if storage is not None]
    protected = [array.synced for array, needed in given if needed]
    for array, needed in given:
        if not needed and array.synced not in protected:
            values = array.data
            values[...] = np.iinfo(values.dtype).min if values.dtype.kind in "iu" else np.nan


def _check_cleared(case: Case, gradients: Sequence[Numbers | None]) -> None:
    """Clearing what nothing needs, in both passes, changes no bit."""
    graph = Graph(case)
    root = graph.root()
    for _ in range(2):
        root.forward(clear_no_need_grad=True)
        cleared = graph.backward(root, clear_buffer=True)
        _require_same(case, cleared, gradients, "with clear_no_need_grad and clear_buffer")


def _check_grad(case: Case) -> None:
    """``nn.grad`` builds the same gradients as a graph."""
    graph = Graph(case)
    sources = [variable for variable in graph.inputs if variable is not None and variable.need_grad]
    floats = [(y, dy) for y, dy in zip(graph.results, graph.truth.grads, strict=True) if dy.dtype.kind == "f"]
    starts = [NdArray.from_numpy_array(dy.astype(dtype_of(case.dtype))) for _, dy in floats]
    found = iter(grad([y for y, _ in floats], sources, starts))
    gradients: list[Numbers | None] = []
    for variable in graph.inputs:
        if variable is None or not variable.need_grad:
            gradients.append(None)
            continue
        gradient = next(found)
        gradient.forward()
        gradients.append(np.array(gradient.data.get_data("r")))
    _compare(graph, gradients, "by nn.grad")


def _require_same(case: Case, given: Sequence[Any], expected: Sequence[Any], where: str) -> None:
    for n, (one, two) in enumerate(zip(given, expected, strict=True)):
        if one is not None:
            assert_identical(one, two, f"{case}: gradient {n} {where}")


def _variable(array: Numbers | None, dtype: str) -> Variable | None:
    if array is None:
        return None
    is_float = array.dtype.kind == "f"
    return Variable.from_numpy_array(array.astype(dtype_of(dtype)) if is_float else array, need_grad=is_float)
