"""A call that was checked: its settings, the shapes of its outputs, and its kernels; worked out once, then looked up.

The only cache of this kind. What is found by it stays true until `forget`: plugins were loaded or dropped, or an
optimization was switched.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from nn_core.context import Context
from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.arrays.foreign_arrays import made_array
from nn_core.engine.arrays.spaces import space_of
from nn_core.engine.arrays.synced import GRAPH_VERSION, HOST, Key, Space, Version
from nn_core.engine.dispatch.given_dtypes import GIVEN_KINDS, GivenDtypes
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.registry import spec_of
from nn_core.engine.dispatch.report import is_strict
from nn_core.engine.dispatch.resolve import Dtypes, dtypes_of, resolve
from nn_core.engine.graph.failure import KernelCall, note_call
from nn_core.engine.graph.infer import infer, input_entries, made_outputs, warn_of_all_pairs
from nn_core.engine.graph.lengths import Origin, origins_of
from nn_core.engine.graph.memory import channels_last_strides
from nn_core.engine.graph.sandboxed_kernel import guarded_kernel
from nn_core.engine.runtime.caches import KeyedCache
from nn_core.operators.rules.arguments import resolve_args
from nn_core.operators.spec.model import ArgValue, FunctionSpec
from nn_core.settings import WHEN_SWITCHED, is_enabled, settings
from nn_core.typing import Array, ArrayDesc, Backend, Call, Kernel, Refusal, Runner, Shape, extra

#: More calls than this and the oldest are dropped.
MAX_CALLS: Final = 8192
#: A prepared convolution takes about 110 KB in this process and in oneDNN, an element-wise function a few.
_CALLS: Final[KeyedCache[Any, "ResolvedCall"]] = KeyedCache("resolved calls", entry_bytes=65_536, max_entries=MAX_CALLS)
#: Called when calls are forgotten; who keeps some drops them.
WHEN_FORGOTTEN: Final[list[Callable[[], object]]] = []


class ResolvedCall:
    """A function with checked settings, for inputs of given shapes.

    Attributes:
        given: The settings as the caller gave them, in plain numbers: what is missing, None or counted from the end follows
            the shapes.
        lengths: Those of them that follow from the shapes of variables; see `nn_core.engine.graph.lengths`.
        origins: These variables.
        args: All settings, with their defaults.
        shapes: The shapes of the inputs, None where one is not given.
        output_entries, output_shapes: The specification and the shape of each output that is made, aux outputs included.
        n_visible: How many of them the caller gets.
        single: Whether the caller gets one value and no tuple.
        view: Whether the output shares the memory of the input.
        takes_given: Whether an input may be taken in the dtype that it has.
        plain: Whether there is one result in memory of its own, whose shape is known, and nothing is rewritten.
    """

    __slots__ = (
        "_kernels",
        "args",
        "given",
        "lengths",
        "n_visible",
        "origins",
        "output_entries",
        "output_shapes",
        "plain",
        "shapes",
        "single",
        "spec",
        "takes_given",
        "view",
    )

    def __init__(
        self, spec: FunctionSpec, given: Mapping[str, Any], args: Mapping[str, ArgValue], shapes: tuple[Shape | None, ...]
    ) -> None:
        self.spec = spec
        self.given = given
        self.lengths: Mapping[str, Any] = {}
        self.origins: tuple[Origin, ...] = ()
        #: read-only: graphs, kernels and gradient rules share it
        self.args: Mapping[str, ArgValue] = MappingProxyType(dict(args))
        self.shapes = shapes
        made = made_outputs(spec, infer(spec, args, shapes))
        self.output_entries = tuple([entry for entry, _ in made])
        self.output_shapes = tuple([shape for _, shape in made])
        self.n_visible = sum(not entry.aux for entry in self.output_entries)
        self.single = self.n_visible == 1 and not spec.outputs[0].variadic
        self.view = spec.has("view") and bool(args.get("inplace", True))
        self.takes_given = any(entry.dtype in GIVEN_KINDS for entry in spec.inputs)
        # a trace holds one raw array for each call, so it follows these calls only
        in_own_memory = self.single and len(made) == 1 and not (self.view or spec.updates)
        self.plain = in_own_memory and not (spec.has("dynamic_shape") or spec.has("keeps_gradient"))
        #: by context, and by the dtypes of the inputs that are taken as they are, if there are some
        self._kernels: dict[Any, PreparedKernel] = {}

    def given_as(self, given: Mapping[str, Any]) -> "ResolvedCall":
        """Return the same call for somebody who has given the settings in other words; it shares the kernels."""
        other = self._copied()
        other.given = given
        return other

    def with_lengths(self, lengths: Mapping[str, Any]) -> "ResolvedCall":
        """Return the same call with settings that follow from the shapes of variables; it shares the kernels."""
        other = self._copied()
        other.lengths, other.origins = lengths, origins_of(lengths)
        return other

    def _copied(self) -> "ResolvedCall":
        other: ResolvedCall = object.__new__(ResolvedCall)
        for name in ResolvedCall.__slots__:  # a fifth of the time of `copy.copy`
            setattr(other, name, getattr(self, name))
        return other

    @property
    def sources(self) -> tuple[Any, ...]:
        """The variables whose shapes its settings follow."""
        return tuple([origin.value for origin in self.origins]) if self.origins else ()

    def kernel(self, context: Context, given_dtypes: GivenDtypes = ()) -> "PreparedKernel":
        """Return the kernel for `context`, chosen when it is first asked for."""
        key = (context.key, given_dtypes) if given_dtypes else context.key
        kernel = self._kernels.get(key)
        if kernel is None or (kernel.refusals and is_strict()):  # strict mode looks again, and may refuse
            kernel = self._kernels[key] = self._chosen(context, given_dtypes)
        return kernel

    def _chosen(self, context: Context, given_dtypes: GivenDtypes) -> "PreparedKernel":
        """Ask the backends of the context, the first first."""
        # a view needs no kernel; where memory cannot be shared it is copied by the backend that would run Identity
        if self.spec.has("view"):
            backend = resolve(spec_of("Identity"), {}, self._described(context, given_dtypes), context).backend
            call = self._described(context, given_dtypes)(dtypes_of(backend, context.dtype))
            return PreparedKernel(call, VIEW_COPY, backend, (), context)
        resolution = resolve(self.spec, self.args, self._described(context, given_dtypes), context)
        private = tuple([position for position, entry in enumerate(self.output_entries) if entry.private])
        call = _with_private_shapes(resolution.call, resolution.kernel, private) if private else resolution.call
        return PreparedKernel(call, resolution.kernel, resolution.backend, resolution.refusals, context, private)

    def _described(self, context: Context, given_dtypes: GivenDtypes) -> Callable[[Dtypes], Call]:
        """Return what describes the call to kernels, as a function of the dtypes of its arrays."""
        entries = input_entries(self.spec, len(self.shapes))
        own_dtypes = given_dtypes or (None,) * len(self.shapes)
        same = next((dtype for dtype in given_dtypes if dtype is not None), None)

        def describe(dtypes: Dtypes) -> Call:
            dtype, kinds = dtypes.floating, dtypes.by_kind()
            inputs = tuple(
                None if shape is None else ArrayDesc(shape, kinds.get(entry.dtype) or own or dtype)
                for entry, shape, own in zip(entries, self.shapes, own_dtypes, strict=True)
            )
            made = zip(self.output_entries, self.output_shapes, strict=True)
            outputs = tuple(ArrayDesc(shape, kinds.get(entry.dtype) or same or dtype) for entry, shape in made)
            return Call(self.spec, self.args, inputs, outputs, dtype, context.device_id)

        return describe


def resolved_call(spec: FunctionSpec, given: Mapping[str, Any], shapes: Sequence[Shape | None]) -> ResolvedCall:
    """Return a function with the settings as the caller gave them, for inputs of these shapes.

    Raises:
        ArgumentError: when a setting does not exist or is out of range.
        ShapeError: when the shapes do not fit.
    """
    known = tuple(shapes)
    key: Any = (spec, tuple(given.items()), known)
    try:
        call = _CALLS.get(key)
    except TypeError:  # a setting that is a list or an array; what it stands for can be looked up
        return resolved_call(spec, resolve_args(spec, given, known), known).given_as(given)
    if call is None:
        call = ResolvedCall(spec, given, resolve_args(spec, given, known), known)
        if spec.topic == "loss":
            warn_of_all_pairs(spec, known, call.output_shapes[0])
        _CALLS.store(key, call)
    return call


#: How often all that was worked out was dropped.
KERNELS_VERSION: Final = Version()


def forget() -> None:
    """Drop all that was worked out: rules, kernels or optimizations may have changed."""
    _CALLS.clear()
    for callback in WHEN_FORGOTTEN:
        callback()
    KERNELS_VERSION.advance()
    GRAPH_VERSION.advance()


class PreparedKernel:
    """The kernel of a call in one context, and what to allocate for it.

    Attributes:
        call: Description of the call for the kernel.
        implementation: The kernel of the backend.
        private: (position, shape) of the private outputs; the shapes are those that the kernel wants.
    """

    __slots__ = (
        "_at_once",
        "_backward",
        "_forward",
        "_guarded",
        "_laid_out",
        "args",
        "backend",
        "call",
        "context",
        "dynamic",
        "empty",
        "gradients",
        "images",
        "implementation",
        "input_dtypes",
        "input_keys",
        "layout",
        "makers",
        "one_dtype",
        "output_dtypes",
        "output_keys",
        "output_shapes",
        "private",
        "refusals",
        "seeded",
        "simple",
        "space",
        "spec",
        "strided",
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
        self.implementation = kernel
        self._guarded = guarded_kernel(kernel, backend, always=settings().check_kernels)
        self.backend = backend
        self.context = context
        self.refusals = tuple(refusals)
        self.space: Space = space_of(backend, context.device_id)
        self.input_dtypes = _dtypes(call.inputs)
        self.output_shapes = tuple([desc.shape for desc in call.outputs])
        self.output_dtypes = tuple([desc.dtype for desc in call.outputs])
        self.input_keys = _keys(self.space, self.input_dtypes)
        self.output_keys = tuple([(self.space, dtype) for dtype in self.output_dtypes])
        self.updated = _updated(self.spec, len(call.inputs))
        self.empty = made_array(backend) if self.space is HOST else self.space.empty
        self.seeded = self.spec.has("seeded")
        self.dynamic = self.spec.has("dynamic_shape")
        #: memory layout that the kernel takes: "contiguous", "any" (all arrays alike), "channels_last" (preferred), "first"
        with self._asked():
            self.layout = _layout_of(kernel, call)
            #: whether it takes arrays of which only the last axis is dense
            self.strided = _is_strided(kernel, call)
            #: makes memory for each output
            self.makers = tuple([self.maker(desc) for desc in call.outputs])
        #: whether arrays may be channels-last when the kernel is run without a plan
        self.images = self.layout != "contiguous" and self.space is HOST and _has_images(self.output_shapes)
        #: whether it only reads C-contiguous arrays and writes fresh ones when it runs at once
        self.simple = not (self.seeded or self.images)
        self.private = tuple([(position, call.outputs[position].shape) for position in private])
        self._forward: Runner | None = None
        self._at_once: Runner | None = None
        self._laid_out: dict[tuple[bool, ...], Runner] = {}
        self._backward: dict[Any, Runner | None] = {}
        #: the gradients, by which inputs need one; see `nn_core.engine.graph.direct`
        self.gradients: dict[tuple[bool, ...], Any] = {}
        #: the floating dtype of all arrays; "" where there is none, None where there are several
        self.one_dtype = _one_floating((*self.input_dtypes, *self.output_dtypes))

    def maker(self, desc: ArrayDesc) -> Callable[[], Array]:
        """Return a function that makes memory for an array each time it is called."""
        offer = extra(self.backend, "maker") if self.space is HOST else None
        maker: Callable[[], Array] = functools.partial(self.empty, desc.shape, desc.dtype)
        return maker if offer is None else offer(desc.shape, desc.dtype)

    @property
    def forward(self) -> Runner:
        """The forward runner for C-contiguous arrays."""
        if self._forward is None:
            self.space.use()  # runners may hold what belongs to the current device
            with self._asked():
                self._forward = self._guarded.forward(self.call)
        return self._forward

    @property
    def at_once(self) -> Runner:
        """The forward runner for calls that are computed as they are made, on C-contiguous arrays."""
        if self._at_once is None:
            repeater = extra(self.backend, "repeater")
            self._at_once = self.forward if repeater is None else repeater(self.forward)
        return self._at_once

    def _asked(self) -> KernelCall:
        return KernelCall(self.call, self.backend.name, self.implementation)

    def note(self, error: BaseException) -> None:
        """Note in `error` that it comes from this kernel."""
        note_call(error, self.call, self.backend.name, self.implementation)

    def forward_for(self, channels_last: tuple[bool, ...]) -> Runner:
        """Return the forward runner for arrays (inputs, then outputs) some of which are channels-last in memory."""
        if not any(channels_last):
            return self.forward
        if channels_last not in self._laid_out:
            self.space.use()
            with self._asked():
                self._laid_out[channels_last] = self._guarded.forward(self._call_for(channels_last))
        return self._laid_out[channels_last]

    def backward_for(self, wanted: tuple[bool, ...], channels_last: tuple[bool, ...]) -> Runner | None:
        """Return the fused gradient runner, or None to use the gradient rule. Gradients have the layout of their data."""
        key = (wanted, channels_last)
        if key not in self._backward:
            self.space.use()
            with self._asked():
                self._backward[key] = self._guarded.backward(self._call_for(channels_last), wanted)
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


def _dtypes(descs: Sequence[ArrayDesc | None]) -> tuple[str | None, ...]:
    return tuple([None if desc is None else desc.dtype for desc in descs])


def _one_floating(dtypes: Sequence[str | None]) -> str | None:
    floating = {dtype for dtype in dtypes if dtype is not None and dtype_of(dtype).kind not in "iub"}
    return next(iter(floating), "") if len(floating) < 2 else None


def _keys(space: Space, dtypes: Sequence[str | None]) -> tuple[Key | None, ...]:
    return tuple([None if dtype is None else (space, dtype) for dtype in dtypes])


def _updated(spec: FunctionSpec, n_inputs: int) -> tuple[bool, ...]:
    """Return, for each input, whether the function rewrites it."""
    return tuple([entry.name in spec.updates for entry in input_entries(spec, n_inputs)])


def _has_images(shapes: Sequence[Shape]) -> bool:
    return any(3 <= len(shape) <= 5 for shape in shapes)


def _layout_of(kernel: Kernel, call: Call) -> str:
    chooser = extra(kernel, "layout")
    return "contiguous" if chooser is None or not is_enabled("channels_last") else str(chooser(call))


def _is_strided(kernel: Kernel, call: Call) -> bool:
    says = extra(kernel, "strided")
    return says is not None and bool(says(call))


def channels_last_desc(desc: ArrayDesc) -> ArrayDesc:
    """`desc` with its second axis innermost in memory."""
    return ArrayDesc(desc.shape, desc.dtype, channels_last_strides(desc.shape, desc.dtype))


def _with_private_shapes(call: Call, kernel: Kernel, private: Sequence[int]) -> Call:
    """Return the call with the shapes that the kernel wants for its private outputs, if it has a say in that."""
    chooser = extra(kernel, "private_shapes")
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


PLUGINS.when_refreshed.append(forget)
WHEN_SWITCHED.append(forget)
