"""Plans: an engine that was found for an operation graph, ready to run, and kept for the next call that needs it."""

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from nn_ext_cudnn import handle
from nn_ext_cudnn.errors import CudnnError, NotSupportedError, is_final, one_line
from nn_ext_cudnn.graph import attributes, tuning
from nn_ext_cudnn.graph.descriptor import Descriptor, described, execute
from nn_ext_cudnn.graph.operations import Operation

#: cudnnBackendHeurMode_t in the order in which they are asked: by decision tree, by neural network, whatever runs.
HEURISTICS: Final = (3, 1, 2)
#: Engines that need more memory run only where no other does.
MAX_WORKSPACE_BYTES: Final = 2**30
#: Kept plans; each holds the code of its engine.
MAX_PLANS: Final = 4096
_MAX_NOTES: Final = 32

Graph = tuple[Operation, ...]


class Plan:
    """An engine for one operation graph.

    Attributes:
        uids: The tensors that have memory, in order.
        workspace_bytes: Scratch memory that it needs.
        engine: Number of the engine among those for such graphs.
    """

    __slots__ = ("_descriptor", "_lock", "engine", "uids", "workspace_bytes")

    def __init__(self, descriptor: Descriptor, uids: Sequence[int], engine: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self.uids = tuple(uids)
        self.workspace_bytes = int(descriptor.get("workspace_size")[0])
        self.engine = engine

    def pack(self, pointers: Mapping[int, int], workspace: int) -> Descriptor:
        """Return the variant pack for arrays at these addresses, by uid, and scratch memory at `workspace`."""
        return described(
            attributes.VARIANT_PACK,
            unique_ids=self.uids,
            data_pointers=[pointers[uid] for uid in self.uids],
            workspace=workspace,
        )

    def execute(self, pack: Descriptor) -> None:
        """Run on the arrays of a variant pack, in CuPy's current stream."""
        current = handle.current()
        with self._lock:  # handles belong to threads, plans do not
            execute(current.pointer, self._descriptor, pack)


def plan_of(graph: Graph, excluded: frozenset[int], device_id: int) -> Plan:
    """Return the plan for a graph on the current device, from the cache or newly built.

    Args:
        graph: The operations, those that write virtual tensors before those that read them.
        excluded: Notes of engines that may not run.
        device_id: Number of the current device.

    Raises:
        NotSupportedError: when no engine runs it; the text has the reasons.
    """
    found = _built(graph, excluded, device_id)
    if isinstance(found, NotSupportedError):
        raise found.with_traceback(None)
    return found


@lru_cache(maxsize=MAX_PLANS)
def _built(graph: Graph, excluded: frozenset[int], device_id: int) -> Plan | NotSupportedError:
    try:
        return build(graph, excluded)
    except NotSupportedError as error:
        return error


def build(graph: Graph, excluded: frozenset[int], device: Descriptor | None = None) -> Plan:
    """Find an engine for a graph and prepare it: the first that may run it, or the fastest of several; see `tuning`.

    Args:
        graph: See `plan_of`.
        excluded: See `plan_of`.
        device: Description of a device that need not be there; None: the current device.

    Raises:
        NotSupportedError: when no engine runs it, whatever the status that cuDNN gives as the reason.
        CudnnError: when memory has run out, or the device has failed.
    """
    reasons: dict[str, None] = {}
    n_wanted = tuning.n_candidates(graph, excluded) if device is None else 1
    fitting: list[Plan] = []
    large: list[Plan] = []
    for plan in _plans(graph, excluded, device, reasons):
        (fitting if plan.workspace_bytes <= MAX_WORKSPACE_BYTES else large).append(plan)
        if len(fitting) == n_wanted:
            break
    if len(fitting) > 1:
        return tuning.fastest(graph, excluded, fitting)
    if fitting or large:
        return min(fitting or large, key=lambda plan: plan.workspace_bytes)
    told = list(reasons)[:4] or ["its heuristics name none for such a graph"]
    raise NotSupportedError("; ".join(["no engine of cuDNN runs it", *told]), 3000)


def _plans(graph: Graph, excluded: frozenset[int], device: Descriptor | None, reasons: dict[str, None]) -> Iterator[Plan]:
    """Yield a plan for each engine that may and can run a graph, best first; `reasons` gets why others do not."""
    known = {tensor.uid: tensor for operation in graph for tensor in operation.tensors}
    uids = [uid for uid, tensor in known.items() if not tensor.is_virtual]
    with _noting(reasons):
        pointer = None if device else handle.current().pointer
        tensors = {uid: tensor.described() for uid, tensor in known.items()}
        operations = [operation.described(tensors) for operation in graph]
        whole = described(attributes.OPERATIONGRAPH, handle=pointer, ops=operations)
        for config in _configurations(whole, device, reasons):
            engine = f"engine {_number(config)}"
            notes = excluded & _notes(config)
            if notes:
                reasons[f"{engine} has the notes {', '.join(map(str, sorted(notes)))}, which are excluded"] = None
                continue
            with _noting(reasons, f"{engine}: "):  # whatever it is (a missing NVRTC, say), the next engine may run
                plan = described(attributes.EXECUTION_PLAN, handle=pointer, deviceprop=device, engine_config=config)
                yield Plan(plan, uids, _number(config))


def _configurations(whole: Descriptor, device: Descriptor | None, reasons: dict[str, None]) -> Iterator[Descriptor]:
    """Return configurations of engines, best first."""
    for mode in HEURISTICS:
        with _noting(reasons):  # one heuristic may know nothing of a graph that the next one knows
            heuristic = described(attributes.ENGINEHEUR, operation_graph=whole, mode=mode, deviceprop=device)
            yield from heuristic.descriptors("results", attributes.ENGINECFG)


def _number(config: Descriptor) -> int:
    (engine,) = config.descriptors("engine", attributes.ENGINE)
    return int(engine.get("global_index")[0])


def _notes(config: Descriptor) -> set[int]:
    (engine,) = config.descriptors("engine", attributes.ENGINE)
    return set(engine.get("numerical_note", _MAX_NOTES))


@contextlib.contextmanager
def _noting(reasons: dict[str, None], prefix: str = "") -> Iterator[None]:
    """Turn an error of cuDNN into a reason, unless no other engine can help."""
    try:
        yield
    except CudnnError as error:
        if is_final(error):
            raise
        reasons[f"{prefix}{one_line(error)}"] = None
