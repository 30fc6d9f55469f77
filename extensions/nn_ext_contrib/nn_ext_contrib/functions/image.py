"""Spatial transformers."""

from nn_core.ext import F, ShapeError, Variable
from nn_ext_contrib.functions.checks import require_ndim


def spatial_transformer_grid(theta: Variable, output_shape: tuple[int, int]) -> Variable:
    """Say from where in an image each pixel of an affine transform of it comes.

    (x_s, y_s) = theta (x_t, y_t, 1), where x_t and y_t run from -1 to 1 over the columns and rows of the result.

    Args:
        theta: Affine transforms. Shape (N, 2, 3).
        output_shape: Height H and width W of the result.

    Returns:
        Shape (N, 2, H, W): x, then y.

    Raises:
        ShapeError: when theta has another shape.

    Example:
        >>> theta = nn.NdArray.from_numpy_array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
        >>> spatial_transformer_grid(theta, (2, 2)).data.tolist()
        [[[[-1.0, 1.0], [-1.0, 1.0]], [[-1.0, -1.0], [1.0, 1.0]]]]

    References:
        Jaderberg et al. (2015), Spatial transformer networks, section 3.2.
    """
    if theta.ndim != 3 or theta.shape[1:] != (2, 3):
        raise ShapeError(f"spatial_transformer_grid: theta must have shape (N, 2, 3), got {theta.shape}")
    return F.transpose(F.affine_grid(theta, tuple(output_shape), align_corners=True), (0, 3, 1, 2))


def spatial_transformer_sampler(x: Variable, grid: Variable) -> Variable:
    """Read images at the points of a grid, bilinearly; what is outside counts as zero.

    Args:
        x: Images. Shape (N, C, H, W).
        grid: Points, what `spatial_transformer_grid` gives. Shape (N, 2, H', W').

    Returns:
        Shape (N, C, H', W').

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> x = nn.NdArray.from_numpy_array([[[[1.0, 2.0, 3.0]]]])
        >>> grid = nn.NdArray.from_numpy_array([[[[0.5]], [[0.0]]]])
        >>> spatial_transformer_sampler(x, grid).data.tolist()
        [[[[2.5]]]]

    References:
        Jaderberg et al. (2015), Spatial transformer networks, section 3.3.
    """
    require_ndim("spatial_transformer_sampler", "x", x, 4, "(N, C, H, W)")
    if grid.ndim != 4 or grid.shape[:2] != (x.shape[0], 2):
        raise ShapeError(f"spatial_transformer_sampler: grid must have shape ({x.shape[0]}, 2, H, W), got {grid.shape}")
    points = F.transpose(grid, (0, 2, 3, 1))
    return F.warp_by_grid(x, points, mode="linear", padding_mode="zero", align_corners=True)
