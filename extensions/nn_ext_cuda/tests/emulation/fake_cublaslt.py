"""A stand-in for libcublasLt: the functions that this package calls, on memory of the host, checked as strictly."""

import ctypes

import numpy as np
from fake_cublas import _Operand, _refuse_overlaps

#: Bytes of the attributes of a product and of a preference; cublasLt refuses other sizes.
_PRODUCT = {3: 4, 4: 4, 7: 4, 8: 8, 11: 8, 12: 8}
_PREFERENCE = {1: 8, 3: 4, 5: 4, 6: 4, 7: 4, 8: 4}
_BIAS, _BIAS_THEN_RELU, _BIAS_THEN_GELU, _BIAS_AND_GELU, _GELU_GRADIENT, _SUM_OF_ROWS = 4, 6, 36, 164, 192, 256
#: Those that have a vector, and those that have a further matrix.
_WITH_VECTOR = (_BIAS, _BIAS_THEN_RELU, _BIAS_THEN_GELU, _BIAS_AND_GELU, _SUM_OF_ROWS)
_WITH_FURTHER = (_BIAS_AND_GELU, _GELU_GRADIENT)


def _tanh_of_gelu(x):
    return np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


class FakeCublasLt:
    """Products with a bias, or with the sum of the rows of the first operand (columns, as it sees them)."""

    def __init__(self, *, knows_algorithms=True, keeps_nan=True):
        self.knows_algorithms = knows_algorithms
        self.keeps_nan = keeps_nan
        self.unknown_epilogues = ()
        self.objects, self.searches, self.products = {}, 0, []
        self.promised = []  # alignments that algorithms rely on: of A, B, C, D and the further matrix

    def _create(self, result, **content):
        result._obj.value = max([*self.objects, 0x1000]) + 1
        self.objects[result._obj.value] = content
        return 0

    def _destroy(self, target):
        del self.objects[target.value]
        return 0

    def _set(self, sizes, target, attribute, value, size):
        if sizes.get(attribute.value) != size.value:
            return 7
        self.objects[target.value][attribute.value] = value._obj.value
        return 0

    def cublasLtCreate(self, handle):
        import fake_cupy

        assert fake_cupy.Graph.recording is None, "cublasLtCreate allocates, which cannot be captured"
        handle._obj.value = 7 + fake_cupy.current_device()
        return 0

    def cublasLtMatmulDescCreate(self, result, compute, scale):
        return self._create(result, compute=compute.value, scale=scale.value)

    def cublasLtMatmulDescSetAttribute(self, *arguments):
        return self._set(_PRODUCT, *arguments)

    def cublasLtMatrixLayoutCreate(self, result, kind, rows, columns, lead):
        assert lead.value >= rows.value
        return self._create(result, kind=kind, rows=rows.value, columns=columns.value, lead=lead)

    def cublasLtMatmulPreferenceCreate(self, result):
        return self._create(result)

    def cublasLtMatmulPreferenceSetAttribute(self, *arguments):
        return self._set(_PREFERENCE, *arguments)

    def cublasLtMatmulDescDestroy(self, target):
        return self._destroy(target)

    def cublasLtMatrixLayoutDestroy(self, target):
        return self._destroy(target)

    def cublasLtMatmulPreferenceDestroy(self, target):
        return self._destroy(target)

    def cublasLtMatmulAlgoGetHeuristic(self, handle, operation, a, b, c, d, preference, wanted, results, count):
        import fake_cupy

        assert fake_cupy.Graph.recording is None, "cublasLt does not choose algorithms while a stream is captured"
        assert (handle.value, wanted.value) == (7 + fake_cupy.current_device(), 1)
        assert ctypes.sizeof(results._obj) == 96
        assert set(self.objects[preference.value]) == set(_PREFERENCE)
        self.searches += 1
        self.reductions = self.objects[preference.value][3]
        knows = self.knows_algorithms and self.objects[operation.value][7] not in self.unknown_epilogues
        count._obj.value = int(knows)
        results._obj.algorithm[0] = 42 + fake_cupy.current_device()
        results._obj.algorithm[1] = len(self.promised)
        further = self.objects[operation.value].get(11, 0)
        self.promised.append([*(self.objects[preference.value][n] for n in (5, 6, 7, 8)), min(further & -further, 256) or 1])
        results._obj.algorithm[2] = self.objects[preference.value][3]
        return 0 if knows else 15

    def cublasLtMatmul(self, handle, operation, alpha, a, of_a, b, of_b, beta, c, of_c, d, of_d, *rest):
        import fake_cupy

        algorithm, workspace, n_bytes, _ = rest
        assert handle.value == 7 + fake_cupy.current_device(), "a handle of another device"
        assert algorithm._obj[0] == 42 + fake_cupy.current_device(), "the algorithm was chosen for another device"
        assert workspace.value % 16 == 0 and n_bytes.value == 32 * 2**20
        assert (alpha._obj.value, beta._obj.value) == (1, 0)
        assert c.value == d.value and of_c.value == of_d.value
        settings = dict(self.objects[operation.value])
        layouts = [dict(self.objects[layout.value]) for layout in (of_a, of_b, of_d)]
        addresses = [pointer.value for pointer in (a, b, d)]
        promised = self.promised[algorithm._obj[1]]
        for address, alignment in zip((*addresses, d.value, settings.get(11, 0)), promised, strict=True):
            assert address % alignment == 0, f"misaligned address: {address:#x}, {alignment} promised"
        assert settings.get(8, 0) % 16 == 0, "misaligned address of a vector, which the library does not ask for"
        settings["reductions"] = algorithm._obj[2]
        fake_cupy.Graph.note(lambda: self._run(settings, layouts, addresses))
        return 0

    def _run(self, settings, layouts, addresses):
        wide = np.float64 if settings["compute"] == 70 else np.float32
        assert settings["scale"] == (1 if settings["compute"] == 70 else 0)
        first, second, result = (
            _Operand(None, layout["kind"], layout["lead"], [address]).matrix(0, (layout["rows"], layout["columns"]))
            for layout, address in zip(layouts, addresses, strict=True)
        )
        a = first.astype(wide).T if settings[3] else first.astype(wide)
        b = second.astype(wide).T if settings[4] else second.astype(wide)
        self.products.append(settings)
        epilogue = settings[7]
        assert (8 in settings, 11 in settings) == (epilogue in _WITH_VECTOR, epilogue in _WITH_FURTHER)
        read, written, x = [first, second], [result], a @ b
        if epilogue in _WITH_VECTOR:
            vector = _Operand(None, layouts[2]["kind"], ctypes.c_int64(result.shape[0]), [settings[8]])
            vector = vector.matrix(0, (result.shape[0], 1))
            (written if epilogue == _SUM_OF_ROWS else read).append(vector)
            x = x if epilogue == _SUM_OF_ROWS else x + vector.astype(wide)
        if epilogue in _WITH_FURTHER:
            lead = settings[12]
            assert lead % 8 == 0 and lead >= result.shape[0] and settings[11] % 16 == 0 and layouts[2]["kind"] != 1
            further = _Operand(None, layouts[2]["kind"], ctypes.c_int64(lead), [settings[11]]).matrix(0, result.shape)
            (written if epilogue == _BIAS_AND_GELU else read).append(further)
        _refuse_overlaps(read, written)
        _refuse_overlaps(written[:1], written[1:])
        if epilogue == _SUM_OF_ROWS:
            vector[...] = a.sum(axis=1, keepdims=True)
        elif epilogue == _BIAS_AND_GELU:
            further[...] = x
        elif epilogue == _BIAS_THEN_RELU:
            x = np.maximum(x, 0) if self.keeps_nan else np.fmax(x, 0)
        elif epilogue == _GELU_GRADIENT:
            h = further.astype(wide)
            t, inner = _tanh_of_gelu(h), np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * h**2)
            x = x * (0.5 * (1 + t) + 0.5 * h * (1 - t**2) * inner)
        if epilogue in (_BIAS_AND_GELU, _BIAS_THEN_GELU):
            x = 0.5 * x * (1 + _tanh_of_gelu(x))
        result[...] = x
