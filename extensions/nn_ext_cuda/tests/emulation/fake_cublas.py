"""A stand-in for libcublas: the functions that this package calls, on memory of the host."""

import ctypes

import numpy as np

_TYPES = {0: ("float32", 4), 1: ("float64", 8), 2: ("float16", 2), 14: ("bfloat16", 2)}

_TF32 = 77


def install(monkeypatch, library):
    """Let `library` take the place of libcublas, with no handle made yet."""
    from nn_ext_cuda.gemm import blas

    monkeypatch.setattr(blas, "library", lambda: library)
    forget_handles(monkeypatch)
    return library


def forget_handles(monkeypatch):
    """Go on as another thread would, which has no handles."""
    from nn_ext_cuda.gemm import blas

    monkeypatch.setattr(blas, "_OF_THREAD", blas._OfThread())
    monkeypatch.setattr(blas._Lent, "free", {})


class FakeCublas:
    """Computes as the documentation of cuBLAS says: matrices are column-major with a leading dimension."""

    def __init__(self):
        self.compute_types = []
        self.math_modes = []
        self.created = 0
        self.devices = {}

    def cublasCreate_v2(self, handle):
        import fake_cupy

        assert fake_cupy.Graph.recording is None, "cublasCreate allocates, which cannot be captured"
        self.created += 1
        handle._obj.value = self.created
        self.devices[self.created] = fake_cupy.current_device()
        return 0

    def cublasSetMathMode(self, handle, mode):
        self.math_modes.append(mode.value)
        return 0

    def cublasSetStream_v2(self, handle, stream):
        return 0

    def cublasSetWorkspace_v2(self, handle, workspace, size):
        return 0 if workspace.value % 16 == 0 and size.value >= 2**20 else 7

    def _require_device(self, handle):
        import fake_cupy

        own = fake_cupy.current_device()
        assert self.devices[handle.value] == own, f"a handle of device {self.devices[handle.value]} on device {own}"

    def cublasGemmStridedBatchedEx(self, handle, *arguments):
        self._require_device(handle)
        op_a, op_b, m, n, k, alpha, *rest = arguments
        first, second, beta, result, rest = rest[:4], rest[4:8], rest[8], rest[9:13], rest[13:]
        count = rest[0].value
        assert result[3].value or count <= 1, "products that overwrite each other"
        operands = [_Operand(*part[:3], _strided(part, count)) for part in (first, second, result)]
        self._note(operands, (op_a, op_b, m, n, k), alpha, beta, rest)
        return 0

    def cublasGemmBatchedEx(self, handle, *arguments):
        self._require_device(handle)
        op_a, op_b, m, n, k, alpha, *rest = arguments
        first, second, beta, result, rest = rest[:3], rest[3:6], rest[6], rest[7:10], rest[10:]
        operands = [_Operand(*part, _listed(part[0], rest[0].value)) for part in (first, second, result)]
        assert len(set(operands[2].addresses)) == rest[0].value, "products that overwrite each other"
        for operand in operands:  # kernels for tensor cores are chosen without a look at the addresses
            short = _TYPES[operand.kind][1] == 2 or rest[1].value == _TF32
            assert not short or not any(address % 16 for address in operand.addresses), "misaligned address"
        self._note(operands, (op_a, op_b, m, n, k), alpha, beta, rest)
        return 0

    def _note(self, operands, shape, alpha, beta, rest):
        import fake_cupy

        fake_cupy.Graph.note(lambda: self._gemm(operands, shape, alpha, beta, rest))

    def _gemm(self, operands, shape, alpha, beta, rest):
        _, compute, algorithm = rest
        op_a, op_b, m, n, k = (number.value for number in shape)
        self.compute_types.append(compute.value)
        assert algorithm.value == -1
        wide = np.float64 if compute.value == 70 else np.float32
        first, second, result = operands
        shape_a = (k, m) if op_a else (m, k)
        shape_b = (n, k) if op_b else (k, n)
        for index in range(len(result.addresses)):
            a_read, b_read = first.matrix(index, shape_a), second.matrix(index, shape_b)
            a, b = a_read.astype(wide), b_read.astype(wide)
            c = result.matrix(index, (m, n))
            _refuse_overlaps([a_read, b_read], [c])
            factor = beta._obj.value
            with np.errstate(all="ignore"):
                product = (a.T if op_a else a) @ (b.T if op_b else b)
                c[...] = alpha._obj.value * product + (factor * c.astype(wide) if factor else 0)


def _refuse_overlaps(read, written):
    """On a device the parts of a product run at once: what one overwrites, another may still have to read."""
    assert not any(np.may_share_memory(one, other) for one in read for other in written), "a product overwrites its operand"


def _strided(part, count):
    pointer, kind, _, stride = (entry.value for entry in part)
    return [(pointer or 0) + index * stride * _TYPES[kind][1] for index in range(count)]


def _listed(pointer, count):
    memory = (ctypes.c_char * (8 * count)).from_address(pointer.value)
    return np.frombuffer(memory, np.uint64, count).tolist()


class _Operand:
    """Column-major matrices of one operand."""

    def __init__(self, _pointer, kind, lead, addresses):
        self.kind, self.lead, self.addresses = kind.value, lead.value, addresses

    def matrix(self, index, shape):
        """The matrix number `index` as a view."""
        name, size = _TYPES[self.kind]
        rows, columns = shape
        assert self.lead >= max(rows, 1), f"leading dimension {self.lead} of {shape}"
        assert self.addresses[index] % size == 0
        if name == "bfloat16":
            import ml_dtypes

            dtype = np.dtype(ml_dtypes.bfloat16)
        else:
            dtype = np.dtype(name)
        extent = self.lead * max(columns - 1, 0) + rows if columns and rows else 0
        memory = (ctypes.c_char * (extent * size)).from_address(self.addresses[index])
        flat = np.frombuffer(memory, dtype, extent)
        return np.lib.stride_tricks.as_strided(flat, shape, (size, self.lead * size)) if extent else np.empty(shape, dtype)
