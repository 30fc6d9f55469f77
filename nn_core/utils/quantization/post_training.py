"""A network of integers by one call, from a network and samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import nn_core.functions as F
from nn_core.auto_forward import auto_forward
from nn_core.core.module import Module
from nn_core.engine.error_messages.refusal import fitted
from nn_core.errors import ArgumentError
from nn_core.function import Function
from nn_core.graph_rewriting import copy_graph, functions_of, network_ports
from nn_core.utils.quantization.calibration import Array, Range, batches_of, require_method
from nn_core.utils.quantization.lowering import Lowering, key_of
from nn_core.variable import Variable, forward_all


class QuantizedNetwork:
    """A network whose products are those of 8-bit integers; inputs and outputs are floating-point numbers.

    Whatever takes a network with `inputs` and `outputs`, such as ``nn_ext_onnx.export``, takes it.

    Attributes:
        inputs: the inputs by name, new variables of the shapes of the old ones.
        outputs: the results by name.
        in_integers: the names of the functions that became products of integers, in order.
        in_floats: the names of those that compute with floating-point numbers.

    Example:
        >>> import nn_core as nn
        >>> from nn_core.utils.quantization import quantize
        >>> x = nn.Variable((4, 5), name="x")
        >>> y = nn.layers.Affine(3)(x)
        >>> quantized = quantize(y, [x], calibration=np.random.default_rng(0).normal(size=(32, 5)))
        >>> quantized
        QuantizedNetwork(1 products of integers, 0 functions of floats)
        >>> quantized(np.zeros((4, 5))).shape
        (4, 3)
    """

    @fitted
    def __init__(
        self, inputs: dict[str, Variable], outputs: dict[str, Variable], in_integers: list[str], in_floats: list[str]
    ) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.in_integers, self.in_floats = in_integers, in_floats

    def __call__(self, *arrays: Any) -> Array | tuple[Array, ...]:
        """Compute the results for arrays, one for each input in order.

        Raises:
            ArgumentError: when there are more or fewer arrays than inputs.
        """
        if len(arrays) != len(self.inputs):
            raise ArgumentError(f"QuantizedNetwork: there must be an array for each of {list(self.inputs)}, got {len(arrays)}")
        for variable, array in zip(self.inputs.values(), arrays, strict=True):
            variable.d = array
        results = list(self.outputs.values())
        forward_all(results, clear_buffer=True)
        found = tuple(np.array(result.d) for result in results)
        return found if len(found) > 1 else found[0]

    def __repr__(self) -> str:
        return f"QuantizedNetwork({len(self.in_integers)} products of integers, {len(self.in_floats)} functions of floats)"


@fitted
def quantize(
    network: Any,
    inputs: Mapping[str, Variable] | Sequence[Variable] | None = None,
    *,
    calibration: Any,
    method: str = "minmax",
    percentile: float = 99.99,
) -> QuantizedNetwork:
    """Make a network of 8-bit integers of a network of floating-point numbers (post-training static quantization).

    Convolutions, depthwise convolutions, affine functions and batched matrix products multiply levels and add up exactly
    in int32: weights have int8 levels symmetric about 0 with a scale for each filter or column, values uint8 levels with
    one scale and a zero point, from the ranges that the samples show. Batch normalizations by running statistics and
    rectified linear units after a product become part of it. Reshaping and transposing move levels; all other functions
    compute with the values that levels stand for, and what they give is quantized where a product reads it.

    The network that is given stays as it is. The result computes for batches of the same length.

    Args:
        network: The result of a network, a Variable; several, in a sequence or by name; a network with `inputs` and
            `outputs`, as `nn_core.utils` loads it; or a Module of one input.
        inputs: The inputs by name or in order; None: all leaves that are neither trained nor parameters.
        calibration: Typical samples: an array (N, ...) for the only input, arrays by the names of the inputs, or an
            iterable of batches, such as a data iterator, of which one epoch is taken: tuples whose first entries are for
            the inputs in order. A few hundred samples are enough.
        method: How ranges follow from the values of the samples: "minmax", the smallest and the largest one;
            "percentile", without the farthest ones; "mse", the part of the range with the least mean squared error.
        percentile: For "percentile": so many percent of the values are not above the upper end, and as many not below
            the lower one.

    Raises:
        ArgumentError: when the calibration does not fit the inputs or leads to values that are not finite, for another
            method, or when a batch normalization would use the statistics of the batch.

    Example:
        >>> import nn_core as nn
        >>> net = nn.Sequential(nn.layers.Affine(8), nn.layers.ReLU(), nn.layers.Affine(3))
        >>> x = nn.Variable((4, 5))
        >>> y = net(x)
        >>> samples = np.random.default_rng(0).normal(size=(32, 5)).astype(np.float32)
        >>> quantized = quantize(y, [x], calibration=samples)
        >>> quantized.in_integers
        ['Affine', 'Affine']
        >>> x.d = samples[:4]
        >>> y.forward()
        >>> bool(np.abs(quantized(samples[:4]) - y.d).max() < 0.05)
        True
    """
    require_method(method, percentile)
    if isinstance(network, Module):
        network, inputs = _applied(network, calibration)
    outputs, given = network_ports(network, inputs, caller="quantize")
    own = {name: Variable(variable.shape, name=variable.name) for name, variable in given.items()}
    with auto_forward(False):
        copies = copy_graph(list(outputs.values()), {given[name]: variable for name, variable in own.items()})
        order = functions_of(copies)
        _require_inference(order)
        ranges = _ranges(order, own, calibration, method, percentile)
        lowering = Lowering(order, own, dict(zip(outputs, copies, strict=True)), ranges)
        made = lowering.lowered()
    return QuantizedNetwork(own, made, lowering.in_integers, lowering.in_floats)


def _applied(module: Module, calibration: Any) -> tuple[Variable, list[Variable]]:
    samples = calibration if hasattr(calibration, "shape") else None
    if samples is None or len(samples) == 0:
        raise ArgumentError("quantize: calibration of a Module must be an array of samples for its only input, got others")
    x = Variable((min(len(samples), 32), *samples.shape[1:]))
    return module(x), [x]


def _require_inference(order: Sequence[Function]) -> None:
    for function in order:
        if function.args.get("batch_stat"):
            raise ArgumentError(
                f"quantize: normalizations must use running statistics, got {function.name} with batch_stat=True\n"
                "  hint: build the network for inference, as with module.eval() or batch_stat=False"
            )


def _ranges(
    order: Sequence[Function], inputs: Mapping[str, Variable], calibration: Any, method: str, percentile: float
) -> dict[Any, tuple[float, float]]:
    """Return the range of each input and of each result, by `key_of`."""
    variables = [*inputs.values(), *(output for function in order for output in function.results)]
    batches, found = batches_of(inputs, calibration), {key_of(variable): Range() for variable in variables}
    roots = [output for function in order for output in function.results]
    sink = F.sink(*roots)  # keeps all results for as long as it is there
    steps = [Range.widen] if method == "minmax" else [Range.widen, Range.count]
    for step in steps:
        for batch in batches:
            for name, variable in inputs.items():
                variable.d = batch[name]
            sink.forward()
            for variable in variables:
                step(found[key_of(variable)], _finite(variable))
    return {key: entry.bounds(method, percentile) for key, entry in found.items()}


def _finite(variable: Variable) -> Array:
    values = np.asarray(variable.d, np.float64)
    if not np.isfinite(values).all():
        raise ArgumentError(f"quantize: values must be finite to be calibrated, got others in {variable!r}")
    return values
