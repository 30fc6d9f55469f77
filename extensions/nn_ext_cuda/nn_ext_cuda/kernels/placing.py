"""Functions of which each element follows from its place: triangles, labels, joined halves, constants."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from nn_core.ext import Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.compose import refuse_sizes
from nn_ext_cuda.codegen.dtypes import refuse_dtypes
from nn_ext_cuda.codegen.layout import split_axes
from nn_ext_cuda.codegen.located import located
from nn_ext_cuda.device.faults import beyond_classes

#: The lengths of the frame of a call, and numbers besides the arguments.
Frame = Callable[[Call], tuple[Sequence[int], Mapping[str, int | float]]]


class Placed:
    """A function as C statements over the places of a frame; see `located`.

    Args:
        frame: The frame of a call, and what the statements need to know of it.
        forward: Statements that store the output; or what makes them from the call.
        backward: Statements that store the gradient of the first input; None: the gradient rule serves.
        fault: The message of a fault that the forward statements tell of.
    """

    def __init__(
        self,
        frame: Frame,
        forward: str | Callable[[Call], str],
        backward: str | Callable[[Call], str] | None = None,
        fault: Callable[[Call], str] | None = None,
    ) -> None:
        self._fault = fault
        self._frame = frame
        self._forward = forward
        self._backward = backward

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        return refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch."""
        lengths, numbers = self._frame(call)
        fault = self._fault(call) if self._fault else ""
        return located(call, f"{call.spec.api}_forward", lengths, _text(self._forward, call), numbers, fault=fault)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One launch."""
        if self._backward is None or any(wanted[1:]):
            return None
        lengths, numbers = self._frame(call)
        name = f"{call.spec.api}_backward"
        return located(call, name, lengths, _text(self._backward, call), numbers, wanted)


def _text(statement: str | Callable[[Call], str], call: Call) -> str:
    return statement if isinstance(statement, str) else statement(call)


def _shape(call: Call, place: int = 0) -> Shape:
    desc = call.inputs[place]
    assert desc is not None
    return desc.shape


def _matrices(call: Call) -> tuple[Sequence[int], Mapping[str, int | float]]:
    *outer, rows, columns = _shape(call)
    return (math.prod(outer), rows, columns), {"k": int(call.args["k"])}  # type: ignore[arg-type]  # an int


def _keeps(call: Call) -> str:
    return f"int64(i2) - int64(i1) {'>=' if call.args['upper'] else '<='} k"


def _halves(call: Call) -> tuple[Sequence[int], Mapping[str, int | float]]:
    """Elements in front of the axis that is doubled, and the others of x."""
    axis = call.args["axis"]
    assert isinstance(axis, int)
    shape = _shape(call)
    numbers = {"alpha": float(call.args["alpha"])} if "alpha" in call.args else {}  # type: ignore[arg-type]  # a number
    inner = math.prod(shape[axis:])
    return (math.prod(shape[:axis]), inner), {**numbers, "inner": inner}


def _classes(call: Call, shape: Shape) -> tuple[Sequence[int], Mapping[str, int | float]]:
    """Return number of elements before the axis of the classes, of classes, and of elements after it."""
    axis = call.args["axis"]
    assert isinstance(axis, int)
    outer, length, inner = split_axes(shape, axis)
    return (outer, length, inner), {"classes": length, "inner": inner}


def _labels(call: Call) -> tuple[Sequence[int], Mapping[str, int | float]]:
    (outer, _, inner), numbers = _classes(call, _shape(call))
    return (outer, inner), numbers


def _beyond_classes(call: Call) -> str:
    axis = call.args["axis"]
    assert isinstance(axis, int)
    return beyond_classes(call.spec.api, _shape(call)[axis])


#: A label below 0 is ignored.
_TELL_LABEL: Final = "if (target[i] >= classes) tell(fault, fault_number, target[i]);"


def _cells(call: Call) -> tuple[Sequence[int], Mapping[str, int | float]]:
    """Positions, and the axes that are marked."""
    x, shape = _shape(call), call.args["shape"]
    assert isinstance(shape, tuple)
    lengths = tuple(map(int, shape))
    return (math.prod(x[:-1]), *lengths), {f"d{axis}": length for axis, length in enumerate(lengths)}


def _hits(call: Call) -> str:
    rank = len(_cells(call)[0]) - 1
    tests = [
        f"(x[i0 * int64({rank}) + {axis}] == i{axis + 1} || x[i0 * int64({rank}) + {axis}] + d{axis} == i{axis + 1})"
        for axis in range(rank)
    ]
    return f"store(output[i], R({' && '.join(tests) or 'true'}));"


class Loss:
    """The categorical cross entropy: one launch over the labels forward, one over all elements backward."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        return refuse_sizes(call.inputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """-log of what the label picks; 0 for a label below 0, NaN for one beyond the classes."""
        lengths, numbers = _labels(call)
        picked = "-log_of(R(load(x[(i0 * classes + target[i]) * inner + i1])))"
        otherwise = "target[i] < 0 ? R(0) : infinity() - infinity()"
        statement = f"store(y[i], target[i] >= 0 && target[i] < classes ? {picked} : R({otherwise})); {_TELL_LABEL}"
        return located(call, "categorical_cross_entropy", lengths, statement, numbers, fault=_beyond_classes(call))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """-dy / x where the label points, 0 elsewhere."""
        lengths, numbers = _classes(call, _shape(call))
        place = "i0 * inner + i2"
        slope = f"-R(load(dy[{place}])) / divisor(R(load(x[i])))"
        statement = f"store(dx[i], target[{place}] == i1 ? {slope} : R(0));"
        return located(call, "categorical_cross_entropy_backward", lengths, statement, numbers, wanted)


def _whole(call: Call) -> tuple[Sequence[int], Mapping[str, int | float]]:
    return (math.prod(call.outputs[0].shape),), {"val": float(call.args["val"])}  # type: ignore[arg-type]  # a number


_FIRST: Final = "i0 * 2 * inner + i1"
_SECOND: Final = "i0 * 2 * inner + inner + i1"

#: How many classes score at least as high as the label; beyond the classes there is none.
_TOP_N: Final = """\
const int64 label = target[i];
    int64 rank = 0;
    if (label >= 0 && label < classes) {
      const R own = R(load(x[(i0 * classes + label) * inner + i1]));
      for (int64 c = 0; c < classes; ++c) rank += R(load(x[(i0 * classes + c) * inner + i1])) >= own;
    }
    store(output[i], label >= classes ? infinity() - infinity() : R(label >= 0 && rank > limit));
    if (label >= classes) tell(fault, fault_number, label);"""


def _ranked(call: Call) -> tuple[Sequence[int], Mapping[str, int | float]]:
    lengths, numbers = _labels(call)
    return lengths, {**numbers, "limit": int(call.args["n"])}  # type: ignore[arg-type]  # an int


PLACING: Final[Mapping[str, Kernel]] = {
    "TopNError": Placed(_ranked, _TOP_N, fault=_beyond_classes),
    "Trilu": Placed(
        _matrices,
        lambda call: f"store(y[i], {_keeps(call)} ? R(load(x[i])) : R(0));",
        lambda call: f"store(dx[i], {_keeps(call)} ? R(load(dy[i])) : R(0));",
    ),
    "CReLU": Placed(
        _halves,
        f"const R a = R(load(x[i])); store(y[{_FIRST}], rectified(a)); store(y[{_SECOND}], rectified(-a));",
        f"store(dx[i], R(load(x[i])) > 0 ? R(load(dy[{_FIRST}])) : -R(load(dy[{_SECOND}])));",
    ),
    "CELU": Placed(
        _halves,
        f"const R a = R(load(x[i])); store(y[{_FIRST}], elu(a, alpha)); store(y[{_SECOND}], elu(-a, alpha));",
        f"const R a = R(load(x[i])); store(dx[i], R(load(dy[{_FIRST}])) * elu_slope(a, alpha)"
        f" - R(load(dy[{_SECOND}])) * elu_slope(-a, alpha));",
    ),
    "ClassMask": Placed(lambda call: _classes(call, call.outputs[0].shape), "store(y[i], R(target[i0 * inner + i2] == i1));"),
    "OneHot": Placed(_cells, _hits),
    "CategoricalCrossEntropy": Loss(),
    "Constant": Placed(_whole, "store(y[i], val);"),
}
