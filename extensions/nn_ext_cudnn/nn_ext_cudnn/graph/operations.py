"""The parts of an operation graph, as values: equal graphs compare equal, and serve as keys."""

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from nn_core.ext import Shape
from nn_ext_cudnn.graph import attributes
from nn_ext_cudnn.graph.attributes import DATA_TYPES, DOUBLE, FLOAT, Kind
from nn_ext_cudnn.graph.descriptor import Descriptor, described

#: The alignment in bytes that engines are chosen for; arrays off it are copied.
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
        is_by_value: Its one element is in memory of the host, and is read when the plan is launched.
    """

    uid: int
    shape: Shape
    strides: tuple[int, ...]
    dtype: str
    alignment: int = ALIGNMENT
    is_virtual: bool = False
    is_by_value: bool = False

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
            is_by_value=self.is_by_value or None,
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
        adds: The result is added to what its tensor holds.
    """

    result: Literal["narrow", "wide", "filter"]
    wide: Tensor
    filters: Tensor
    narrow: Tensor
    window: Window
    compute: str
    adds: bool = False

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
        operation.set("beta", float(self.adds), kind=scale)
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
        inputs: One or two tensors; for binary_select two and the condition under which the first is taken.
        output: The result.
        compute: The dtype that is computed in.
        axis: The axis whose indices gen_index gives.
    """

    mode: str
    inputs: tuple[Tensor, ...]
    output: Tensor
    compute: str
    axis: int | None = None

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that it reads and writes."""
        return (*self.inputs, self.output)

    def described(self, tensors: dict[int, Descriptor]) -> Descriptor:
        """Its descriptor."""
        mode = attributes.POINTWISE_MODES[self.mode]
        kind = described(attributes.POINTWISE, mode=mode, math_prec=DATA_TYPES[self.compute], axis=self.axis)
        inputs = {name: tensors[tensor.uid] for name, tensor in zip(("xdesc", "bdesc", "tdesc"), self.inputs, strict=False)}
        return described(attributes.OPERATION_POINTWISE, pw_descriptor=kind, **inputs, ydesc=tensors[self.output.uid])


@dataclass(frozen=True, slots=True)
class Product:
    """Products of matrices, the last two axes: (..., m, k) by (..., k, n).

    Attributes:
        left: The matrices on the left.
        right: Those on the right.
        output: The result.
        compute: The dtype of sums.
    """

    left: Tensor
    right: Tensor
    output: Tensor
    compute: str

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that it reads and writes."""
        return self.left, self.right, self.output

    def described(self, tensors: dict[int, Descriptor]) -> Descriptor:
        """Its descriptor."""
        left, right, output = (tensors[tensor.uid] for tensor in self.tensors)
        kind = described(attributes.MATMUL, comp_type=DATA_TYPES[self.compute])
        return described(attributes.OPERATION_MATMUL, adesc=left, bdesc=right, cdesc=output, desc=kind)


@dataclass(frozen=True, slots=True)
class Reduction:
    """A sum or maximum over the axes on which the output has length 1.

    Attributes:
        operator: A key of `attributes.REDUCTION_OPERATORS`.
        input: The tensor that is reduced.
        output: The result.
        compute: The dtype that is computed in.
    """

    operator: str
    input: Tensor
    output: Tensor
    compute: str

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that it reads and writes."""
        return self.input, self.output

    def described(self, tensors: dict[int, Descriptor]) -> Descriptor:
        """Its descriptor."""
        number = attributes.REDUCTION_OPERATORS[self.operator]
        kind = described(attributes.REDUCTION, operator=number, comp_type=DATA_TYPES[self.compute])
        x, y = (tensors[tensor.uid] for tensor in self.tensors)
        return described(attributes.OPERATION_REDUCTION, xdesc=x, ydesc=y, desc=kind)


@dataclass(frozen=True, slots=True)
class Reshape:
    """The same elements in another shape, or with other strides.

    Attributes:
        input: The tensor that is read.
        output: The result; a transposed one has its strides exchanged too.
    """

    input: Tensor
    output: Tensor

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that it reads and writes."""
        return self.input, self.output

    def described(self, tensors: dict[int, Descriptor]) -> Descriptor:
        """Its descriptor."""
        x, y = (tensors[tensor.uid] for tensor in self.tensors)
        return described(attributes.OPERATION_RESHAPE, xdesc=x, ydesc=y)
