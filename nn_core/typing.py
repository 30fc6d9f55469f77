"""Words shared by all layers: shapes, array descriptions, calls, refusals, and what a kernel and a backend can do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from nn_core.spec.model import ArgValue, FunctionSpec

#: A raw array of some backend (numpy.ndarray, or what lies on a device). The core only passes it on.
Array: TypeAlias = Any
#: An array namespace (numpy, or that of a device).
Namespace: TypeAlias = Any
Shape: TypeAlias = tuple[int, ...]
#: A function without arguments that computes one function of a plan on the arrays it was bound to. A step that keeps
#: copies of weights in a layout of its own may have an attribute `weights`, the addresses of these arrays, and take one
#: argument: whether they hold what they held when it last ran.
Step: TypeAlias = Callable[[], object]


@dataclass(frozen=True, slots=True)
class ArrayDesc:
    """Shape, dtype name and memory layout of an array; `strides` (bytes) is None when C-contiguous."""

    shape: Shape
    dtype: str
    strides: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for length in self.shape:
            size *= length
        return size


@dataclass(frozen=True, slots=True)
class Call:
    """One function about to be prepared: what it is, its settings, and the arrays it will run on.

    `inputs` holds None for an optional input that is not given; `outputs` includes the aux outputs.
    """

    spec: FunctionSpec
    args: Mapping[str, ArgValue]
    inputs: tuple[ArrayDesc | None, ...]
    outputs: tuple[ArrayDesc, ...]
    dtype: str
    device_id: str = "0"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a kernel does not take a call; dispatch keeps it and asks the next backend."""

    reason: str


class Runner(Protocol):
    """A prepared kernel.

    Called with all arrays in order it computes at once. ``bind`` (optional; ``functools.partial`` serves where it is
    missing) returns a function without arguments that computes on these arrays each time it is called. ``accumulating``
    (optional, of a backward runner) takes places of gradients of inputs and returns the runner that adds to these
    arrays instead of overwriting them, or None.
    """

    def __call__(self, *arrays: Array) -> object: ...


class Kernel(Protocol):
    """A backend's implementation of one function; every method is called once when a function is set up, never per run.

    Array order. Forward: inputs (None where not given), outputs, aux outputs, and for seeded functions the key.
    Backward: inputs and outputs (None where the specification does not declare a need), gradients of the visible
    outputs, gradients of the inputs (None where not wanted). A kernel overwrites its outputs and never accumulates.
    """

    def refuse(self, call: Call) -> Refusal | None:
        """Say why this call cannot be run, or None. Cheap, before any work."""
        ...

    def forward(self, call: Call) -> Runner:
        """Prepare the forward computation."""
        ...

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the gradient of the inputs that are `wanted`; None: use the gradient rule."""
        ...


class Backend(Protocol):
    """What a plugin brings: arrays and kernels of one device family."""

    name: str
    array_class: str
    kernels: Mapping[str, Kernel]

    def namespace(self) -> Namespace:
        """The array namespace that the reference kernels run over."""
        ...

    def empty(self, shape: Shape, dtype: str) -> Array:
        """A new uninitialised C-contiguous array on the current device."""
        ...

    def from_numpy(self, array: Array) -> Array:
        """A copy of a NumPy array on the device."""
        ...

    def to_numpy(self, array: Array) -> Array:
        """The values as a NumPy array; may share memory only on the host."""
        ...
