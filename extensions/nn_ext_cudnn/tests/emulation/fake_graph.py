"""The backend (graph) API of the stand-in for libcudnn: strict descriptors, and graphs computed by NumPy.

What a descriptor takes is written down here once more, apart from the tables of the package, after the documentation of
the backend API. Each graph has engines with notes that tell the truth: one that is said to round operands does so, one
that is said to be nondeterministic is, and so on; a wrong choice of an engine therefore shows in the results.
"""

import ctypes
from dataclasses import dataclass, field
from types import SimpleNamespace

import chained
from evaluation import Evaluation
from fake_cudnn import require

_TYPES = {
    0: ctypes.c_void_p, 1: ctypes.c_int, 2: ctypes.c_bool, 3: ctypes.c_int64, 4: ctypes.c_float, 5: ctypes.c_double,
    6: ctypes.c_void_p, 7: ctypes.c_int, 8: ctypes.c_int, 11: ctypes.c_int, 14: ctypes.c_int, 15: ctypes.c_void_p,
    18: ctypes.c_int,
}  # fmt: skip
_ANY = range(1, 9)
#: By cudnnDataType_t.
_ITEM_BYTES = {0: 4, 1: 8, 2: 2, 4: 4, 9: 2, 11: 1}


def _convolution(first, *names):
    """Attributes of an operation of convolution: two scale factors, the convolution, three tensors."""
    scales = {first: ("alpha", (4, 5), [1], True), first + 1: ("beta", (4, 5), [1], True)}
    return scales | {first + 2 + k: (name, (15,), [1], True) for k, name in enumerate(("convolution", *names))}


#: By kind of descriptor and number of the attribute: name, types, numbers of elements, whether it has to be set.
ATTRIBUTES = {
    0: {0: ("mode", (14,), [1], True), 1: ("precision", (1,), [1], True), 9: ("axis", (3,), [1], False)},
    1: {
        100: ("compute", (1,), [1], True),
        101: ("mode", (7,), [1], True),
        102: ("dilations", (3,), _ANY, True),
        103: ("strides", (3,), _ANY, True),
        104: ("post_paddings", (3,), _ANY, True),
        105: ("pre_paddings", (3,), _ANY, True),
        106: ("spatial_dims", (3,), [1], True),
    },
    4: {200: ("mode", (8,), [1], True), 201: ("graph", (15,), [1], True)},
    5: {400: ("handle", (0,), [1], True), 401: ("config", (15,), [1], True)},
    10: _convolution(700, "filters", "wide", "narrow"),
    11: _convolution(712, "filters", "wide", "narrow"),
    12: _convolution(706, "filters", "wide", "narrow"),
    13: {
        750: ("pointwise", (15,), [1], True),
        751: ("x", (15,), [1], True),
        752: ("b", (15,), [1], False),
        753: ("y", (15,), [1], True),
        758: ("condition", (15,), [1], False),
    },
    15: {800: ("handle", (0,), [1], True), 801: ("operations", (15,), range(1, 50), True)},
    16: {
        1000: ("uids", (3,), range(1, 50), True),
        1001: ("pointers", (6,), range(1, 50), True),
        1003: ("workspace", (6,), [1], True),
    },
    17: {
        900: ("alignment", (3,), [1], True),
        901: ("dtype", (1,), [1], True),
        902: ("shape", (3,), _ANY, True),
        903: ("strides", (3,), _ANY, True),
        906: ("uid", (3,), [1], True),
        907: ("is_virtual", (2,), [1], False),
        908: ("is_by_value", (2,), [1], False),
    },
    18: {1500: ("compute", (1,), [1], True)},
    19: {
        1520: ("left", (15,), [1], True),
        1521: ("right", (15,), [1], True),
        1522: ("product", (15,), [1], True),
        1523: ("matmul", (15,), [1], True),
    },
    21: {1600: ("operator", (18,), [1], True), 1601: ("compute", (1,), [1], True)},
    22: {1610: ("x", (15,), [1], True), 1611: ("y", (15,), [1], True), 1612: ("reduction", (15,), [1], True)},
    31: {2200: ("x", (15,), [1], True), 2201: ("y", (15,), [1], True)},
}
#: Kinds of the descriptors that attributes refer to; operations of a graph are any of the last entry.
_REFERS = {"convolution": {1}, "filters": {17}, "wide": {17}, "narrow": {17}, "pointwise": {0}, "x": {17}, "b": {17}}
_REFERS |= {"y": {17}, "condition": {17}, "left": {17}, "right": {17}, "product": {17}, "matmul": {18}, "reduction": {21}}
_REFERS |= {"graph": {15}, "config": {3}, "operations": {10, 11, 12, 13, 19, 22, 31}}
_LISTS = ("dilations", "strides", "post_paddings", "pre_paddings", "operations", "uids", "pointers", "shape")


