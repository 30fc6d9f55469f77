"""Functions that draw random numbers."""

from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.describe import forward_arrays, refuse_dtypes
from nn_ext_cpu.pointwise import Pointwise

#: The key of a run: seed and counter.
_KEY: Final = ArrayDesc((2,), "uint64")

#: The gradient needs the mask alone.
_GRADIENT: Final = Pointwise("", {"x": "dx = mul dy mask"})


class Dropout:
    """Dropout with the random bits that every backend draws."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32."""
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the mask and the product."""
        runner: Runner = _native.prepare("dropout", [*forward_arrays(call), _KEY], p=float(call.args["p"]))  # type: ignore[arg-type]  # a number by the specification
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the product of dy and the mask."""
        return _GRADIENT.backward(call, wanted)


RANDOM: Final[Mapping[str, Kernel]] = {"Dropout": Dropout()}
