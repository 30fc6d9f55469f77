"""The three products of a convolution as launches and matrix products; see ``kernels/cuda/convolution.cu``.

Images, maps and filters are tied by one equation, and each function of the family computes one of them from the other
two: a convolution the maps, its gradients images and filters, a deconvolution the images.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from nn_core.ext import ArrayDesc, Runner, Shape
from nn_ext_cuda.codegen.code import Code, part
from nn_ext_cuda.codegen.copies import Copies
from nn_ext_cuda.codegen.dtypes import C_TYPES, ITEM_BYTES, real_type
from nn_ext_cuda.codegen.layout import divider
from nn_ext_cuda.gemm.blas import Matrix
from nn_ext_cuda.gemm.precision import is_tf32_allowed
from nn_ext_cuda.gemm.product import Product
from nn_ext_cuda.launch.program import THREADS, Argument, Chain, Launch, Program, flat
from nn_ext_cuda.memory.workspace import with_workspace

#: The limit of memory for columns; they are made for some samples at a time if those of all take more.
COLUMN_BYTES: Final = 2**27
#: Groups of at most so many products a filter place are summed directly: a matrix product would be too thin.
THIN: Final = 16


@dataclass(frozen=True)
class Convolving:
    """The geometry of images (N, C, L...), maps (N, K, O...) and filters (K, C / group, R...), and their layout.

    Attributes:
        samples: N.
        channels: C.
        filters: K.
        group: Number of groups.
        lengths: L of up to three axes.
        counts: O.
        sizes: R.
        strides: Distances between places of a filter.
        pads: Widths of the border.
        dilations: Distances between the elements of a filter.
        channel_last: Channels are innermost in all three.
        dtype: Their dtype.
    """

    samples: int
    channels: int
    filters: int
    group: int
    lengths: Shape
    counts: Shape
    sizes: Shape
    strides: Shape
    pads: Shape
    dilations: Shape
    channel_last: bool
    dtype: str

    @cached_property
    def n_places(self) -> int:
        """Places of a filter in one sample."""
        return math.prod(self.counts)

    @cached_property
    def members(self) -> int:
        """Channels of a group."""
        return self.channels // self.group

    @cached_property
    def column(self) -> int:
        """Number of elements that a filter covers in all groups together."""
        return self.channels * math.prod(self.sizes)

    @cached_property
    def weights(self) -> int:
        """Elements of one filter."""
        return self.members * math.prod(self.sizes)

    @property
    def is_direct(self) -> bool:
        """Whether sums are taken without columns."""
        per_sample = self.column * self.n_places * ITEM_BYTES[self.dtype]
        thin = self.group > 1 and self.members * (self.filters // self.group) <= THIN
        return self.members == 1 or thin or per_sample > COLUMN_BYTES

    @property
    def is_pointwise(self) -> bool:
        """Whether the images are their own columns."""
        ones = (*self.sizes, *self.strides)
        return all(one == 1 for one in ones) and not any(self.pads) and self.lengths == self.counts

    def maps(self, n_arrays: int, images: int, filters: int, target: int, bias: int | None) -> Runner:
        """Return the runner that computes the maps; with a matrix product they hold the bias already."""
        if self.is_direct:
            n = self.samples * self.filters * self.n_places
            places = [np.int64(n), images, filters, *self._optional(bias), target]
            return Program([flat(self._code("direct_maps"), n, [*self._geometry(), *places])] if n else [], n_arrays)
        adds = bias is not None
        if self.is_pointwise:
            whole = range(self.samples)
            return self._times_filters(images, filters, target, whole, adds=adds, columns_are_images=True)
        runners: list[Runner] = []
        for some in self._portions():
            runners.append(self._columns(some, n_arrays, images))
            runners.append(self._times_filters(n_arrays, filters, target, some, adds=adds))
        return with_workspace(Chain(runners), n_arrays, [self._column_bytes()])

    def images(self, n_arrays: int, maps: int, filters: int, target: int, bias: int | None, *, adds: bool = False) -> Runner:
        """Return the runner that computes the images, and adds the bias, and what is there if that is told."""
        n = self.samples * self.channels * math.prod(self.lengths)
        if self.is_direct:
            places = [np.int64(n), maps, filters, *self._optional(bias), target]
            code = self._code("direct_images", adds=adds)
            return Program([flat(code, n, [*self._geometry(), *places])] if n else [], n_arrays)
        if self.is_pointwise and bias is None:
            return self._filters_times(maps, filters, target, range(self.samples), adds=adds, columns_are_images=True)
        runners: list[Runner] = []
        for some in self._portions():
            runners.append(self._filters_times(maps, filters, n_arrays, some))
            size = self.channels * math.prod(self.lengths)
            numbers = [np.int64(len(some) * size), np.uint32(len(some) * self.n_places), np.int64(some.start * size)]
            arguments = [*self._geometry(), *numbers, n_arrays, *self._optional(bias), target]
            launches = [flat(self._code("images", adds=adds), len(some) * size, arguments)] if size else []
            runners.append(Program(launches, n_arrays + 1))
        return with_workspace(Chain(runners), n_arrays, [self._column_bytes()])

    def gradient_of_filters(self, n_arrays: int, images: int, maps: int, target: int) -> Runner:
        """Return the runner that computes filters from images and maps: the gradient of the filters."""
        if self.is_direct or self.samples * self.n_places == 0:
            n = self.filters * self.weights
            arguments: list[Argument] = [*self._geometry(), np.int64(self.samples), images, maps, target]
            code = self._code("direct_filters")
            return Program([Launch(code, (n,), (THREADS,), tuple(arguments))] if n else [], n_arrays)
        runners: list[Runner] = []
        n_bytes = [self._column_bytes()]
        if not self.channel_last:
            n_bytes.append(self._portions()[0].stop * self.filters * self.n_places * ITEM_BYTES[self.dtype])
        for some in self._portions():
            runners.append(self._columns(some, n_arrays, images))
            if not self.channel_last:
                runners.append(self._turned_maps(some, n_arrays, maps))
            runners.append(self._maps_times_columns(some, n_arrays, maps, target))
        return with_workspace(Chain(runners), n_arrays, n_bytes)

    def _portions(self) -> list[range]:
        """Return the samples whose columns are made together."""
        per_sample = max(self.column * self.n_places * ITEM_BYTES[self.dtype], 1)
        most = max(COLUMN_BYTES // per_sample, 1)
        return [range(first, min(first + most, self.samples)) for first in range(0, self.samples, most)]

    def _column_bytes(self) -> int:
        portions = self._portions()
        return len(portions[0]) * self.column * self.n_places * ITEM_BYTES[self.dtype] if portions else 0

    def _columns(self, some: range, n_arrays: int, images: int) -> Program:
        n_places = len(some) * self.n_places
        n = self.column * n_places
        by = self.group if self.channel_last else n_places
        numbers = [np.uint32(n), np.uint32(n_places), *map(np.uint32, divider(by))]
        start = np.int64(some.start * self.channels * math.prod(self.lengths))
        arguments = [*self._geometry(), *numbers, start, images, n_arrays]
        return Program([flat(self._code("columns"), n, arguments)] if n else [], n_arrays + 1)

    def _times_filters(
        self, columns: int, filters: int, maps: int, some: range, *, adds: bool, columns_are_images: bool = False
    ) -> Product:
        """Return maps of some samples from columns."""
        width = self.filters // self.group
        start = some.start * self.filters * self.n_places
        if self.channel_last:
            first = some.start * self.column * self.n_places if columns_are_images else 0
            a = Matrix(columns, self.column, self.weights, first)
            b = Matrix(filters, self.weights, width * self.weights, transposed=True)
            c = Matrix(maps, self.filters, width, start)
            return self._product(a, b, c, (len(some) * self.n_places, width, self.weights), self.group, adds=adds)
        a, b, c = self._by_sample(columns, filters, maps, some, columns_are_images)
        sizes = (width, self.n_places, self.weights)
        return self._product(a, b, c, sizes, len(some) * self.group, adds=adds)

    def _filters_times(
        self, maps: int, filters: int, columns: int, some: range, *, adds: bool = False, columns_are_images: bool = False
    ) -> Product:
        """Columns from maps of some samples."""
        width = self.filters // self.group
        start = some.start * self.filters * self.n_places
        if self.channel_last:
            first = some.start * self.column * self.n_places if columns_are_images else 0
            a = Matrix(maps, self.filters, width, start)
            b = Matrix(filters, self.weights, width * self.weights)
            c = Matrix(columns, self.column, self.weights, first)
            return self._product(a, b, c, (len(some) * self.n_places, self.weights, width), self.group, adds=adds)
        weights, result, source = self._by_sample(columns, filters, maps, some, columns_are_images)
        turned = Matrix(filters, self.weights, weights.step, transposed=True)
        sizes = (self.weights, self.n_places, width)
        return self._product(turned, source, result, sizes, len(some) * self.group, adds=adds)

    def _maps_times_columns(self, some: range, columns: int, maps: int, target: int) -> Product:
        """Return filters from maps and columns of some samples, added to those of the samples before."""
        width, n = self.filters // self.group, len(some) * self.n_places
        c = Matrix(target, self.weights, width * self.weights)
        if self.channel_last:
            a = Matrix(maps, self.filters, width, some.start * self.filters * self.n_places, transposed=True)
            b = Matrix(columns, self.column, self.weights)
        else:
            a = Matrix(columns + 1, n, width * n)
            b = Matrix(columns, n, self.weights * n, transposed=True)
        return self._product(a, b, c, (width, self.weights, n), self.group, adds=some.start > 0)

    def _by_sample(
        self, columns: int, filters: int, maps: int, some: range, columns_are_images: bool
    ) -> tuple[Matrix, Matrix, Matrix]:
        """Return filters, columns and maps of each sample and group, channels before places."""
        width = self.filters // self.group
        numbers = [(sample, group) for sample in range(len(some)) for group in range(self.group)]
        n = self.n_places if columns_are_images else len(some) * self.n_places
        from_sample = self.column * self.n_places if columns_are_images else self.n_places
        of_filters: Any = tuple(group * width * self.weights for _, group in numbers)
        of_columns: Any = tuple(sample * from_sample + group * self.weights * n for sample, group in numbers)
        if self.group == 1:
            of_filters, of_columns = 0, from_sample
        return (
            Matrix(filters, self.weights, of_filters),
            Matrix(columns, n, of_columns, some.start * from_sample if columns_are_images else 0),
            Matrix(maps, self.n_places, width * self.n_places, some.start * self.filters * self.n_places),
        )

    def _turned_maps(self, some: range, n_arrays: int, maps: int) -> Program:
        """Return maps of some samples with the filters first, after the columns in the workspace."""
        arrays: list[ArrayDesc | None] = [None] * (n_arrays + 2)
        arrays[maps] = ArrayDesc((self.samples, self.filters, self.n_places), self.dtype)
        arrays[n_arrays + 1] = ArrayDesc((self.filters, len(some), self.n_places), self.dtype)
        copies = Copies(arrays)
        read = copies.view(maps)[some.start : some.stop].transpose(1, 0, 2)
        copies.copy(maps, read, n_arrays + 1, copies.view(n_arrays + 1))
        return copies.program()

    def _product(
        self, a: Matrix, b: Matrix, c: Matrix, sizes: tuple[int, int, int], count: int, *, adds: bool = False
    ) -> Product:
        return Product(a, b, c, sizes, self.dtype, count, is_tf32_allowed(), adds)

    def _code(self, function: str, *, adds: bool = False) -> Code:
        header = f"#define LAST {int(self.channel_last)}\n#define ADDS {int(adds)}\ntypedef {C_TYPES[self.dtype]} T;\n"
        return Code(function, f"{header}{part('convolution.cu')}", real_type(self.dtype))

    def _geometry(self) -> list[Argument]:
        """Return the numbers that the kernels take first."""
        values: list[int] = []
        shorter = ((self.lengths, 1), (self.counts, 1), (self.sizes, 1), (self.strides, 1), (self.pads, 0))
        for given, filling in (*shorter, (self.dilations, 1)):
            values += [filling] * (3 - len(given)) + list(given)
        values += [self.channels, self.filters, self.members, self.filters // self.group]
        counts, sizes = values[3:6], values[6:9]
        for divisor in (*reversed(counts), *sizes[:0:-1], math.prod(sizes), self.members):
            values += divider(max(divisor, 1))
        return [np.uint32(value) for value in values]

    @staticmethod
    def _optional(place: int | None) -> list[Argument]:
        return [np.uint64(0) if place is None else place]
