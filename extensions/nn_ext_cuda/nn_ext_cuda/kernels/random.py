"""Functions that draw random numbers; the bits are those of every backend."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from nn_core.ext import Array, Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.code import Code, from_file
from nn_ext_cuda.codegen.describe import forward_arrays
from nn_ext_cuda.codegen.dtypes import C_TYPES, real, real_type, refuse_dtypes
from nn_ext_cuda.codegen.pointwise import Pointwise
from nn_ext_cuda.codegen.words import Words
from nn_ext_cuda.launch.program import Argument, Launch, Program, Step, flat


class SeededProgram(Program):
    """A program whose last array is the key of the run: it is on the host, and is brought to the device each time."""

    def bind(self, *arrays: Array) -> Step:
        """Return the launches on these arrays; the key is read before each run."""
        *others, host_key = arrays
        key = Words(2, lambda: host_key)
        step = super().bind(*others, key.memory)
        step.words = (key,)
        return step


def _code(function: str, dtype: str) -> Code:
    return from_file("random.cu", function, real_type(dtype), before=("philox.cuh",), T=C_TYPES[dtype])


class Drawn:
    """A function that fills its output with random numbers.

    Args:
        function: Name of the CUDA function.
        numbers: Its numbers after the output, from the arguments.
        limits: Arguments that are refused from some value on: each element takes as many steps.
    """

    def __init__(
        self,
        function: str,
        numbers: Callable[[Mapping[str, Any]], Sequence[Argument]],
        limits: Mapping[str, int] | None = None,
    ) -> None:
        self._function = function
        self._numbers = numbers
        self._limits = limits or {}

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and arguments beyond the limits."""
        for name, limit in self._limits.items():
            if call.args[name] > limit:  # type: ignore[operator]  # a number by the specification
                return Refusal(f"takes {name} up to {limit}, got {call.args[name]}")
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One thread for four numbers."""
        n = call.outputs[0].size
        launches = _over_blocks(self._function, call, n, [1, 0, *self._numbers(call.args)])
        return SeededProgram(launches, 2)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: there is no input."""
        return None


#: The gradient needs the mask alone.
_DROPOUT_GRADIENT: Final = Pointwise("x", {"x": "dy * mask"})


class Dropout:
    """Dropout; the mask is kept for the gradient."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in."""
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Return the mask and the product in one launch."""
        launches = _over_blocks("dropout", call, call.outputs[0].size, [3, 0, 1, 2, *dropping(call)])
        return SeededProgram(launches, len(forward_arrays(call)) + 1)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return the product of dy and the mask."""
        return _DROPOUT_GRADIENT.backward(call, wanted)


class DropoutMask:
    """The factors of dropout, from the numbers that it has drawn."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in."""
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch."""
        return Program(_over_blocks("dropout_mask", call, call.outputs[0].size, [0, 1, *dropping(call)]), 2)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: what was drawn has no gradient."""
        return None


def dropping(call: Call) -> list[np.generic]:
    """Return the smallest 24 bits that are kept, and the factor of what is kept."""
    p = float(call.args["p"])  # type: ignore[arg-type]  # a number by the specification
    return [np.uint32(math.ceil(p * 2**24)), real(call.dtype, 1 / (1 - p))]


def _over_blocks(function: str, call: Call, n: int, arguments: Sequence[Argument]) -> list[Launch]:
    code = _code(function, call.dtype)
    return [flat(code, -(-n // 4), [np.int64(n), *arguments])] if n else []


#: Steps of an element of a binomial distribution.
_MAX_TRIALS: Final = 4096


def _trials(args: Mapping[str, Any]) -> Sequence[Argument]:
    """Return the number of trials, the logarithm of the odds of a success, and of the probability that there is none."""
    n, p = args["n"], args["p"]
    if p == 0:
        n = 0
    log_odds = math.log(p / (1 - p)) if 0 < p < 1 else 0.0
    log_none = n * math.log1p(-p) if p < 1 else -math.inf
    return [np.int64(n), np.float64(log_odds), np.float64(log_none)]


RANDOM: Final[Mapping[str, Kernel]] = {
    "Dropout": Dropout(),
    "DropoutMask": DropoutMask(),
    "RandBeta": Drawn("random_beta", lambda args: [np.float64(args["alpha"]), np.float64(args["beta"])]),
    "RandBinomial": Drawn("random_binomial", _trials, {"n": _MAX_TRIALS}),
    "RandGamma": Drawn("random_gamma", lambda args: [np.float64(args["k"]), np.float64(args["theta"])]),
    "Rand": Drawn("uniform", lambda args: [np.float64(args["low"]), np.float64(args["high"] - args["low"])]),
    "Randn": Drawn("normal", lambda args: [np.float64(args["mu"]), np.float64(args["sigma"])]),
    "Randint": Drawn("integers", lambda args: [np.int64(args["low"]), np.uint64(args["high"] - args["low"])]),
}
