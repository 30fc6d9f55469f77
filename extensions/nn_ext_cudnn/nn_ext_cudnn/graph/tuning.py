"""The fastest engine for an exact float32 convolution: those that may run are timed once, and a file keeps the result.

The heuristics of cuDNN rank engines for tensor cores above all; where those are excluded, the first one need not be the best.
The file has an entry for each device, version of cuDNN and operation graph.
"""

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nn_core.ext import atomic_writer
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES
from nn_ext_cuda.device.errors import DeviceMemoryError
from nn_ext_cuda.device.runtime import cupy
from nn_ext_cuda.launch import deferred
from nn_ext_cuda.memory.arrays import allocated
from nn_ext_cudnn import library
from nn_ext_cudnn.errors import CudnnError, is_final
from nn_ext_cudnn.graph.operations import Convolution, Operation, Tensor
from nn_ext_cudnn.precision import TENSOR_CORE, is_autotuning_allowed

if TYPE_CHECKING:
    from nn_ext_cudnn.graph.plans import Plan

_LOGGER: Final = logging.getLogger("nn_core.cudnn")
#: Engines that are timed; each costs the time to build its plan.
MAX_CANDIDATES: Final = 4
#: Runs of each engine, of which the fastest counts.
N_RUNS: Final = 5
#: The environment variable with the path of the file; empty: no file is read or written.
PATH_VARIABLE: Final = "NN_CORE_CUDNN_CACHE"

_known: dict[str, dict[str, Any]] = {}
_read_from: Path | None = None


def n_candidates(graph: Sequence[Operation], excluded: frozenset[int]) -> int:
    """Return how many engines for a graph should be timed: several for exact float32 with filters of several places, else
    one.
    """
    first = graph[0]
    is_exact = isinstance(first, Convolution) and first.compute == "float32" and TENSOR_CORE in excluded
    if not is_exact or not is_autotuning_allowed() or cupy.cuda.get_current_stream().is_capturing():
        return 1
    assert isinstance(first, Convolution)
    return MAX_CANDIDATES if max(first.filters.shape[2:]) > 1 else 1


def fastest(graph: Sequence[Operation], excluded: frozenset[int], plans: Sequence["Plan"]) -> "Plan":
    """Return the fastest of `plans`, by the file or by trying them on memory of their own; the first where that does not
    fit.
    """
    key = key_of(graph, excluded)
    entry = _entries().get(key)
    if entry is not None and 0 <= entry["place"] < len(plans) and plans[entry["place"]].engine == entry["engine"]:
        return plans[entry["place"]]
    try:
        times = timed(graph, plans)
    except DeviceMemoryError as error:
        _LOGGER.info("engines were not timed: %s", str(error).partition("\n")[0])
        return plans[0]
    place = min(times, key=times.__getitem__, default=0)
    if times:
        _keep(key, {"place": place, "engine": plans[place].engine, "milliseconds": times[place]})
    return plans[place]


def timed(graph: Sequence[Operation], plans: Sequence["Plan"]) -> dict[int, float]:
    """Milliseconds of each plan by its place; a plan that fails is left out.

    Raises:
        DeviceMemoryError: when the tensors and the scratch memory do not fit.
        CudnnError: when the device has failed.
    """
    deferred.flush()
    tensors = {tensor.uid: tensor for operation in graph for tensor in operation.tensors if not tensor.is_virtual}
    arrays = {uid: _memory(tensor) for uid, tensor in tensors.items()}
    scratch = allocated((max(1, *(plan.workspace_bytes for plan in plans)),), "uint8")
    times: dict[int, float] = {}
    for place, plan in enumerate(plans):
        pack = plan.pack({uid: int(array.data.ptr) for uid, array in arrays.items()}, int(scratch.data.ptr))
        try:
            times[place] = min(_milliseconds(plan, pack) for _ in range(N_RUNS + 1))  # the first run warms up
        except CudnnError as error:
            if is_final(error):
                raise
            _LOGGER.info("engine %d was not timed: %s", plan.engine, str(error).partition("\n")[0])
    return times


def key_of(graph: Sequence[Operation], excluded: frozenset[int]) -> str:
    """Return the key of a graph on the current device: its name, the version of cuDNN, and a digest of the operations."""
    properties: Mapping[str, Any] = cupy.cuda.runtime.getDeviceProperties(int(cupy.cuda.Device().id))
    name = properties["name"]
    version = ".".join(map(str, library.version()))
    digest = hashlib.sha256(repr((tuple(graph), sorted(excluded))).encode()).hexdigest()[:32]
    return f"{name.decode() if isinstance(name, bytes) else name}|cuDNN {version}|{digest}"


def path() -> Path | None:
    """Return the file, or None where there is to be none."""
    given = os.environ.get(PATH_VARIABLE)
    if given is not None:
        return Path(given) if given else None
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nn_core" / "cudnn_engines.json"


def _memory(tensor: Tensor) -> Any:
    """Zeros for a tensor, whatever its strides."""
    extent = 1 + sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.strides, strict=True))
    memory = allocated((extent * ITEM_BYTES[tensor.dtype],), "uint8")
    memory[...] = np.uint8(0)
    return memory


def _milliseconds(plan: "Plan", pack: Any) -> float:
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    stream = cupy.cuda.get_current_stream()
    start.record(stream)
    plan.execute(pack)
    end.record(stream)
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, end))


def _entries() -> dict[str, dict[str, Any]]:
    """Return the entries of the file and of this process."""
    global _read_from  # noqa: PLW0603 -- the file is read once
    file = path()
    if file != _read_from:
        _read_from = file
        _known.clear()
        if file is not None:
            _known.update(_read(file))
    return _known


def _read(file: Path) -> dict[str, dict[str, Any]]:
    try:
        found = json.loads(file.read_text())
        numbers = {key: (entry.get("place"), entry.get("engine")) for key, entry in found.items()}
        return {key: found[key] for key, pair in numbers.items() if all(type(number) is int for number in pair)}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        _LOGGER.warning("%s: the times of engines cannot be read, and are measured anew: %s", file, error)
        return {}


def _keep(key: str, entry: dict[str, Any]) -> None:
    """Add an entry to those of this process and to the file, to which other processes may have added some."""
    _known[key] = entry
    file = path()
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**_read(file), key: entry}, indent=1, sort_keys=True)
        with atomic_writer(file) as target:
            target.write(text.encode())
    except OSError as error:
        _LOGGER.warning("%s: the times of engines cannot be written: %s", file, error)
