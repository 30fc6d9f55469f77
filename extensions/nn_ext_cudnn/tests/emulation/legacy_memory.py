"""Descriptors of the stand-in, and memory of the host as cuDNN describes it."""

import ctypes
from dataclasses import dataclass, field

import numpy as np
from fake_cudnn import require

NAMES = {0: "float32", 1: "float64", 2: "float16", 9: "bfloat16"}
NOT_SUPPORTED = 3000


def dtype_of(kind):
    """The dtype of a cudnnDataType_t."""
    require(kind in NAMES, f"data type {kind}", NOT_SUPPORTED)
    if kind == 9:
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(NAMES[kind])


def wide_of(kind):
    """The dtype in which arrays of a cudnnDataType_t are computed."""
    return np.float64 if kind == 1 else np.float32


@dataclass
class Tensor:
    """A tensor that was described, or not yet."""

    kind: int | None = None
    dims: tuple = ()
    strides: tuple = ()

    def at(self, address, *, writable=False):
        """The array at an address."""
        require(self.kind is not None, "the tensor was not described", 2004)
        require(address, "null pointer", 2002)
        dtype = dtype_of(self.kind)
        require(address % dtype.itemsize == 0, "misaligned pointer", 2003)
        extent = 1 + sum((n - 1) * step for n, step in zip(self.dims, self.strides, strict=True))
        memory = (ctypes.c_char * (extent * dtype.itemsize)).from_address(address)
        flat = np.frombuffer(memory, dtype, extent)
        strides = [step * dtype.itemsize for step in self.strides]
        return np.lib.stride_tricks.as_strided(flat, self.dims, strides, writeable=writable)

    @property
    def packed(self):
        """Whether there is no memory between elements, in the order of some permutation of the axes."""
        step = 1
        for own, n in sorted((own, n) for own, n in zip(self.strides, self.dims, strict=True) if n > 1):
            if own != step:
                return False
            step *= n
        return True


def factor(kind, address):
    """alpha or beta: a float, for double precision a double."""
    require(address, "null pointer", 2002)
    real = ctypes.c_double if kind == 1 else ctypes.c_float
    return real.from_address(address).value


@dataclass
class Registry:
    """Objects by their pointers."""

    objects: dict = field(default_factory=dict)
    made: int = 0

    def make(self, result, thing):
        """Write the pointer of a new object."""
        self.made += 1
        number = 0x100000 + 16 * self.made
        self.objects[number] = thing
        result[0] = number

    def get(self, number, kind):
        """The object of a pointer, which must be of that kind."""
        found = self.objects.get(number)
        require(isinstance(found, kind), f"{number} is no {kind.__name__}", 2012)
        return found

    def destroy(self, number, kind):
        """Forget an object."""
        self.get(number, kind)
        del self.objects[number]


def launched(work):
    """Run work now, or when the CUDA graph is launched that is being recorded."""
    import fake_cupy

    fake_cupy.Graph.note(work)


def store(target, values, alpha=1.0, beta=0.0):
    """target = alpha values + beta target."""
    with np.errstate(all="ignore"):
        result = alpha * values
        if beta:
            result = result + beta * target.astype(values.dtype)
        target[...] = result.astype(target.dtype)
