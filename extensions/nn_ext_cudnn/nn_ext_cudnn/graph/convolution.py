"""Convolutions and deconvolutions in one to three spatial dimensions.

Both are one relation, narrow = wide * filters (see `graph.operations.Convolution`): x is the wide image of a convolution
and the narrow one of a deconvolution, and each of the three is the result of a forward or a backward call.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.compose import Composition, refuse_sizes
from nn_ext_cuda.codegen.copies import Copies
from nn_ext_cuda.codegen.describe import backward_arrays, backward_names, forward_arrays, forward_names
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES, real_dtype, refuse_dtypes
from nn_ext_cuda.fusion.adding import gradients
from nn_ext_cuda.launch.program import Chain, Program
from nn_ext_cuda.memory.derived_weights import WithDerived
from nn_ext_cudnn.errors import NotSupportedError
from nn_ext_cudnn.graph import geometry
from nn_ext_cudnn.graph.operations import Convolution, Operation, Pointwise, Window
from nn_ext_cudnn.graph.plans import Graph
from nn_ext_cudnn.graph.runner import GraphRunner
from nn_ext_cudnn.precision import excluded_notes, prefers_channels_last

Result = Literal["narrow", "wide", "filter"]

#: Places of the arrays of a forward call, and of a backward call from y on.
_X: Final = 0
_WEIGHT: Final = 1
_BIAS: Final = 2
_Y: Final = 3
_DY: Final = 4
_DX: Final = 5
_DWEIGHT: Final = 6
_DBIAS: Final = 7
#: The first uid of what only leads from one operation to the next; those of arrays are their places, counted from 1.
_VIRTUAL: Final = 100


class ConvolutionKernel:
    """A convolution by cuDNN; images of the short types are channels-last in memory where the plan allows it.

    Args:
        transposed: x is the narrow image.
        depthwise: The weights have no axis of channels.
    """

    def __init__(self, *, transposed: bool = False, depthwise: bool = False) -> None:
        self._transposed = transposed
        self._depthwise = depthwise

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what cuDNN does not know, and what it has no engine for on this device."""
        refusal = self.refuse_settings(call)
        if refusal is not None:
            return refusal
        try:
            self.forward(self._preferred(call))
        except NotSupportedError as error:
            return Refusal(str(error))
        return None

    def refuse_settings(self, call: Call) -> Refusal | None:
        """Refuse what cuDNN does not know on any device."""
        x = call.inputs[_X]
        assert x is not None
        n_spatial = len(x.shape) - _base_axis(call) - 1
        if not 1 <= n_spatial <= 3:
            return Refusal(f"takes one to three spatial dimensions, got {n_spatial}")
        longer = _ints(call, "output_padding") if "output_padding" in call.args else ()
        if any(more >= step for more, step in zip(longer, _ints(call, "stride"), strict=False)):
            return Refusal(f"takes an output_padding below the stride, got {longer} and {_ints(call, 'stride')}")
        return _refuse_arrays(call)

    def layout(self, call: Call) -> str:
        """Channels-last where engines read images so, if the channel axis is the second."""
        second = _base_axis(call) == 1 and not _is_channel_last(call)
        return "channels_last" if second and prefers_channels_last(call.dtype) else "contiguous"

    def forward(self, call: Call) -> Runner:
        """One plan, with the bias in it where cuDNN has an engine for that, else followed by a launch for the bias."""
        return self._on_laid_out_filters(call, forward_arrays(call), (_X, _Y), partial(self._forward, call))

    def _forward(self, call: Call, arrays: Sequence[ArrayDesc | None], weight: int) -> Runner:
        result: Result = "wide" if self._transposed else "narrow"
        if call.inputs[_BIAS] is None:
            return self._runner(call, result, arrays, _X, weight, _Y)
        if not self._transposed:
            try:
                return self._runner(call, result, arrays, _X, weight, _Y, Epilogue(_BIAS))
            except NotSupportedError:
                pass  # then the bias is added by a launch of its own
        return Chain([self._runner(call, result, arrays, _X, weight, _Y), self._bias(call)])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return a plan for each gradient, and sums for that of the bias; None where cuDNN has no engine."""
        return gradients(partial(self._backward, call, wanted))

    def _backward(self, call: Call, wanted: Sequence[bool], added: Collection[int]) -> Runner | None:
        """Return the runner that adds the gradients at the places `added` to what is there."""
        arrays, make = backward_arrays(call, wanted), partial(self._gradients, call, wanted, added)
        try:
            return self._on_laid_out_filters(call, arrays, (_DX, _DY), make) if wanted[_X] else make(arrays, _WEIGHT)
        except NotSupportedError:
            return None

    def _gradients(
        self,
        call: Call,
        wanted: Sequence[bool],
        added: Collection[int],
        arrays: Sequence[ArrayDesc | None],
        weight: int,
    ) -> Runner:
        runners: list[Runner] = []
        if wanted[_X]:
            result: Result = "narrow" if self._transposed else "wide"
            runners.append(self._runner(call, result, arrays, _DX, weight, _DY, adds=_DX in added))
        if wanted[_WEIGHT]:
            if self._depthwise and _present(arrays, _DWEIGHT).strides is not None:
                raise NotSupportedError("filters without an axis of channels must be in C order", 3000)
            runners.append(self._runner(call, "filter", arrays, _X, _DWEIGHT, _DY, adds=_DWEIGHT in added))
        if wanted[_BIAS]:
            runners.append(self._bias_gradient(call, wanted, adds=_DBIAS in added))
        return runners[0] if len(runners) == 1 else Chain(runners)

    def _on_laid_out_filters(
        self,
        call: Call,
        arrays: Sequence[ArrayDesc | None],
        images: tuple[int, int],
        make: Callable[[Sequence[ArrayDesc | None], int], Runner],
    ) -> Runner:
        """Return the runner that `make` makes for arrays and the place of the filters, which are laid out as the images are.

        cuDNN would do so in each call, in its scratch memory.
        """
        weight = _present(arrays, _WEIGHT)
        laid_out = self._laid_out(call, weight, [_present(arrays, place) for place in images])
        if laid_out is None:
            return make(arrays, _WEIGHT)
        try:
            runner = make([*arrays, laid_out], len(arrays))
        except NotSupportedError:
            if self._depthwise:
                raise
            return make(arrays, _WEIGHT)  # there may be engines for the other order
        program, targets = filters_copied([weight, laid_out], 0, 1), [(weight.shape, weight.dtype)]
        return WithDerived(runner, len(arrays), program, (_WEIGHT,), targets, ("filters", weight, laid_out))

    def _laid_out(self, call: Call, weight: ArrayDesc, images: Sequence[ArrayDesc]) -> ArrayDesc | None:
        """Return the filters in the order in which engines read them, if they are not in memory so already.

        That is the order of the images where these are channels-last, but C order for filters without an axis of channels:
        cuDNN reads those so whatever it is told.
        """
        if self._depthwise:
            return None if weight.strides is None else replace(weight, strides=None)
        if _is_channel_last(call) or weight.shape[1] == 1 or math.prod(weight.shape[2:]) == 1:
            return None
        if weight.strides is not None:  # of filters that a function computes, the plan has chosen the layout
            return None
        views = [geometry.image(image, _base_axis(call), False) for image in images]
        return channels_last(weight) if any(view.is_channels_last for view in views) else None

    def _runner(
        self,
        call: Call,
        result: Result,
        arrays: Sequence[ArrayDesc | None],
        x: int,
        weight: int,
        y: int,
        epilogue: "Epilogue | None" = None,
        *,
        adds: bool = False,
    ) -> GraphRunner:
        """Return the runner that computes one of x, weight and y (places, of data or of gradients) from the others, or adds to
        it.
        """
        views = self._views(call, arrays, (x, weight, y))
        rank = len(views[y].shape)
        if epilogue is not None:
            views[epilogue.bias] = geometry.vector(_present(arrays, epilogue.bias), rank)
            if epilogue.addend is not None:
                addend = _present(arrays, epilogue.addend)
                views[epilogue.addend] = geometry.image(addend, _base_axis(call), _is_channel_last(call))
        window = Window(
            geometry.spatial(_ints(call, "stride"), 1),
            geometry.spatial(_ints(call, "dilation"), 1),
            geometry.spatial(_ints(call, "pad"), 0),
        )
        wide, narrow = (y, x) if self._transposed else (x, y)
        compute = real_dtype(call.dtype)
        graph = _graph(result, views, (wide, weight, narrow), window, compute, epilogue, adds)
        return GraphRunner(call.spec.api, graph, {place + 1: place for place in views}, excluded_notes(call.dtype))

    def _views(self, call: Call, arrays: Sequence[ArrayDesc | None], places: tuple[int, int, int]) -> dict[int, geometry.View]:
        """x, weight and y as cuDNN sees them, by place."""
        x, weight, y = (_present(arrays, place) for place in places)
        images = [geometry.image(desc, _base_axis(call), _is_channel_last(call)) for desc in (x, y)]
        like = next((view for view in images if view.is_channels_last), images[0])
        filters = geometry.filters(weight, _is_channel_last(call), depthwise=self._depthwise, like=like)
        return dict(zip(places, (images[0], filters, images[1]), strict=True))

    def _bias(self, call: Call) -> Program:
        """Add the bias to y in place."""
        frame, channels = _frame(call, call.outputs[0])
        composition = Composition(call, forward_arrays(call), forward_names(call), frame, {"bias": channels})
        composition.compute(f"{call.spec.api}_bias", {"y": "y + bias"})
        return composition.program()

    def _bias_gradient(self, call: Call, wanted: Sequence[bool], *, adds: bool) -> Program:
        """Sum dy over everything but the channels, and what is there if it `adds`."""
        frame, channels = _frame(call, call.outputs[0])
        arrays, names = backward_arrays(call, wanted), backward_names(call)
        composition = Composition(call, arrays, names, frame, {"dbias": channels})
        composition.reduce(f"{call.spec.api}_backward_bias", "dbias", "dy", finish="dbias + a" if adds else "a")
        return composition.program()

    def _preferred(self, call: Call) -> Call:
        """Return the call with its images as the plan will lay them out."""
        x = call.inputs[_X]
        assert x is not None
        if self.layout(call) == "contiguous":
            return call
        x, y = (channels_last(desc) for desc in (x, call.outputs[0]))
        return replace(call, inputs=(x, *call.inputs[1:]), outputs=(y, *call.outputs[1:]))


def filters_copied(arrays: Sequence[ArrayDesc | None], source: int, target: int) -> Program:
    """Return the launch that copies filters from one place to another, each in C order or with its second axis innermost."""
    copies = Copies([desc and _in_memory(desc) for desc in arrays])
    orders = [_order_in_memory(_present(arrays, place)) for place in (source, target)]
    read = copies.view(source).transpose([orders[0].index(axis) for axis in orders[1]])
    copies.copy(source, read, target, copies.view(target))
    return copies.program()


def _order_in_memory(desc: ArrayDesc) -> list[int]:
    """Return the axes from the outermost to the innermost in memory."""
    first, second, *others = range(len(desc.shape))
    return [first, second, *others] if desc.strides is None else [first, *others, second]


def _in_memory(desc: ArrayDesc) -> ArrayDesc:
    """Return the same memory with its axes in the order that they have there."""
    return desc if desc.strides is None else ArrayDesc(tuple(desc.shape[axis] for axis in _order_in_memory(desc)), desc.dtype)


def _refuse_arrays(call: Call) -> Refusal | None:
    """Refuse arrays without elements, very large ones, and those of several dtypes."""
    arrays = [desc for desc in forward_arrays(call) if desc is not None]
    if any(desc.size == 0 for desc in arrays):
        return Refusal("takes arrays with at least one element")
    others = {desc.dtype for desc in arrays if desc.dtype != call.dtype}
    refusal = refuse_dtypes(call) or refuse_sizes(arrays)
    if refusal is None and others:
        return Refusal(f"takes arrays of one dtype, got {call.dtype} and {', '.join(sorted(others))}")
    return refusal


@dataclass(frozen=True, slots=True)
class Epilogue:
    """The epilogue of the narrow image: relu(result + addend + bias), which is the form that engines exist for.

    Attributes:
        bias: The place of the bias.
        addend: The place of an image that is added.
        relu: Whether negative numbers become 0.
    """

    bias: int
    addend: int | None = None
    relu: bool = False

    def steps(self) -> list[tuple[str, int | None]]:
        """Each operation: its mode, and the place of its second input."""
        added: list[tuple[str, int | None]] = [] if self.addend is None else [("add", self.addend)]
        return [*added, ("add", self.bias), *([("relu_fwd", None)] if self.relu else [])]


def _graph(
    result: Result,
    views: Mapping[int, geometry.View],
    places: tuple[int, int, int],
    window: Window,
    compute: str,
    epilogue: Epilogue | None,
    adds: bool,
) -> Graph:
    """Return the operations over `views`, by place; `places` are those of the wide image, the filters and the narrow image."""
    tensors = {place: view.tensor(place + 1) for place, view in views.items()}
    wide, filters, narrow = (tensors[place] for place in places)
    steps = epilogue.steps() if epilogue else []
    virtual = [replace(narrow, uid=_VIRTUAL + k, dtype=compute, is_virtual=True) for k in range(len(steps))]
    stages = [*virtual, narrow]
    operations: list[Operation] = [Convolution(result, wide, filters, stages[0], window, compute, adds)]
    for (mode, place), read, written in zip(steps, stages, stages[1:], strict=False):
        second = () if place is None else (tensors[place],)
        operations.append(Pointwise(mode, (read, *second), written, compute))
    return tuple(operations)


def _present(arrays: Sequence[ArrayDesc | None], place: int) -> ArrayDesc:
    desc = arrays[place]
    assert desc is not None
    return desc


def _frame(call: Call, y: ArrayDesc) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """y as (batch, channels, places) or (batch, places, channels), by its layout in memory, and the bias in that."""
    view = geometry.image(y, _base_axis(call), _is_channel_last(call))
    batch, channels = view.shape[:2]
    places = y.size // max(batch * channels, 1)
    if view.is_channels_last:
        return (batch, places, channels), (1, 1, channels)
    return (batch, channels, places), (1, channels, 1)


def channels_last(desc: ArrayDesc) -> ArrayDesc:
    """Return an array whose second axis is innermost in memory."""
    item = ITEM_BYTES[desc.dtype]
    return replace(desc, strides=tuple(item * step for step in geometry.channels_last_strides(desc.shape)))


def _base_axis(call: Call) -> int:
    axis = call.args["base_axis"]
    assert isinstance(axis, int)
    return axis


def _is_channel_last(call: Call) -> bool:
    return bool(call.args.get("channel_last", False))


def _ints(call: Call, name: str) -> tuple[int, ...]:
    value = call.args[name]
    assert isinstance(value, tuple)
    return tuple(int(item) for item in value)


CONVOLUTION: Final[Mapping[str, Kernel]] = {
    "Convolution": ConvolutionKernel(),
    "Deconvolution": ConvolutionKernel(transposed=True),
    "DepthwiseConvolution": ConvolutionKernel(depthwise=True),
    "DepthwiseDeconvolution": ConvolutionKernel(transposed=True, depthwise=True),
}
