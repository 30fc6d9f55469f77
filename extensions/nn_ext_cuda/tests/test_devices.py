"""Two devices in one process: the emulated device refuses handles, streams, graphs, modules and arrays of another one."""

import functools
import importlib

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S

STEPS = 5


class Training:
    """A training on one device, of a network with products, tables of indices, sums by sorted segments and dropout."""

    def __init__(self, device_id):
        self.context = nn.Context(["cuda:float"], nn.get_current_context().array_class, device_id=device_id)
        self.losses = []
        self._rng = np.random.default_rng(0)
        nn.seed(5)
        with nn.context_scope(self.context), nn.parameter_scope(f"device{device_id}"):
            self._x, self._places, self._t = nn.Variable((16, 4)), nn.Variable((16, 1)), nn.Variable((16, 1))
            table = nn.parameter.get_parameter_or_create("table", (3, 8), np.ones((3, 8)))
            h = F.gelu(PF.affine(self._x, 8)) + F.gather_nd(table, F.transpose(self._places, (1, 0)))
            h = F.dropout(F.sort(h, axis=1), 0.5, seed=7)
            h = F.reshape(F.batch_matmul(F.reshape(h, (16, 1, 2, 4)), F.reshape(h, (16, 1, 4, 2))), (16, 4))
            self.loss = F.mean(F.softmax_cross_entropy(h, self._t))
            self.solver = S.Adam(0.05)
            self.solver.set_parameters(nn.get_parameters())

    def step(self, *, together):
        """One step, in the context of the training."""
        with nn.context_scope(self.context):
            self._x.d = self._rng.normal(size=(16, 4))
            self._places.d, self._t.d = self._rng.integers(0, 3, (2, 16, 1))
            if together:
                with nn.launch_together():
                    self._once()
            else:
                self._once()

    def read(self):
        """Note the loss, which waits for the device."""
        self.losses.append(float(self.loss.d))

    def _once(self):
        self.loss.forward(clear_no_need_grad=True)
        self.solver.zero_grad()
        self.loss.backward(clear_buffer=True)
        self.solver.update()


@pytest.fixture
def libraries(cuda, monkeypatch):
    """cublasLt besides cuBLAS."""
    import fake_cublaslt

    from nn_ext_cuda.gemm import cublaslt

    library = fake_cublaslt.FakeCublasLt()
    monkeypatch.setattr(cublaslt, "library", lambda: library)
    cublaslt._CHOSEN.clear()
    yield cuda
    cublaslt._CHOSEN.clear()


@pytest.mark.parametrize("together", [False, True])
def test_trainings_on_two_devices_take_turns(libraries, together):
    alone = Training("0")
    for _ in range(STEPS):
        alone.step(together=together)
        alone.read()
    nn.clear_parameters()
    pair = [Training("0"), Training("1")]
    for _ in range(STEPS):
        for training in pair:
            training.step(together=together)
        for training in reversed(pair):
            training.read()
    for training in pair:
        np.testing.assert_allclose(training.losses, alone.losses, rtol=1e-6)


def _stream_of_copies(memory):
    from nn_ext_cuda.device.runtime import cupy

    memory.UPLOADS.start(cupy.empty((2**17,), "float32"), np.zeros(2**17, np.float32))
    return memory.UPLOADS._streams[int(cupy.cuda.Device().id)]


def _device_of_algorithms(kernels):
    import emulated

    from nn_ext_cuda.device.runtime import cupy

    call = emulated.call_of("Affine", [np.zeros(shape, "float32") for shape in ((5, 6), (6, 4), (4,))])
    arrays = [cupy.zeros(desc.shape, desc.dtype) for desc in (*call.inputs, *call.outputs)]
    return kernels.KERNELS["Affine"].forward(call).bind(*arrays).chosen_for[0]


#: Objects that exist once for each device, by name: the module, and the function that gets them.
KEPT = {
    "handle of cuBLAS": ("gemm.blas", lambda blas: blas.handle()),
    "algorithms of cublasLt": ("kernels", _device_of_algorithms),
    "shared memory": ("memory.workspace", lambda workspace: int(workspace.shared([100])[0].data.ptr)),
    "stream of recordings": ("launch.graphs", lambda graphs: graphs._stream()),
    "stream of sums": ("nccl.step", lambda nccl_step: nccl_step._stream()),
    "stream of copies": ("memory.arrays", _stream_of_copies),
    "kernel": ("codegen.words", lambda words: words.compiled(words.put_words_code(1))),
}


@pytest.mark.parametrize("name", KEPT)
def test_each_device_has_its_own(libraries, name):
    module, function = KEPT[name]
    make = functools.partial(function, importlib.import_module(f"nn_ext_cuda.{module}"))
    first = make()
    with libraries.cuda.Device(1):
        other = make()
    assert other != first
    assert make() == first
