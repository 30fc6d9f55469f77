"""Patches of images: compared with those of another image, or weighed by kernels of each pixel."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.ext import Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.compose import refuse_images, refuse_sizes
from nn_ext_cuda.codegen.located import located
from nn_ext_cuda.launch.program import Chain

#: A pixel, 0 outside of the image.
_PIXEL: Final = """\
template <class V>
__device__ R pixel(const V* image, int64 plane, int64 row, int64 column, int64 height, int64 width) {
  if (row < 0 || row >= height || column < 0 || column >= width) return R(0);
  return R(load(image[(plane * height + row) * width + column]));
}
"""
_FORWARD: Final = """\
const int64 down = int64(i1) * shift_step0 - shift0, over = int64(i2) * shift_step1 - shift1; R a = 0;
    for (int64 channel = 0; channel < channels; ++channel) {
      const int64 plane = int64(i0) * channels + channel;
      for (int64 u = 0; u < size0; ++u) {
        const int64 row = int64(i3) * step0 + u - top;
        for (int64 v = 0; v < size1; ++v) {
          const int64 column = int64(i4) * step1 + v - left;
          a += pixel(x1, plane, row, column, height, width) * pixel(x2, plane, row + down, column + over, height, width);
        }
      }
    }
    store(OUT[i], a);"""
#: (row, column) is the pixel of the first image that a pixel belongs to, in either image, at each shift.
_BACKWARD: Final = """\
const int64 plane = int64(i0) * channels + i1; R a = 0;
    for (int64 s = 0; s < shifts0; ++s)
      for (int64 t = 0; t < shifts1; ++t) {
        const int64 down = s * shift_step0 - shift0, over = t * shift_step1 - shift1;
        const int64 row = int64(i2) - SECOND * down, column = int64(i3) - SECOND * over;
        const R other = SECOND ? pixel(x1, plane, row, column, height, width)
                               : pixel(x2, plane, row + down, column + over, height, width);
        if (other == 0) continue;
        const int64 last0 = min((row + top) / step0, counts0 - 1), last1 = min((column + left) / step1, counts1 - 1);
        R share = 0;
        for (int64 p = last0; p >= 0 && row + top - p * step0 < size0; --p)
          for (int64 q = last1; q >= 0 && column + left - q * step1 < size1; --q)
            share += R(load(dy[(((i0 * shifts0 + s) * shifts1 + t) * counts0 + p) * counts1 + q]));
        a += share * other;
      }
    store(OUT[i], a);"""


class PatchCorrelation:
    """Sums of products of patches of x1 and shifted ones of x2 (P. Fischer et al., "FlowNet", 2015)."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, very large arrays, and images without elements."""
        return refuse_images(call.inputs[0], call)

    def forward(self, call: Call) -> Runner:
        """One launch, a thread for each patch and shift."""
        y = call.outputs[0]
        statement = _FORWARD.replace("OUT", call.spec.outputs[0].name)
        return located(call, "patch_correlation", y.shape, statement, _numbers(call, 0), functions=_PIXEL)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves, with the function below."""
        return None


class PatchCorrelationBackward:
    """The gradients of both images, which have those of all patches at all shifts; its own is that of the rule."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, very large arrays, and images without elements."""
        return refuse_images(call.inputs[1], call) or refuse_sizes(call.inputs)

    def forward(self, call: Call) -> Runner:
        """Return a launch for each image, a thread for each pixel."""
        programs = []
        for second, (entry, desc) in enumerate(zip(call.spec.outputs, call.outputs, strict=True)):
            statement = _BACKWARD.replace("OUT", entry.name).replace("SECOND", str(second))
            name = f"patch_correlation_backward_{second}"
            programs.append(located(call, name, desc.shape, statement, _numbers(call, 1), functions=_PIXEL))
        return Chain(programs)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None


def _numbers(call: Call, image: int) -> dict[str, int | float]:
    """Sizes of images and patches, by the place of an image among the inputs."""
    x, args = call.inputs[image], dict[str, Any](call.args)
    assert x is not None
    correlations = (call.inputs if image else call.outputs)[0]
    assert correlations is not None
    names = {"patch": "size", "shift": "shift", "patch_step": "step", "shift_step": "shift_step"}
    numbers: dict[str, int | float] = dict(zip(("channels", "height", "width"), x.shape[1:], strict=True))
    numbers |= {f"{own}{axis}": int(args[name][axis]) for name, own in names.items() for axis in range(2)}
    numbers |= dict(zip(("shifts0", "shifts1", "counts0", "counts1"), correlations.shape[1:], strict=True))
    return numbers | {"top": int(args["padding"][0]), "left": int(args["padding"][2])}


_SEPARABLE: Final = """\
R a = 0;
    for (int64 u = 0; u < size0; ++u) {
      const R weight = R(load(vertical_kernel[((i0 * size0 + u) * rows0 + i2) * columns0 + i3]));
      for (int64 v = 0; v < size1; ++v)
        a += weight * R(load(horizontal_kernel[((i0 * size1 + v) * rows1 + i2) * columns1 + i3]))
            * R(load(x[((i0 * channels + i1) * height + i2 + u) * width + i3 + v]));
    }
    store(y[i], a);"""


class AdaptiveSeparableConvolution:
    """The window of each pixel, weighed by its own column and row; gradients are those of the rule."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, very large arrays, and images without elements."""
        return refuse_images(call.inputs[0], call)

    def forward(self, call: Call) -> Runner:
        """One launch, a thread for each element."""
        x, vertical, horizontal = (desc.shape for desc in call.inputs if desc is not None)
        numbers: dict[str, int | float] = dict(zip(("channels", "height", "width"), x[1:], strict=True))
        for axis, kernel in enumerate((vertical, horizontal)):
            numbers |= dict(zip((f"size{axis}", f"rows{axis}", f"columns{axis}"), kernel[1:], strict=True))
        return located(call, "adaptive_separable_convolution", call.outputs[0].shape, _SEPARABLE, numbers)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None


PATCHES: Final[Mapping[str, Kernel]] = {
    "AdaptiveSeparableConvolution": AdaptiveSeparableConvolution(),
    "PatchCorrelation": PatchCorrelation(),
    "PatchCorrelationBackward": PatchCorrelationBackward(),
}
