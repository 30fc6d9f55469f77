"""Layers whose weights and biases are pruned or rounded to few values; training changes the exact values.

Each of them keeps the exact values as W and b. The values that the layer computes with are kept as W_q and b_q, so
that it can be saved and inspected.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import nn_core.functions as F
from nn_core.functions.operand import Operand
from nn_core.initializer import Rng
from nn_core.parametric_functions.convolution import channels_of, kernel_shape
from nn_core.parametric_functions.initial import ZEROS, affine_sizes, bias, glorot, trained
from nn_core.parametric_functions.scope import Initializer, get_parameter_or_create
from nn_core.typing import Shape
from nn_core.variable import Variable

#: Rounds or prunes a parameter; the second argument is for `outputs` of the function that does it.
Quantizer: TypeAlias = Callable[[Variable, Any], Variable]

QUANTIZED = [
    ("W", "Exact weight.", "that of the weight", True),
    ("W_q", "The weight computed with.", "that of the weight", False),
    ("b", "Exact bias.", "(K)", True),
    ("b_q", "The bias computed with.", "(K)", False),
]


def weight_and_copy(
    shape: Shape,
    w_init: Initializer | None,
    copy_init: Initializer | None,
    default: Initializer,
    fix_parameters: bool,
    copy_name: str,
) -> tuple[Variable, Variable]:
    """Return the trained weight, and the parameter beside it that holds what is computed with."""
    w = trained("W", shape, default if w_init is None else w_init, fix_parameters)
    return w, get_parameter_or_create(copy_name, shape, default if copy_init is None else copy_init, False)


def _quantized_weight(
    shape: Shape,
    w_init: Initializer | None,
    default: Initializer,
    fix_parameters: bool,
    quantize: Quantizer | None,
) -> Variable:
    if quantize is None:
        return trained("W", shape, default if w_init is None else w_init, fix_parameters)
    w, w_q = weight_and_copy(shape, w_init, w_init, default, fix_parameters, "W_q")
    return quantize(w, [_receiver(w_q)])


def _quantized_bias(
    shape: Shape,
    b_init: Initializer | None,
    fix_parameters: bool,
    with_bias: bool,
    quantize: Quantizer | None,
) -> Variable | None:
    b = bias(shape, b_init, fix_parameters, with_bias)
    if b is None or quantize is None:
        return b
    b_q = get_parameter_or_create("b_q", shape, ZEROS if b_init is None else b_init, False)
    return quantize(b, [_receiver(b_q)])


def _receiver(parameter: Variable) -> Variable:
    """Return a variable that may become the output of a function, over the values of `parameter`.

    No clear flag frees them: they are a parameter.
    """
    receiver = Variable(parameter.shape)
    receiver.data = parameter.data
    receiver.persistent = True
    return receiver


def quantized_affine(
    inp: Operand,
    n_outmaps: int | Sequence[int],
    base_axis: int,
    w_init: Initializer | None,
    b_init: Initializer | None,
    fix_parameters: bool,
    rng: Rng | None,
    with_bias: bool,
    quantize_w: Quantizer | None,
    quantize_b: Quantizer | None,
) -> Operand:
    """Return an affine layer with quantized parameters; a quantizer of None leaves its parameter exact."""
    n_features, out_shape = affine_sizes(inp, n_outmaps, base_axis)
    default = glorot(n_features, prod(out_shape), rng=rng)
    w = _quantized_weight((n_features, *out_shape), w_init, default, fix_parameters, quantize_w)
    b = _quantized_bias(out_shape, b_init, fix_parameters, with_bias, quantize_b)
    return F.affine(inp, w, b, base_axis)


def quantized_kernel_and_bias(
    inp: Operand,
    outmaps: int,
    kernel: Sequence[int],
    group: int,
    channel_last: bool,
    w_init: Initializer | None,
    b_init: Initializer | None,
    base_axis: int,
    fix_parameters: bool,
    rng: Rng | None,
    with_bias: bool,
    quantize_w: Quantizer | None,
    quantize_b: Quantizer | None,
) -> tuple[Variable, Variable | None]:
    """Quantized weight and bias of a convolution layer; a quantizer of None leaves its parameter exact."""
    channels = channels_of(inp, base_axis, channel_last)
    default = glorot(channels, outmaps, kernel, rng)
    shape = kernel_shape(outmaps, channels // group, kernel, channel_last)
    w = _quantized_weight(shape, w_init, default, fix_parameters, quantize_w)
    return w, _quantized_bias((outmaps,), b_init, fix_parameters, with_bias, quantize_b)
