"""Times of the single functions of a graph, each run alone, and of whole passes."""

import csv
import sys
import time
from collections.abc import Callable, Mapping
from typing import IO, Any, Final, NamedTuple

import nn_core
from nn_core.engine.arrays.spaces import space_of
from nn_core.engine.arrays.synced import ready
from nn_core.engine.dispatch.plugin_manager import get_backend
from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.graph.parameter_sources import scopes_of_parameters
from nn_core.errors import ArgumentError
from nn_core.function import Function
from nn_core.solvers.base import Solver
from nn_core.typing import Shape
from nn_core.variable import Variable

#: How many of a unit a second has: milli, micro, nano.
_SCALES: Final[Mapping[str, float]] = {"m": 1e3, "u": 1e6, "n": 1e9}


class ProfileStat(NamedTuple):
    """The time of one function.

    Attributes:
        parameter_scope: The scope of its parameters; None without.
        inputs_shape: The shapes of its inputs.
        args_info: Its arguments and their values.
        function_name: Its name.
        mean_time: Mean time of a run, as text, in the unit of the profiler.
        n_run: Number of runs.
    """

    parameter_scope: str | None
    inputs_shape: list[Shape]
    args_info: list[tuple[str, Any]]
    function_name: str
    mean_time: str
    n_run: int


@fitted
def convert_time_scale(sec: float, format: str = "m") -> str:  # noqa: A002  # NNabla's name
    """Seconds as text in milliseconds ("m"), microseconds ("u") or nanoseconds ("n"), eight digits.

    Raises:
        ArgumentError: when `format` is something else.

    Example:
        >>> convert_time_scale(0.25)
        '250.0'
    """
    if format not in _SCALES:
        raise ArgumentError(f"convert_time_scale: format must be one of {', '.join(_SCALES)}, got {format!r}")
    return str(float(f"{sec * _SCALES[format]:.8g}"))


class GraphProfiler:
    """Measures each function of a graph alone, and the passes of the whole graph.

    A function that runs alone is not merged with its neighbours and waits for its device, so the sum is more than the time
    of a pass. Where the time of training goes is measured by `Profiler`.

    Args:
        graph: The variable at the end of the graph.
        device_id: The device.
        ext_name: Name of the backend.
        solver: Measure steps of training with it, too: forward, backward and update.
        n_run: Number of runs of each.
        max_measure_execution_time: Seconds for each; fewer runs when they take longer.
        time_scale: Unit of the results; see `convert_time_scale`.
        backward_accum: Let gradients of functions be added up in place of overwritten.

    Example:
        >>> import numpy as np
        >>> import nn_core.functions as F
        >>> x = Variable.from_numpy_array(np.ones((2, 3)), need_grad=True)
        >>> profiler = GraphProfiler(F.sum(F.tanh(x)), "0", "cpu", n_run=2)
        >>> profiler.run()
        >>> [stat.function_name for stat in profiler.get_result()["forward"]]
        ['Tanh', 'Sum']
    """

    @fitted
    def __init__(
        self,
        graph: Variable,
        device_id: str | int,
        ext_name: str,
        solver: Solver | None = None,
        n_run: int = 100,
        max_measure_execution_time: float = 1,
        time_scale: str = "m",
        backward_accum: bool = False,
    ) -> None:
        if n_run < 1:
            raise ArgumentError(f"GraphProfiler: n_run must be at least 1, got {n_run}")
        convert_time_scale(0.0, time_scale)
        self.graph = graph
        self.solver = solver
        self.n_run = n_run
        self.device_id = str(device_id)
        self.ext_name = ext_name
        self.time_scale = time_scale
        self.result: dict[str, Any] = {}
        self._seconds = max_measure_execution_time
        self._accumulates = backward_accum
        self._space = space_of(get_backend(ext_name), self.device_id)
        self._functions: list[Function] = []
        graph.visit(self._functions.append)
        self._scopes = scopes_of_parameters({v.storage for function in self._functions for v in function.inputs})

    def run(self) -> None:
        """Measure everything."""
        self.time_profiling_whole_graph()
        self.time_profiling_forward()
        self.time_profiling_backward()

    def get_result(self) -> dict[str, Any]:
        """Return what was measured.

        Returns:
            "forward" and "backward": lists of `ProfileStat`, in the order of the graph; "forward_all", "backward_all" and,
            with a solver, "training": times of whole passes as text; and "n_run_" followed by these names.
        """
        return self.result

    def print_result(self) -> None:
        """Print what was measured."""
        lines = [f"time scale: {self.time_scale}"]
        for name in ("forward", "backward"):
            lines += [f"{name:-^43}", *map(str, self.result.get(name, ())), ""]
        whole = ("forward_all", "backward_all", "training")
        lines += [f"{name}: {self.result[name]}" for name in whole if name in self.result]
        sys.stdout.write("\n".join(lines) + "\n")

    def time_profiling_forward(self) -> None:
        """Measure each function forward."""
        self.graph.forward()
        self.result["forward"] = [
            self._stat(f, lambda f=f: f.forward(f.inputs, f.outputs))  # type: ignore[misc]  # typed by use
            for f in self._functions
        ]

    def time_profiling_backward(self) -> None:
        """Measure each function backward; those of which no input needs a gradient are left out."""
        self.graph.forward()
        self.graph.backward()
        self.result["backward"] = [
            self._stat(f, lambda f=f: f.backward(f.inputs, f.outputs, [self._accumulates] * len(f.inputs)))  # type: ignore[misc]  # typed by use
            for f in self._functions
            if any(variable.need_grad for variable in f.inputs)
        ]

    def time_profiling_whole_graph(self) -> None:
        """Measure forward and backward passes of the graph, and steps of training if there is a solver."""
        self._whole("forward_all", lambda: self.graph.forward(clear_no_need_grad=True))

        def backward() -> None:
            self.graph.backward()

        self.graph.forward()
        self._whole("backward_all", backward)
        if self.solver is not None:
            self._whole("training", self.training_function)

    def training_function(self) -> None:
        """Return a step of training: gradients set to zero, forward, backward, update."""
        assert self.solver is not None
        self.solver.zero_grad()
        self.graph.forward(clear_no_need_grad=True)
        self.graph.backward(clear_buffer=True)
        self.solver.update()

    def _whole(self, name: str, act: Callable[[], object]) -> None:
        mean, runs = self._measured(act)
        self.result[name] = convert_time_scale(mean, self.time_scale)
        self.result[f"n_run_{name}"] = runs

    def _stat(self, function: Function, act: Callable[[], object]) -> ProfileStat:
        mean, runs = self._measured(act)
        scopes = [self._scopes[v.storage] for v in function.inputs if v.storage in self._scopes]
        shapes = [variable.shape for variable in function.inputs]
        arguments = list(function.info.args.items())
        text = convert_time_scale(mean, self.time_scale)
        return ProfileStat(scopes[0] if scopes else None, shapes, arguments, function.info.type_name, text, runs)

    def _measured(self, act: Callable[[], object]) -> tuple[float, int]:
        """Mean seconds of a call, and the number of calls; one call before prepares what is prepared once."""
        act()
        ready(self._space)
        start = time.perf_counter()
        end, runs = start, 0
        while runs < self.n_run and (runs == 0 or end - start < self._seconds):
            act()
            ready(self._space)
            end, runs = time.perf_counter(), runs + 1
        return (end - start) / runs, runs


