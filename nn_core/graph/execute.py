"""Run one function: dispatch, kernel, arrays."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nn_core.array import NdArray
from nn_core.caches import KeyedCache
from nn_core.context import Context
from nn_core.dispatch.registry import spec_of
from nn_core.dispatch.report import is_strict
from nn_core.dispatch.resolve import resolve, wide_dtype
from nn_core.graph.checked import CheckedKernel
from nn_core.graph.failure import note_call
from nn_core.graph.infer import CACHE_LIMIT, forget_shapes, infer, input_entries, made_outputs
from nn_core.graph.memory import as_channels_last, channels_last_strides
from nn_core.settings import is_enabled, settings
from nn_core.spec.model import ArgValue, FunctionSpec
from nn_core.synced import GRAPH_VERSION, HOST, STRIDED, Space, ready, space_of
from nn_core.typing import Array, ArrayDesc, Backend, Call, Kernel, Refusal, Runner, Shape

#: A prepared convolution takes about 110 KB in this process and in oneDNN, an element-wise function a few.
_PREPARED: KeyedCache[Any, "Prepared"] = KeyedCache("prepared functions", entry_bytes=65_536, max_entries=CACHE_LIMIT)


class Prepared:
    """One function resolved for given shapes, settings and context: its kernel, and what to allocate for it.

    Attributes:
        private: (position, shape) of the private outputs; the shapes are those that the kernel wants.
    """

    __slots__ = (
        "_backward",
        "_forward",
        "_laid_out",
        "args",
        "backend",
        "call",
        "context",
        "dynamic",
        "empty",
        "images",
        "input_dtypes",
        "input_keys",
        "kernel",
        "layout",
        "makers",
        "output_dtypes",
        "output_keys",
        "output_shapes",
        "private",
        "refusals",
        "rules",
        "seeded",
        "simple",
        "space",
        "spec",
        "updated",
    )

    def __init__(
        self,
        call: Call,
        kernel: Kernel,
        backend: Backend,
        refusals: Sequence[tuple[str, Refusal]],
        context: Context,
        private: Sequence[int] = (),
    ) -> None:
        self.call = call
        self.spec = call.spec
        self.args = call.args
        self.kernel: Kernel = CheckedKernel(kernel, backend) if settings().check_kernels else kernel
        self.backend = backend
        self.context = context
        self.refusals = tuple(refusals)
        self.space: Space = space_of(backend, context.device_id)
        self.input_dtypes = tuple(None if desc is None else desc.dtype for desc in call.inputs)
        self.output_shapes = tuple(desc.shape for desc in call.outputs)
        self.output_dtypes = tuple(desc.dtype for desc in call.outputs)
        self.input_keys = tuple(None if dtype is None else (self.space, dtype) for dtype in self.input_dtypes)
        self.output_keys = tuple((self.space, dtype) for dtype in self.output_dtypes)
        entries = input_entries(self.spec, len(call.inputs))
        self.updated = tuple(entry.name in self.spec.updates for entry in entries)
        self.empty = backend.empty if self.space is HOST else self.space.empty
        maker = getattr(backend, "maker", None) if self.space is HOST else None
        #: makes memory for each output
        self.makers: tuple[Callable[[], Array], ...] = tuple(
            [
                functools.partial(self.empty, desc.shape, desc.dtype) if maker is None else maker(desc.shape, desc.dtype)
                for desc in call.outputs
            ]
        )
        self.seeded = self.spec.has("seeded")
        self.dynamic = self.spec.has("dynamic_shape")
        chooser = getattr(kernel, "layout", None)
        #: memory layout that the kernel takes: "contiguous", "any" (all arrays alike), "channels_last" (preferred)
        self.layout = "contiguous" if chooser is None or not is_enabled("channels_last") else str(chooser(call))
        #: whether arrays may lie channels-last where the kernel runs at once
        self.images = self.layout != "contiguous" and self.space is HOST and any(3 <= len(s) <= 5 for s in self.output_shapes)
        #: whether it only reads C-contiguous arrays and writes fresh ones when it runs at once
        self.simple = not (self.seeded or self.images)
        self.private = tuple([(position, call.outputs[position].shape) for position in private])
        self._forward: Runner | None = None
        self._laid_out: dict[tuple[bool, ...], Runner] = {}
        self._backward: dict[Any, Runner | None] = {}
        #: runners of the gradient rule, by which inputs want a gradient; see `nn_core.graph.direct`
        self.rules: dict[tuple[bool, ...], Runner] = {}

    @property
    def forward(self) -> Runner:
        """The forward runner for C-contiguous arrays."""
        if self._forward is None:
            try:
                self._forward = self.kernel.forward(self.call)
            except Exception as error:
                note_call(error, self.call, self.backend.name, self.kernel)
                raise
        return self._forward

    def forward_for(self, channels_last: tuple[bool, ...]) -> Runner:
        """The forward runner for arrays (inputs, then outputs) of which some lie channels-last in memory."""
        if not any(channels_last):
            return self.forward
        if channels_last not in self._laid_out:
            self._laid_out[channels_last] = self.kernel.forward(self._call_for(channels_last))
        return self._laid_out[channels_last]

    def backward_for(self, wanted: tuple[bool, ...], channels_last: tuple[bool, ...]) -> Runner | None:
        """The fused gradient runner; None: the gradient rule serves. Gradients lie in memory as their data does."""
        key = (wanted, channels_last)
        if key not in self._backward:
            self._backward[key] = self.kernel.backward(self._call_for(channels_last), wanted)
        return self._backward[key]

    def _call_for(self, channels_last: tuple[bool, ...]) -> Call:
        if not any(channels_last):
            return self.call
        n_inputs = len(self.call.inputs)
        inputs = tuple(
            channels_last_desc(desc) if flag and desc is not None else desc
            for desc, flag in zip(self.call.inputs, channels_last[:n_inputs], strict=True)
        )
        outputs = tuple(
            channels_last_desc(desc) if flag else desc
            for desc, flag in zip(self.call.outputs, channels_last[n_inputs:], strict=True)
        )
        return dataclasses.replace(self.call, inputs=inputs, outputs=outputs)


def channels_last_desc(desc: ArrayDesc) -> ArrayDesc:
    """`desc` with its second axis innermost in memory."""
    return ArrayDesc(desc.shape, desc.dtype, channels_last_strides(desc.shape, desc.dtype))


def prepare(
    spec: FunctionSpec,
    args: Mapping[str, ArgValue],
    shapes: tuple[Shape | None, ...],
    same_dtypes: tuple[str | None, ...],
    context: Context,
) -> Prepared:
    """Resolve a function once; the same question again is answered from a cache.

    `same_dtypes` has the dtype of each input of kind "same", None for the others.
    """
    key = (spec.name, tuple(args.values()), shapes, same_dtypes, context)
    prepared = _PREPARED.get(key)
    if prepared is None or (prepared.refusals and is_strict()):  # strict mode looks again, and may refuse
        prepared = _prepare(spec, args, shapes, same_dtypes, context)
        _PREPARED.store(key, prepared)
    return prepared


def forget_prepared() -> None:
    """Drop what was prepared: kernels may have changed (plugins refreshed, settings toggled)."""
    _PREPARED.clear()
    GRAPH_VERSION.advance()
    forget_shapes()


def _prepare(
    spec: FunctionSpec,
    args: Mapping[str, ArgValue],
    shapes: tuple[Shape | None, ...],
    same_dtypes: tuple[str | None, ...],
    context: Context,
) -> Prepared:
    output_shapes = infer(spec, args, shapes)
    entries = input_entries(spec, len(shapes))
    outputs = made_outputs(spec, output_shapes)
    same = next((dtype for dtype in same_dtypes if dtype is not None), None)

    def make_call(dtype: str, wide: str) -> Call:
        kinds = {"float": dtype, "wide": wide, "index": "int64"}
        inputs = tuple(
            None if shape is None else ArrayDesc(shape, kinds.get(entry.dtype) or own or dtype)
            for entry, shape, own in zip(entries, shapes, same_dtypes, strict=True)
        )
        descs = tuple(ArrayDesc(shape, kinds.get(entry.dtype) or same or dtype) for entry, shape in outputs)
        return Call(spec, args, inputs, descs, dtype, context.device_id)

    if spec.has("view"):
        backend = resolve(spec_of("Identity"), {}, make_call, context).backend
        call = make_call(context.dtype, wide_dtype(backend, context.dtype))
        return Prepared(call, VIEW_COPY, backend, (), context)
    resolution = resolve(spec, args, make_call, context)
    private = tuple([position for position, (entry, _) in enumerate(outputs) if entry.private])
    call = _with_private_shapes(resolution.call, resolution.kernel, private) if private else resolution.call
    return Prepared(call, resolution.kernel, resolution.backend, resolution.refusals, context, private)


def _with_private_shapes(call: Call, kernel: Kernel, private: Sequence[int]) -> Call:
    """The call with the shapes that the kernel wants for its private outputs, if it has a say in that."""
    chooser = getattr(kernel, "private_shapes", None)
    if chooser is None:
        return call
    outputs = list(call.outputs)
    for position, shape in zip(private, chooser(call), strict=True):
        outputs[position] = dataclasses.replace(outputs[position], shape=tuple(shape))
    return dataclasses.replace(call, outputs=tuple(outputs))


class _ViewCopy:
    """Kernel of a function whose output is the input in another shape, where the memory cannot be shared."""

    def refuse(self, call: Call) -> Refusal | None:
        return None

    def forward(self, call: Call) -> Runner:
        return _copy_reshaped

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        return None


def _copy_reshaped(*arrays: Array) -> None:
    source, target = arrays
    target[...] = source.reshape(target.shape)


VIEW_COPY = _ViewCopy()


def same_dtypes_of(spec: FunctionSpec, arrays: Sequence[NdArray | None]) -> tuple[str | None, ...]:
    """The dtype of each input that is taken as it is, None for the others."""
    entries = input_entries(spec, len(arrays))
    return tuple(
        array._synced.dtype if array is not None and entry.dtype == "same" else None
        for entry, array in zip(entries, arrays, strict=True)
    )


def run(
    prepared: Prepared, inputs: Sequence[NdArray | None], outputs: Sequence[NdArray], key: Array | None = None
) -> None:
    """Compute a prepared function at once on NdArrays."""
    flags = _channels_last(prepared, inputs) if prepared.images else None
    arrays: list[Array | None] = []
    copied_back: list[tuple[Array, Array]] = []
    for array, array_key, updated in zip(inputs, prepared.input_keys, prepared.updated, strict=True):
        if array is None or array_key is None:
            arrays.append(None)
            continue
        synced = array._synced
        if updated:
            raw = array.readwrite(*array_key)
            if not is_contiguous(raw):
                window, raw = raw, prepared.empty(array._shape, array_key[1])
                raw[...] = window
                copied_back.append((window, raw))
            arrays.append(raw)
        elif synced.pending_fill is None and synced.lease is None and array_key in synced.valid and array._window is None:
            raw = synced.copies[array_key]
            arrays.append(raw if raw.shape == array._shape else raw.reshape(array._shape))
        else:
            raw = array.read(*array_key)
            as_it_lies = (flags is not None and flags[len(arrays)]) or is_contiguous(raw)
            arrays.append(raw if as_it_lies else contiguous_values(array, *array_key))
    if prepared.dynamic:
        _run_dynamic(prepared, arrays, outputs)
        return
    if flags is not None:
        flags += _made_channels_last(prepared, outputs)
    for position, shape in prepared.private:
        adopt_shape(outputs[position], shape)
    for array, array_key in zip(outputs, prepared.output_keys, strict=True):
        synced = array._synced
        if synced.lease is STRIDED and synced.latest == array_key:
            arrays.append(synced.copies[array_key])
        elif synced.latest is None and synced.lease is None:
            raw = prepared.empty(array._shape, array_key[1])
            synced.hold(array_key, raw)
            synced.pending_fill = None
            arrays.append(raw)
        else:
            raw = array.write(*array_key)
            if array._window is not None and not is_contiguous(raw):
                window, raw = raw, prepared.empty(array._shape, array_key[1])
                copied_back.append((window, raw))
            arrays.append(raw)
    if key is not None:
        arrays.append(key)
    if prepared.space is not HOST:
        ready(prepared.space)
    runner = prepared.forward if flags is None else prepared.forward_for(flags)
    try:
        runner(*arrays)
    except Exception as error:
        note_call(error, prepared.call, prepared.backend.name, prepared.kernel)
        raise
    for window, raw in copied_back:
        window[...] = raw


def _channels_last(prepared: Prepared, inputs: Sequence[NdArray | None]) -> tuple[bool, ...] | None:
    """Which inputs lie channels-last, if the kernel takes them as they lie; None: it takes all of them in C order."""
    flags = []
    for array, key in zip(inputs, prepared.input_keys, strict=True):
        synced = None if array is None else array._synced
        flags.append(
            synced is not None
            and array is not None
            and synced.lease is not None
            and array._window is None
            and array._shape == synced.shape
            and key in synced.valid
            and not synced.copies[key].flags.c_contiguous
        )
    if prepared.layout == "any":
        shapes = {array._shape for array in inputs if array is not None}
        return tuple(flags) if all(flags) and len(shapes) == 1 else None
    return tuple(flags)


def _made_channels_last(prepared: Prepared, outputs: Sequence[NdArray]) -> tuple[bool, ...]:
    """Give outputs that are images, and have no memory yet, memory that lies channels-last; which ones have it now."""
    flags = []
    for position, (array, key, make) in enumerate(zip(outputs, prepared.output_keys, prepared.makers, strict=True)):
        synced, shape = array._synced, array._shape
        is_image = 3 <= len(shape) <= 5 and (position == 0 or prepared.layout == "any")
        fresh = synced.latest is None and synced.lease is None and shape == synced.shape
        flag = is_image and fresh and 1 < shape[1] < array.size // max(shape[0], 1)
        if flag:
            synced.copies[key] = as_channels_last(make(), shape)
            synced.latest, synced.valid, synced.pending_fill, synced.lease = key, {key}, None, STRIDED
        flags.append(flag)
    return tuple(flags)


def is_contiguous(array: Array) -> bool:
    """Whether a raw array is C-contiguous (arrays of namespaces without flags are)."""
    flags = getattr(array, "flags", None)
    return True if flags is None else bool(flags.c_contiguous)


def contiguous_values(array: NdArray, space: Space, dtype: str) -> Array:
    """The values of `array` as a C-contiguous raw array."""
    array._synced.make_contiguous((space, dtype))
    raw = array.read(space, dtype)
    if is_contiguous(raw):
        return raw
    copy = space.empty(array.shape, dtype)
    copy[...] = raw
    return copy


def _run_dynamic(prepared: Prepared, arrays: list[Array | None], outputs: Sequence[NdArray]) -> None:
    ready(prepared.space)
    results: Any = prepared.forward(*arrays)
    for array, dtype, result in zip(outputs, prepared.output_dtypes, results, strict=False):
        adopt_shape(array, tuple(result.shape))
        array.write(prepared.space, dtype)[...] = result


def adopt_shape(array: NdArray, shape: Shape) -> None:
    """Give `array` a shape that became known only when its function ran, or when its kernel was chosen."""
    if array.shape != shape:
        fresh = NdArray(shape)
        array._shape, array._synced, array._base = fresh._shape, fresh._synced, fresh._shape
