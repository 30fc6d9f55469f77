"""Functions of the topic image.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
from nn_core.operators.spec.builtin.image import (
    AFFINE_GRID,
    FFT,
    IFFT,
    INTERPOLATE,
    INTERPOLATE_BACKWARD,
    ISTFT,
    ONNX_RESIZE,
    ONNX_RESIZE_BACKWARD,
    PATCH_CORRELATION,
    PATCH_CORRELATION_BACKWARD,
    SPECS,
    STFT,
    WARP_BY_FLOW,
    WARP_BY_GRID,
)


def interpolate(
    x=None,
    output_size=None,
    mode=None,
    align_corners=True,
    half_pixel=False,
    half_pixel_for_nn=False,
    channel_last=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Resize the spatial axes by nearest-neighbour or linear interpolation.

    y_o = sum_t w_t(o) x_{i_t(o)} along each spatial axis, with taps around the coordinate c(o)

    Args:
        x: Array to resize; with channel_last the channel is the last axis. Shape (N, C, *input size).
        output_size: New lengths of the 1, 2 or 3 spatial axes, which are the last ones (in front of the channel with
            channel_last).
        mode: nearest copies the element at or below the coordinate; linear weighs its two neighbours. One of 'nearest',
            'linear'.
        align_corners: Coordinate c = o (n_in - 1) / (n_out - 1): first and last elements stay where they are.
        half_pixel: Coordinate c = (o + 1/2) n_in / n_out - 1/2: elements are cells and o is a middle. Not together with
            align_corners. With neither, c = o n_in / n_out.
        half_pixel_for_nn: For mode nearest alone: c = (o + 1/2) n_in / n_out, whatever the other two say.
        channel_last: The channel is the last axis and the spatial axes come before it.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Resized array. Shape (N, C, *output_size).

    Notes:
        Coordinates are clipped to [0, n_in - 1] and computed as exact fractions. An output axis of length 1 has the
        coordinate 0, except with half_pixel_for_nn.

    Example:
        F.interpolate(nn.Variable((8, 3, 16, 16)), scale=(2, 2)).shape  # (8, 3, 32, 32)

    Spec: function_spec.yaml, entry Interpolate
    """
    if surplus or unknown:
        refuse(INTERPOLATE, surplus, unknown)
    return apply(
        INTERPOLATE,
        (x,),
        {
            "output_size": output_size,
            "mode": mode,
            "align_corners": align_corners,
            "half_pixel": half_pixel,
            "half_pixel_for_nn": half_pixel_for_nn,
            "channel_last": channel_last,
        },
        outputs,
    )


