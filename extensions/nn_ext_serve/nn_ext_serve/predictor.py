"""A pool of compiled graphs that any thread may compute with, and whose weights are exchanged between two calls."""

from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from queue import LifoQueue
from typing import Any, Protocol

import numpy as np

import nn_core as nn
from nn_core.ext import ArgumentError, NNCoreError, ParameterSource, ShapeError, Variable, parameters_of
from nn_ext_serve.tensors import Array, TensorSpec, checked_inputs


class NonFiniteError(NNCoreError, ArithmeticError):
    """An output that has NaN or infinities, of a predictor that checks its answers."""


class BuiltNetwork(Protocol):
    """A network as readers of files return it."""

    @property
    def inputs(self) -> Mapping[str, Variable]:
        """Variables to put data into."""

    @property
    def outputs(self) -> Mapping[str, Variable]:
        """Results."""


@dataclass(slots=True)
class Graph:
    """Inputs and outputs of a network by name.

    Attributes:
        inputs: Variables that get the samples, which axis 0 counts.
        outputs: Results, whose axis 0 counts the samples as well.
        parameters: Those of this graph alone, which the graphs of a predictor are to share. Parameters of a scope or a module,
            which graphs share already, need not be listed.
        dtypes: Dtypes of outputs that are to be converted, by name.
    """

    inputs: Mapping[str, Variable]
    outputs: Mapping[str, Variable]
    parameters: Mapping[str, Variable] = field(default_factory=dict)
    dtypes: Mapping[str, np.dtype[Any]] = field(default_factory=dict)


Build = Callable[[int], BuiltNetwork]


