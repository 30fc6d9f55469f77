"""Matrix products by cuBLAS on an emulated device: what the library may be given, and the handles that are made for it."""

import threading

import numpy as np
import pytest

#: Shapes of stacks of matrices that are broadcast to each other: their matrices are listed in a table.
BROADCAST = {
    "one axis each": ((2, 1, 3, 4), (1, 5, 4, 7)),
    "an axis in the middle": ((3, 1, 2, 8, 8), (3, 2, 1, 8, 3)),
}


@pytest.fixture
def cublas(device, monkeypatch):
    """The library, and no handle of another one."""
    import fake_cublas

    from nn_ext_cuda.gemm import cublaslt

    monkeypatch.setattr(cublaslt, "library", lambda: None)
    return fake_cublas.install(monkeypatch, fake_cublas.FakeCublas())


def multiplied(device, shapes, dtype):
    """Two stacks, their product, and the gradients of the sum of that."""
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=shape).astype(dtype) for shape in shapes]
    call = emulated.call_of("BatchMatmul", inputs, dtype)
    (y,) = emulated.forward(device, KERNELS["BatchMatmul"], call, inputs)
    gradients = emulated.backward(device, KERNELS["BatchMatmul"], call, inputs, np.ones_like(y))
    return inputs, y, gradients


@pytest.mark.parametrize(("dtype", "tf32"), [("float16", False), ("float32", True), ("float32", False)])
@pytest.mark.parametrize("name", BROADCAST)
def test_addresses_in_a_table_are_aligned_for_tensor_cores(device, cublas, monkeypatch, name, dtype, tf32):
    from nn_ext_cuda.gemm import precision

    monkeypatch.setattr(precision, "_tf32_allowed", tf32)
    listed = []
    batched = cublas.cublasGemmBatchedEx
    monkeypatch.setattr(cublas, "cublasGemmBatchedEx", lambda *given: listed.append(1) or batched(*given))
    (a, b), y, gradients = multiplied(device, BROADCAST[name], dtype)
    wide = a.astype("float64"), b.astype("float64")
    np.testing.assert_allclose(y, np.matmul(*wide), rtol=1e-2, atol=1e-2)
    slopes = np.matmul(np.ones(y.shape), np.swapaxes(wide[1], -1, -2))
    repeated = tuple(axis for axis, length in enumerate(a.shape) if length != slopes.shape[axis])
    np.testing.assert_allclose(gradients[0], slopes.sum(axis=repeated, keepdims=True), rtol=1e-2, atol=2e-2)
    is_exact = (dtype, tf32) == ("float32", False)
    assert bool(listed) >= is_exact, "other kernels read element by element"


def test_parts_of_a_table_are_one_step_apart(device):
    from nn_ext_cuda.gemm.blas import Matrix, _strided

    rows = [[0, 4, 8, 8, 8], [3, 3, 3, 0, 9], [0, 1, 2, 3, 4]]
    matrices = [Matrix(0, 1, tuple(row), start=100) for row in rows]
    found = list(_strided(matrices, np.array(rows)))
    assert [count for _, count in found] == [3, 2]
    places = [[part.start - 100 + k * part.step for part, count in zip(parts, [n] * 3, strict=True) for k in range(count)]
              for parts, n in found]  # fmt: skip
    assert places == [[0, 4, 8, 3, 3, 3, 0, 1, 2], [8, 8, 0, 9, 3, 4]]


def test_the_recording_thread_gets_its_handle_before_it_records(device, cublas, monkeypatch):
    import emulated
    import fake_cublas

    from nn_ext_cuda.kernels import KERNELS
    from nn_ext_cuda.launch import graphs

    inputs = [np.ones(shape, "float32") for shape in ((2, 3), (3, 4))]
    call = emulated.call_of("BatchMatmul", inputs)
    arrays = [device.asarray(array) for array in (*inputs, np.zeros((2, 4), "float32"))]
    step = KERNELS["BatchMatmul"].forward(call).bind(*arrays)
    step()
    fake_cublas.forget_handles(monkeypatch)  # as in another thread
    graphs.record([step.run], uses_blas=step.uses_blas).launch()
    np.testing.assert_array_equal(arrays[2].get(), np.full((2, 4), 3))
    assert cublas.created == 2


def _recorded(device):
    """A recorded product, and its operands and result."""
    import emulated

    from nn_ext_cuda.kernels import KERNELS
    from nn_ext_cuda.launch import graphs

    inputs = [np.ones(shape, "float32") for shape in ((2, 3), (3, 4))]
    call = emulated.call_of("BatchMatmul", inputs)
    arrays = [device.asarray(array) for array in (*inputs, np.zeros((2, 4), "float32"))]
    step = KERNELS["BatchMatmul"].forward(call).bind(*arrays)
    return graphs.record([step.run], uses_blas=step.uses_blas), arrays


def test_graphs_of_two_streams_do_not_share_a_workspace(device, cublas):
    graphs = [_recorded(device)[0]]
    with device.cuda.Stream(non_blocking=True):
        graphs.append(_recorded(device)[0])
    graphs.append(_recorded(device)[0])
    first, other, again = (graph._kept for graph in graphs)
    assert other is not first
    assert again is first


def test_the_workspace_of_a_graph_outlives_the_thread_that_recorded_it(device, cublas):
    import gc

    from nn_ext_cuda.gemm import blas

    found = []

    def record():
        found.append(_recorded(device))
        found.append(blas.handle())

    for _ in range(2):
        thread = threading.Thread(target=record)
        thread.start()
        thread.join()
        gc.collect()
    (graph, _), first, (other, _), second = found
    assert graph._kept is not None
    assert graph._kept is not other._kept, "the next thread must not write to it"
    assert second.memory is not graph._kept
    assert cublas.created == 2, "the handles of a thread that has ended are taken by the next one"
    assert {first, second} <= set(blas._Lent.free[first.kind])
