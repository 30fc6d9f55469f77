"""The operation graphs of attention: products, a softmax that is taken apart, and what hides keys in between.

cuDNN finds its fused engines for graphs of this form, which hold the scores of a tile at a time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from nn_core.ext import Shape
from nn_ext_cuda.codegen.layout import pitch
from nn_ext_cudnn.graph.operations import Operation, Pointwise, Product, Reduction, Reshape, Tensor
from nn_ext_cudnn.graph.plans import Graph

#: Sums, and everything between the products.
SUMS: Final = "float32"

#: Places of the arrays of a call, then of a backward call; uids count them from 1.
Q, K, V, MASK, Y, LOG_SUM = range(6)
DY, DQ, DK, DV = range(6, 10)
FORWARD: Final = (Q, K, V, MASK, Y, LOG_SUM)
BACKWARD: Final = (*FORWARD, DY, DQ, DK, DV)
#: Uids of numbers, and the first one of tensors that only lead from one operation to the next.
SCALE: Final = 50
LOWEST: Final = 51
ONE: Final = 52
_VIRTUAL: Final = 100
#: (place, strides in elements on the four axes) of arrays that are not in C order.
Lying: TypeAlias = tuple[tuple[int, Shape], ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a call, all leading axes but the last being the batch.

    Attributes:
        heads: (batch, heads).
        n_queries: Number of queries of each head.
        n_keys: Number of keys.
        width: Features of queries and keys.
        depth: Features of values.
        dtype: The dtype of the arrays.
        mask: The shape of the mask in four axes, or None.
        is_causal: Keys after the query are hidden.
        lying: The arrays that are not in C order.
    """

    heads: tuple[int, int]
    n_queries: int
    n_keys: int
    width: int
    depth: int
    dtype: str
    mask: Shape | None
    is_causal: bool
    lying: Lying = ()

    @property
    def scores(self) -> Shape:
        """The shape of the scores."""
        return (*self.heads, self.n_queries, self.n_keys)

    @property
    def rows(self) -> Shape:
        """The shape of what each query has one of."""
        return (*self.heads, self.n_queries, 1)

    def tensors(self) -> dict[int, Tensor]:
        """Return the tensors of the arrays, by place; gradients have the shapes of their arrays."""
        of_queries, of_keys, of_values = (*self.scores[:3], self.width), (*self.heads, self.n_keys, self.width), self._values
        shapes = {Q: of_queries, K: of_keys, V: of_values, Y: (*self.scores[:3], self.depth), LOG_SUM: self.rows}
        shapes |= {DQ: of_queries, DK: of_keys, DV: of_values, DY: shapes[Y]}
        shapes |= {} if self.mask is None else {MASK: self.mask}
        dtypes, strides = {LOG_SUM: SUMS}, dict(self.lying)
        return {
            place: Tensor(place + 1, shape, strides.get(place) or pitch(shape), dtypes.get(place, self.dtype))
            for place, shape in shapes.items()
        }

    @property
    def _values(self) -> Shape:
        return (*self.heads, self.n_keys, self.depth)


@dataclass(slots=True)
class _Chain:
    """Operations in order; those without a target write tensors that only lead to the next ones.

    Attributes:
        sizes: The sizes of the call.
        arrays: The tensors of its arrays, by place.
        operations: What was added so far.
    """

    sizes: Sizes
    arrays: Mapping[int, Tensor]
    operations: list[Operation] = field(default_factory=list)

    def virtual(self, shape: Shape, dtype: str, strides: tuple[int, ...] | None = None) -> Tensor:
        uid = _VIRTUAL + len(self.operations)
        return Tensor(uid, shape, strides or pitch(shape), dtype, is_virtual=True)

    def pointwise(
        self, mode: str, *inputs: Tensor, dtype: str = SUMS, to: Tensor | None = None, axis: int | None = None
    ) -> Tensor:
        output = to or self.virtual(inputs[0].shape, dtype)
        self.operations.append(Pointwise(mode, inputs, output, SUMS, axis))
        return output

    def product(self, left: Tensor, right: Tensor, to: Tensor | None = None) -> Tensor:
        output = to or self.virtual((*left.shape[:-1], right.shape[-1]), SUMS)
        self.operations.append(Product(left, right, output, SUMS))
        return output

    def of_rows(self, operator: str, values: Tensor) -> Tensor:
        """Return a sum or maximum along the last axis."""
        output = self.virtual(self.sizes.rows, SUMS)
        self.operations.append(Reduction(operator, values, output, SUMS))
        return output

    def reshaped(self, values: Tensor, output: Tensor) -> Tensor:
        self.operations.append(Reshape(values, output))
        return output

    def transposed(self, values: Tensor) -> Tensor:
        """Return a matrix of scores with its last two axes exchanged, in the dtype of the arrays."""
        turned = _turned(values)
        return self.reshaped(values, self.virtual(turned.shape, self.sizes.dtype, turned.strides))

    def scores(self) -> Tensor:
        """scale q k^T + mask; where a key is hidden or the mask is -inf, the number of LOWEST."""
        sizes, lowest = self.sizes, _number(LOWEST)
        scores = self.product(self.arrays[Q], _turned(self.arrays[K]))
        scores = self.pointwise("mul", scores, _number(SCALE))
        if sizes.mask is not None:
            scores = self.pointwise("add", scores, self.arrays[MASK])
        if sizes.is_causal:
            queries, keys = (self.pointwise("gen_index", scores, dtype="int32", axis=axis) for axis in (2, 3))
            visible = self.pointwise("cmp_ge", queries, keys, dtype="bool")
            scores = self.pointwise("binary_select", scores, lowest, visible)
        if sizes.mask is None:
            return scores
        # not a maximum, which may leave out NaN
        above = self.pointwise("logical_not", self.pointwise("cmp_lt", scores, lowest, dtype="bool"), dtype="bool")
        return self.pointwise("binary_select", scores, lowest, above)


