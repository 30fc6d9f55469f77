"""Other places for elements."""

from collections.abc import Sequence
from itertools import pairwise

from nn_core.ext import ArgumentError, F, ShapeError, Variable
from nn_ext_contrib.functions.checks import require_ndim


def depth2space(x: Variable, r: int) -> Variable:
    """Make each pixel a block of pixels out of its channels: y[b, c, h r + i, w r + j] = x[b, (i r + j) C + c, h, w].

    Args:
        x: Images. Shape (B, C r^2, H, W).
        r: Height and width of a block.

    Returns:
        Shape (B, C, H r, W r).

    Raises:
        ShapeError: when x has other axes, or r^2 does not divide the number of channels.

    Example:
        >>> depth2space(nn.NdArray.from_numpy_array([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]), 2).data.tolist()
        [[[[1.0, 2.0], [3.0, 4.0]]]]
    """
    require_ndim("depth2space", "x", x, 4, "(B, C r^2, H, W)")
    batch, depth, height, width = x.shape
    if r < 1 or depth % (r * r):
        raise ShapeError(f"depth2space: r^2 must divide the {depth} channels of x, got r = {r}")
    channels = depth // (r * r)
    blocks = F.transpose(F.reshape(x, (batch, r, r, channels, height, width)), (0, 3, 4, 1, 5, 2))
    return F.reshape(blocks, (batch, channels, height * r, width * r))


