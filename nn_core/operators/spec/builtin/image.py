"""Specifications of the topic image.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

INTERPOLATE = FunctionSpec(
    name="Interpolate",
    api="interpolate",
    topic="image",
    doc="Resize the spatial axes by nearest-neighbour or linear interpolation.",
    inputs=(
        InputSpec(
            name="x",
            doc="Array to resize; with channel_last the channel is the last axis.",
            shape="(N, C, *input size)",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Resized array.", shape="(N, C, *output_size)"),),
    args=(
        ArgSpec(
            name="output_size",
            type="ints",
            doc=(
                "New lengths of the 1, 2 or 3 spatial axes, which are the last ones (in front of the "
                "channel with channel_last)."
            ),
            minimum=1,
        ),
        ArgSpec(
            name="mode",
            type="str",
            doc="nearest copies the element at or below the coordinate; linear weighs its two neighbours.",
            choices=("nearest", "linear"),
        ),
        ArgSpec(
            name="align_corners",
            type="bool",
            doc="Coordinate c = o (n_in - 1) / (n_out - 1): first and last elements stay where they are.",
            default=True,
        ),
        ArgSpec(
            name="half_pixel",
            type="bool",
            doc=(
                "Coordinate c = (o + 1/2) n_in / n_out - 1/2: elements are cells and o is a middle. "
                "Not together with align_corners. With neither, c = o n_in / n_out."
            ),
            default=False,
        ),
        ArgSpec(
            name="half_pixel_for_nn",
            type="bool",
            doc="For mode nearest alone: c = (o + 1/2) n_in / n_out, whatever the other two say.",
            default=False,
        ),
        ArgSpec(
            name="channel_last",
            type="bool",
            doc="The channel is the last axis and the spatial axes come before it.",
            default=False,
        ),
    ),
    formula="y_o = sum_t w_t(o) x_{i_t(o)} along each spatial axis, with taps around the coordinate c(o)",
    notes=(
        "Coordinates are clipped to [0, n_in - 1] and computed as exact fractions. An output axis of "
        "length 1 has the coordinate 0, except with half_pixel_for_nn."
    ),
    example="F.interpolate(nn.Variable((8, 3, 16, 16)), scale=(2, 2)).shape  # (8, 3, 32, 32)",
)

INTERPOLATE_BACKWARD = FunctionSpec(
    name="InterpolateBackward",
    api="interpolate_backward",
    topic="image",
    doc="Apply the transpose of interpolate, which is its gradient.",
    inputs=(InputSpec(name="dy", doc="Gradient of the resized array.", shape="(N, C, *output size)"),),
    outputs=(OutputSpec(name="dx", doc="Gradient of the array that was resized.", shape="(N, C, *input_size)"),),
    args=(
        ArgSpec(
            name="input_size",
            type="ints",
            doc="Lengths of the spatial axes of the array that was resized.",
            minimum=1,
        ),
        ArgSpec(name="mode", type="str", doc="As in interpolate.", choices=("nearest", "linear")),
        ArgSpec(name="align_corners", type="bool", doc="As in interpolate.", default=True),
        ArgSpec(name="half_pixel", type="bool", doc="As in interpolate.", default=False),
        ArgSpec(name="half_pixel_for_nn", type="bool", doc="As in interpolate.", default=False),
        ArgSpec(name="channel_last", type="bool", doc="As in interpolate.", default=False),
    ),
    formula="dx_i = sum_{o, t} w_t(o) [i_t(o) = i] dy_o",
    notes="Linear in dy; its own gradient is interpolate.",
    example="F.interpolate_backward(nn.Variable((8, 3, 32, 32)), (16, 16), 'linear').shape  # (8, 3, 16, 16)",
)

ONNX_RESIZE = FunctionSpec(
    name="ONNXResize",
    api="onnx_resize",
    topic="image",
    doc="Resize any axes as the ONNX operator Resize does.",
    inputs=(InputSpec(name="x", doc="Array to resize.", shape="(D_1, ..., D_n)"),),
    outputs=(OutputSpec(name="y", doc="Resized array.", shape="(E_1, ..., E_n)"),),
    args=(
        ArgSpec(
            name="roi",
            type="floats",
            doc=(
                "For tf_crop_and_resize: the n starts, then the n ends, of the region to resize, as "
                "fractions of each axis (0 is the first element, 1 the last)."
            ),
            default=(),
        ),
        ArgSpec(
            name="scales",
            type="floats",
            doc="One factor per axis; lengths are rounded down. Either scales or sizes is given.",
            default=(),
        ),
        ArgSpec(
            name="sizes",
            type="ints",
            doc="One new length per axis; the factor is the quotient of the lengths.",
            default=(),
        ),
        ArgSpec(
            name="mode",
            type="str",
            doc="Interpolation by 1, 2 or 4 elements per axis.",
            default="nearest",
            choices=("nearest", "linear", "cubic"),
        ),
        ArgSpec(
            name="coordinate_transformation_mode",
            type="str",
            doc=(
                "Coordinate of output o under the factor s: (o + 1/2) / s - 1/2 for half_pixel; the "
                "same, but 0 for a single output, for pytorch_half_pixel; o (n_in - 1) / (n_out - 1) "
                "for align_corners; o / s for asymmetric; and tf_crop_and_resize spreads the outputs "
                "evenly over the region roi, end points included."
            ),
            default="half_pixel",
            choices=("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"),
        ),
        ArgSpec(
            name="cubic_coeff_a",
            type="float",
            doc="Coefficient a of the cubic weights.",
            default=-0.75,
            shown_as_none=True,
        ),
        ArgSpec(
            name="exclude_outside",
            type="int",
            doc=(
                "For mode cubic: 1 gives elements outside of x the weight 0 and scales the others to "
                "the sum 1; 0 repeats the border."
            ),
            default=0,
            shown_as_none=True,
        ),
        ArgSpec(
            name="extrapolation_value",
            type="float",
            doc="For tf_crop_and_resize: value of outputs whose coordinate is outside of x.",
            default=0.0,
            shown_as_none=True,
        ),
        ArgSpec(
            name="nearest_mode",
            type="str",
            doc="For mode nearest: how the coordinate is rounded; the first two differ for halves.",
            default="round_prefer_floor",
            choices=("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        ),
    ),
    formula="y_o = sum_t w_t(o) x_{i_t(o)} along each axis, with taps around the coordinate c(o)",
    notes=(
        "A region of interest is applied on every axis, also where the length does not change. Any number "
        "of axes may be resized."
    ),
    references=(
        "ONNX Operators, Resize (opset 13). R. G. Keys, \"Cubic convolution interpolation for digital "
        "image processing\", IEEE Transactions on Acoustics, Speech, and Signal Processing 29 (1981)."
    ),
    example="F.onnx_resize(nn.Variable((1, 1, 4, 4)), scales=(1, 1, 2, 2)).shape  # (1, 1, 8, 8)",
)

ONNX_RESIZE_BACKWARD = FunctionSpec(
    name="ONNXResizeBackward",
    api="onnx_resize_backward",
    topic="image",
    doc="Apply the transpose of onnx_resize, which is its gradient.",
    inputs=(InputSpec(name="dy", doc="Gradient of the resized array.", shape="(E_1, ..., E_n)"),),
    outputs=(
        OutputSpec(
            name="dx",
            doc="Gradient of the array that was resized; extrapolated elements pass nothing on.",
            shape="(D_1, ..., D_n)",
        ),
    ),
    args=(
        ArgSpec(name="input_size", type="ints", doc="Shape of the array that was resized.", minimum=1),
        ArgSpec(name="roi", type="floats", doc="As in onnx_resize.", default=()),
        ArgSpec(name="scales", type="floats", doc="As in onnx_resize.", default=()),
        ArgSpec(name="sizes", type="ints", doc="As in onnx_resize.", default=()),
        ArgSpec(
            name="mode",
            type="str",
            doc="As in onnx_resize.",
            default="nearest",
            choices=("nearest", "linear", "cubic"),
        ),
        ArgSpec(
            name="coordinate_transformation_mode",
            type="str",
            doc="As in onnx_resize.",
            default="half_pixel",
            choices=("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"),
        ),
        ArgSpec(name="cubic_coeff_a", type="float", doc="As in onnx_resize.", default=-0.75),
        ArgSpec(name="exclude_outside", type="int", doc="As in onnx_resize.", default=0),
        ArgSpec(
            name="nearest_mode",
            type="str",
            doc="As in onnx_resize.",
            default="round_prefer_floor",
            choices=("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        ),
    ),
    formula="dx_i = sum_{o, t} w_t(o) [i_t(o) = i] dy_o",
    notes="Linear in dy; its own gradient is onnx_resize with extrapolation_value 0.",
    example=(
        "F.onnx_resize_backward(nn.Variable((1, 1, 4, 4)), (1, 1, 2, 2), scales=(1, 1, 2, 2)).shape  # "
        "(1, 1, 2, 2)"
    ),
)

FFT = FunctionSpec(
    name="FFT",
    api="fft",
    topic="image",
    doc="Take the complex discrete Fourier transform over the last axes.",
    inputs=(
        InputSpec(
            name="x",
            doc="Complex signals: real part at 0 and imaginary part at 1 of the last axis.",
            shape="(B_1, ..., B_b, N_1, ..., N_d, 2)",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Spectrum in the same layout.", shape="(B_1, ..., B_b, N_1, ..., N_d, 2)"),),
    args=(
        ArgSpec(name="signal_ndim", type="int", doc="Number d of signal axes.", minimum=1, maximum=3),
        ArgSpec(
            name="normalized",
            type="bool",
            doc=(
                "Scale by 1 / sqrt(N), N being the product of the signal lengths, so that the "
                "transform is unitary."
            ),
            default=False,
        ),
    ),
    formula="y_k = s sum_n x_n exp(-2 pi j sum_i k_i n_i / N_i), s = 1 or, normalized, 1 / sqrt(N)",
    notes="The gradient treats real and imaginary parts as independent real numbers.",
    references=(
        "J. W. Cooley, J. W. Tukey, \"An algorithm for the machine calculation of complex Fourier "
        "series\", 1965."
    ),
    example="F.fft(nn.Variable((8, 16, 2)), 1).shape  # (8, 16, 2)",
)

IFFT = FunctionSpec(
    name="IFFT",
    api="ifft",
    topic="image",
    doc="Take the inverse complex discrete Fourier transform over the last axes.",
    inputs=(
        InputSpec(
            name="x",
            doc="Complex spectra: real part at 0 and imaginary part at 1 of the last axis.",
            shape="(B_1, ..., B_b, N_1, ..., N_d, 2)",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Signals in the same layout.", shape="(B_1, ..., B_b, N_1, ..., N_d, 2)"),),
    args=(
        ArgSpec(name="signal_ndim", type="int", doc="Number d of signal axes.", minimum=1, maximum=3),
        ArgSpec(
            name="normalized",
            type="bool",
            doc="Scale by 1 / sqrt(N) instead of 1 / N, so that the transform is unitary.",
            default=False,
        ),
    ),
    formula="y_n = s sum_k x_k exp(2 pi j sum_i k_i n_i / N_i), s = 1 / N or, normalized, 1 / sqrt(N)",
    notes="ifft(fft(x)) is x when both have the same settings.",
    example="F.ifft(nn.Variable((8, 16, 2)), 1).shape  # (8, 16, 2)",
)

STFT = FunctionSpec(
    name="STFT",
    api="stft",
    topic="image",
    doc="Take the short-time Fourier transform of real signals.",
    inputs=(InputSpec(name="x", doc="Signals of T samples.", shape="(B, T)"),),
    outputs=(
        OutputSpec(name="y_r", doc="Real part of the M frames.", shape="(B, F // 2 + 1, M)"),
        OutputSpec(name="y_i", doc="Imaginary part of the M frames.", shape="(B, F // 2 + 1, M)"),
    ),
    args=(
        ArgSpec(
            name="window_size",
            type="int",
            doc="Length of the window, at most fft_size; shorter windows are centred in the frame.",
            minimum=1,
        ),
        ArgSpec(
            name="stride",
            type="int",
            doc="Distance s of frame starts in samples (hop size).",
            minimum=1,
            maximum=2147483647,
        ),
        ArgSpec(name="fft_size", type="int", doc="Length F of a frame.", minimum=1),
        ArgSpec(
            name="window_type",
            type="str",
            doc="Window w, periodic in window_size.",
            default="hanning",
            choices=("hanning", "hamming", "rectangular"),
        ),
        ArgSpec(
            name="center",
            type="bool",
            doc="Pad fft_size // 2 samples on both sides, so that frame m is centred on sample m s.",
            default=True,
        ),
        ArgSpec(
            name="pad_mode",
            type="str",
            doc="What the padding holds: zeros, or the signal mirrored at its ends without repeating them.",
            default="reflect",
            choices=("constant", "reflect"),
        ),
        ArgSpec(
            name="as_istft_backward",
            type="bool",
            doc=(
                "Compute the gradient of istft: x is the gradient of its output and y_r, y_i those "
                "of its inputs. pad_mode has no effect."
            ),
            default=False,
        ),
    ),
    formula="(y_r + j y_i)_{k, m} = sum_n w_n x_{m s + n} exp(-2 pi j k n / F)",
    notes="Samples after the last whole frame are not used.",
    references=(
        "J. B. Allen, \"Short term spectral analysis, synthesis, and modification by discrete Fourier "
        "transform\", 1977."
    ),
    example=(
        "real, imaginary = F.stft(nn.Variable((2, 1024)), window_size=256, stride=128, fft_size=256)\n"
        "real.shape  # (2, 129, 9)"
    ),
)

ISTFT = FunctionSpec(
    name="ISTFT",
    api="istft",
    topic="image",
    doc="Rebuild real signals from their short-time Fourier transform.",
    inputs=(
        InputSpec(name="y_r", doc="Real part of the M frames.", shape="(B, F // 2 + 1, M)"),
        InputSpec(name="y_i", doc="Imaginary part of the M frames.", shape="(B, F // 2 + 1, M)"),
    ),
    outputs=(
        OutputSpec(
            name="x",
            doc="Signals of T = (M - 1) s + F samples, less 2 (F // 2) if center.",
            shape="(B, T)",
        ),
    ),
    args=(
        ArgSpec(name="window_size", type="int", doc="As in stft.", minimum=1),
        ArgSpec(name="stride", type="int", doc="As in stft.", minimum=1, maximum=2147483647),
        ArgSpec(name="fft_size", type="int", doc="As in stft.", minimum=1),
        ArgSpec(
            name="window_type",
            type="str",
            doc="As in stft.",
            default="hanning",
            choices=("hanning", "hamming", "rectangular"),
        ),
        ArgSpec(
            name="center",
            type="bool",
            doc="The frames were centred: fft_size // 2 samples are cut off at both ends.",
            default=True,
        ),
        ArgSpec(
            name="pad_mode",
            type="str",
            doc="How stft padded; read only with as_stft_backward.",
            default="reflect",
            choices=("constant", "reflect"),
        ),
        ArgSpec(
            name="as_stft_backward",
            type="bool",
            doc=(
                "Compute the gradient of stft: y_r and y_i are the gradients of its outputs and x "
                "that of its input, without the samples after the last frame."
            ),
            default=False,
        ),
    ),
    formula="x_t = sum_m w_{t - m s} irfft(y_r + j y_i)_{t - m s, m} / sum_m w_{t - m s}^2",
    notes=(
        "Windows whose squares leave a sample without weight are refused. Imaginary parts at the "
        "frequencies 0 and, for even fft_size, 1/2 have no effect."
    ),
    references="D. W. Griffin, J. S. Lim, \"Signal estimation from modified short-time Fourier transform\", 1984.",
    example=(
        "real, imaginary = F.stft(nn.Variable((2, 1024)), window_size=256, stride=128, fft_size=256)\n"
        "F.istft(real, imaginary, window_size=256, stride=128, fft_size=256).shape  # (2, 1024)"
    ),
)

AFFINE_GRID = FunctionSpec(
    name="AffineGrid",
    api="affine_grid",
    topic="image",
    doc="Make the grid of source points that an affine transformation assigns to every place of an image.",
    inputs=(
        InputSpec(
            name="theta",
            doc="One affine transformation per sample, d being 2 or 3.",
            shape="(B, d, d + 1)",
        ),
    ),
    outputs=(OutputSpec(name="grid", doc="Points (x, y) or (x, y, z), for warp_by_grid.", shape="(B, *size, d)"),),
    args=(
        ArgSpec(name="size", type="ints", doc="Lengths of the output: (H, W) or (D, H, W).", minimum=1),
        ArgSpec(
            name="align_corners",
            type="bool",
            doc=(
                "Whether -1 and 1 are the middles of the first and last elements (true) or the outer "
                "edges of their cells."
            ),
            default=False,
        ),
    ),
    formula="grid = theta (x, y, 1)^T, or theta (x, y, z, 1)^T, for the normalised places (x, y, z) of the output",
    notes="The only place of an axis of length 1 has the coordinate 0.",
    references="M. Jaderberg, K. Simonyan, A. Zisserman, K. Kavukcuoglu, \"Spatial transformer networks\", 2015.",
    example="F.affine_grid(nn.Variable((8, 2, 3)), (16, 16)).shape  # (8, 16, 16, 2)",
)

WARP_BY_GRID = FunctionSpec(
    name="WarpByGrid",
    api="warp_by_grid",
    topic="image",
    doc="Sample images at the points of a grid.",
    inputs=(
        InputSpec(
            name="x",
            doc="Images with 2 or 3 spatial axes; with channel_last the channel is the last axis.",
            shape="(B, C, *input size)",
        ),
        InputSpec(
            name="grid",
            doc="Points (x, y) or (x, y, z); x runs along the last spatial axis. In [-1, 1] they are inside.",
            shape="(B, *output size, d)",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Sampled values.", shape="(B, C, *output size)"),),
    args=(
        ArgSpec(
            name="mode",
            type="str",
            doc=(
                "linear weighs the 2^d elements around a point; nearest takes the closest, halves "
                "rounded away from zero."
            ),
            default="linear",
            choices=("linear", "nearest"),
        ),
        ArgSpec(
            name="padding_mode",
            type="str",
            doc="Values outside: zeros, the border element, or the image mirrored at its border.",
            default="zero",
            choices=("zero", "repeat", "reflect"),
        ),
        ArgSpec(
            name="align_corners",
            type="bool",
            doc=(
                "As in affine_grid. It also decides whether reflect mirrors at the middles of the "
                "border elements or at their outer edges."
            ),
            default=False,
        ),
        ArgSpec(name="channel_last", type="bool", doc="The channel is the last axis of x and y.", default=False),
    ),
    backward=BackwardSpec(needs=("x", "grid")),
    formula="y_{n, c, p} = x_n interpolated at grid_{n, p}, for each channel c",
    notes=(
        "The grid has no gradient in mode nearest. Where repeat or reflect hold a point at the border its "
        "gradient is 0. A NaN coordinate yields NaN in mode linear and 0 in mode nearest with zero "
        "padding."
    ),
    references="M. Jaderberg, K. Simonyan, A. Zisserman, K. Kavukcuoglu, \"Spatial transformer networks\", 2015.",
    example="F.warp_by_grid(nn.Variable((8, 3, 16, 16)), nn.Variable((8, 12, 12, 2))).shape  # (8, 3, 12, 12)",
)

WARP_BY_FLOW = FunctionSpec(
    name="WarpByFlow",
    api="warp_by_flow",
    topic="image",
    doc="Move the pixels of images by a flow field, with linear interpolation.",
    inputs=(
        InputSpec(name="data", doc="Images.", shape="(B, C, H, W)"),
        InputSpec(
            name="flow",
            doc="Horizontal (channel 0) and vertical (channel 1) offsets in pixels.",
            shape="(B, 2, H, W)",
        ),
    ),
    outputs=(
        OutputSpec(
            name="warped_image",
            doc="Images sampled at the moved places; beyond the border its pixel is repeated.",
            shape="(B, C, H, W)",
        ),
    ),
    backward=BackwardSpec(needs=("data", "flow")),
    formula="y_{n, c, i, j} = data_n at row i + flow_{n, 1, i, j} and column j + flow_{n, 0, i, j}, for each channel c",
    notes="Where a place is held at the border, the flow gets no gradient.",
    example="F.warp_by_flow(nn.Variable((8, 3, 16, 16)), nn.Variable((8, 2, 16, 16))).shape  # (8, 3, 16, 16)",
)

PATCH_CORRELATION = FunctionSpec(
    name="PatchCorrelation",
    api="patch_correlation",
    topic="image",
    doc="Compare the patches of one image with shifted patches of another by their inner product.",
    inputs=(
        InputSpec(name="x1", doc="Images whose patches stay in place.", shape="(B, C, H, W)"),
        InputSpec(name="x2", doc="Images whose patches are shifted.", shape="(B, C, H, W)"),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc=(
                "S = 2 shift // shift_step + 1 shifts; H_o = (H + top + bottom - patch) // "
                "patch_step + 1 positions, W_o likewise."
            ),
            shape="(B, S_y, S_x, H_o, W_o)",
        ),
    ),
    args=(
        ArgSpec(name="patch", type="ints", doc="Height and width of a patch.", default=(1, 1), minimum=1),
        ArgSpec(
            name="shift",
            type="ints",
            doc="Largest vertical and horizontal shift, in both directions.",
            default=(0, 0),
            minimum=0,
        ),
        ArgSpec(
            name="patch_step",
            type="ints",
            doc="Vertical and horizontal distance of patch positions.",
            default=(1, 1),
            minimum=1,
        ),
        ArgSpec(
            name="shift_step",
            type="ints",
            doc="Vertical and horizontal distance of shifts, counted from the largest negative one.",
            default=(1, 1),
            minimum=1,
        ),
        ArgSpec(
            name="padding",
            type="ints",
            doc="Zeros added at the top, bottom, left and right.",
            default=(0, 0, 0, 0),
            minimum=0,
        ),
    ),
    backward=BackwardSpec(needs=("x1", "x2")),
    formula="y_{n, s_y, s_x, i, j} = sum_{c, u, v} x1_{n, c, i + u, j + v} x2_{n, c, i + u + s_y, j + v + s_x}",
    notes="Elements that a shift takes from outside of the padded image are zero.",
    references="P. Fischer et al., FlowNet: Learning optical flow with convolutional networks, 2015, section 3.",
    example="F.patch_correlation(nn.Variable((8, 3, 16, 16)), nn.Variable((8, 3, 16, 16))).shape  # (8, 1, 1, 16, 16)",
)

PATCH_CORRELATION_BACKWARD = FunctionSpec(
    name="PatchCorrelationBackward",
    api="patch_correlation_backward",
    topic="image",
    doc="Compute both gradients of patch_correlation.",
    inputs=(
        InputSpec(name="dy", doc="Gradient of the correlation.", shape="(B, S_y, S_x, H_o, W_o)"),
        InputSpec(name="x1", doc="As in patch_correlation.", shape="(B, C, H, W)"),
        InputSpec(name="x2", doc="As in patch_correlation.", shape="(B, C, H, W)"),
    ),
    outputs=(
        OutputSpec(name="dx1", doc="Gradient of x1.", shape="(B, C, H, W)"),
        OutputSpec(name="dx2", doc="Gradient of x2.", shape="(B, C, H, W)"),
    ),
    args=(
        ArgSpec(name="patch", type="ints", doc="As in patch_correlation.", default=(1, 1), minimum=1),
        ArgSpec(name="shift", type="ints", doc="As in patch_correlation.", default=(0, 0), minimum=0),
        ArgSpec(name="patch_step", type="ints", doc="As in patch_correlation.", default=(1, 1), minimum=1),
        ArgSpec(name="shift_step", type="ints", doc="As in patch_correlation.", default=(1, 1), minimum=1),
        ArgSpec(name="padding", type="ints", doc="As in patch_correlation.", default=(0, 0, 0, 0), minimum=0),
    ),
    backward=BackwardSpec(needs=("dy", "x1", "x2")),
    formula="dx1 and dx2 are the gradients of sum(dy * patch_correlation(x1, x2))",
    notes="Bilinear in dy and the images; its own gradient is made of patch_correlation and itself.",
    example=(
        "x1, x2 = nn.Variable((1, 3, 8, 8)), nn.Variable((1, 3, 8, 8))\ndx1, dx2 = "
        "F.patch_correlation_backward(nn.Variable((1, 3, 3, 8, 8)), x1, x2, shift=(1, 1))\ndx1.shape  # "
        "(1, 3, 8, 8)"
    ),
)

SPECS: tuple[FunctionSpec, ...] = (
    INTERPOLATE,
    INTERPOLATE_BACKWARD,
    ONNX_RESIZE,
    ONNX_RESIZE_BACKWARD,
    FFT,
    IFFT,
    STFT,
    ISTFT,
    AFFINE_GRID,
    WARP_BY_GRID,
    WARP_BY_FLOW,
    PATCH_CORRELATION,
    PATCH_CORRELATION_BACKWARD,
)
