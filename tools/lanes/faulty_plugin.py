"""A plugin of every kind whose parts misbehave where the lane `plugins` says; it is registered as ``nn_ext_faulty``."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.communicators import AloneEngine
from nn_core.ext import (
    BackendInfo,
    CommunicatorInfo,
    CompositeInfo,
    DataInfo,
    Entry,
    FileFormatInfo,
    FunctionPackage,
    InitializerInfo,
    ParametricFunctionInfo,
    PassInfo,
    Refusal,
    SchedulerInfo,
    SolverInfo,
    TracerInfo,
    TrainingInfo,
    ViewerInfo,
    gradient,
    hookimpl,
    kernel,
    shape_rule,
)
from nn_core.solver import Solver
from nn_core.utils.data_source import DataSource
from nn_core.utils.learning_rate_scheduler import BaseLearningRateScheduler

PLUGIN_API = 2
REQUIRES_CORE = ">=0.1,<1"
PLUGIN_NAME: Final = "faulty"


class Fault:
    """The fault, and its place: `act` gets the result and the arrays that the part may read, and gives what is returned, or
    an exception for the plugin to raise.
    """

    place: str = ""
    act: Callable[..., Any] | None = None
    met: int = 0


def at(place: str, result: Any = None, *arrays: Any) -> Any:
    """Return the result of a part, or what the lane wants there."""
    if Fault.place != place or Fault.act is None:
        return result
    Fault.met += 1
    found = Fault.act(result, arrays)
    if isinstance(found, BaseException):
        raise found
    return found


class Runner:
    """Runs a function over arrays, and binds it."""

    def __init__(self, part: str, function: Callable[..., Any]) -> None:
        self.part, self.function = part, function

    def __call__(self, *arrays: Any) -> None:
        at(self.part + "runner", None, *arrays[:-1])
        self.function(*arrays)

    def bind(self, *arrays: Any) -> Any:
        def step() -> None:
            at(self.part + "step", None, *arrays[:-1])
            self.function(*arrays)

        return at(self.part + "bind", step)


def negate(x: Any, y: Any) -> None:
    np.negative(x, out=y)


def sinh(x: Any, y: Any) -> None:
    np.sinh(x, out=y)


class Kernel:
    """A kernel with everything that one may have."""

    part, function = "", staticmethod(negate)

    def refuse(self, call: Any) -> Any:
        return at(self.part + "refuse")

    def layout(self, call: Any) -> Any:
        return at(self.part + "layout", "contiguous")

    def strided(self, call: Any) -> Any:
        return at(self.part + "strided", False)

    def forward(self, call: Any) -> Any:
        return at(self.part + "forward", Runner(self.part, self.function))

    def backward(self, call: Any, wanted: Any) -> Any:
        return at(self.part + "backward", None)


class Overlay(Kernel):
    """An overlay for a function of the core."""

    part, function = "overlay ", staticmethod(sinh)

    def refuse(self, call: Any) -> Any:
        return at("overlay refuse", None if Fault.place.startswith("overlay ") else Refusal("only faults"))


class Space:
    """The functions of NumPy."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class Host:
    """A backend."""

    name, array_class, kernels = "faulty", "FaultyArray", {"faulty.Negate": Kernel()}

    def namespace(self) -> Any:
        return at("namespace", Space())

    def empty(self, shape: Any, dtype: Any) -> Any:
        return at("empty", np.empty(shape, dtype))

    def from_numpy(self, array: Any) -> Any:
        return at("from_numpy", array.copy(), array)

    def to_numpy(self, array: Any) -> Any:
        return at("to_numpy", np.asarray(array))

    def use_device(self, device_id: Any) -> Any:
        return at("use_device")

    def notes(self, api: str) -> Any:
        return at("notes", ["a note"])


def _load() -> Any:
    return Host()


@hookimpl
def nn_core_backends() -> Any:
    return [BackendInfo(name="faulty", array_class="FaultyArray", load=_load)]


@shape_rule("faulty.Negate")
def negate_shape(x: Any) -> Any:
    return at("shape rule", (x,))


@gradient("faulty.Negate")
def negate_gradient(F: Any, g: Any) -> Any:  # the name of the contract
    return at("gradient rule", F.mul_scalar(g.grad, val=-1.0))


@kernel("faulty.Negate")
def negate_reference(xp: Any, x: Any) -> Any:
    return at("reference kernel", -x, x)


SPEC: Final = """
- name: faulty.Negate
  api: faulty_negate
  topic: arithmetic
  doc: Negative.
  inputs: {x: {doc: Input.}}
  outputs: {y: {doc: Output.}}
  shape: rule
  backward: {needs: []}
"""


@hookimpl
def nn_core_functions() -> Any:
    return [FunctionPackage(spec=SPEC, overlays={"cpu": {"Sinh": Overlay()}, "reference": {"Sinh": Overlay()}})]


class Fusion:
    """A sigmoid is never negative."""

    function = "Sigmoid"

    def __init__(self) -> None:
        self.chain = at("fusion chain", ("Sigmoid", "ReLU"))
        self.function = at("fusion function", "Sigmoid")

    def settings(self, *args: Any) -> Any:
        return at("fusion settings", {})


def make_fusion() -> Any:
    return at("fusion", Fusion())


class Pass:
    """A pass that keeps graphs as they are."""

    def __init__(self) -> None:
        at("pass made")

    def __call__(self, outputs: Any) -> Any:
        return at("pass", outputs)


@hookimpl
def nn_core_passes() -> Any:
    return [
        PassInfo(name="faulty_fusion", role="fusion", target=make_fusion),
        PassInfo(name="faulty_pass", role="pass", target=Pass),
    ]


