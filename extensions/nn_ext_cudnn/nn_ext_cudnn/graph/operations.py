"""The parts of an operation graph, as values: equal graphs compare equal, and serve as keys."""

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from nn_core.ext import Shape
from nn_ext_cudnn.graph import attributes
from nn_ext_cudnn.graph.attributes import DATA_TYPES, DOUBLE, FLOAT, Kind
from nn_ext_cudnn.graph.descriptor import Descriptor, described

#: The alignment in bytes that engines are chosen for; arrays of other alignments get plans of their own.
ALIGNMENT: Final = 16


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor: (batch, channels, spatial axes), wherever the channels are in memory.

    Attributes:
        uid: Its number in the graph.
        shape: Lengths of the axes.
        strides: Elements from one index to the next on each axis.
        dtype: The dtype of its elements.
        alignment: Alignment of its address, in bytes.
        is_virtual: It only leads from one operation to the next, and has no memory.
    """

    uid: int
    shape: Shape
    strides: tuple[int, ...]
    dtype: str
    alignment: int = ALIGNMENT
    is_virtual: bool = False

    def described(self) -> Descriptor:
        """Its descriptor."""
        return described(
            attributes.TENSOR,
            unique_id=self.uid,
            data_type=DATA_TYPES[self.dtype],
            byte_alignment=self.alignment,
            dimensions=self.shape,
            strides=self.strides,
            is_virtual=self.is_virtual or None,
        )


class Operation(Protocol):
    """One operation of a graph."""

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that it reads and writes."""
        ...

    def described(self, tensors: dict[int, Descriptor]) -> Descriptor:
        """Its descriptor over those of its tensors, by uid."""
        ...


@dataclass(frozen=True, slots=True)
class Window:
    """The movement of a filter over an image, on each spatial axis."""

    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pad: tuple[int, ...]


#: Kind of descriptor and names of (filter, wide image, narrow image), by what is computed.
_CONVOLUTIONS: Final[dict[str, tuple[Kind, tuple[str, str, str]]]] = {
    "narrow": (attributes.CONVOLUTION_FORWARD, ("w", "x", "y")),
    "wide": (attributes.CONVOLUTION_BACKWARD_DATA, ("w", "dx", "dy")),
    "filter": (attributes.CONVOLUTION_BACKWARD_FILTER, ("dw", "x", "dy")),
}


@dataclass(frozen=True, slots=True)
class Convolution:
    """The relation narrow = wide * filter, solved for one of the three.

    Attributes:
        result: The tensor to compute: narrow is a convolution, wide its transpose, filter the gradient of the filters.
        wide: The image that windows are taken from.
        filters: (channels of narrow, channels of wide / groups, window axes); the groups follow from the channels.
        narrow: The image with one place for each window.
        window: How the filter moves.
        compute: The dtype of sums.
    """

    result: Literal["narrow", "wide", "filter"]
    wide: Tensor
    filters: Tensor
    narrow: Tensor
    window: Window
    compute: str

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that it reads and writes."""
        return self.filters, self.wide, self.narrow

    def described(self, tensors: dict[int, Descriptor]) -> Descriptor:
        """Its descriptor."""
        window = described(
            attributes.CONVOLUTION,
            comp_type=DATA_TYPES[self.compute],
            conv_mode=attributes.CROSS_CORRELATION,
            spatial_dims=len(self.window.pad),
            dilations=self.window.dilation,
            filter_strides=self.window.stride,
            pre_paddings=self.window.pad,
            post_paddings=self.window.pad,
        )
        kind, names = _CONVOLUTIONS[self.result]
        operation = Descriptor(kind)
        scale = DOUBLE if self.compute == "float64" else FLOAT
        operation.set("alpha", 1.0, kind=scale)
        operation.set("beta", 0.0, kind=scale)
        operation.set("conv_desc", window)
        for name, tensor in zip(names, self.tensors, strict=True):
            operation.set(name, tensors[tensor.uid])
        operation.finalize()
        return operation


@dataclass(frozen=True, slots=True)
class Pointwise:
    """An element-wise operation; the second input broadcasts to the first.

    Attributes:
        mode: A key of `attributes.POINTWISE_MODES`.
        inputs: One or two tensors.
        output: The result.
        compute: The dtype that is computed in.
    """

    mode: str
    inputs: tuple[Tensor, ...]
    output: Tensor
    compute: str

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that it reads and writes."""
        return (*self.inputs, self.output)

    def described(self, tensors: dict[int, Descriptor]) -> Descriptor:
        """Its descriptor."""
        mode = attributes.POINTWISE_MODES[self.mode]
        return described(
            attributes.OPERATION_POINTWISE,
            pw_descriptor=described(attributes.POINTWISE, mode=mode, math_prec=DATA_TYPES[self.compute]),
            xdesc=tensors[self.inputs[0].uid],
            bdesc=tensors[self.inputs[1].uid] if len(self.inputs) > 1 else None,
            ydesc=tensors[self.output.uid],
        )
