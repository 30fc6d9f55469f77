"""Operation graphs as runners: a plan on the arrays of a call."""

import ctypes
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from nn_core.ext import Array
from nn_ext_cuda.device.errors import failed
from nn_ext_cuda.device.runtime import cupy
from nn_ext_cudnn import handle
from nn_ext_cudnn.aligned import AlignedStep, on_stand_ins, stand_in
from nn_ext_cudnn.errors import CudnnError, located
from nn_ext_cudnn.graph.descriptor import Descriptor
from nn_ext_cudnn.graph.operations import ALIGNMENT
from nn_ext_cudnn.graph.plans import Graph, Plan, plan_of

_NO_CONSTANTS: Final[Mapping[int, float]] = MappingProxyType({})


class GraphRunner:
    """Runs an operation graph (see `nn_core.ext.Runner`).

    Args:
        name: Name of the function, for messages.
        graph: The operations.
        places: Number of the array of each uid among those of the call.
        excluded: Notes of engines that may not run.
        constants: Numbers of the graph by uid, as float32.

    Raises:
        NotSupportedError: when no engine runs it.
    """

    __slots__ = ("_constants", "_name", "_places", "_plan")

    def __init__(
        self,
        name: str,
        graph: Graph,
        places: Mapping[int, int],
        excluded: frozenset[int],
        constants: Mapping[int, float] = _NO_CONSTANTS,
    ) -> None:
        self._name = name
        self._places = dict(places)
        self._constants = {uid: ctypes.c_float(value) for uid, value in constants.items()}
        self._plan = plan_of(graph, excluded, int(cupy.cuda.Device().id))

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> "GraphStep | AlignedStep":
        """Return the plan on these arrays, or on copies of those that are off their alignment.

        cuDNN has engines for other alignments too, but some of them in 16 bits (cuDNN 9.19 on an H100) access memory as if
        it were aligned, after which the process can use the device no more.
        """
        given = {uid: arrays[place] for uid, place in self._places.items()}
        aligned = {uid: stand_in(array, ALIGNMENT) for uid, array in given.items()}
        pointers = {uid: int(array.data.ptr) for uid, array in aligned.items() if array is not None}
        step = GraphStep(self._name, self._plan, pointers, list(aligned.values()), self._constants)
        return on_stand_ins(step, list(given.values()), list(aligned.values()))


class GraphStep:
    """A plan on given arrays. It allocates nothing and waits for nothing, so it can be part of a CUDA graph.

    Args:
        name: Name of the function, for messages.
        plan: The plan.
        pointers: Address of the array of each uid.
        arrays: Those arrays.
        constants: The numbers of tensors by value, by uid; they are read whenever the engine is launched.
    """

    __slots__ = ("_constants", "_held", "_pack", "_plan", "_pointers", "_workspace", "arrays", "name")

    capturable = True
    before = None

    def __init__(
        self,
        name: str,
        plan: Plan,
        pointers: Mapping[int, int],
        arrays: Sequence[Array],
        constants: Mapping[int, ctypes.c_float],
    ) -> None:
        self.name = name
        self._plan = plan
        self._pointers = {**pointers, **{uid: ctypes.addressof(number) for uid, number in constants.items()}}
        self._workspace = handle.workspace(plan.workspace_bytes)
        handle.current()  # made before anything is recorded
        self._held: list[Array] = []  # every scratch memory that a recorded graph may know
        self._pack: Descriptor | None = None
        self._constants = constants  # their memory has to live as long as the step
        self.arrays = tuple(arrays)

    def run(self) -> None:
        """Launch the engine in CuPy's current stream."""
        try:
            self._plan.execute(self._packed())
        except CudnnError as error:
            raise located(error, self.name, self.arrays) from error
        except Exception as error:  # whatever the device says is told with the sizes
            raise failed(self.name, error, self.arrays) from error

    __call__ = run

    def _packed(self) -> Descriptor:
        """Return the variant pack, a new one after other steps made the shared scratch memory larger."""
        scratch = self._workspace.array if self._plan.workspace_bytes else None
        if self._pack is None or (scratch is not None and scratch is not self._held[-1]):
            if scratch is not None:
                self._held.append(scratch)
            self._pack = self._plan.pack(self._pointers, 0 if scratch is None else int(scratch.data.ptr))
        return self._pack
