"""The backend: CuPy arrays, and kernels over them."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.ext import Array, ArrayDesc, Kernel, Runner, Shape, Step
from nn_ext_cuda.codegen.casts import caster, gathered
from nn_ext_cuda.codegen.dtypes import STATISTICS
from nn_ext_cuda.device import devices
from nn_ext_cuda.device.errors import failed
from nn_ext_cuda.device.faults import FAULTS
from nn_ext_cuda.device.namespace import OrderedNamespace
from nn_ext_cuda.device.runtime import cupy
from nn_ext_cuda.gemm.epilogues import joined
from nn_ext_cuda.kernels import KERNELS
from nn_ext_cuda.kernels.solvers.layerwise import LayerwiseUpdate
from nn_ext_cuda.kernels.solvers.rescale import Rescale
from nn_ext_cuda.kernels.solvers.updates import UPDATES, ClipGradByNorm, MultiTensorUpdate
from nn_ext_cuda.launch import deferred
from nn_ext_cuda.launch.capture import Section
from nn_ext_cuda.launch.capture_report import graph_report
from nn_ext_cuda.launch.recurring import Recurring, RecurringPass
from nn_ext_cuda.memory.arrays import UPLOADS
from nn_ext_cuda.memory.small_blocks import RECYCLED

_NAMESPACE: Final = OrderedNamespace(cupy)


class CudaBackend:
    """CuPy arrays; see `nn_core.ext.Backend`."""

    name: str = "cuda"
    array_class: str = "CudaCachedArray"
    #: Copies to the host and back would make every replay of a graph wait.
    reference_first: bool = True
    #: CuPy exchanges memory of CUDA with other libraries, and lets the stream of one side wait for that of the other.
    dlpack_device: int = 2
    kernels: Mapping[str, Kernel] = KERNELS
    statistic_dtypes: Mapping[str, str] = STATISTICS
    updates: Mapping[str, MultiTensorUpdate | ClipGradByNorm | LayerwiseUpdate | Rescale] = UPDATES

    def namespace(self) -> Any:
        """CuPy, with sums that do not depend on timing."""
        return _NAMESPACE

    def empty(self, shape: Shape, dtype: str) -> Array:
        """Return a new uninitialised array on the current device."""
        return RECYCLED.empty(shape, dtype)

    def from_numpy(self, array: Array) -> Array:
        """Return a copy of a NumPy array on the current device."""
        result = RECYCLED.empty(array.shape, array.dtype.name)
        UPLOADS.start(result, array)
        return result

    def to_numpy(self, array: Array) -> Array:
        """Return the values as a NumPy array.

        Raises:
            ArgumentError: when a kernel before has found an index or a label out of range.
        """
        try:
            values = cupy.asnumpy(array)
        except Exception as error:  # a fault of an earlier launch is often told here
            raise failed("copy to the host", error, [array]) from error
        FAULTS.check()
        return values

    def upload(self, target: Array, values: Array) -> None:
        """Write a NumPy array over an array of the device; see `nn_ext_cuda.memory.arrays.Uploads`."""
        UPLOADS.start(target, values)

    def use_device(self, device_id: str) -> None:
        """Make a device the current one of this thread."""
        devices.use_device(int(device_id))

    def flush(self) -> None:
        """Launch what is held back."""
        deferred.flush()

    def wait(self) -> None:
        """Return when the current stream has done its work."""
        devices.synchronize_stream()

    def launch_together(self) -> contextlib.AbstractContextManager[None]:
        """Hold back what is launched in a block; see `nn_core.launch_together`."""
        return deferred.launch_together()

    def fuse(self, steps: Sequence[Step]) -> list[Step]:
        """Make one section of neighbouring steps, which is recorded as CUDA graphs; see `nn_ext_cuda.launch.capture`."""
        return [Section(joined(gathered(steps)))]

    def repeater(self, runner: Runner) -> Runner:
        """Return the runner for calls of dynamic graphs; see `nn_ext_cuda.launch.recurring`."""
        return Recurring(runner) if hasattr(runner, "bind") else runner

    def program(self, parts: Sequence[tuple[Runner, Sequence[Array | None], Mapping[int, int]]]) -> Runner:
        """Return the backward pass of a dynamic graph as one function of its arrays; see `nn_ext_cuda.launch.recurring`."""
        return RecurringPass(parts)

    def copier(self, source: ArrayDesc, target: ArrayDesc) -> Runner | None:
        """Return the runner that casts an array of one floating dtype to another one; None: arrays of CuPy do other copies."""
        return caster(source, target)

    def notes(self, api: str) -> list[str]:
        """Why plans of this process run the function apart from CUDA graphs, for `nn_core.explain`."""
        return [f"runs apart from CUDA graphs: {row.reason}" for row in graph_report().apart if row.function == api]
