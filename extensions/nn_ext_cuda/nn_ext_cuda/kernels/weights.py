"""Weights that are divided by a length: that of each slice, or the largest singular value."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.compose import Composition, refuse_sizes
from nn_ext_cuda.codegen.describe import backward_arrays, backward_names, forward_arrays, forward_names
from nn_ext_cuda.codegen.dtypes import refuse_dtypes


class _OfWeight:
    """A function of a weight: the calls it refuses, and how its arrays fit the weight."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, very large arrays, and weights without elements."""
        if _weight(call).size == 0:
            return Refusal("takes weights with at least one element")
        return refuse_sizes(call.inputs) or refuse_dtypes(call)

    @staticmethod
    def _slices(call: Call) -> tuple[Shape, Shape]:
        """Return the shape of what each slice along `dim` has one of, and that of what all slices share."""
        shape, dim = _weight(call).shape, call.args["dim"]
        assert isinstance(dim, int)
        dim %= len(shape)
        return (
            tuple(length if axis == dim else 1 for axis, length in enumerate(shape)),
            tuple(1 if axis == dim else length for axis, length in enumerate(shape)),
        )


class WeightNormalization(_OfWeight):
    """w_wn = g w / |w| for each slice, with |w| = sqrt(sum of w^2 + eps)."""

    def forward(self, call: Call) -> Runner:
        """Return a reduction for the lengths, and a launch for the weight."""
        composition = self._composition(call, forward_arrays(call), forward_names(call))
        composition.compute("weight_normalization", {"w_wn": "w * (g / lengths)"})
        return composition.program()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner:
        """dg = w.dy / |w|, and dw = g / |w| (dy - w w.dy / |w|^2)."""
        composition = self._composition(call, backward_arrays(call, wanted), backward_names(call))
        composition.scratch("inner", self._slices(call)[0])
        composition.reduce("weight_normalization_inner", "inner", "w * dw_wn")
        if wanted[0]:
            slope = "g / lengths * (dw_wn - w * (inner / (lengths * lengths)))"
            composition.compute("weight_normalization_backward", {"dw": slope})
        if wanted[1]:
            composition.compute("weight_normalization_backward_g", {"dg": "inner / lengths"})
        return composition.program()

    def _composition(self, call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> Composition:
        """Return a composition that has the lengths."""
        of_slices, _ = self._slices(call)
        composition = Composition(call, arrays, names, _weight(call).shape, {"g": of_slices, "dg": of_slices})
        composition.scratch("lengths", of_slices)
        composition.reduce("weight_normalization_lengths", "lengths", "w * w", finish="sqrt(a + eps)")
        return composition


class SpectralNorm(_OfWeight):
    """w_sn = w / (l^T W r), where l and r follow from u by power iteration (Miyato et al., 2018, algorithm 1)."""

    def forward(self, call: Call) -> Runner:
        """Two products and their lengths for each iteration, the singular value, and what is kept.

        Vectors stay in the precision of sums. Their lengths are summed over the frame of the weight, in which each element
        of a vector occurs as often as the other one has elements.
        """
        iterations = call.args["itr"]
        assert isinstance(iterations, int)
        composition = self._composition(call, forward_arrays(call), forward_names(call))
        of_slices, of_others = self._slices(call)
        vectors = {"left_vector": of_slices, "right_vector": of_others, "length": _scalar(call), "sigma": _scalar(call)}
        for name, shape in vectors.items():
            composition.scratch(name, shape)
        composition.compute("spectral_norm_before", {"before": "u"})
        composition.compute("spectral_norm_start", {"left_vector": "u"})
        for _ in range(iterations):
            for vector, other, often in (
                ("right_vector", "left_vector", "n_slices"),
                ("left_vector", "right_vector", "n_others"),
            ):
                composition.reduce(f"spectral_norm_{vector}", vector, f"{other} * w")
                square = f"{vector} * {vector}"
                composition.reduce(f"spectral_norm_length_{vector}", "length", square, finish=f"sqrt(a / {often} + eps)")
                composition.compute(f"spectral_norm_unit_{vector}", {vector: f"{vector} / length"})
        composition.reduce("spectral_norm_sigma", "sigma", "left_vector * w * right_vector")
        composition.compute("spectral_norm", {"w_sn": "w / sigma"})
        composition.compute("spectral_norm_right", {"right": "right_vector"})
        kept = {"left": "left_vector"} if call.args["test"] else {"left": "left_vector", "u": "left_vector"}
        composition.compute("spectral_norm_left", kept)
        return composition.program()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """dw = dy / sigma - (w.dy / sigma^2) l r^T; the vectors count as constants."""
        if wanted[1] or not wanted[0]:
            return None
        composition = self._composition(call, backward_arrays(call, wanted), backward_names(call))
        for name, summand in (("sigma", "left * w * right"), ("inner", "w * dw_sn")):
            composition.scratch(name, _scalar(call))
            composition.reduce(f"spectral_norm_backward_{name}", name, summand)
        slope = "dw_sn / sigma - inner / (sigma * sigma) * left * right"
        composition.compute("spectral_norm_backward", {"dw": slope})
        return composition.program()

    def _composition(self, call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> Composition:
        of_slices, of_others = self._slices(call)
        shapes = {**dict.fromkeys(("u", "left", "before"), of_slices), "right": of_others}
        numbers = {"n_slices": math.prod(of_slices), "n_others": math.prod(of_others)}
        return Composition(call, arrays, names, _weight(call).shape, shapes, numbers)


def _weight(call: Call) -> ArrayDesc:
    w = call.inputs[0]
    assert w is not None
    return w


def _scalar(call: Call) -> Shape:
    return (1,) * len(_weight(call).shape)


WEIGHTS: Final[Mapping[str, Kernel]] = {
    "SpectralNorm": SpectralNorm(),
    "WeightNormalization": WeightNormalization(),
}
