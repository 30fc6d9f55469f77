"""Functions that draw random numbers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

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


#: Name of a distribution of the native operation ``draw``, and its numbers.
Distribution: TypeAlias = tuple[str, list[float]]


class Draw:
    """Random numbers of a distribution, element by element.

    Args:
        distribution: What the arguments of a call mean.
    """

    def __init__(self, distribution: Callable[[Mapping[str, Any]], Distribution]) -> None:
        self._distribution = distribution

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32 and int64, and tables of more steps than are worth a search."""
        if len(self._distribution(call.args)[1]) > _MOST_STEPS:
            return Refusal(f"takes distributions of at most {_MOST_STEPS} steps, got {call.args['n']}")
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the numbers."""
        distribution, parameters = self._distribution(call.args)
        settings: dict[str, Any] = {"distribution": distribution, "parameters": [float(p) for p in parameters]}
        runner: Runner = _native.prepare("draw", [*forward_arrays(call), _KEY], **settings)
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """There is no input."""
        return None


#: A table of the binomial distribution is as long as the number of trials.
_MOST_STEPS: Final = 1 << 16


def _binomial(args: Mapping[str, Any]) -> Distribution:
    """Inversion: the number of trials whose cumulative probability does not exceed a uniform number."""
    n, p = args["n"], args["p"]
    if p in (0, 1) or n == 0:
        return "uniform", [n * p, 0.0]
    successes = np.arange(1, n + 1, dtype=np.float64)
    log_ratios = np.log((n + 1 - successes) / successes) + np.log(p / (1 - p))
    log_chances = np.concatenate((np.zeros(1), np.cumsum(log_ratios))) + n * np.log1p(-p)
    return "steps", np.cumsum(np.exp(log_chances))[:-1].tolist()


RANDOM: Final[Mapping[str, Kernel]] = {
    "Dropout": Dropout(),
    "Rand": Draw(lambda args: ("uniform", [args["low"], args["high"] - args["low"]])),
    "Randn": Draw(lambda args: ("normal", [args["mu"], args["sigma"]])),
    "Randint": Draw(lambda args: ("below", [args["low"], args["high"] - args["low"]])),
    "RandBinomial": Draw(_binomial),
    "RandGamma": Draw(lambda args: ("gamma", [args["k"], args["theta"]])),
    "RandBeta": Draw(lambda args: ("beta", [args["alpha"], args["beta"]])),
}
