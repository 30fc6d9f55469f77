"""Products with a bias by cublasLt: what it is given, what it computes, and what happens without it."""

import ctypes
import gc

import numpy as np
import pytest

DTYPES = {"float32": 68, "float64": 70, "float16": 68}


@pytest.fixture
def cublaslt(device, monkeypatch):
    import fake_cublas
    import fake_cublaslt

    from nn_ext_cuda.gemm import cublaslt

    cublas = fake_cublas.FakeCublas()
    library = fake_cublaslt.FakeCublasLt()
    fake_cublas.install(monkeypatch, cublas)
    monkeypatch.setattr(cublaslt, "library", lambda: library)
    cublaslt._CHOSEN.clear()
    return library


def affine(dtype):
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=shape).astype(dtype) for shape in ((5, 2, 3), (6, 4), (4,))]
    return inputs, rng.normal(size=(5, 4)).astype(dtype)


def compute(device, dtype):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    inputs, dy = affine(dtype)
    call = emulated.call_of("Affine", inputs, dtype)
    (y,) = emulated.forward(device, KERNELS["Affine"], call, inputs)
    return y, emulated.backward(device, KERNELS["Affine"], call, inputs, dy)


def check(dtype, y, gradients):
    (x, weight, bias), dy = affine(dtype)
    x, weight, bias, dy = (array.astype("float64") for array in (x.reshape(5, 6), weight, bias, dy))
    expected = (x @ weight + bias, (dy @ weight.T).reshape(5, 2, 3), x.T @ dy, dy.sum(axis=0))
    tolerance = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-2}[dtype]
    for array, values in zip((y, *gradients), expected, strict=bool(gradients)):
        np.testing.assert_allclose(array, values, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_affine_takes_its_bias_into_the_product(device, cublaslt, dtype):
    y, gradients = compute(device, dtype)
    check(dtype, y, gradients)
    assert [settings[7] for settings in cublaslt.products] == [4, 256]
    assert {settings["compute"] for settings in cublaslt.products} == {DTYPES[dtype]}


def test_tf32_is_asked_for_where_it_is_allowed(device, cublaslt):
    from nn_ext_cuda.gemm import precision

    precision.allow_tf32(True)
    try:
        compute(device, "float32")
    finally:
        precision.allow_tf32(False)
    assert {settings["compute"] for settings in cublaslt.products} == {77}


def test_an_algorithm_is_chosen_once_for_each_shape_and_descriptors_are_given_back(device, cublaslt):
    compute(device, "float32")
    searches = cublaslt.searches
    assert searches == 2
    compute(device, "float32")
    assert cublaslt.searches <= searches + 2  # again only if memory is aligned in another way
    gc.collect()
    assert not cublaslt.objects


def test_without_an_algorithm_the_bias_is_added_first(device, cublaslt):
    cublaslt.knows_algorithms = False
    y, gradients = compute(device, "float32")
    check("float32", y, gradients)
    assert not cublaslt.products


def test_without_the_library_the_bias_is_added_first(device, cublaslt, monkeypatch):
    from nn_ext_cuda.gemm import cublaslt as module

    monkeypatch.setattr(module, "library", lambda: None)
    y, gradients = compute(device, "float32")
    check("float32", y, gradients)
    assert not cublaslt.products


def test_products_with_a_bias_can_be_recorded(device, cublaslt, monkeypatch):
    import emulated
    import fake_cublas

    from nn_ext_cuda.kernels import KERNELS
    from nn_ext_cuda.launch import graphs

    inputs, _ = affine("float32")
    call = emulated.call_of("Affine", inputs)
    arrays = [device.asarray(array) for array in (*inputs, np.zeros((5, 4), "float32"))]
    step = KERNELS["Affine"].forward(call).bind(*arrays)
    assert step.capturable and step.uses_blas
    fake_cublas.forget_handles(monkeypatch)  # as in another thread: the algorithm is known, and no handle is there
    graph = graphs.record([step.run], uses_blas=True)
    assert not cublaslt.products
    graph.launch()
    expected = inputs[0].reshape(5, 6) @ inputs[1] + inputs[2]
    np.testing.assert_allclose(arrays[3].get(), expected, rtol=1e-5, atol=1e-5)


def test_structures_are_as_long_as_those_of_the_library():
    from nn_ext_cuda.gemm.cublaslt import _Heuristic

    assert ctypes.sizeof(_Heuristic) == 96
    assert _Heuristic.workspace_bytes.offset == 64
    assert _Heuristic.state.offset == 72


def test_sums_are_reduced_in_sixteen_bits_only_while_that_is_allowed(device, cublaslt):
    import nn_ext_cuda
    from nn_ext_cuda.gemm import blas

    try:
        for allowed, modes, schemes in ((False, [16], 3), (True, [16, 0], 7), (False, [16, 0], 3)):
            nn_ext_cuda.allow_reduced_precision_reduction(allowed)
            compute(device, "float16")
            assert blas.library().math_modes == modes
            assert {settings["reductions"] for settings in cublaslt.products} == {schemes}
            cublaslt.products.clear()
    finally:
        nn_ext_cuda.allow_reduced_precision_reduction(False)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_algorithms_are_chosen_for_the_alignment_of_the_arrays(device, cublaslt, dtype):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    inputs, _ = affine(dtype)
    runner = KERNELS["Affine"].forward(emulated.call_of("Affine", inputs, dtype))
    for offset in (0, 1, 4):
        arrays = []
        for place, values in enumerate((*inputs, np.zeros((5, 4), dtype))):
            memory = device.zeros((values.size + 300,), dtype)
            start = (-memory.data.ptr % 256) // memory.itemsize
            start += offset if place != 2 else 0  # with the bias off its alignment the library is not asked
            arrays.append(memory[start : start + values.size].reshape(values.shape))
            arrays[-1].set(values)
        runner(*arrays)
        check(dtype, arrays[3].get(), ())
    assert len(cublaslt.products) == 3


def test_memory_that_cublas_lacks_is_an_out_of_memory_error():
    from nn_ext_cuda.device import errors
    from nn_ext_cuda.gemm import blas

    with pytest.raises(errors.DeviceMemoryError, match=r"cublasCreate: .* must fit into the device, got ALLOC_FAILED \(3\)"):
        blas.check("cublasCreate", 3)
    with pytest.raises(errors.DeviceError, match=r"cublasGemm: status must be success, got EXECUTION_FAILED \(13\)"):
        blas.check("cublasGemm", 13)


@pytest.mark.parametrize("shift", [0, 1, 2, 4])
def test_vectors_that_are_not_aligned_are_computed_apart(device, cublaslt, shift):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    (x, weight, bias), dy = affine("float32")
    shifted, gradient = (device.empty(8, "float32")[shift : shift + 4] for _ in range(2))
    shifted.set(bias)
    call = emulated.call_of("Affine", [x, weight, bias])
    arrays = [device.asarray(x), device.asarray(weight)]
    y, dx, dweight = (device.asarray(np.zeros(shape, "float32")) for shape in ((5, 4), x.shape, weight.shape))
    KERNELS["Affine"].forward(call)(*arrays, shifted, y)
    KERNELS["Affine"].backward(call, [True] * 3)(*arrays, None, None, device.asarray(dy), dx, dweight, gradient)
    check("float32", y.get(), [dx.get(), dweight.get(), gradient.get()])
    assert [settings[7] for settings in cublaslt.products] == ([4, 256] if shift % 4 == 0 else [])


def test_no_algorithm_is_used_for_a_further_matrix_that_is_aligned_less(device, cublaslt):
    import emulated

    from nn_ext_cuda.gemm.cublaslt import Epilogue, Fusion
    from nn_ext_cuda.kernels import KERNELS

    inputs = [np.random.default_rng(1).normal(size=shape).astype("float32") for shape in ((5, 6), (6, 8), (8,))]
    arrays = [device.empty(array.shape, "float32") for array in inputs]
    for array, values in zip(arrays, inputs, strict=True):
        array.set(values)
    runner = KERNELS["Affine"].forward(emulated.call_of("Affine", inputs))
    target, memory = device.empty((5, 8), "float32"), device.empty(64, "float32")
    for shift in (0, 4):
        further = memory[shift : shift + 40].reshape(5, 8)
        step = runner.bind(*arrays, further).fused(Fusion(Epilogue.BIAS_AND_GELU, target, further))
        step()
        np.testing.assert_allclose(further.get(), inputs[0] @ inputs[1] + inputs[2], rtol=1e-5, atol=1e-5)
