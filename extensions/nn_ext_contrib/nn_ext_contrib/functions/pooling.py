"""Pooling and normalization over neighbours."""

from math import prod

from nn_core.ext import ArgumentError, F, ShapeError, Variable
from nn_ext_contrib.functions.checks import require_ndim


def spatial_pyramid_pooling_2d(x: Variable, pyramid_height: int) -> Variable:
    """Take the largest values of images on grids of 1, 2 x 2, 4 x 4, ... bins, so that images of all sizes give as many.

    Args:
        x: Images. Shape (B, C, H, W).
        pyramid_height: Number P of grids.

    Returns:
        Shape (B, C (4^P - 1) / 3, 1, 1); channels first, then the bins, within each grid.

    Raises:
        ShapeError: when x has other axes, or fewer rows or columns than the finest grid needs.
        ArgumentError: when the height is below 1.

    Example:
        >>> spatial_pyramid_pooling_2d(nn.Variable((8, 3, 10, 13)), 3).shape
        (8, 63, 1, 1)

    References:
        He et al. (2014), Spatial pyramid pooling in deep convolutional networks.
    """
    require_ndim("spatial_pyramid_pooling_2d", "x", x, 4, "(B, C, H, W)")
    if pyramid_height < 1:
        raise ArgumentError(f"spatial_pyramid_pooling_2d: pyramid_height must be at least 1, got {pyramid_height}")
    levels = [_grid(x, 2**level) for level in range(pyramid_height)]
    return F.reshape(F.concatenate(*levels, axis=1), (x.shape[0], -1, 1, 1))


