"""Arrays divided by their lengths over some axes."""

from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.compose import Composition, refuse_sizes
from nn_ext_cuda.codegen.describe import backward_arrays, backward_names, forward_arrays, forward_names
from nn_ext_cuda.codegen.dtypes import refuse_dtypes


class NormNormalization:
    """y = x / (sum |x|^p + eps)^(1/p)."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        return refuse_sizes(call.inputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Return a launch for the sums, and one for the elements."""
        composition = self._composition(call, forward_arrays(call), forward_names(call))
        composition.compute("norm_normalization", {"y": "x * pow(total, -1 / p)"})
        return composition.program()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """dx = dy / n - sum(dy x) n^(-p-1) |x|^(p-1) sign(x), n being the length."""
        composition = self._composition(call, backward_arrays(call, wanted), backward_names(call))
        composition.scratch("inner", _kept(call))
        composition.reduce("norm_normalization_inner", "inner", "dy * x")
        slope = {1.0: "sign_or(x, R(0))", 2.0: "x"}.get(_power(call), "pow(fabs(x), p - 1) * sign_or(x, R(0))")
        shared = "inner * pow(total, -1 / p - 1)"
        composition.compute("norm_normalization_backward", {"dx": f"dy * pow(total, -1 / p) - {slope} * {shared}"})
        return composition.program()

    @staticmethod
    def _composition(call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> Composition:
        """Return the composition with the sums of the powers."""
        composition = Composition(call, arrays, names, call.outputs[0].shape)
        composition.scratch("total", _kept(call))
        raised = "x * x" if _power(call) == 2 else "pow(fabs(x), p)"
        composition.reduce("norm_normalization_total", "total", raised, finish="a + eps")
        return composition


class VATNoise:
    """y = eps x / |x| for each sample; its gradient goes to w."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        return refuse_sizes(call.inputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Return a launch for the sums of squares, and one for the elements."""
        composition = Composition(call, forward_arrays(call), forward_names(call), call.outputs[0].shape)
        composition.scratch("length", _of_samples(call))
        composition.reduce("vat_noise_length", "length", "x * x", finish="sqrt(a + 1e-8)")
        composition.compute("vat_noise", {"y": "eps * x / length"})
        return composition.program()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One launch; None for the gradient of x, which has none."""
        if wanted[0]:
            return None
        composition = Composition(call, backward_arrays(call, wanted), backward_names(call), call.outputs[0].shape)
        composition.compute("vat_noise_backward", {"dw": "eps * dy"})
        return composition.program()


def _power(call: Call) -> float:
    p = call.args["p"]
    assert isinstance(p, int | float)
    return float(p)


def _kept(call: Call) -> tuple[int, ...]:
    """Return the shape of sums over the axes of a call."""
    axes = call.args["axes"]
    assert isinstance(axes, tuple)
    return tuple(1 if axis in axes else length for axis, length in enumerate(call.outputs[0].shape))


def _of_samples(call: Call) -> tuple[int, ...]:
    """Return the shape of one number for each sample."""
    base_axis, shape = call.args["base_axis"], call.outputs[0].shape
    assert isinstance(base_axis, int)
    return (*shape[:base_axis], *(1,) * (len(shape) - base_axis))


LENGTHS: Final[Mapping[str, Kernel]] = {"NormNormalization": NormNormalization(), "VATNoise": VATNoise()}