class View:
    """A viewer."""

    def __init__(self) -> None:
        at("viewer made")

    def view(self, v: Any) -> Any:
        return at("view", "seen")


class Monitor:
    """A monitor."""

    def __init__(self, name: str) -> None:
        at("monitor made")
        self.values: list[float] = []

    def add(self, index: int, value: float) -> None:
        at("monitor")
        self.values.append(value)


@hookimpl
def nn_core_viewers() -> Any:
    return [
        ViewerInfo(name="FaultyView", role="viewer", target=View),
        ViewerInfo(name="FaultyMonitor", role="monitor", target=Monitor),
    ]


class Tracer:
    """Counts calls."""

    def __init__(self) -> None:
        at("tracer made")
        self.count = 0

    def __call__(self, call: Any) -> None:
        at("tracer")
        self.count += 1


@hookimpl
def nn_core_tracers() -> Any:
    return [TracerInfo(name="FaultyTracer", target=Tracer)]


def read(file: Any) -> Any:
    return at("read", {"w": Entry(np.frombuffer(file.read(), np.float32), {})})


def write(file: Any, entries: Any) -> Any:
    file.write(entries["w"].values.tobytes())
    return at("write")


@hookimpl
def nn_core_file_formats() -> Any:
    return [FileFormatInfo(name="faulty", extensions=(".faulty",), read=read, write=write)]


class FaultySgd(Solver):
    """A solver."""

    hyper_names = ("lr",)

    def __init__(self, lr: float = 0.5) -> None:
        at("solver made")
        super().__init__(lr)

    @staticmethod
    def step(xp: Any, w: Any, g: Any, states: Any, hyper: Any) -> Any:
        w -= hyper[0] * g
        return at("solver step", None, g)


class Update:
    """The rule for many parameters at once."""

    def prepare(self, sizes: Any, dtype: str) -> Any:
        return at("update prepare", self)

    def bind(self, params: Any, grads: Any, states: Any, hyper: Any) -> Any:
        def run() -> None:
            at("update run", None, *grads)
            for w, g in zip(params, grads, strict=True):
                np.subtract(w, hyper[0] * g, out=w)

        return at("update bind", run)


UPDATE: Final = Update()


class FaultyManySgd(FaultySgd):
    """A solver with a rule for many parameters at once."""

    @staticmethod
    def step(xp: Any, w: Any, g: Any, states: Any, hyper: Any) -> Any:
        w -= hyper[0] * g


@hookimpl
def nn_core_solvers() -> Any:
    return [
        SolverInfo(name="FaultySgd", target=FaultySgd),
        SolverInfo(name="FaultyManySgd", target=FaultyManySgd, updates={"reference": "nn_ext_faulty:UPDATE"}),
    ]


class Engine(AloneEngine):
    """An engine of communicators for one process."""

    def __init__(self, context: Any = None) -> None:
        at("communicator made")
        super().__init__()

    def all_reduce(self, array: Any, op: str = "sum") -> Any:
        return at("all_reduce")

    def barrier(self) -> Any:
        return at("barrier")


@hookimpl
def nn_core_communicators() -> Any:
    return [CommunicatorInfo(name="faulty", target=Engine)]


class Initializer:
    """Ones."""

    def __init__(self) -> None:
        at("initializer made")

    def __call__(self, shape: Any) -> Any:
        return at("initializer", np.ones(shape, np.float32))


@hookimpl
def nn_core_initializers() -> Any:
    return [InitializerInfo(name="FaultyOnes", target=Initializer)]


class Scheduler(BaseLearningRateScheduler):
    """A learning rate that falls."""

    def __init__(self) -> None:
        at("scheduler made")

    def get_learning_rate(self, iter: int) -> Any:  # noqa: A002  # the name of the interface
        return at("scheduler", 0.5 / (1 + iter))


@hookimpl
def nn_core_schedulers() -> Any:
    return [SchedulerInfo(name="FaultyScheduler", target=Scheduler)]


class Source(DataSource):
    """The numbers from 0 to 3."""

    def __init__(self) -> None:
        at("source made")
        super().__init__(shuffle=False)
        self._size, self._variables = 4, ("x",)
        self.reset()

    def _get_data(self, position: int) -> Any:
        return at("source", (np.float32(position),))


def make_cache(source: Any, shuffle: bool = False, rng: Any = None) -> Any:
    return at("cache", source)


def read_cell(path: Any) -> Any:
    return at("cell", np.array([7.0], np.float32))


@hookimpl
def nn_core_data() -> Any:
    return [
        DataInfo(name="FaultySource", role="source", target=Source),
        DataInfo(name="FaultyCache", role="cache", target=make_cache),
        DataInfo(name=".faulty", role="cell", target=read_cell),
    ]


class Extension:
    """A part of the trainer."""

    def __init__(self) -> None:
        at("extension made")

    def __call__(self, trainer: Any) -> None:
        at("extension")


class Logger:
    """A logger of the trainer."""

    def __init__(self) -> None:
        at("logger made")

    def log(self, iteration: int, name: str, value: float) -> None:
        at("logger")


@hookimpl
def nn_core_training() -> Any:
    return [
        TrainingInfo(name="FaultyExtension", role="extension", target=Extension),
        TrainingInfo(name="FaultyLogger", role="logger", target=Logger),
    ]


def twice(x: Any) -> Any:
    return at("composite", F.mul_scalar(x, val=2.0))


def dense(x: Any) -> Any:
    return at("layer", PF.affine(x, 2))


@hookimpl
def nn_core_composites() -> Any:
    return [CompositeInfo(name="faulty_twice", target=twice)]


@hookimpl
def nn_core_parametric_functions() -> Any:
    return [ParametricFunctionInfo(name="faulty_dense", target=dense)]
