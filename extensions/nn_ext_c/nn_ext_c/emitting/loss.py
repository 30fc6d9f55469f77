"""Losses, and the mask of labels that their gradients read."""

from collections.abc import Callable
from typing import Final

import numpy as np

from nn_ext_c.emitting.activation import SOFTPLUS
from nn_ext_c.emitting.reduction import finished
from nn_ext_c.emitting.registry import EMITTERS, Call, Emitter, emitter
from nn_ext_c.loops import Code, Index, dot, number
from nn_ext_c.program import Argument, Step, Value

#: The smallest argument of a logarithm: the smallest normal number of float32.
_SMALLEST: Final = number(2.0**-126)


def _log(expression: str) -> str:
    return f"logf({expression} < {_SMALLEST} ? {_SMALLEST} : {expression})"


#: Losses of two arrays, whose elements are `a` and `b`, with their settings.
_EXPRESSIONS: Final = {
    "SquaredError": "(a - b) * (a - b)",
    "AbsoluteError": "fabsf(a - b)",
    "HuberLoss": "fabsf(a - b) < {delta} ? (a - b) * (a - b) : {delta} * (2.0f * fabsf(a - b) - {delta})",
    "EpsilonInsensitiveLoss": "fabsf(a - b) < {epsilon} ? 0.0f : fabsf(a - b) - {epsilon}",
    "SigmoidCrossEntropy": f"{SOFTPLUS.format(v='a')} - b * a",
    "BinaryCrossEntropy": f"-(b * {_log('a')} + (1.0f - b) * {_log('(1.0f - a)')})",
}


def _of(expression: str) -> Emitter:
    def emit(call: Call) -> Value:
        settings = {name: number(value) for name, value in call.args.items()}
        return call.map(expression.format(**settings), call[0], call[1])

    return emit


EMITTERS.update({name: _of(expression) for name, expression in _EXPRESSIONS.items()})


@emitter("KLMultinomial")
def _kl_multinomial(call: Call) -> Value:
    axes = range(call.args["base_axis"], len(call.shape))
    return finished(call, call.reduce(axes, "0.0f", f"total += a * ({_log('a')} - {_log('b')});", call[0], call[1]))


@emitter("ClassMask")
def _class_mask(call: Call) -> Value:
    """Return 1 where the class, along an axis, is the one that the label names."""
    n_classes, axis = call.args["n_classes"], call.args["axis"]
    classes = np.arange(n_classes).reshape((n_classes,) + (1,) * (len(call.shape) - axis - 1))
    return call.map("a == b ? 1.0f : 0.0f", call.x, call.program.constant(classes, name="classes"))


def _of_labels(call: Call, loss: Callable[[Code, Index, Index, int], str]) -> Value:
    """Return a loss of the element that each label names; 0 where it is negative.

    Args:
        call: the function.
        loss: given the code, where the elements of a sample begin, the place of the label's element among them, and how many
            there are, adds statements and returns the loss as an expression.
    """
    x, labels, axis = call.x, call[1], call.args["axis"] % len(call.shape)
    target = call.program.new(call.output_shape)
    code = Code()
    places = code.loops(1 if k == axis else length for k, length in enumerate(call.shape))
    n_classes = call.shape[axis]
    code.line(f"const float label = labels[{dot(places, labels.strides)}];")
    code.open(f"if (!(label < {n_classes}.0f))")
    code.line("return 1;")
    code.close()
    code.line("const int32_t place = label < 0.0f ? 0 : (int32_t)label;")
    value = loss(code, dot(places, x.strides), Index((("place", x.strides[axis]),)), n_classes)
    code.line(f"y[{dot(places, target.strides)}] = label < 0.0f ? 0.0f : {value};")
    arguments = [Argument("x", x), Argument("labels", labels), Argument("y", target, True)]
    call.program.add(Step(call.name, code.text(), arguments, can_fail=True))
    return target


@emitter("CategoricalCrossEntropy")
def _categorical_cross_entropy(call: Call) -> Value:
    def loss(code: Code, first: Index, place: Index, _: int) -> str:
        code.line(f"const float a = x[{first + place}];")
        return f"-{_log('a')}"

    return _of_labels(call, loss)


@emitter("SoftmaxCrossEntropy")
def _softmax_cross_entropy(call: Call) -> Value:
    stride = call.x.strides[call.args["axis"] % len(call.shape)]

    def loss(code: Code, first: Index, place: Index, n_classes: int) -> str:
        depth = code.depth
        code.line(f"float top = x[{first}], total = 0.0f;")
        for update in ("top = a > top || isnan(a) ? a : top;", "total += expf(a - top);"):
            code.line(f"const float a = x[{first + code.loop(n_classes) * stride}];")
            code.line(update)
            code.close_to(depth)
        return f"logf(total) - (x[{first + place}] - top)"

    return _of_labels(call, loss)
