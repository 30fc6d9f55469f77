"""Regions of images, resampled to one size."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.ext import Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.compose import refuse_images
from nn_ext_cuda.codegen.located import located

#: Samples of a bin on one axis, as the reference takes them.
MOST_SAMPLES: Final = 1 << 16
#: A box on one axis: where it begins, how long its bins are, and how many samples each bin has. Pixels are half a step off
#: the coordinates of boxes. A sample up to one pixel outside of the image reads the edge, one further off nothing.
_FUNCTIONS: Final = """\
// The corners of a box.
template <class Element>
__device__ bool is_finite(const Element* box) {
  bool all = true;
  for (int i = 1; i < 5; ++i) all &= R(load(box[i])) - R(load(box[i])) == 0;
  return all;
}
// A bin of more samples than are taken has -1 of them, and so has one whose borders are not finite.
struct Side { R low, step; int64 samples; };
__device__ Side side_of(R low, R high, int64 bins, int64 ratio) {
  const R step = (high - low) / R(bins);
  const R samples = ratio < 1 ? ceil(step) : R(ratio);
  return {low, step, samples <= R(MOST_SAMPLES) ? (samples > 0 ? int64(samples) : 0) : -1};
}
__device__ R sample_of(const Side& side, int64 bin, int64 sample) {
  return side.low + (R(bin) + (R(sample) + R(0.5)) / R(side.samples)) * side.step - R(0.5);
}
__device__ bool is_near(R place, int64 length) { return place >= -1 && place <= R(length); }
__device__ R held(R place, int64 length) { return smaller(larger(place, R(0)), R(length - 1)); }
// The pixel at or before a place; R(length - 1) is rounded, and may be `length`.
__device__ int64 pixel_of(R place, int64 length) { return min(int64(held(place, length)), length - 1); }
// The part of a pixel in the mean of a bin.
__device__ R share(const Side& side, int64 bin, int64 pixel, int64 length) {
  R sum = 0;
  for (int64 s = 0; s < side.samples; ++s) {
    const R place = sample_of(side, bin, s);
    if (is_near(place, length)) sum += larger(1 - fabs(held(place, length) - R(pixel)), R(0));
  }
  return side.samples ? sum / R(side.samples) : R(0);
}
__device__ bool reaches(const Side& side, int64 bins, R pixel, int64 length) {
  const R high = side.low + R(bins) * side.step;
  const R first = smaller(side.low, high), last = larger(side.low, high);
  return pixel == 0 || pixel == R(length - 1) || (pixel > first - 2 && pixel < last + 1);
}
"""
_SIDES: Final = """\
const Side down = side_of(R(load(boxes[box * 5 + 2])) * scale0, R(load(boxes[box * 5 + 4])) * scale0, bins0, ratio);
    const Side right = side_of(R(load(boxes[box * 5 + 1])) * scale1, R(load(boxes[box * 5 + 3])) * scale1, bins1, ratio);"""
#: The mean of the samples of a bin; NaN for a box that is not finite, or whose image does not exist.
_FORWARD: Final = f"""\
const int64 box = i0;
    const R number = R(load(boxes[box * 5]));
    if (!(number >= 0 && number < R(images) && number == floor(number) && is_finite(boxes + box * 5))) {{
      store(y[i], infinity() - infinity());
      tell(fault, fault_number, 0);
      continue;
    }}
    {_SIDES}
    if (down.samples < 0 || right.samples < 0) {{
      store(y[i], infinity() - infinity());
      tell(fault, fault_number, 0);
      continue;
    }}
    R a = 0;
    for (int64 s = 0; s < down.samples; ++s) {{
      const R row = sample_of(down, BIN0, s);
      if (!is_near(row, length0)) continue;
      const int64 top = pixel_of(row, length0), bottom = min(top + 1, length0 - 1);
      const R below = held(row, length0) - R(top);
      for (int64 t = 0; t < right.samples; ++t) {{
        const R column = sample_of(right, BIN1, t);
        if (!is_near(column, length1)) continue;
        const int64 first = pixel_of(column, length1), second = min(first + 1, length1 - 1);
        const R behind = held(column, length1) - R(first);
        a += (1 - below) * ((1 - behind) * R(load(input[PIXEL(top, first)])) + behind * R(load(input[PIXEL(top, second)])))
            + below * ((1 - behind) * R(load(input[PIXEL(bottom, first)])) + behind * R(load(input[PIXEL(bottom, second)])));
      }}
    }}
    const int64 n_samples = down.samples * right.samples;
    store(y[i], n_samples ? a / R(n_samples) : R(0));"""
#: The shares of a pixel in all bins of the boxes of its image, in the order of the boxes.
_TRANSPOSED: Final = f"""\
R a = 0;
    for (int64 box = 0; box < count; ++box) {{
      if (R(load(boxes[box * 5])) != R(i0)) continue;
      if (!is_finite(boxes + box * 5)) {{
        a = infinity() - infinity();
        tell(fault, fault_number, 0);
        break;
      }}
    {_SIDES}
      if (down.samples < 0 || right.samples < 0) {{
        a = infinity() - infinity();
        tell(fault, fault_number, 0);
        break;
      }}
      if (!reaches(down, bins0, R(ROW), length0) || !reaches(right, bins1, R(COLUMN), length1)) continue;
      for (int64 bin0 = 0; bin0 < bins0; ++bin0) {{
        const R of_row = share(down, bin0, ROW, length0);
        if (of_row == 0) continue;
        for (int64 bin1 = 0; bin1 < bins1; ++bin1) {{
          const R of_column = share(right, bin1, COLUMN, length1);
          if (of_column != 0) a += of_row * of_column * R(load(dy[BIN(bin0, bin1)]));
        }}
      }}
    }}
    store(dx[i], a);"""
#: The places of elements of images and of bins, and the coordinates of those of the frame.
_CHANNEL_SECOND: Final = {
    "PIXEL": r"((int64(number) * channels + i1) * length0 + \1) * length1 + \2",
    "BIN": r"((box * channels + i1) * bins0 + \1) * bins1 + \2",
    "first": "i2",
    "second": "i3",
}
_CHANNEL_LAST: Final = {
    "PIXEL": r"((int64(number) * length0 + \1) * length1 + \2) * channels + i3",
    "BIN": r"((box * bins0 + \1) * bins1 + \2) * channels + i3",
    "first": "i1",
    "second": "i2",
}


class RoiAlign:
    """Means of bilinear samples in the bins of boxes, or its transpose; the gradient of each is the other, by the rule.

    Args:
        transposed: Whether it is the transpose.
    """

    def __init__(self, *, transposed: bool) -> None:
        self._transposed = transposed

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, very large arrays, and images without elements."""
        return refuse_images(call.outputs[0] if self._transposed else call.inputs[0], call)

    def forward(self, call: Call) -> Runner:
        """One launch over the bins of all boxes, or over all pixels."""
        given, boxes = call.inputs
        assert given is not None and boxes is not None
        made, layout = call.outputs[0], _CHANNEL_LAST if call.args["channel_last"] else _CHANNEL_SECOND
        images = made.shape if self._transposed else given.shape
        n_images, channels, *lengths = _channels_second(images, call)
        bins, scales = _pair(call, "output_size"), _pair(call, "spatial_scale")
        numbers: dict[str, int | float] = {"images": n_images, "channels": channels, "count": boxes.shape[0]}
        for axis in range(2):
            numbers |= {f"bins{axis}": int(bins[axis]), f"scale{axis}": float(scales[axis]), f"length{axis}": lengths[axis]}
        numbers["ratio"] = int(call.args["sampling_ratio"])  # type: ignore[arg-type]  # an int
        text = _TRANSPOSED if self._transposed else _FORWARD
        for name, coordinate in (("BIN0", "first"), ("BIN1", "second"), ("ROW", "first"), ("COLUMN", "second")):
            text = text.replace(name, layout[coordinate])
        for name in ("PIXEL", "BIN"):
            text = re.sub(rf"{name}\((\w+), (\w+)\)", layout[name], text)
        must = f"boxes must be finite and begin with the number of an image, from 0 to {n_images - 1}, "
        must += f"and bins have at most {MOST_SAMPLES} samples on an axis, got another one"
        fault = f"{call.spec.api}: {must}"
        return located(
            call,
            call.spec.api,
            made.shape,
            text,
            numbers,
            functions=_FUNCTIONS.replace("MOST_SAMPLES", str(MOST_SAMPLES)),
            fault=fault,
        )

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule runs the other of the two."""
        return None


def _channels_second(shape: Shape, call: Call) -> Shape:
    return (shape[0], shape[3], *shape[1:3]) if call.args["channel_last"] else shape


def _pair(call: Call, name: str) -> tuple[Any, Any]:
    value = call.args[name]
    assert isinstance(value, tuple)
    first, second = value
    return first, second


REGIONS: Final[Mapping[str, Kernel]] = {
    "RoiAlign": RoiAlign(transposed=False),
    "RoiAlignBackward": RoiAlign(transposed=True),
}
