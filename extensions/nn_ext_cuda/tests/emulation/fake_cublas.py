"""A stand-in for libcublas: the functions that this package calls, on memory of the host."""

import ctypes

import numpy as np

_TYPES = {0: ("float32", 4), 1: ("float64", 8), 2: ("float16", 2), 14: ("bfloat16", 2)}


class FakeCublas:
    """Computes as the documentation of cuBLAS says: matrices are column-major with a leading dimension."""

    def __init__(self):
        self.compute_types = []

    def cublasCreate_v2(self, handle):
        handle._obj.value = 1
        return 0

    def cublasSetStream_v2(self, handle, stream):
        return 0

    def cublasSetWorkspace_v2(self, handle, workspace, size):
        return 0 if workspace.value % 16 == 0 and size.value >= 2**20 else 7

    def cublasGemmStridedBatchedEx(self, handle, *arguments):
        import fake_cupy

        fake_cupy.Graph.note(lambda: self._gemm(*arguments))
        return 0

    def _gemm(self, op_a, op_b, m, n, k, alpha, *rest):
        first, second, beta, result, (count, compute, algorithm) = rest[:4], rest[4:8], rest[8], rest[9:13], rest[13:]
        m, n, k = m.value, n.value, k.value
        self.compute_types.append(compute.value)
        assert algorithm.value == -1
        wide = np.float64 if compute.value == 70 else np.float32
        shape_a = (k, m) if op_a.value else (m, k)
        shape_b = (n, k) if op_b.value else (k, n)
        for index in range(count.value):
            a = _matrix(first, index, shape_a).astype(wide)
            b = _matrix(second, index, shape_b).astype(wide)
            c = _matrix(result, index, (m, n))
            product = (a.T if op_a.value else a) @ (b.T if op_b.value else b)
            factor = beta._obj.value
            with np.errstate(all="ignore"):
                c[...] = alpha._obj.value * product + (factor * c.astype(wide) if factor else 0)


def _matrix(parts, index, shape):
    """The column-major matrix number `index` as a view."""
    pointer, kind, lead, stride = (part.value for part in parts)
    name, size = _TYPES[kind]
    rows, columns = shape
    assert lead >= max(rows, 1), f"leading dimension {lead} of {shape}"
    if name == "bfloat16":
        import ml_dtypes

        dtype = np.dtype(ml_dtypes.bfloat16)
    else:
        dtype = np.dtype(name)
    extent = lead * max(columns - 1, 0) + rows if columns and rows else 0
    memory = (ctypes.c_char * (extent * size)).from_address((pointer or 0) + index * stride * size)
    flat = np.frombuffer(memory, dtype, extent)
    return np.lib.stride_tricks.as_strided(flat, shape, (size, lead * size)) if extent else np.empty(shape, dtype)