@dataclass(frozen=True)
class Engine:
    """An engine: its number, notes, scratch memory, and whether it runs on this device."""

    number: int
    notes: tuple = ()
    workspace: int = 0
    runs: bool = True


#: By heuristic mode, best first: every engine that must not be chosen comes before the one that may.
ENGINES = {
    3: (
        Engine(15, runs=False),
        Engine(10, (0,)),
        Engine(13, (0, 6)),
        Engine(11, (4,)),
        Engine(12, (2,)),
        Engine(14, workspace=2**50),
        Engine(1, workspace=4096),
    ),
    1: (Engine(1, workspace=4096),),
    2: (Engine(0, (9,)),),
}


@dataclass
class Made:
    """A descriptor."""

    kind: int
    values: SimpleNamespace = field(default_factory=SimpleNamespace)
    is_final: bool = False


class Graphs:
    """The functions of the backend API.

    Attributes:
        refuses: A function of a graph (its operations) that gives the reason why no engine runs it, or None.
        engines: Numbers of the engines that ran.
    """

    def __init__(self, handles):
        from nn_ext_cudnn.graph.descriptor import FUNCTIONS

        self.TABLE = FUNCTIONS
        self.made = {}
        self.engines = []
        self.refuses = lambda operations: None
        self._handles = handles
        self._next = 0x2000

    def cudnnBackendCreateDescriptor(self, kind, out):
        require(kind in ATTRIBUTES or kind in (2, 3), f"there is no kind of descriptor {kind}", 2012)
        self._next += 16
        self.made[self._next] = Made(kind)
        out[0] = self._next

    def cudnnBackendDestroyDescriptor(self, pointer):
        require(self.made.pop(pointer, None) is not None, "there is no such descriptor")

    def cudnnBackendSetAttribute(self, pointer, number, kind, count, values):
        made = self._made(pointer)
        require(not made.is_final, "the descriptor is finalized already")
        require(number in ATTRIBUTES.get(made.kind, {}), f"descriptors of kind {made.kind} have no attribute {number}")
        name, types, counts, _ = ATTRIBUTES[made.kind][number]
        require(kind in types, f"{name} is of type {types}, got {kind}", 2010)
        require(count in counts, f"{name} has {counts} elements, got {count}", 2005)
        items = list((_TYPES[kind] * count).from_address(values))
        if kind == 15:
            items = [self._made(item) for item in items]
            require(all(item.is_final for item in items), f"{name} is not finalized", 2004)
            require(all(item.kind in _REFERS[name] for item in items), f"{name} is of another kind", 2012)
        setattr(made.values, name, tuple(items) if name in _LISTS else items[0])

    def cudnnBackendFinalize(self, pointer):
        made = self._made(pointer)
        require(not made.is_final, "the descriptor is finalized already")
        for name, _, _, is_required in ATTRIBUTES[made.kind].values():
            require(not is_required or hasattr(made.values, name), f"{name} must be set (kind {made.kind})")
        check = getattr(self, f"_finalize_{made.kind}", None)
        if check is not None:
            check(made.values)
        made.is_final = True

    def cudnnBackendGetAttribute(self, pointer, number, kind, n_most, count, array):
        made = self._made(pointer)
        require(made.is_final, "the descriptor is not finalized", 2004)
        values = made.values
        if (made.kind, number, kind) == (4, 202, 15):
            found = ENGINES[values.mode]
            count[0] = len(found) if array is None else min(len(found), n_most)
            for engine, target in zip(found, self._targets(array, count[0], 3), strict=False):
                target.values, target.is_final = SimpleNamespace(engine=engine, graph=values.graph), True
        elif (made.kind, number, kind) == (3, 300, 15):
            count[0] = 1 if array is None else min(1, n_most)
            for target in self._targets(array, count[0], 2):
                target.values, target.is_final = SimpleNamespace(engine=values.engine), True
        else:
            items = {(2, 1301, 3): lambda: [values.engine.number], (2, 1303, 11): lambda: values.engine.notes}
            items[5, 402, 3] = lambda: [values.config.values.engine.workspace]
            require((made.kind, number, kind) in items, f"attribute {number} of kind {made.kind} cannot be read")
            found = items[made.kind, number, kind]()
            count[0] = min(len(found), n_most)
            (_TYPES[kind] * max(count[0], 1)).from_address(array)[: count[0]] = found[: count[0]]

    def cudnnBackendExecute(self, handle, plan, pack):
        self._require_handle(handle)
        plan, pack = self._made(plan), self._made(pack)
        require(plan.is_final and plan.kind == 5 and pack.is_final and pack.kind == 16, "a plan and a variant pack", 2004)
        devices = self._handles.devices
        require(devices[plan.values.handle] == devices[handle], "the plan was made for another device")
        config = plan.values.config.values
        pointers = dict(zip(pack.values.uids, pack.values.pointers, strict=True))
        evaluation = Evaluation(config.graph.values.operations, config.engine, pointers, pack.values.workspace)

        def run():
            self.engines.append(config.engine.number)
            evaluation.run()

        import fake_cupy

        fake_cupy.Graph.note(run)

    def _finalize_1(self, values):
        n = values.spatial_dims
        require(n in (2, 3), f"images have 2 or 3 spatial dimensions, got {n}", 3000)
        for name in ("dilations", "strides", "post_paddings", "pre_paddings"):
            require(len(getattr(values, name)) == n, f"{name} has {n} elements")
        require(min(values.dilations) >= 1 and min(values.strides) >= 1, "dilations and strides are at least 1")
        require(min(values.pre_paddings) >= 0 and min(values.post_paddings) >= 0, "padding is not negative")
        require(values.mode == 1, "filters must not be flipped here")

    def _finalize_17(self, values):
        require(len(values.shape) == len(values.strides), "shape and strides have as many elements")
        require(min(values.shape) >= 1 and min(values.strides) >= 1, "shape and strides are positive")
        require(values.alignment & (values.alignment - 1) == 0, "the alignment is a power of 2")
        n_bytes = _ITEM_BYTES[values.dtype]
        require(values.alignment % n_bytes == 0, "the alignment is a multiple of the size of an element, of any tensor")

    def _finalize_15(self, values):
        self._require_handle(values.handle)
        known, written = {}, set()
        for operation in values.operations:
            inputs, output = Evaluation.tensors(operation)
            for tensor in (*inputs, output):
                same = known.setdefault(tensor.values.uid, tensor.values)
                require(same is tensor.values or same == tensor.values, "one uid, one tensor", 2009)
            for tensor in inputs:
                is_virtual = getattr(tensor.values, "is_virtual", False)
                require(not is_virtual or tensor.values.uid in written, "a virtual tensor is written before it is read")
            require(output.values.uid not in written, "a tensor is written once")
            written.add(output.values.uid)

    def _finalize_10(self, values):
        Evaluation.check_convolution("narrow", values)

    def _finalize_11(self, values):
        Evaluation.check_convolution("filter", values)

    def _finalize_12(self, values):
        Evaluation.check_convolution("wide", values)

    def _finalize_13(self, values):
        Evaluation.check_pointwise(values)

    def _finalize_19(self, values):
        chained.check_product(values)

    def _finalize_22(self, values):
        chained.check_reduction(values)

    def _finalize_31(self, values):
        chained.check_reshape(values)

    def _finalize_4(self, values):
        require(values.mode in ENGINES, f"there is no heuristic {values.mode}")
        reason = self.refuses(values.graph.values.operations)
        require(reason is None, reason, 3000)

    def _finalize_5(self, values):
        self._require_handle(values.handle)
        require(values.config.values.engine.runs, "this engine needs another device", 3007)

    def _finalize_16(self, values):
        require(len(values.uids) == len(values.pointers), "one pointer for each uid")
        require(len(set(values.uids)) == len(values.uids), "each uid once", 2009)

    def _made(self, pointer):
        require(pointer in self.made, "there is no such descriptor", 2002)
        return self.made[pointer]

    def _targets(self, array, count, kind):
        """Descriptors that the caller made to be filled in."""
        found = [self._made(pointer) for pointer in (ctypes.c_void_p * count).from_address(array)] if array else []
        require(all(each.kind == kind and not each.is_final for each in found), "descriptors to be filled in", 2012)
        return found

    def _require_handle(self, handle):
        require(handle in self._handles.streams, "the handle was not made by cudnnCreate")