def interpolate_backward(
    dy=None,
    input_size=None,
    mode=None,
    align_corners=True,
    half_pixel=False,
    half_pixel_for_nn=False,
    channel_last=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Apply the transpose of interpolate, which is its gradient.

    dx_i = sum_{o, t} w_t(o) [i_t(o) = i] dy_o

    Args:
        dy: Gradient of the resized array. Shape (N, C, *output size).
        input_size: Lengths of the spatial axes of the array that was resized.
        mode: As in interpolate. One of 'nearest', 'linear'.
        align_corners: As in interpolate.
        half_pixel: As in interpolate.
        half_pixel_for_nn: As in interpolate.
        channel_last: As in interpolate.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        dx: Gradient of the array that was resized. Shape (N, C, *input_size).

    Notes:
        Linear in dy; its own gradient is interpolate.

    Example:
        F.interpolate_backward(nn.Variable((8, 3, 32, 32)), (16, 16), 'linear').shape  # (8, 3, 16, 16)

    Spec: function_spec.yaml, entry InterpolateBackward
    """
    if surplus or unknown:
        refuse(INTERPOLATE_BACKWARD, surplus, unknown)
    return apply(
        INTERPOLATE_BACKWARD,
        (dy,),
        {
            "input_size": input_size,
            "mode": mode,
            "align_corners": align_corners,
            "half_pixel": half_pixel,
            "half_pixel_for_nn": half_pixel_for_nn,
            "channel_last": channel_last,
        },
        outputs,
    )


def onnx_resize(
    x=None,
    roi=(),
    scales=(),
    sizes=(),
    mode="nearest",
    coordinate_transformation_mode="half_pixel",
    cubic_coeff_a=None,
    exclude_outside=None,
    extrapolation_value=None,
    nearest_mode="round_prefer_floor",
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Resize any axes as the ONNX operator Resize does.

    y_o = sum_t w_t(o) x_{i_t(o)} along each axis, with taps around the coordinate c(o)

    Args:
        x: Array to resize. Shape (D_1, ..., D_n).
        roi: For tf_crop_and_resize: the n starts, then the n ends, of the region to resize, as fractions of each axis
            (0 is the first element, 1 the last).
        scales: One factor per axis; lengths are rounded down. Either scales or sizes is given.
        sizes: One new length per axis; the factor is the quotient of the lengths.
        mode: Interpolation by 1, 2 or 4 elements per axis. One of 'nearest', 'linear', 'cubic'.
        coordinate_transformation_mode: Coordinate of output o under the factor s: (o + 1/2) / s - 1/2 for half_pixel;
            the same, but 0 for a single output, for pytorch_half_pixel; o (n_in - 1) / (n_out - 1) for align_corners; o
            / s for asymmetric; and tf_crop_and_resize spreads the outputs evenly over the region roi, end points
            included. One of 'half_pixel', 'pytorch_half_pixel', 'align_corners', 'asymmetric', 'tf_crop_and_resize'.
        cubic_coeff_a: Coefficient a of the cubic weights. Default: -0.75.
        exclude_outside: For mode cubic: 1 gives elements outside of x the weight 0 and scales the others to the sum 1;
            0 repeats the border. Default: 0.
        extrapolation_value: For tf_crop_and_resize: value of outputs whose coordinate is outside of x. Default: 0.0.
        nearest_mode: For mode nearest: how the coordinate is rounded; the first two differ for halves. One of
            'round_prefer_floor', 'round_prefer_ceil', 'floor', 'ceil'.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Resized array. Shape (E_1, ..., E_n).

    Notes:
        A region of interest is applied on every axis, also where the length does not change. Any number of axes may be
        resized.

    Example:
        F.onnx_resize(nn.Variable((1, 1, 4, 4)), scales=(1, 1, 2, 2)).shape  # (1, 1, 8, 8)

    References:
        ONNX Operators, Resize (opset 13). R. G. Keys, "Cubic convolution interpolation for digital image processing",
        IEEE Transactions on Acoustics, Speech, and Signal Processing 29 (1981).

    Spec: function_spec.yaml, entry ONNXResize
    """
    if surplus or unknown:
        refuse(ONNX_RESIZE, surplus, unknown)
    return apply(
        ONNX_RESIZE,
        (x,),
        {
            "roi": roi,
            "scales": scales,
            "sizes": sizes,
            "mode": mode,
            "coordinate_transformation_mode": coordinate_transformation_mode,
            "cubic_coeff_a": cubic_coeff_a,
            "exclude_outside": exclude_outside,
            "extrapolation_value": extrapolation_value,
            "nearest_mode": nearest_mode,
        },
        outputs,
    )


def onnx_resize_backward(
    dy=None,
    input_size=None,
    roi=(),
    scales=(),
    sizes=(),
    mode="nearest",
    coordinate_transformation_mode="half_pixel",
    cubic_coeff_a=-0.75,
    exclude_outside=0,
    nearest_mode="round_prefer_floor",
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Apply the transpose of onnx_resize, which is its gradient.

    dx_i = sum_{o, t} w_t(o) [i_t(o) = i] dy_o

    Args:
        dy: Gradient of the resized array. Shape (E_1, ..., E_n).
        input_size: Shape of the array that was resized.
        roi: As in onnx_resize.
        scales: As in onnx_resize.
        sizes: As in onnx_resize.
        mode: As in onnx_resize. One of 'nearest', 'linear', 'cubic'.
        coordinate_transformation_mode: As in onnx_resize. One of 'half_pixel', 'pytorch_half_pixel', 'align_corners',
            'asymmetric', 'tf_crop_and_resize'.
        cubic_coeff_a: As in onnx_resize.
        exclude_outside: As in onnx_resize.
        nearest_mode: As in onnx_resize. One of 'round_prefer_floor', 'round_prefer_ceil', 'floor', 'ceil'.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        dx: Gradient of the array that was resized; extrapolated elements pass nothing on. Shape (D_1, ..., D_n).

    Notes:
        Linear in dy; its own gradient is onnx_resize with extrapolation_value 0.

    Example:
        F.onnx_resize_backward(nn.Variable((1, 1, 4, 4)), (1, 1, 2, 2), scales=(1, 1, 2, 2)).shape  # (1, 1, 2, 2)

    Spec: function_spec.yaml, entry ONNXResizeBackward
    """
    if surplus or unknown:
        refuse(ONNX_RESIZE_BACKWARD, surplus, unknown)
    return apply(
        ONNX_RESIZE_BACKWARD,
        (dy,),
        {
            "input_size": input_size,
            "roi": roi,
            "scales": scales,
            "sizes": sizes,
            "mode": mode,
            "coordinate_transformation_mode": coordinate_transformation_mode,
            "cubic_coeff_a": cubic_coeff_a,
            "exclude_outside": exclude_outside,
            "nearest_mode": nearest_mode,
        },
        outputs,
    )


def fft(x=None, signal_ndim=None, normalized=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the complex discrete Fourier transform over the last axes.

    y_k = s sum_n x_n exp(-2 pi j sum_i k_i n_i / N_i), s = 1 or, normalized, 1 / sqrt(N)

    Args:
        x: Complex signals: real part at 0 and imaginary part at 1 of the last axis. Shape (B_1, ..., B_b, N_1, ...,
            N_d, 2).
        signal_ndim: Number d of signal axes.
        normalized: Scale by 1 / sqrt(N), N being the product of the signal lengths, so that the transform is unitary.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Spectrum in the same layout. Shape (B_1, ..., B_b, N_1, ..., N_d, 2).

    Notes:
        The gradient treats real and imaginary parts as independent real numbers.

    Example:
        F.fft(nn.Variable((8, 16, 2)), 1).shape  # (8, 16, 2)

    References:
        J. W. Cooley, J. W. Tukey, "An algorithm for the machine calculation of complex Fourier series", 1965.

    Spec: function_spec.yaml, entry FFT
    """
    if surplus or unknown:
        refuse(FFT, surplus, unknown)
    return apply(FFT, (x,), {"signal_ndim": signal_ndim, "normalized": normalized}, outputs)


def ifft(x=None, signal_ndim=None, normalized=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the inverse complex discrete Fourier transform over the last axes.

    y_n = s sum_k x_k exp(2 pi j sum_i k_i n_i / N_i), s = 1 / N or, normalized, 1 / sqrt(N)

    Args:
        x: Complex spectra: real part at 0 and imaginary part at 1 of the last axis. Shape (B_1, ..., B_b, N_1, ...,
            N_d, 2).
        signal_ndim: Number d of signal axes.
        normalized: Scale by 1 / sqrt(N) instead of 1 / N, so that the transform is unitary.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Signals in the same layout. Shape (B_1, ..., B_b, N_1, ..., N_d, 2).

    Notes:
        ifft(fft(x)) is x when both have the same settings.

    Example:
        F.ifft(nn.Variable((8, 16, 2)), 1).shape  # (8, 16, 2)

    Spec: function_spec.yaml, entry IFFT
    """
    if surplus or unknown:
        refuse(IFFT, surplus, unknown)
    return apply(IFFT, (x,), {"signal_ndim": signal_ndim, "normalized": normalized}, outputs)


def stft(
    x=None,
    window_size=None,
    stride=None,
    fft_size=None,
    window_type="hanning",
    center=True,
    pad_mode="reflect",
    as_istft_backward=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Take the short-time Fourier transform of real signals.

    (y_r + j y_i)_{k, m} = sum_n w_n x_{m s + n} exp(-2 pi j k n / F)

    Args:
        x: Signals of T samples. Shape (B, T).
        window_size: Length of the window, at most fft_size; shorter windows are centred in the frame.
        stride: Distance s of frame starts in samples (hop size).
        fft_size: Length F of a frame.
        window_type: Window w, periodic in window_size. One of 'hanning', 'hamming', 'rectangular'.
        center: Pad fft_size // 2 samples on both sides, so that frame m is centred on sample m s.
        pad_mode: What the padding holds: zeros, or the signal mirrored at its ends without repeating them. One of
            'constant', 'reflect'.
        as_istft_backward: Compute the gradient of istft: x is the gradient of its output and y_r, y_i those of its
            inputs. pad_mode has no effect.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y_r: Real part of the M frames. Shape (B, F // 2 + 1, M).
        y_i: Imaginary part of the M frames. Shape (B, F // 2 + 1, M).

    Notes:
        Samples after the last whole frame are not used.

    Example:
        real, imaginary = F.stft(nn.Variable((2, 1024)), window_size=256, stride=128, fft_size=256)
        real.shape  # (2, 129, 9)

    References:
        J. B. Allen, "Short term spectral analysis, synthesis, and modification by discrete Fourier transform", 1977.

    Spec: function_spec.yaml, entry STFT
    """
    if surplus or unknown:
        refuse(STFT, surplus, unknown)
    return apply(
        STFT,
        (x,),
        {
            "window_size": window_size,
            "stride": stride,
            "fft_size": fft_size,
            "window_type": window_type,
            "center": center,
            "pad_mode": pad_mode,
            "as_istft_backward": as_istft_backward,
        },
        outputs,
    )


def istft(
    y_r=None,
    y_i=None,
    window_size=None,
    stride=None,
    fft_size=None,
    window_type="hanning",
    center=True,
    pad_mode="reflect",
    as_stft_backward=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Rebuild real signals from their short-time Fourier transform.

    x_t = sum_m w_{t - m s} irfft(y_r + j y_i)_{t - m s, m} / sum_m w_{t - m s}^2

    Args:
        y_r: Real part of the M frames. Shape (B, F // 2 + 1, M).
        y_i: Imaginary part of the M frames. Shape (B, F // 2 + 1, M).
        window_size: As in stft.
        stride: As in stft.
        fft_size: As in stft.
        window_type: As in stft. One of 'hanning', 'hamming', 'rectangular'.
        center: The frames were centred: fft_size // 2 samples are cut off at both ends.
        pad_mode: How stft padded; read only with as_stft_backward. One of 'constant', 'reflect'.
        as_stft_backward: Compute the gradient of stft: y_r and y_i are the gradients of its outputs and x that of its
            input, without the samples after the last frame.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        x: Signals of T = (M - 1) s + F samples, less 2 (F // 2) if center. Shape (B, T).

    Notes:
        Windows whose squares leave a sample without weight are refused. Imaginary parts at the frequencies 0 and, for
        even fft_size, 1/2 have no effect.

    Example:
        real, imaginary = F.stft(nn.Variable((2, 1024)), window_size=256, stride=128, fft_size=256)
        F.istft(real, imaginary, window_size=256, stride=128, fft_size=256).shape  # (2, 1024)

    References:
        D. W. Griffin, J. S. Lim, "Signal estimation from modified short-time Fourier transform", 1984.

    Spec: function_spec.yaml, entry ISTFT
    """
    if surplus or unknown:
        refuse(ISTFT, surplus, unknown)
    return apply(
        ISTFT,
        (y_r, y_i),
        {
            "window_size": window_size,
            "stride": stride,
            "fft_size": fft_size,
            "window_type": window_type,
            "center": center,
            "pad_mode": pad_mode,
            "as_stft_backward": as_stft_backward,
        },
        outputs,
    )


def affine_grid(theta=None, size=None, align_corners=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Make the grid of source points that an affine transformation assigns to every place of an image.

    grid = theta (x, y, 1)^T, or theta (x, y, z, 1)^T, for the normalised places (x, y, z) of the output

    Args:
        theta: One affine transformation per sample, d being 2 or 3. Shape (B, d, d + 1).
        size: Lengths of the output: (H, W) or (D, H, W).
        align_corners: Whether -1 and 1 are the middles of the first and last elements (true) or the outer edges of
            their cells.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        grid: Points (x, y) or (x, y, z), for warp_by_grid. Shape (B, *size, d).

    Notes:
        The only place of an axis of length 1 has the coordinate 0.

    Example:
        F.affine_grid(nn.Variable((8, 2, 3)), (16, 16)).shape  # (8, 16, 16, 2)

    References:
        M. Jaderberg, K. Simonyan, A. Zisserman, K. Kavukcuoglu, "Spatial transformer networks", 2015.

    Spec: function_spec.yaml, entry AffineGrid
    """
    if surplus or unknown:
        refuse(AFFINE_GRID, surplus, unknown)
    return apply(AFFINE_GRID, (theta,), {"size": size, "align_corners": align_corners}, outputs)


def warp_by_grid(
    x=None,
    grid=None,
    mode="linear",
    padding_mode="zero",
    align_corners=False,
    channel_last=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Sample images at the points of a grid.

    y_{n, c, p} = x_n interpolated at grid_{n, p}, for each channel c

    Args:
        x: Images with 2 or 3 spatial axes; with channel_last the channel is the last axis. Shape (B, C, *input size).
        grid: Points (x, y) or (x, y, z); x runs along the last spatial axis. In [-1, 1] they are inside. Shape (B,
            *output size, d).
        mode: linear weighs the 2^d elements around a point; nearest takes the closest, halves rounded away from zero.
            One of 'linear', 'nearest'.
        padding_mode: Values outside: zeros, the border element, or the image mirrored at its border. One of 'zero',
            'repeat', 'reflect'.
        align_corners: As in affine_grid. It also decides whether reflect mirrors at the middles of the border elements
            or at their outer edges.
        channel_last: The channel is the last axis of x and y.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Sampled values. Shape (B, C, *output size).

    Notes:
        The grid has no gradient in mode nearest. Where repeat or reflect hold a point at the border its gradient is 0.
        A NaN coordinate yields NaN in mode linear and 0 in mode nearest with zero padding.

    Example:
        F.warp_by_grid(nn.Variable((8, 3, 16, 16)), nn.Variable((8, 12, 12, 2))).shape  # (8, 3, 12, 12)

    References:
        M. Jaderberg, K. Simonyan, A. Zisserman, K. Kavukcuoglu, "Spatial transformer networks", 2015.

    Spec: function_spec.yaml, entry WarpByGrid
    """
    if surplus or unknown:
        refuse(WARP_BY_GRID, surplus, unknown)
    return apply(
        WARP_BY_GRID,
        (x, grid),
        {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners, "channel_last": channel_last},
        outputs,
    )


def warp_by_flow(data=None, flow=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Move the pixels of images by a flow field, with linear interpolation.

    y_{n, c, i, j} = data_n at row i + flow_{n, 1, i, j} and column j + flow_{n, 0, i, j}, for each channel c

    Args:
        data: Images. Shape (B, C, H, W).
        flow: Horizontal (channel 0) and vertical (channel 1) offsets in pixels. Shape (B, 2, H, W).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        warped_image: Images sampled at the moved places; beyond the border its pixel is repeated. Shape (B, C, H, W).

    Notes:
        Where a place is held at the border, the flow gets no gradient.

    Example:
        F.warp_by_flow(nn.Variable((8, 3, 16, 16)), nn.Variable((8, 2, 16, 16))).shape  # (8, 3, 16, 16)

    Spec: function_spec.yaml, entry WarpByFlow
    """
    if surplus or unknown:
        refuse(WARP_BY_FLOW, surplus, unknown)
    return apply(WARP_BY_FLOW, (data, flow), {}, outputs)


def patch_correlation(
    x1=None,
    x2=None,
    patch=(1, 1),
    shift=(0, 0),
    patch_step=(1, 1),
    shift_step=(1, 1),
    padding=(0, 0, 0, 0),
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Compare the patches of one image with shifted patches of another by their inner product.

    y_{n, s_y, s_x, i, j} = sum_{c, u, v} x1_{n, c, i + u, j + v} x2_{n, c, i + u + s_y, j + v + s_x}

    Args:
        x1: Images whose patches stay in place. Shape (B, C, H, W).
        x2: Images whose patches are shifted. Shape (B, C, H, W).
        patch: Height and width of a patch.
        shift: Largest vertical and horizontal shift, in both directions.
        patch_step: Vertical and horizontal distance of patch positions.
        shift_step: Vertical and horizontal distance of shifts, counted from the largest negative one.
        padding: Zeros added at the top, bottom, left and right.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: S = 2 shift // shift_step + 1 shifts; H_o = (H + top + bottom - patch) // patch_step + 1 positions, W_o
            likewise. Shape (B, S_y, S_x, H_o, W_o).

    Notes:
        Elements that a shift takes from outside of the padded image are zero.

    Example:
        F.patch_correlation(nn.Variable((8, 3, 16, 16)), nn.Variable((8, 3, 16, 16))).shape  # (8, 1, 1, 16, 16)

    References:
        P. Fischer et al., FlowNet: Learning optical flow with convolutional networks, 2015, section 3.

    Spec: function_spec.yaml, entry PatchCorrelation
    """
    if surplus or unknown:
        refuse(PATCH_CORRELATION, surplus, unknown)
    return apply(
        PATCH_CORRELATION,
        (x1, x2),
        {"patch": patch, "shift": shift, "patch_step": patch_step, "shift_step": shift_step, "padding": padding},
        outputs,
    )


def patch_correlation_backward(
    dy=None,
    x1=None,
    x2=None,
    patch=(1, 1),
    shift=(0, 0),
    patch_step=(1, 1),
    shift_step=(1, 1),
    padding=(0, 0, 0, 0),
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Compute both gradients of patch_correlation.

    dx1 and dx2 are the gradients of sum(dy * patch_correlation(x1, x2))

    Args:
        dy: Gradient of the correlation. Shape (B, S_y, S_x, H_o, W_o).
        x1: As in patch_correlation. Shape (B, C, H, W).
        x2: As in patch_correlation. Shape (B, C, H, W).
        patch: As in patch_correlation.
        shift: As in patch_correlation.
        patch_step: As in patch_correlation.
        shift_step: As in patch_correlation.
        padding: As in patch_correlation.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        dx1: Gradient of x1. Shape (B, C, H, W).
        dx2: Gradient of x2. Shape (B, C, H, W).

    Notes:
        Bilinear in dy and the images; its own gradient is made of patch_correlation and itself.

    Example:
        x1, x2 = nn.Variable((1, 3, 8, 8)), nn.Variable((1, 3, 8, 8))
        dx1, dx2 = F.patch_correlation_backward(nn.Variable((1, 3, 3, 8, 8)), x1, x2, shift=(1, 1))
        dx1.shape  # (1, 3, 8, 8)

    Spec: function_spec.yaml, entry PatchCorrelationBackward
    """
    if surplus or unknown:
        refuse(PATCH_CORRELATION_BACKWARD, surplus, unknown)
    return apply(
        PATCH_CORRELATION_BACKWARD,
        (dy, x1, x2),
        {"patch": patch, "shift": shift, "patch_step": patch_step, "shift_step": shift_step, "padding": padding},
        outputs,
    )


show_signatures(globals(), SPECS)