class Predictor:
    """Computes the outputs of a network for arrays, from any thread.

    Each graph of the pool is used by one call at a time, and is compiled for batches of 1, 2, 4, ... and `max_batch` samples;
    smaller batches are padded. A call that finds no free graph waits for one.

    Args:
        build: A function of a number of samples that returns a `Graph`, or an object with such attributes. It is called once
            for each graph and each size of batches.
        graphs: How many calls compute at the same time.
        max_batch: The most samples of one call.
        parameters: The parameters that `swap_parameters` changes; None: those of the graphs, or else the current scope.
        check_finite: Raise `NonFiniteError` instead of returning NaN or infinities.
        check_samples: Verify at the start that an output of a sample does not depend on other samples of its batch, as it does
            for batch normalization in training mode or dropout. Only then may requests be put into one batch.

    Raises:
        ArgumentError: when there is no input or no output, a number is below 1, or samples depend on each other.
        ShapeError: when axis 0 of an input or output is not the number of samples.

    Example:
        >>> def build(n):
        ...     x = nn.Variable((n, 4))
        ...     return Graph({"x": x}, {"y": F.softmax(PF.affine(x, 3))})
        >>> predictor = Predictor(build, max_batch=8)
        >>> predictor.predict({"x": np.zeros((5, 4))})["y"].shape
        (5, 3)
    """

    def __init__(
        self,
        build: Build,
        *,
        graphs: int = 1,
        max_batch: int = 16,
        parameters: ParameterSource | None = None,
        check_finite: bool = False,
        check_samples: bool = True,
    ) -> None:
        for name, value in (("graphs", graphs), ("max_batch", max_batch)):
            if value < 1:
                raise ArgumentError(f"Predictor: {name} must be at least 1, got {value}")
        self.check_finite = check_finite
        self._n_graphs, self._max_batch, self._check_samples = graphs, max_batch, check_samples
        self._context = copy_context()  # where it is built again, by whatever thread: backends, parameters
        self._generation = self._built("Predictor", build)
        own = self._generation.parameters or None
        self._parameters = None if own and parameters is None else parameters_of("Predictor", parameters)

    @property
    def inputs(self) -> dict[str, TensorSpec]:
        """The inputs of `predict` by name."""
        return dict(self._generation.inputs)

    @property
    def outputs(self) -> dict[str, TensorSpec]:
        """The outputs of `predict` by name."""
        return dict(self._generation.outputs)

    @property
    def max_batch(self) -> int:
        """The most samples of one call; of a network with a fixed number of samples, that number."""
        return self._generation.sizes[-1]

    def check(self, inputs: Mapping[str, Any]) -> tuple[dict[str, Array], int]:
        """Return `inputs` as arrays that the network takes, and their number of samples, without computing.

        Raises:
            ArgumentError: when names are missing or unknown, or there are more than `max_batch` samples.
            ShapeError, DTypeError: when an array does not fit; the message has its name. Nothing is broadcast.
        """
        arrays, n_samples = checked_inputs("predict", self._generation.inputs, inputs)
        if n_samples > self.max_batch:
            raise ArgumentError(f"predict: a call must have at most {self.max_batch} samples, got {n_samples}")
        return arrays, n_samples

    def predict(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Return the outputs of samples, as arrays of their own.

        Args:
            inputs: Arrays or nested lists (n, ...) by name.

        Returns:
            Arrays (n, ...) by name. All of them are computed with the same weights.

        Raises:
            ArgumentError, ShapeError, DTypeError: as `check`.
            NonFiniteError: when an output has NaN or infinities, if the predictor checks that.

        Example:
            >>> predictor = Predictor(lambda n: (lambda x: Graph({"x": x}, {"y": x * 2}))(nn.Variable((n, 2))))
            >>> predictor.predict({"x": [[1, 2]]})["y"].tolist()
            [[2.0, 4.0]]
            >>> predictor.predict({"x": [1, 2]})
            Traceback (most recent call last):
            ...
            nn_core.errors.ShapeError: predict: 'x' must have shape (n, 2) with n >= 1 samples, got (2,)
        """
        arrays, n_samples = self.check(inputs)
        found = self._generation.run(arrays, n_samples)
        if self.check_finite:
            require_finite(found)
        return found

    def warm_up(self) -> None:
        """Run each size of batches once in this thread, whose first call would take several times as long otherwise."""
        self._generation.run_all_sizes()

    def swap_parameters(self, source: Any) -> None:
        """Exchange all weights between two calls: a call sees those of before or those of `source`, never both.

        Args:
            source: Path of a file of parameters, or variables by name; see ``nn.swap_parameters``.

        Raises:
            ArgumentError, ShapeError, FileFormatError, MissingFileError: when the file does not have exactly the parameters of
                this predictor. They stay as they are.

        Example:
            >>> w = nn.Variable.from_numpy_array(np.array(2.0))
            >>> def build(n):
            ...     x = nn.Variable((n,))
            ...     return Graph({"x": x}, {"y": x * w})
            >>> predictor = Predictor(build, parameters={"w": w})
            >>> predictor.swap_parameters({"w": nn.Variable.from_numpy_array(np.array(3.0))})
            >>> predictor.predict({"x": [1.0]})["y"].tolist()
            [3.0]
        """
        nn.swap_parameters(source, self._generation.parameters if self._parameters is None else self._parameters)

    def replace(self, build: Build) -> None:
        """Exchange the network between two calls: graphs are built and run while the present ones answer.

        Args:
            build: As for the constructor.

        Raises:
            ArgumentError: when the new network has other inputs or outputs. The present one stays.
        """
        new = self._context.copy().run(self._built, "replace", build)
        old = self._generation
        for what, before, now in (("inputs", old.inputs, new.inputs), ("outputs", old.outputs, new.outputs)):
            if before != now:
                raise ArgumentError(f"replace: the {what} must stay {list(before.values())}, got {list(now.values())}")
        if new.sizes[-1] < old.sizes[-1]:
            raise ArgumentError(f"replace: batches must stay at least {old.sizes[-1]} samples, got {new.sizes[-1]}")
        self._generation = new  # calls hold the generation they began with

    def _built(self, function: str, build: Build) -> "_Generation":
        new = _Generation(function, build, self._n_graphs, self._max_batch)
        new.run_all_sizes()
        if self._check_samples and new.sizes[-1] > 1:
            new.require_independent_samples(function)
        return new


def require_finite(outputs: Mapping[str, Array]) -> None:
    """Raise a `NonFiniteError` that names the output with NaN or infinities."""
    for name, values in outputs.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            n_wrong = int((~np.isfinite(values)).sum())
            raise NonFiniteError(
                f"predict: output {name!r} must be finite, got {n_wrong} of {values.size} numbers that are not"
            )


class _Generation:
    """The graphs of one network: a pool of sets, each of which has a graph for every size of batches."""

    def __init__(self, function: str, build: Build, n_graphs: int, max_batch: int) -> None:
        self._function = function
        first = {}
        for size in _sizes(max_batch):
            first[size] = build(size)
            fixed = self._size_of(first[size], size)
            if fixed != size:  # the network has a number of samples of its own
                first = {fixed: first[size]}
                break
        self.sizes = sorted(first)
        largest = first[self.sizes[-1]]
        self.dtypes = dict(getattr(largest, "dtypes", {}))
        self.inputs = {name: _spec(name, variable) for name, variable in largest.inputs.items()}
        self.outputs = {name: _spec(name, variable, self.dtypes.get(name)) for name, variable in largest.outputs.items()}
        self.parameters: dict[str, Variable] = dict(getattr(largest, "parameters", {}))
        self._pool: LifoQueue[dict[int, BuiltNetwork]] = LifoQueue()
        sets = [first, *({size: build(size) for size in self.sizes} for _ in range(n_graphs - 1))]
        for graphs in sets:
            for graph in graphs.values():
                self._share(graph)
            self._pool.put(graphs)

    def _size_of(self, graph: BuiltNetwork, asked: int) -> int:
        """Return the number of samples of a graph, which all inputs and outputs have."""
        if not graph.inputs or not graph.outputs:
            raise ArgumentError(
                f"{self._function}: a network must have inputs and outputs, got {list(graph.inputs)} and {list(graph.outputs)}"
            )
        shapes = {name: variable.shape for name, variable in (*graph.inputs.items(), *graph.outputs.items())}
        if any(not shape for shape in shapes.values()) or len({shape[0] for shape in shapes.values()}) > 1:
            raise ShapeError(
                f"{self._function}: axis 0 of all inputs and outputs must be the samples, {asked} of them, got {shapes}"
            )
        return int(next(iter(shapes.values()))[0])

    def _share(self, graph: BuiltNetwork) -> None:
        """Let the parameters of a graph show the values of the first one."""
        for name, variable in getattr(graph, "parameters", {}).items():
            if variable is not self.parameters[name]:
                variable.data = self.parameters[name].data

    def run(self, arrays: Mapping[str, Array], n_samples: int) -> dict[str, Array]:
        """Return the outputs of `n_samples` samples, padded by zeros to a size that is compiled."""
        size = next(size for size in self.sizes if size >= n_samples)
        graphs = self._pool.get()
        try:
            with nn.hold_parameters():
                return self._run(graphs[size], arrays, n_samples)
        finally:
            self._pool.put(graphs)

    def _run(self, graph: BuiltNetwork, arrays: Mapping[str, Array], n_samples: int) -> dict[str, Array]:
        for name, variable in graph.inputs.items():
            target = variable.d
            target[:n_samples] = arrays[name]
            target[n_samples:] = 0
        outputs = list(graph.outputs.values())
        nn.forward_all(outputs, clear_buffer=True)
        found = {name: np.array(variable.d[:n_samples]) for name, variable in graph.outputs.items()}
        return {name: values.astype(self.outputs[name].dtype, copy=False) for name, values in found.items()}

    def run_all_sizes(self) -> None:
        """Run every graph with zeros: plans are compiled by the second pass."""
        taken = [self._pool.get() for _ in range(self._pool.qsize())]
        try:
            for graphs in taken:
                for size in (size for size in self.sizes for _ in range(2)):
                    with nn.hold_parameters():
                        self._run(graphs[size], self._zeros(size), size)
        finally:
            for graphs in reversed(taken):
                self._pool.put(graphs)

    def _zeros(self, size: int) -> dict[str, Array]:
        return {name: np.zeros((size, *spec.shape), spec.dtype) for name, spec in self.inputs.items()}

    def require_independent_samples(self, function: str) -> None:
        """Refuse a network whose output for the first sample changes with the others of its batch."""
        size = self.sizes[-1]
        draw = np.random.default_rng(0)
        drawn, alone = self._zeros(size), self._zeros(size)
        for name, spec in self.inputs.items():
            if spec.dtype.kind == "f":
                drawn[name] = draw.normal(size=(size, *spec.shape)).astype(spec.dtype)
                alone[name][0] = drawn[name][0]
        together, single = self.run(drawn, size), self.run(alone, size)
        for name in self.outputs:
            if not np.array_equal(together[name][0], single[name][0], equal_nan=together[name].dtype.kind == "f"):
                raise ArgumentError(
                    f"{function}: output {name!r} of a sample must not depend on the other samples of its batch, got a "
                    "difference\n  hint: batch_stat=False, no dropout; max_batch=1 or check_samples=False to serve it as it is"
                )


def _sizes(max_batch: int) -> list[int]:
    """Return 1, 2, 4, ... and `max_batch`."""
    powers = [1 << i for i in range(max_batch.bit_length()) if 1 << i < max_batch]
    return [*powers, max_batch]


def _spec(name: str, variable: Variable, dtype: "np.dtype[Any] | None" = None) -> TensorSpec:
    found = variable.data.dtype if dtype is None else dtype
    return TensorSpec(name, tuple(variable.shape[1:]), np.dtype(found))