def space2depth(x: Variable, r: int) -> Variable:
    """Make channels out of each block of pixels, the inverse of `depth2space`.

    Args:
        x: Images. Shape (B, C, H r, W r).
        r: Height and width of a block.

    Returns:
        Shape (B, C r^2, H, W).

    Raises:
        ShapeError: when x has other axes, or r does not divide height and width.

    Example:
        >>> space2depth(nn.NdArray.from_numpy_array([[[[1.0, 2.0], [3.0, 4.0]]]]), 2).data.tolist()
        [[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]
    """
    require_ndim("space2depth", "x", x, 4, "(B, C, H r, W r)")
    batch, channels, height, width = x.shape
    if r < 1 or height % r or width % r:
        raise ShapeError(f"space2depth: r must divide height and width of x, got {r} and {x.shape}")
    blocks = F.transpose(F.reshape(x, (batch, channels, height // r, r, width // r, r)), (0, 3, 5, 1, 2, 4))
    return F.reshape(blocks, (batch, channels * r * r, height // r, width // r))


def im2col(
    x: Variable,
    ksize: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    pad: int | Sequence[int] = 0,
    dilate: int | Sequence[int] = 1,
    cover_all: bool = False,
) -> Variable:
    """Gather the pixels under each window of an image.

    y[n, (c kh + i) kw + j, p, q] = x[n, c, p s - pad + i d, q s - pad + j d]

    Args:
        x: Images. Shape (N, C, H, W).
        ksize: Height kh and width kw of a window, or one number for both.
        stride: Distance s of windows, likewise.
        pad: Width of the border of zeros, likewise.
        dilate: Distance d of the pixels of a window, likewise.
        cover_all: Let windows reach beyond the end, so that every pixel is under one.

    Returns:
        Shape (N, C kh kw, H', W').

    Raises:
        ShapeError: when x has other axes, or is smaller than a window.

    Example:
        >>> im2col(nn.NdArray.from_numpy_array([[[[1.0, 2.0, 3.0]]]]), (1, 2)).data.tolist()
        [[[[1.0, 2.0]], [[2.0, 3.0]]]]
    """
    require_ndim("im2col", "x", x, 4, "(N, C, H, W)")
    kernel, strides, pads, steps = (_pair("im2col", *item) for item in zip(
        ("ksize", "stride", "pad", "dilate"), (ksize, stride, pad, dilate), strict=True
    ))  # fmt: skip
    sizes, widths = [], [0, 0, 0, 0]
    for length, k, s, p, d in zip(x.shape[2:], kernel, strides, pads, steps, strict=True):
        reach = (k - 1) * d + 1
        size = (length + 2 * p - reach + (s - 1 if cover_all else 0)) // s + 1
        if size < 1:
            raise ShapeError(f"im2col: x must be as large as a window of {reach} with pad {p}, got {x.shape}")
        sizes.append(size)
        widths += [p, max(p, (size - 1) * s + reach - length - p)]
    padded = F.pad(x, tuple(widths)) if any(widths) else x
    columns = [
        F.slice(
            padded,
            start=(0, 0, i * steps[0], j * steps[1]),
            stop=(
                *x.shape[:2],
                i * steps[0] + (sizes[0] - 1) * strides[0] + 1,
                j * steps[1] + (sizes[1] - 1) * strides[1] + 1,
            ),
            step=(1, 1, *strides),
        )
        for i in range(kernel[0])
        for j in range(kernel[1])
    ]
    return F.reshape(F.stack(*columns, axis=2), (x.shape[0], x.shape[1] * len(columns), *sizes))


def permutate(x: Variable, indices: Variable, axis: int = 0, inv: bool = False) -> Variable:
    """Reorder an axis: y[..., i, ...] = x[..., indices[i], ...], or y[..., indices[i], ...] = x[..., i, ...] if `inv`.

    Args:
        x: Array of any shape with the axis.
        indices: A permutation of the numbers below the length of the axis. That none is missing is not checked.
        axis: The axis.
        inv: Reorder back.

    Returns:
        The shape of x.

    Raises:
        ShapeError: when the number of indices is not the length of the axis.

    Example:
        >>> x, order = nn.NdArray.from_numpy_array([1.0, 2.0, 3.0]), nn.NdArray.from_numpy_array([2, 0, 1])
        >>> permutate(x, order).data.tolist(), permutate(x, order, inv=True).data.tolist()
        ([3.0, 1.0, 2.0], [2.0, 3.0, 1.0])
    """
    if not -x.ndim <= axis < x.ndim:
        raise ArgumentError(f"permutate: axis must be in [{-x.ndim}, {x.ndim}), got {axis}")
    if indices.shape != (x.shape[axis],):
        raise ShapeError(
            f"permutate: indices must have shape ({x.shape[axis]},), the length of axis {axis}, got {indices.shape}"
        )
    order = F.sort(indices, axis=0, only_index=True) if inv else indices
    return F.gather(x, order, axis=axis % x.ndim)


def select_item(x: Variable, t: Variable) -> Variable:
    """Pick one element of each row: y[n] = x[n, t[n]].

    Args:
        x: Array of shape (N, K).
        t: Numbers of columns. Shape (N).

    Returns:
        Shape (N).

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> x, t = nn.NdArray.from_numpy_array([[1.0, 2.0], [3.0, 4.0]]), nn.NdArray.from_numpy_array([1, 0])
        >>> select_item(x, t).data.tolist()
        [2.0, 3.0]
    """
    require_ndim("select_item", "x", x, 2, "(N, K)")
    if t.shape != x.shape[:1]:
        raise ShapeError(f"select_item: t must have shape {x.shape[:1]}, one column for each row of x, got {t.shape}")
    return F.gather(x, t, axis=1, batch_dims=1)


def rollaxis(x: Variable, axis: int, start: int = 0) -> Variable:
    """Move an axis in front of another, as ``numpy.rollaxis``.

    Args:
        x: Array with the axes.
        axis: The axis that is moved.
        start: The axis before which it is inserted; ``x.ndim``: the end.

    Returns:
        The same elements.

    Example:
        >>> rollaxis(nn.Variable((2, 3, 4)), 2).shape
        (4, 2, 3)
    """
    if not -x.ndim <= axis < x.ndim or not -x.ndim <= start <= x.ndim:
        raise ArgumentError(f"rollaxis: axis and start must be axes of an array with {x.ndim}, got {axis} and {start}")
    axis, start = axis % x.ndim, start + x.ndim if start < 0 else start
    order = [n for n in range(x.ndim) if n != axis]
    order.insert(start - (axis < start), axis)
    return F.transpose(x, tuple(order))


def swapaxes(x: Variable, axis1: int, axis2: int) -> Variable:
    """Exchange two axes.

    Args:
        x: Array with the axes.
        axis1: One axis.
        axis2: The other.

    Returns:
        The same elements.

    Example:
        >>> swapaxes(nn.Variable((2, 3, 4)), 0, 2).shape
        (4, 3, 2)
    """
    for axis in (axis1, axis2):
        if not -x.ndim <= axis < x.ndim:
            raise ArgumentError(f"swapaxes: axes must be in [{-x.ndim}, {x.ndim}), got {axis}")
    order = list(range(x.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return F.transpose(x, tuple(order))


def hstack(*xs: Variable) -> Variable:
    """Join arrays along their second axis, or along the only one.

    Args:
        xs: Arrays that are alike except for that axis.

    Returns:
        The joined array.

    Example:
        >>> hstack(nn.Variable((2, 3)), nn.Variable((2, 1))).shape
        (2, 4)
    """
    return F.concatenate(*xs, axis=0 if xs[0].ndim < 2 else 1)


def vstack(*xs: Variable) -> Variable:
    """Join arrays along their first axis; arrays with one axis become rows.

    Args:
        xs: Arrays that are alike except for that axis.

    Returns:
        The joined array.

    Example:
        >>> vstack(nn.Variable((3,)), nn.Variable((3,))).shape
        (2, 3)
    """
    return F.concatenate(*[F.reshape(x, (1, *x.shape)) if x.ndim < 2 else x for x in xs], axis=0)


def dstack(*xs: Variable) -> Variable:
    """Join arrays along their third axis; arrays with fewer axes get one: (N) becomes (1, N, 1) and (N, M) (N, M, 1).

    Args:
        xs: Arrays that are alike except for that axis.

    Returns:
        The joined array.

    Example:
        >>> dstack(nn.Variable((2, 3)), nn.Variable((2, 3))).shape
        (2, 3, 2)
    """
    shapes = [(1, *x.shape, 1) if x.ndim == 1 else (*x.shape, 1) if x.ndim == 2 else x.shape for x in xs]
    return F.concatenate(*[F.reshape(x, shape) for x, shape in zip(xs, shapes, strict=True)], axis=2)


def split_axis(x: Variable, indices_or_sections: int | Sequence[int], axis: int) -> list[Variable]:
    """Cut an axis into parts, as ``numpy.split``.

    Args:
        x: Array with the axis.
        indices_or_sections: Number of equal parts, or the places of the cuts in ascending order.
        axis: The axis.

    Returns:
        The parts.

    Raises:
        ShapeError: when the parts are not equal.
        ArgumentError: when the cuts do not ascend within the axis, so that a part would be empty.

    Example:
        >>> [part.shape for part in split_axis(nn.Variable((2, 6)), [1, 4], axis=1)]
        [(2, 1), (2, 3), (2, 2)]
    """
    if not -x.ndim <= axis < x.ndim:
        raise ArgumentError(f"split_axis: axis must be in [{-x.ndim}, {x.ndim}), got {axis}")
    length = x.shape[axis]
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or length % indices_or_sections:
            raise ShapeError(f"split_axis: sections must divide the length {length} of axis {axis}, got {indices_or_sections}")
        size = length // indices_or_sections
        cuts = list(range(size, length, size))
    else:
        cuts = [int(cut) for cut in indices_or_sections]
    edges = [0, *cuts, length]
    if any(first >= second for first, second in pairwise(edges)):
        raise ArgumentError(f"split_axis: cuts must ascend between 0 and {length}, got {cuts}")
    return [_sliced(x, axis % x.ndim, first, second) for first, second in pairwise(edges)]


def _sliced(x: Variable, axis: int, first: int, end: int) -> Variable:
    start, stop = [0] * x.ndim, list(x.shape)
    start[axis], stop[axis] = first, end
    return F.slice(x, start=tuple(start), stop=tuple(stop), step=(1,) * x.ndim)


def _rows(x: Variable) -> list[Variable]:
    return [F.reshape(_sliced(x, 0, n, n + 1), x.shape[1:]) for n in range(x.shape[0])]


def transpose_sequence(xs: Sequence[Variable]) -> list[Variable]:
    """Turn sequences into steps: the t-th result stacks the t-th elements of all sequences that are as long as that.

    Args:
        xs: Sequences of shapes (L_1, ...), (L_2, ...), ... with L_1 >= L_2 >= ...

    Returns:
        L_1 steps; or of steps the sequences.

    Raises:
        ShapeError: when the sequences are not sorted by falling length.

    Example:
        >>> xs = [nn.NdArray.from_numpy_array(x) for x in ([0.0, 1.0, 2.0], [4.0, 5.0], [6.0])]
        >>> [step.data.tolist() for step in transpose_sequence(xs)]
        [[0.0, 4.0, 6.0], [1.0, 5.0], [2.0]]
    """
    lengths = [x.shape[0] for x in xs]
    if any(longer < shorter for longer, shorter in pairwise(lengths)):
        raise ShapeError(f"transpose_sequence: xs must be sorted by falling length, got lengths {lengths}")
    parts = [_rows(x) for x in xs]
    counts = [sum(length > step for length in lengths) for step in range(max(lengths, default=0))]
    return [F.stack(*[parts[n][step] for n in range(count)], axis=0) for step, count in enumerate(counts)]


def _pair(function: str, name: str, value: int | Sequence[int]) -> tuple[int, int]:
    pair = tuple(value) if isinstance(value, Sequence) else (value, value)
    if len(pair) != 2:
        raise ArgumentError(f"{function}: {name} must be one number or two, got {value}")
    return pair[0], pair[1]
