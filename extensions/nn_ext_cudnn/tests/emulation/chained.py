"""Operations of the stand-in for libcudnn that are put together in chains: element-wise ones, products, reductions, reshapes.

Each computes in float32 from operands of the types that their tensors have, as engines do.
"""

import numpy as np
from fake_cudnn import require

#: By cudnnPointwiseMode_t: the function of the inputs, and how many there are; 501 gives indices.
POINTWISE = {
    0: (np.add, 2),
    1: (np.multiply, 2),
    6: (np.divide, 2),
    9: (np.subtract, 2),
    13: (np.exp, 1),
    15: (np.log, 1),
    21: (np.positive, 1),
    100: (lambda x: np.maximum(x, 0), 1),
    303: (np.greater_equal, 2),
    304: (np.less, 2),
    402: (np.logical_not, 1),
    501: (None, 1),
    601: (lambda x, b, condition: np.where(condition, x, b), 3),
}
_REDUCTIONS = {0: np.add.reduce, 3: np.fmax.reduce}
#: Names of the tensors of an operation by its kind, that of the result last.
TENSORS = {19: ("left", "right", "product"), 22: ("x", "y"), 31: ("x", "y")}
_WIDE = {0: np.float32, 1: np.float64}


def check_product(values):
    """Refuse a product whose sizes and types do not fit."""
    left, right, product = (getattr(values, name).values for name in TENSORS[19])
    require(left.shape[:-2] == right.shape[:-2] == product.shape[:-2], "all have one batch", 2008)
    require(left.shape[-1] == right.shape[-2], "columns of the left fit the rows of the right", 2008)
    require(product.shape[-2:] == (left.shape[-2], right.shape[-1]), "the result has those rows and columns", 2008)
    require(left.dtype == right.dtype, "what is read is of one type", 3003)
    require(values.matmul.values.compute == 0, "sums are in float", 3003)


def check_reduction(values):
    """Refuse a reduction whose sizes do not fit."""
    pairs = zip(values.x.values.shape, values.y.values.shape, strict=True)
    require(all(reduced in (1, whole) for whole, reduced in pairs), "the result has the length of x, or 1", 2008)
    require(values.reduction.values.operator in _REDUCTIONS, "there is no such reduction here", 3000)


def check_reshape(values):
    """Refuse a reshape to another number of elements."""
    x, y = values.x.values, values.y.values
    require(np.prod(x.shape) == np.prod(y.shape), "both have as many elements", 2008)
    walks = [sorted(zip(each.strides, each.shape, strict=True)) for each in (x, y)]
    require(walks[0] == walks[1] or all(map(_is_dense, (x, y))), "both fill their memory, or walk over the same", 3004)


def _is_dense(values):
    by_stride = sorted(zip(values.strides, values.shape, strict=True))
    step = 1
    for stride, length in by_stride:
        if length > 1 and stride != step:
            return False
        step *= length
    return True


def _pointwise(values, read, output):
    kind = values.pointwise.values
    function, _ = POINTWISE[kind.mode]
    if function is None:
        shape = [1] * len(output.shape)
        shape[kind.axis] = -1
        return np.arange(output.shape[kind.axis]).reshape(shape) * np.ones(output.shape, np.int64)
    wide = _WIDE[kind.precision]
    return function(*[array if array.dtype == bool else array.astype(wide) for array in read])


def _product(values, read, output):
    left, right = (array.astype(np.float32) for array in read)
    return np.matmul(left, right)


def _reduced(values, read, output):
    axes = tuple(axis for axis, length in enumerate(output.shape) if length == 1)
    return _REDUCTIONS[values.reduction.values.operator](read[0].astype(np.float32), axis=axes, keepdims=True)


def _reshaped(values, read, output):
    """The memory of x, read by the strides of the result."""
    (array,) = read
    source = values.x.values
    memory = np.empty(1 + sum((n - 1) * step for n, step in zip(source.shape, source.strides, strict=True)), array.dtype)
    _over(memory, source)[...] = array
    return _over(memory, output).copy()


def _over(memory, tensor):
    """A view of memory with the shape and strides of a tensor."""
    strides = tuple(step * memory.itemsize for step in tensor.strides)
    return np.lib.stride_tricks.as_strided(memory, tensor.shape, strides)


#: By kind of operation: computes the result from its values, the arrays that it reads, and the tensor that it writes.
COMPUTED = {13: _pointwise, 19: _product, 22: _reduced, 31: _reshaped}
