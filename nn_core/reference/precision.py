"""The precision in which the reference kernels compute: half precision is widened, everything else is kept."""

from nn_core.typing import Array, Namespace


def widen(xp: Namespace, x: Array) -> Array:
    """`x` in float32 if it is a narrower floating array, else `x` itself."""
    return x if x.dtype.itemsize >= 4 else x.astype(xp.float32)
