"""Losses."""

from collections.abc import Sequence
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.compose import Composition, refuse_sizes
from nn_ext_cuda.codegen.describe import backward_arrays, backward_names, forward_arrays, forward_names
from nn_ext_cuda.codegen.dtypes import C_TYPES, refuse_dtypes
from nn_ext_cuda.codegen.pointwise import Pointwise
from nn_ext_cuda.codegen.rows import refuse_rows, row_program
from nn_ext_cuda.device.faults import FAULTS, beyond_classes
from nn_ext_cuda.launch.program import Argument


class SoftmaxCrossEntropy:
    """The cross entropy of a softmax with class labels, softmax included; labels beyond the last class are told as faults."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, scores of no class, and more rows than there can be blocks."""
        scores, axis = call.inputs[0], call.args["axis"]
        assert scores is not None and isinstance(axis, int)
        if scores.shape[axis] == 0:
            return Refusal("takes scores of at least one class")
        return refuse_dtypes(call) or refuse_rows(scores.shape, axis)

    def forward(self, call: Call) -> Runner:
        """One launch."""
        scores, axis = call.inputs[0], call.args["axis"]
        assert scores is not None and isinstance(axis, int)
        fault = FAULTS.number(beyond_classes(call.spec.api, scores.shape[axis]))
        return self._program(call, "cross_entropy", [0, 1, 2, FAULTS, fault], 3, tells=True)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One launch, from the scores and the labels."""
        return self._program(call, "cross_entropy_backward", [0, 1, 3, 4], 6)

    def _program(self, call: Call, function: str, places: Sequence[Argument], n_arrays: int, *, tells: bool = False) -> Runner:
        scores, axis = call.inputs[0], call.args["axis"]
        assert scores is not None and isinstance(axis, int)
        types = {"L": C_TYPES[call.outputs[0].dtype]}
        defines = {"LOG": 0, "CROSS_ENTROPY": 1, "TELLS": int(tells)}
        return row_program(call, "softmax.cu", function, scores.shape, axis, places, n_arrays, types, **defines)


class KLMultinomial:
    """The divergence of one distribution from another, summed over the classes of each sample."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        return refuse_sizes(call.inputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch, or two where few results are made of many elements."""
        composition = self._composition(call, forward_arrays(call), forward_names(call))
        composition.reduce("kl_multinomial", "D", "p * (log_of(p) - log_of(q))")
        return composition.program()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One launch."""
        composition = self._composition(call, backward_arrays(call, wanted), backward_names(call))
        slopes = {"dp": "dD * (log(divisor(p)) - log(divisor(q)) + 1)", "dq": "-dD * p / divisor(q)"}
        given = {name: slope for (name, slope), want in zip(slopes.items(), wanted, strict=True) if want}
        composition.compute("kl_multinomial_backward", given)
        return composition.program()

    @staticmethod
    def _composition(call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> Composition:
        p, base_axis = call.inputs[0], call.args["base_axis"]
        assert p is not None and isinstance(base_axis, int)
        samples = (*p.shape[:base_axis], *(1,) * (len(p.shape) - base_axis))
        return Composition(call, arrays, names, p.shape, {"D": samples, "dD": samples})


LOSS: Final[dict[str, Kernel]] = {
    "SoftmaxCrossEntropy": SoftmaxCrossEntropy(),
    "KLMultinomial": KLMultinomial(),
    "SigmoidCrossEntropy": Pointwise(
        "larger(x, R(0)) - target * x + log1p(exp(-fabs(x)))",
        {"x": "dy * (sigmoid(x) - target)", "target": "-dy * x"},
    ),
    "BinaryCrossEntropy": Pointwise(
        "-(target * log_of(x) + (1 - target) * log_of(1 - x))",
        {
            "x": "dy * ((1 - target) / divisor(1 - x) - target / divisor(x))",
            "target": "-dy * (log(divisor(x)) - log(divisor(1 - x)))",
        },
    ),
    "SquaredError": Pointwise("square(x0 - x1)", {"x0": "dy * 2 * (x0 - x1)", "x1": "-dy * 2 * (x0 - x1)"}),
    "AbsoluteError": Pointwise("fabs(x0 - x1)", {"x0": "x0 > x1 ? dy : -dy", "x1": "x0 > x1 ? -dy : dy"}),
    "HuberLoss": Pointwise(
        "fabs(x0 - x1) < delta ? square(x0 - x1) : delta * (2 * fabs(x0 - x1) - delta)",
        {
            "x0": "dy * 2 * smaller(larger(x0 - x1, -delta), delta)",
            "x1": "-dy * 2 * smaller(larger(x0 - x1, -delta), delta)",
        },
    ),
    "EpsilonInsensitiveLoss": Pointwise(
        "larger(fabs(x0 - x1) - epsilon, R(0))",
        {
            "x0": "x0 - x1 > epsilon ? dy : x0 - x1 < -epsilon ? -dy : R(0)",
            "x1": "x0 - x1 > epsilon ? -dy : x0 - x1 < -epsilon ? dy : R(0)",
        },
    ),
    "BinaryError": Pointwise("(x >= 0.5) != (target >= 0.5)"),
}