class GraphProfilerCsvWriter:
    """Writes the results of a `GraphProfiler` as CSV.

    Args:
        gb: The profiler, after its run.
        file: File to write to; None: standard output.
    """

    @fitted
    def __init__(self, gb: GraphProfiler, file: IO[str] | None = None) -> None:
        self._profiler = gb
        self._writer = csv.writer(sys.stdout if file is None else file, lineterminator="\n")

    def write_header(self) -> None:
        """Write how it was measured, and the names of the columns."""
        gb = self._profiler
        for row in (
            ["num. of run", gb.n_run],
            ["device id", gb.device_id],
            ["ext name", gb.ext_name],
            ["time scale", gb.time_scale],
            ["nn_core version", nn_core.__version__],
        ):
            self._writer.writerow(row)

    def check_same(self, f: ProfileStat, b: ProfileStat) -> bool:
        """Return whether two results are of one function: all but the times are equal."""
        return f[:4] == b[:4]

    def write(self) -> None:
        """Write everything: a line for each function, and the passes.

        Raises:
            ArgumentError: when the profiler was not run.
        """
        result = self._profiler.get_result()
        if "forward" not in result:
            raise ArgumentError("GraphProfilerCsvWriter: the profiler must have been run, got one without results")
        self.write_header()
        columns = ["forward", "backward", "forward_n_run", "backward_n_run"]
        self._writer.writerow(["parameter_scope", "function_name", "inputs_shape", "args_info", *columns])
        waiting = list(result.get("backward", ()))
        for stat in result["forward"]:
            back = waiting.pop(0) if waiting and self.check_same(stat, waiting[0]) else None
            times = [stat.mean_time, back and back.mean_time, stat.n_run, back and back.n_run]
            arguments = ", ".join(f"{name}: {value}" for name, value in stat.args_info)
            self._writer.writerow([stat.parameter_scope, stat.function_name, stat.inputs_shape, arguments, *times])
        for name in ("forward_all", "backward_all", "training"):
            if name in result:
                self._writer.writerow([name, result[name]])
                self._writer.writerow([f"{name}_n_run", result[f"n_run_{name}"]])
