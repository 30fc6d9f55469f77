"""Words shared by all layers: shapes, array descriptions, calls, refusals, and what a kernel and a backend can do."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final, Protocol, TypeAlias

from nn_core.operators.spec.model import ArgValue, FunctionSpec

#: A raw array of some backend (numpy.ndarray, or an array on a device). The core only passes it on.
Array: TypeAlias = Any
#: An array namespace (numpy, or that of a device).
Namespace: TypeAlias = Any
Shape: TypeAlias = tuple[int, ...]
#: No memory holds more elements, and sizes in bytes must fit into 64 bits.
MAX_SIZE: Final = 2**48
#: A function without arguments that computes one function of a plan on the arrays it was bound to. A step that keeps
#: copies of weights in a layout of its own may take one argument: whether these hold what they held when it last ran; see
#: `KernelExtras`.
Step: TypeAlias = Callable[[], object]


@dataclass(frozen=True, slots=True)
class ArrayDesc:
    """Shape, dtype name and memory layout of an array; `strides` (bytes) is None when C-contiguous.

    Example:
        >>> from nn_core.ext import ArrayDesc
        >>> ArrayDesc((2, 3), "float32").size
        6
    """

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

    Example:
        >>> from nn_core.ext import ArrayDesc, Call, function_spec
        >>> x = ArrayDesc((2, 3), "float32")
        >>> call = Call(function_spec("ReLU"), {"inplace": False}, (x,), (x,), "float32")
        >>> call.spec.api, call.inputs[0].shape
        ('relu', (2, 3))
    """

    spec: FunctionSpec
    args: Mapping[str, ArgValue]
    inputs: tuple[ArrayDesc | None, ...]
    outputs: tuple[ArrayDesc, ...]
    dtype: str
    device_id: str = "0"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a kernel does not take a call; dispatch keeps it and asks the next backend.

    Example:
        >>> from nn_core.ext import Refusal
        >>> Refusal("needs float32, got float64").reason
        'needs float32, got float64'
    """

    reason: str


class Runner(Protocol):
    """A prepared kernel.

    Called with all arrays in order it computes at once. ``bind`` (optional; ``functools.partial`` serves where it is
    missing) returns a function without arguments that computes on these arrays each time it is called. ``accumulating``
    (optional, of a backward runner) takes places of gradients of inputs and returns the runner that adds to these
    arrays instead of overwriting them, or None.

    Example:
        >>> def double(x, y):
        ...     np.multiply(x, 2, out=y)
        >>> y = np.empty(2)
        >>> double(np.ones(2), y)
        >>> y.tolist()
        [2.0, 2.0]
    """

    def __call__(self, *arrays: Array) -> object: ...


class Kernel(Protocol):
    """A backend's implementation of one function; every method is called once when a function is set up, never per run.

    Array order. Forward: inputs (None where not given), outputs, aux outputs, and for seeded functions the key.
    Backward: inputs and outputs (None where the specification does not declare a need), gradients of the visible
    outputs, gradients of the inputs (None where not wanted). A kernel overwrites its outputs and never accumulates.

    Example:
        >>> from nn_core.ext import Refusal
        >>> class ReluKernel:
        ...     def refuse(self, call):
        ...         return None if call.dtype == "float32" else Refusal(f"needs float32, got {call.dtype}")
        ...     def forward(self, call):
        ...         return lambda x, y: np.maximum(x, 0, out=y)
        ...     def backward(self, call, wanted):
        ...         return None
        >>> y = np.empty(2, np.float32)
        >>> _ = ReluKernel().forward(None)(np.array([-1, 2], np.float32), y)
        >>> y.tolist()
        [0.0, 2.0]
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
    """A backend: arrays and kernels of one device family.

    Example:
        >>> class AcmeBackend:
        ...     name, array_class, kernels = "acme", "AcmeArray", {}
        ...     def namespace(self):
        ...         return np
        ...     def empty(self, shape, dtype):
        ...         return np.empty(shape, dtype)
        ...     def from_numpy(self, array):
        ...         return np.array(array, order="C")
        ...     def to_numpy(self, array):
        ...         return np.asarray(array)
        >>> AcmeBackend().empty((2, 3), "float32").shape
        (2, 3)
    """

    name: str
    array_class: str
    kernels: Mapping[str, Kernel]

    def namespace(self) -> Namespace:
        """Return the array namespace that the reference kernels run over."""
        ...

    def empty(self, shape: Shape, dtype: str) -> Array:
        """Return a new uninitialised C-contiguous array on the current device.

        Plans cut arrays out of its bytes: ``memory[start:stop].view(dtype).reshape(shape)`` shares the memory.
        """
        ...

    def from_numpy(self, array: Array) -> Array:
        """Return a copy of a NumPy array on the device."""
        ...

    def to_numpy(self, array: Array) -> Array:
        """Return the values as a NumPy array; may share memory only on the host."""
        ...


