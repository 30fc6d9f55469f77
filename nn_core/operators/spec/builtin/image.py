"""Specifications of the topic image.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

INTERPOLATE = FunctionSpec(
    name="Interpolate", api="interpolate", topic="image",
    doc="Resize the spatial axes by nearest-neighbour or linear interpolation.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="output_size", type="ints", minimum=1),
        ArgSpec(name="mode", type="str", choices=("nearest", "linear")),
        ArgSpec(name="align_corners", type="bool", default=True),
        ArgSpec(name="half_pixel", type="bool", default=False),
        ArgSpec(name="half_pixel_for_nn", type="bool", default=False),
        ArgSpec(name="channel_last", type="bool", default=False),
    ),
)

INTERPOLATE_BACKWARD = FunctionSpec(
    name="InterpolateBackward", api="interpolate_backward", topic="image",
    doc="Apply the transpose of interpolate, which is its gradient.", inputs=(InputSpec(name="dy"),),
    outputs=(OutputSpec(name="dx"),),
    args=(
        ArgSpec(name="input_size", type="ints", minimum=1),
        ArgSpec(name="mode", type="str", choices=("nearest", "linear")),
        ArgSpec(name="align_corners", type="bool", default=True),
        ArgSpec(name="half_pixel", type="bool", default=False),
        ArgSpec(name="half_pixel_for_nn", type="bool", default=False),
        ArgSpec(name="channel_last", type="bool", default=False),
    ),
)

ONNX_RESIZE = FunctionSpec(
    name="ONNXResize", api="onnx_resize", topic="image", doc="Resize any axes as the ONNX operator Resize does.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="roi", type="floats", default=()), ArgSpec(name="scales", type="floats", default=()),
        ArgSpec(name="sizes", type="ints", default=()),
        ArgSpec(name="mode", type="str", default="nearest", choices=("nearest", "linear", "cubic")),
        ArgSpec(
            name="coordinate_transformation_mode", type="str", default="half_pixel",
            choices=("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"),
        ),
        ArgSpec(name="cubic_coeff_a", type="float", default=-0.75, shown_as_none=True),
        ArgSpec(name="exclude_outside", type="int", default=0, shown_as_none=True),
        ArgSpec(name="extrapolation_value", type="float", default=0.0, shown_as_none=True),
        ArgSpec(
            name="nearest_mode", type="str", default="round_prefer_floor",
            choices=("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        ),
    ),
)

ONNX_RESIZE_BACKWARD = FunctionSpec(
    name="ONNXResizeBackward", api="onnx_resize_backward", topic="image",
    doc="Apply the transpose of onnx_resize, which is its gradient.", inputs=(InputSpec(name="dy"),),
    outputs=(OutputSpec(name="dx"),),
    args=(
        ArgSpec(name="input_size", type="ints", minimum=1), ArgSpec(name="roi", type="floats", default=()),
        ArgSpec(name="scales", type="floats", default=()), ArgSpec(name="sizes", type="ints", default=()),
        ArgSpec(name="mode", type="str", default="nearest", choices=("nearest", "linear", "cubic")),
        ArgSpec(
            name="coordinate_transformation_mode", type="str", default="half_pixel",
            choices=("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"),
        ),
        ArgSpec(name="cubic_coeff_a", type="float", default=-0.75),
        ArgSpec(name="exclude_outside", type="int", default=0),
        ArgSpec(
            name="nearest_mode", type="str", default="round_prefer_floor",
            choices=("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        ),
    ),
)

FFT = FunctionSpec(
    name="FFT", api="fft", topic="image", doc="Take the complex discrete Fourier transform over the last axes.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="signal_ndim", type="int", minimum=1, maximum=3),
        ArgSpec(name="normalized", type="bool", default=False),
    ),
)

IFFT = FunctionSpec(
    name="IFFT", api="ifft", topic="image",
    doc="Take the inverse complex discrete Fourier transform over the last axes.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="signal_ndim", type="int", minimum=1, maximum=3),
        ArgSpec(name="normalized", type="bool", default=False),
    ),
)

STFT = FunctionSpec(
    name="STFT", api="stft", topic="image", doc="Take the short-time Fourier transform of real signals.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y_r"), OutputSpec(name="y_i")),
    args=(
        ArgSpec(name="window_size", type="int", minimum=1),
        ArgSpec(name="stride", type="int", minimum=1, maximum=2147483647),
        ArgSpec(name="fft_size", type="int", minimum=1),
        ArgSpec(
            name="window_type", type="str", default="hanning", choices=("hanning", "hamming", "rectangular"),
        ),
        ArgSpec(name="center", type="bool", default=True),
        ArgSpec(name="pad_mode", type="str", default="reflect", choices=("constant", "reflect")),
        ArgSpec(name="as_istft_backward", type="bool", default=False),
    ),
)

ISTFT = FunctionSpec(
    name="ISTFT", api="istft", topic="image", doc="Rebuild real signals from their short-time Fourier transform.",
    inputs=(InputSpec(name="y_r"), InputSpec(name="y_i")), outputs=(OutputSpec(name="x"),),
    args=(
        ArgSpec(name="window_size", type="int", minimum=1),
        ArgSpec(name="stride", type="int", minimum=1, maximum=2147483647),
        ArgSpec(name="fft_size", type="int", minimum=1),
        ArgSpec(
            name="window_type", type="str", default="hanning", choices=("hanning", "hamming", "rectangular"),
        ),
        ArgSpec(name="center", type="bool", default=True),
        ArgSpec(name="pad_mode", type="str", default="reflect", choices=("constant", "reflect")),
        ArgSpec(name="as_stft_backward", type="bool", default=False),
    ),
)

AFFINE_GRID = FunctionSpec(
    name="AffineGrid", api="affine_grid", topic="image",
    doc="Make the grid of source points that an affine transformation assigns to every place of an image.",
    inputs=(InputSpec(name="theta"),), outputs=(OutputSpec(name="grid"),),
    args=(ArgSpec(name="size", type="ints", minimum=1), ArgSpec(name="align_corners", type="bool", default=False)),
)

WARP_BY_GRID = FunctionSpec(
    name="WarpByGrid", api="warp_by_grid", topic="image", doc="Sample images at the points of a grid.",
    inputs=(InputSpec(name="x"), InputSpec(name="grid")), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="mode", type="str", default="linear", choices=("linear", "nearest")),
        ArgSpec(name="padding_mode", type="str", default="zero", choices=("zero", "repeat", "reflect")),
        ArgSpec(name="align_corners", type="bool", default=False),
        ArgSpec(name="channel_last", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x", "grid")),
)

WARP_BY_FLOW = FunctionSpec(
    name="WarpByFlow", api="warp_by_flow", topic="image",
    doc="Move the pixels of images by a flow field, with linear interpolation.",
    inputs=(InputSpec(name="data"), InputSpec(name="flow")), outputs=(OutputSpec(name="warped_image"),),
    backward=BackwardSpec(needs=("data", "flow")),
)

PATCH_CORRELATION = FunctionSpec(
    name="PatchCorrelation", api="patch_correlation", topic="image",
    doc="Compare the patches of one image with shifted patches of another by their inner product.",
    inputs=(InputSpec(name="x1"), InputSpec(name="x2")), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="patch", type="ints", default=(1, 1), minimum=1),
        ArgSpec(name="shift", type="ints", default=(0, 0), minimum=0),
        ArgSpec(name="patch_step", type="ints", default=(1, 1), minimum=1),
        ArgSpec(name="shift_step", type="ints", default=(1, 1), minimum=1),
        ArgSpec(name="padding", type="ints", default=(0, 0, 0, 0), minimum=0),
    ),
    backward=BackwardSpec(needs=("x1", "x2")),
)

PATCH_CORRELATION_BACKWARD = FunctionSpec(
    name="PatchCorrelationBackward", api="patch_correlation_backward", topic="image",
    doc="Compute both gradients of patch_correlation.",
    inputs=(InputSpec(name="dy"), InputSpec(name="x1"), InputSpec(name="x2")),
    outputs=(OutputSpec(name="dx1"), OutputSpec(name="dx2")),
    args=(
        ArgSpec(name="patch", type="ints", default=(1, 1), minimum=1),
        ArgSpec(name="shift", type="ints", default=(0, 0), minimum=0),
        ArgSpec(name="patch_step", type="ints", default=(1, 1), minimum=1),
        ArgSpec(name="shift_step", type="ints", default=(1, 1), minimum=1),
        ArgSpec(name="padding", type="ints", default=(0, 0, 0, 0), minimum=0),
    ),
    backward=BackwardSpec(needs=("dy", "x1", "x2")),
)

SPECS: tuple[FunctionSpec, ...] = (
    INTERPOLATE, INTERPOLATE_BACKWARD, ONNX_RESIZE, ONNX_RESIZE_BACKWARD, FFT, IFFT, STFT, ISTFT, AFFINE_GRID,
    WARP_BY_GRID, WARP_BY_FLOW, PATCH_CORRELATION, PATCH_CORRELATION_BACKWARD,
)