def _grid(x: Variable, bins: int) -> Variable:
    """Return the largest values of `bins` by `bins` equal windows that cover the images. Shape (B, C bins^2)."""
    kernel = tuple(-(-length // bins) for length in x.shape[2:])
    pad = tuple((bins * size - length) // 2 for size, length in zip(kernel, x.shape[2:], strict=True))
    fits = all(0 <= p < k and bins * k - p - n < k for p, k, n in zip(pad, kernel, x.shape[2:], strict=True))
    if not fits:
        raise ShapeError(f"spatial_pyramid_pooling_2d: x must fill a grid of {bins} by {bins} bins, got {x.shape}")
    pooled = F.max_pooling(x, kernel, kernel, ignore_border=False, pad=pad)
    return F.reshape(pooled, (x.shape[0], prod(x.shape[1:2]) * bins * bins))


def unpooling_2d(
    x: Variable,
    ksize: int | tuple[int, int],
    stride: int | tuple[int, int] | None = None,
    pad: int | tuple[int, int] = 0,
    outsize: tuple[int, int] | None = None,
    cover_all: bool = True,
) -> Variable:
    """Write each pixel to the whole window that a pooling has read for it; where windows overlap, pixels add up.

    Args:
        x: Images. Shape (N, C, H, W).
        ksize: Size k of windows.
        stride: Distance s of windows; None: their size.
        pad: Width p of the border that the pooling has added.
        outsize: Size (H', W') of the results; None: s (H - 1) + k - 2 p, less s - 1 with `cover_all`.
        cover_all: Whether the pooling has covered the last pixels by a window of which a part is outside.

    Returns:
        Shape (N, C, H', W').

    Raises:
        ShapeError: when x has other axes, or a pooling of `outsize` pixels would not give H by W of them.

    Example:
        >>> x = nn.NdArray.from_numpy_array([[[[1.0, 2.0]]]])
        >>> unpooling_2d(x, (1, 2), (1, 1), cover_all=False).data.tolist()
        [[[[1.0, 3.0, 2.0]]]]
    """
    require_ndim("unpooling_2d", "x", x, 4, "(N, C, H, W)")
    kernel, border = _pair(ksize), _pair(pad)
    step = kernel if stride is None else _pair(stride)
    beyond = tuple(s - 1 if cover_all else 0 for s in step)
    sizes = x.shape[2:]
    natural = tuple(s * (n - 1) + k - 2 * p - b for n, k, s, p, b in zip(sizes, kernel, step, border, beyond, strict=True))
    size = natural if outsize is None else tuple(outsize)
    pooled = tuple((n + 2 * p - k + b) // s + 1 for n, k, s, p, b in zip(size, kernel, step, border, beyond, strict=True))
    if pooled != sizes:
        raise ShapeError(f"unpooling_2d: outsize must be one that is pooled to {sizes}, got {size}, pooled to {pooled}")
    planes = F.reshape(x, (x.shape[0] * x.shape[1], 1, *sizes))
    spread = F.deconvolution(planes, F.constant(1.0, (1, 1, *kernel)), stride=step)
    missing = [max(p + n - length, 0) for p, n, length in zip(border, size, spread.shape[2:], strict=True)]
    spread = F.pad(spread, (0, missing[0], 0, missing[1])) if any(missing) else spread
    ends = [p + n for p, n in zip(border, size, strict=True)]
    kept = spread[:, :, border[0] : ends[0], border[1] : ends[1]]
    return F.reshape(kept, (*x.shape[:2], *size))


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def roi_average_align_2d(
    x: Variable, rois: Variable, output_size: tuple[int, int], spatial_scale: float = 1.0, sampling_ratio: int | None = None
) -> Variable:
    """Take the means of regions of images on a grid of bins, without rounding: `F.roi_align` under the other names.

    Args:
        x: Images. Shape (N, C, H, W).
        rois: For each region the number of its image, then x and y of its first and of its last corner. Shape (R, 5).
        output_size: Numbers H', W' of bins.
        spatial_scale: Factor from the coordinates of regions to pixels.
        sampling_ratio: Bilinear samples of a bin on each axis; None: as many as the bin is long in pixels, rounded up.

    Returns:
        Shape (R, C, H', W').

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> image = nn.NdArray.from_numpy_array(np.arange(16.0).reshape(1, 1, 4, 4))
        >>> roi = nn.NdArray.from_numpy_array([[0, 0, 0, 4, 4]])
        >>> roi_average_align_2d(image, roi, (2, 2)).data.tolist()
        [[[[2.5, 4.5], [10.5, 12.5]]]]

    References:
        He et al. (2017), Mask R-CNN, section 3.
    """
    return F.roi_align(x, rois, output_size, (spatial_scale, spatial_scale), sampling_ratio)


def roi_max_align_2d(
    x: Variable, rois: Variable, output_size: tuple[int, int], spatial_scale: float = 1.0, sampling_ratio: int = 2
) -> Variable:
    """Take the largest of the bilinear samples of each bin of regions of images, without rounding.

    Args:
        x: Images. Shape (N, C, H, W).
        rois: For each region the number of its image, then x and y of its first and of its last corner. Shape (R, 5).
        output_size: Numbers H', W' of bins.
        spatial_scale: Factor from the coordinates of regions to pixels.
        sampling_ratio: Bilinear samples of a bin on each axis.

    Returns:
        Shape (R, C, H', W').

    Raises:
        ShapeError: when the shapes do not fit.
        ArgumentError: when `sampling_ratio` is below 1.

    Example:
        >>> image = nn.NdArray.from_numpy_array(np.arange(16.0).reshape(1, 1, 4, 4))
        >>> roi = nn.NdArray.from_numpy_array([[0, 0, 0, 4, 4]])
        >>> roi_max_align_2d(image, roi, (2, 2)).data.tolist()
        [[[[5.0, 7.0], [13.0, 15.0]]]]
    """
    if sampling_ratio < 1:
        raise ArgumentError(f"roi_max_align_2d: sampling_ratio must be at least 1, got {sampling_ratio}")
    # a bin of its own for each sample: the sample is in its middle
    samples = (output_size[0] * sampling_ratio, output_size[1] * sampling_ratio)
    sampled = F.roi_align(x, rois, samples, (spatial_scale, spatial_scale), sampling_ratio=1)
    return F.max_pooling(sampled, (sampling_ratio, sampling_ratio))


def local_response_normalization(x: Variable, n: int = 5, k: float = 2.0, alpha: float = 1e-4, beta: float = 0.75) -> Variable:
    """Divide by the activity of neighbouring channels: y_c = x_c / (k + alpha sum over |j - c| <= n // 2 of x_j^2)^beta.

    Args:
        x: Array of shape (N, C, ...).
        n: Width of the neighbourhood; n // 2 channels on either side count.
        k: Number that is added to the activity.
        alpha: Weight of the activity. It is not divided by n.
        beta: Exponent.

    Returns:
        The shape of x.

    Raises:
        ShapeError: when x has less than two axes.
        ArgumentError: when n is below 1.

    Example:
        >>> x = nn.NdArray.from_numpy_array([[1.0, 1.0]])
        >>> local_response_normalization(x, n=3, k=1.0, alpha=1.5, beta=0.5).data.tolist()
        [[0.5, 0.5]]

    References:
        Krizhevsky et al. (2012), ImageNet classification with deep convolutional neural networks, section 3.3.
    """
    if x.ndim < 2:
        raise ShapeError(f"local_response_normalization: x must have shape (N, C, ...), got {x.shape}")
    if n < 1:
        raise ArgumentError(f"local_response_normalization: n must be at least 1, got {n}")
    half = n // 2
    squares = F.reshape(x**2, (x.shape[0], 1, x.shape[1], -1))
    padded = F.pad(squares, (half, half, 0, 0))
    activity = F.sum_pooling(padded, (2 * half + 1, 1), (1, 1))
    return x * F.pow_scalar(k + alpha * F.reshape(activity, x.shape), -beta)


def normalize(x: Variable, eps: float = 1e-5, axis: int = 1) -> Variable:
    """Divide vectors by their length: x / (|x| + eps). A vector of zeros stays one.

    Args:
        x: Array of any shape.
        eps: Number that is added to the length.
        axis: The axis of the vectors.

    Returns:
        The shape of x.

    Example:
        >>> normalize(nn.NdArray.from_numpy_array([[3.0, 4.0]]), eps=0.0).data.tolist()
        [[0.6000000238418579, 0.800000011920929]]
    """
    return x / (F.norm(x, p=2, axis=axis, keepdims=True) + eps)
