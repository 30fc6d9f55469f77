"""Resizing of images."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.compose import refuse_sizes
from nn_ext_cuda.codegen.dtypes import refuse_dtypes
from nn_ext_cuda.codegen.located import located

#: Taps of an output element on one axis. Its coordinate is numerator / by in integers, so that no rounding moves a tap;
#: `times` and `plus` give the numerator. The transpose looks through the outputs around an input element.
_FUNCTIONS: Final = """\
struct Taps { int64 low; R fraction; };
__device__ Taps taps(int64 place, int64 length, int64 times, int64 plus, int64 by, int64 linear) {
  const int64 numerator = min(max(place * times + plus, int64(0)), (length - 1) * by);
  const int64 low = numerator / by;
  return {low, linear ? R(numerator - low * by) / R(by) : R(0)};
}
__device__ R share(int64 at, const Taps& t, int64 length) {
  return R(at == t.low) * (1 - t.fraction) + R(at == min(t.low + 1, length - 1)) * t.fraction;
}
struct Span { int64 first, last; };
__device__ Span span(int64 at, int64 length, int64 count, int64 times, int64 plus, int64 by) {
  if (times == 0) return {0, count};
  const int64 before = ((at - 1) * by - plus) / times - 1, behind = ((at + 1) * by - plus) / times + 2;
  return {at == 0 ? 0 : min(max(before, int64(0)), count), at == length - 1 ? count : max(min(behind, count), int64(0))};
}
"""
_AXES: Final = range(3)


class Interpolation:
    """Interpolation on up to three axes, or its transpose; the gradient of each is the other.

    Args:
        transposed: Whether it is the transpose.
    """

    def __init__(self, *, transposed: bool) -> None:
        self._transposed = transposed

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        return refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch."""
        return self._program(call, None, transposed=self._transposed)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return the other of the two."""
        return self._program(call, wanted, transposed=not self._transposed)

    def _program(self, call: Call, wanted: Sequence[bool] | None, *, transposed: bool) -> Runner:
        name, result = call.spec.inputs[0].name, call.spec.outputs[0].name
        source, target = (name, result) if wanted is None else (f"d{result}", f"d{name}")
        (given,), made = call.inputs, call.outputs[0]
        assert given is not None
        small, large = (made.shape, given.shape) if self._transposed else (given.shape, made.shape)
        behind = 1 if call.args["channel_last"] else 0
        rank = len(call.args["input_size" if self._transposed else "output_size"])  # type: ignore[arg-type]  # a tuple
        lengths, counts = _spatial(small, rank, behind), _spatial(large, rank, behind)
        numbers: dict[str, int | float] = {"linear": int(call.args["mode"] == "linear")}
        for axis in _AXES:
            times, plus, by = coordinates(call.args, lengths[axis], counts[axis])
            numbers |= {f"times{axis}": times, f"plus{axis}": plus, f"by{axis}": by}
            numbers |= {f"in{axis}": lengths[axis], f"out{axis}": counts[axis]}
        outer = math.prod(small[: len(small) - rank - behind])
        inner = small[-1] if behind else 1
        numbers["inner"] = inner
        frame = (outer, *(lengths if transposed else counts), inner)
        statement = (_TRANSPOSED if transposed else _DIRECT).replace("SOURCE", source).replace("TARGET", target)
        direction = "transposed" if transposed else "forward"
        return located(call, f"interpolate_{direction}", frame, statement, numbers, wanted, _FUNCTIONS)


def coordinates(args: Mapping[str, object], n_inputs: int, n_outputs: int) -> tuple[int, int, int]:
    """Return (times, plus, by): the position of output o in the input is (o times + plus) / by."""
    if args["mode"] == "nearest" and args["half_pixel_for_nn"]:
        return 2 * n_inputs, n_inputs, 2 * n_outputs
    if n_outputs == 1:
        return 1, 0, 1
    if args["align_corners"]:
        return n_inputs - 1, 0, n_outputs - 1
    if args["half_pixel"]:
        return 2 * n_inputs, n_inputs - n_outputs, 2 * n_outputs
    return n_inputs, 0, n_outputs


def _spatial(shape: Shape, rank: int, behind: int) -> tuple[int, ...]:
    """Return the lengths of three axes; shorter ones have axes of length 1 in front."""
    own = shape[len(shape) - rank - behind : len(shape) - behind]
    return (1,) * (3 - rank) + tuple(own)


_TAPS: Final = " ".join(
    f"const Taps t{axis} = taps(i{axis + 1}, in{axis}, times{axis}, plus{axis}, by{axis}, linear);" for axis in _AXES
)
_DIRECT: Final = f"""{_TAPS}
    R a = 0;
    for (int corner = 0; corner < 8; ++corner) {{
      const R share = (corner & 4 ? t0.fraction : 1 - t0.fraction) * (corner & 2 ? t1.fraction : 1 - t1.fraction)
          * (corner & 1 ? t2.fraction : 1 - t2.fraction);
      if (share == 0) continue;
      const int64 at0 = min(t0.low + (corner >> 2), in0 - 1), at1 = min(t1.low + (corner >> 1 & 1), in1 - 1);
      const int64 at2 = min(t2.low + (corner & 1), in2 - 1);
      a += share * R(load(SOURCE[(((i0 * in0 + at0) * in1 + at1) * in2 + at2) * inner + i4]));
    }}
    store(TARGET[i], a);"""
_SPANS: Final = " ".join(
    f"const Span s{axis} = span(i{axis + 1}, in{axis}, out{axis}, times{axis}, plus{axis}, by{axis});" for axis in _AXES
)
_LOOPS: Final = "\n".join(
    f"    for (int64 o{axis} = s{axis}.first; o{axis} < s{axis}.last; ++o{axis}) {{"
    f" const R w{axis} = share(i{axis + 1}, taps(o{axis}, in{axis}, times{axis}, plus{axis}, by{axis}, linear), in{axis});"
    f" if (w{axis} == 0) continue;"
    for axis in _AXES
)
_TRANSPOSED: Final = f"""{_SPANS}
    R a = 0;
{_LOOPS}
      a += w0 * w1 * w2 * R(load(SOURCE[(((i0 * out0 + o0) * out1 + o1) * out2 + o2) * inner + i4]));
    }}}}}}
    store(TARGET[i], a);"""

IMAGE: Final[Mapping[str, Kernel]] = {
    "Interpolate": Interpolation(transposed=False),
    "InterpolateBackward": Interpolation(transposed=True),
}
