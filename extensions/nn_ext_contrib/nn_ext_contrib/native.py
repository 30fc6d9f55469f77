"""Kernels in C for arrays of NumPy; where the package was installed without a compiler, the reference kernels run."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec

import numpy as np

from nn_core.ext import Array, Call, Kernel, Refusal, Runner
from nn_ext_contrib.operators.ctc import ctc_loss


@cache
def _ctc() -> Callable[..., int] | None:
    """Return the function of src/ctc.c, or None where it was not compiled."""
    found = find_spec("nn_ext_contrib._native")
    if found is None or found.origin is None:
        return None
    function = ctypes.CDLL(found.origin).nn_ext_contrib_ctc
    function.argtypes = [*[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 5, *[ctypes.c_void_p] * 2]
    compiled: Callable[..., int] = function
    return compiled


def _address(array: Array) -> int | None:
    return None if array is None else int(array.__array_interface__["data"][0])


class CtcLoss:
    """The CTC loss in float32; see `nn_core.ext.Kernel`."""

    def refuse(self, call: Call) -> Refusal | None:
        """Take float32, where the library was compiled."""
        if call.dtype != "float32":
            return Refusal("takes float32 only")
        return Refusal("the package was installed without a C compiler") if _ctc() is None else None

    def forward(self, call: Call) -> Runner:
        """Loss and slope."""
        return _Forward(call)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return the slope of each sample times its gradient."""

        def run(*arrays: Array) -> None:
            slope, grad, dx = arrays[5:8]
            with np.errstate(all="ignore"):  # nan and inf are values like any other
                np.multiply(slope, grad[:, None], out=dx)

        return run if wanted[0] else None


class _Forward:
    """Runs the library, and the reference kernel where that gives a call back: it computes it, or says what is wrong."""

    def __init__(self, call: Call) -> None:
        self._blank = call.args["blank"]

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> Callable[[], None]:
        *inputs, loss, slope = arrays
        compiled, blank = _ctc(), self._blank

        def refer() -> None:
            with np.errstate(all="ignore"):
                loss[...], slope[...] = ctc_loss(np, *inputs, blank=blank)

        if compiled is None or not all(array is None or array.flags.c_contiguous for array in arrays):
            return refer
        sizes = (*inputs[0].shape, inputs[1].shape[1], blank)
        given = (*map(_address, inputs), *sizes, _address(loss), _address(slope))

        def run() -> None:
            if compiled(*given):
                refer()

        return run


#: Kernels for the backends that work on arrays of NumPy.
KERNELS: Mapping[str, Mapping[str, Kernel]] = {"cpu": {"contrib.CtcLoss": CtcLoss()}}