def forward_graph(sizes: Sizes) -> Graph:
    """Return the scores, their softmax with the largest one subtracted, and the product with the values."""
    arrays = sizes.tensors()
    chain = _Chain(sizes, arrays)
    scores = chain.scores()
    largest = chain.of_rows("max", scores)
    exponentials = chain.pointwise("exp", chain.pointwise("sub", scores, largest))
    total = chain.of_rows("add", exponentials)
    chain.pointwise("add", largest, chain.pointwise("log", total), to=arrays[LOG_SUM])
    weights = chain.pointwise("div", exponentials, total, dtype=sizes.dtype)
    chain.product(weights, arrays[V], to=arrays[Y])
    return tuple(chain.operations)


def backward_graph(sizes: Sizes, *, adds_in_any_order: bool = False) -> Graph:
    """Return the gradients: with the weights p, dv = p^T dy, and from ds = scale p (dy v^T - dy.y) dq = ds k and dk = ds^T q.

    cuDNN tells its engines by the form of the graph, down to a product with 1, where a dropout would have its scale, and the
    order of the factors of ds: of another form it makes plans that fault, or compute something else (cuDNN 9.19 on an H100).
    `adds_in_any_order` asks for the engine that adds dq of blocks of keys to float32 numbers as they come; it needs memory
    for one dq, the other one for ds.
    """
    arrays = sizes.tensors()
    chain = _Chain(sizes, arrays)
    inner = chain.of_rows("add", chain.pointwise("mul", arrays[DY], arrays[Y]))
    inner = chain.pointwise("mul", inner, _number(ONE))
    weights = chain.pointwise("exp", chain.pointwise("sub", chain.scores(), arrays[LOG_SUM]))
    chain.product(chain.transposed(weights), arrays[DY], to=arrays[DV])
    changes = chain.pointwise("sub", chain.product(arrays[DY], _turned(arrays[V])), inner)
    changes = chain.pointwise("mul", changes, weights)
    changes = chain.pointwise("mul", changes, _number(SCALE), dtype=sizes.dtype)
    # a tensor is one matrix to its readers, and k was read transposed
    keys = chain.reshaped(_turned(arrays[K]), chain.virtual(arrays[K].shape, sizes.dtype, arrays[K].strides))
    if adds_in_any_order:
        chain.pointwise("identity", chain.product(changes, keys), to=arrays[DQ])
    else:
        chain.product(changes, keys, to=arrays[DQ])
    chain.product(chain.transposed(changes), arrays[Q], to=arrays[DK])
    return tuple(chain.operations)


def _number(uid: int) -> Tensor:
    return Tensor(uid, (1, 1, 1, 1), (1, 1, 1, 1), SUMS, is_by_value=True)


def _turned(tensor: Tensor) -> Tensor:
    """Return the same memory with the last two axes exchanged."""
    shape, strides = tensor.shape, tensor.strides
    return Tensor(
        tensor.uid,
        (*shape[:-2], shape[-1], shape[-2]),
        (*strides[:-2], strides[-1], strides[-2]),
        tensor.dtype,
        tensor.alignment,
        tensor.is_virtual,
    )