class BackendExtras:
    """The optional parts of a backend, beyond `Backend`; the values here are the defaults.

    A backend need not derive from this class: the engine asks by `extra`.

    Attributes:
        updates: Kernels of solvers, by the name of the rule.
        parameter_dtypes: The dtype of parameters, sums and statistics while another one is computed in.
        statistic_dtypes: That of sums and statistics, where parameters have another one.
        inference_fusions: Names of functions that replace several of which nobody reads the intermediate results.
        fuse: Takes the steps of neighbouring entries of a plan, and returns those to run instead.
        program: Takes the parts of a dynamic graph's backward pass, and returns one function of the arrays of a graph, or
            None. A part is a runner, its arrays, and the numbers of those that the function takes, by their positions.
        repeater: Takes a runner of a function that is computed as it is called, and returns one that may keep what it
            prepares for arrays, because a program often calls functions again on the same memory.
        copier: Takes two `ArrayDesc` of one shape, and returns a runner that copies between these dtypes and layouts, or
            None.
        maker: Takes a shape and a dtype, and returns a function that makes such arrays; ``empty`` serves elsewhere.
        upload: Writes a NumPy array over one of its arrays; the NumPy array may change afterwards.
        use_device: Makes the device of an id the current one of the thread.
        flush: Starts what the backend has held back.
        wait: Returns when what this thread has started on the current device is done.
        dlpack_device: DLPack's number of the kind of memory that its arrays are in (2 is CUDA), if they have ``__dlpack__``
            and its namespace ``from_dlpack``; 0: they are shared by way of the host.
        reference_first: Whether reference kernels over its arrays are asked before backends of another device family.
        notes: Sentences about a function, by its API name, for ``nn_core.explain``.
        launch_together: A context manager under which steps may be held back and launched as one.
    """

    updates: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    parameter_dtypes: ClassVar[Mapping[str, str]] = MappingProxyType({})
    statistic_dtypes: ClassVar[Mapping[str, str]] = MappingProxyType({})
    inference_fusions: ClassVar[Collection[str]] = frozenset()
    fuse: ClassVar[Callable[..., list[Step]] | None] = None
    program: ClassVar[Callable[..., Runner | None] | None] = None
    repeater: ClassVar[Callable[..., Runner] | None] = None
    copier: ClassVar[Callable[..., Runner | None] | None] = None
    maker: ClassVar[Callable[..., Callable[[], Array]] | None] = None
    upload: ClassVar[Callable[..., object] | None] = None
    use_device: ClassVar[Callable[..., object] | None] = None
    flush: ClassVar[Callable[..., object] | None] = None
    wait: ClassVar[Callable[..., object] | None] = None
    dlpack_device: ClassVar[int] = 0
    reference_first: ClassVar[bool] = False
    notes: ClassVar[Callable[..., Sequence[str]] | None] = None
    launch_together: ClassVar[Callable[..., AbstractContextManager[object]] | None] = None


class KernelExtras:
    """The optional parts of a kernel, a runner or a step, beyond `Kernel`, `Runner` and `Step`; as `BackendExtras`.

    Attributes:
        layout: Of a kernel: takes the call, and returns the memory layout that it wants: "contiguous", "channels_last"
            (preferred; some arrays may be in C order), "any" (the same layout for all arrays), or "first" (channels-last
            where the first input is; some other arrays may be in C order).
        strided: Of a kernel: takes the call, and returns whether its runners take inputs, outputs and gradients of which only
            the last axis is dense in memory. Plans may then show such an array in the memory of the one that it is made of,
            or that is made of it, instead of copying it.
        private_shapes: Of a kernel: takes the call, and returns the shapes that it wants for its private outputs.
        bind: Of a runner: takes the arrays, and returns a step that computes on them.
        accumulating: Of a backward runner: takes places of gradients of inputs, and returns a runner that adds to these
            arrays, or None.
        weights: Of a runner that keeps copies of weights in a layout of its own: the positions of these arrays.
        keeps_weights: Of a step: True where it has such runners in it, and takes one argument: whether their weights hold
            what they held when it last ran.
        follow_weights: Of the step of such a runner, in place of `keeps_weights`, where several steps share copies: takes a
            function for each of the positions, or None. The function returns what is equal only as long as nobody can
            have written to the array, or None where that cannot be told.
        implementation: Of a runner or a step: what computes it where the backend has a choice, such as the name of a primitive
            of its library, for ``nn_core.explain`` and the profiler. A name with a word "ref" is one that is not to be fast.
        ends: Set by a plan where its step has such an attribute: the positions of arrays whose values nobody reads after the
            step, as the plan overwrites them then.
        version: Set by a plan where its step only converts an array for others: such a function of what it reads.
    """

    layout: ClassVar[Callable[..., str] | None] = None
    strided: ClassVar[Callable[..., bool] | None] = None
    private_shapes: ClassVar[Callable[..., Sequence[Shape]] | None] = None
    bind: ClassVar[Callable[..., Step] | None] = None
    accumulating: ClassVar[Callable[..., Runner | None] | None] = None
    weights: ClassVar[Sequence[int]] = ()
    keeps_weights: ClassVar[bool] = False
    follow_weights: ClassVar[Callable[..., object] | None] = None
    implementation: ClassVar[str] = ""
    ends: ClassVar[Sequence[int] | None] = None
    version: ClassVar[Callable[[], object] | None] = None


#: Names that extras had before, under which backends may still have them.
_FORMER_NAMES: Final = {"flush": "settle", "inference_fusions": "joins", "accumulating": "adding"}


def is_slow(implementation: str) -> bool:
    """Tell whether a library calls an implementation a reference, which computes element by element."""
    return any(word.startswith("ref") for word in implementation.replace(":", " ").split())


def extra(owner: object, name: str) -> Any:
    """Return an optional part of a backend, a kernel, a runner or a step by its name, or the default."""
    default = getattr(BackendExtras, name) if hasattr(BackendExtras, name) else getattr(KernelExtras, name)
    former = _FORMER_NAMES.get(name)
    return getattr(owner, name, default if former is None else getattr(owner, former, default))
