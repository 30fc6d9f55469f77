"""Two devices in one process: the emulated library refuses handles and plans of another device."""

import dataclasses

import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S

STEPS = 4
NETWORK = ((3, 2, 5), (1, 1, 2, 4), (1, 1, 2, 4), (1, 4, 4, 9))


class Training:
    """A training on one device, of a network with plans, filters that are laid out, scratch memory and packed weights."""

    def __init__(self, device_id, array_class):
        self.context = nn.Context(["cudnn:half", "cuda:half"], array_class, device_id=device_id)
        self.losses = []
        self._rng = np.random.default_rng(0)
        nn.seed(5)
        with nn.context_scope(self.context), nn.parameter_scope(f"device{device_id}"):
            self._x, self._t = nn.Variable((4, 3, 6, 6)), nn.Variable((4, 1))
            h = PF.convolution(self._x, 8, (3, 3), pad=(1, 1))
            h = F.average_pooling(F.relu(PF.batch_normalization(h)), (2, 2))
            h = F.reshape(F.transpose(h, (2, 3, 0, 1)), (9, 4, 8))
            state = nn.Variable.from_numpy_array(np.zeros((1, 1, 4, 5)))
            h, _, _ = PF.lstm(h, state, state)
            self.loss = F.mean(F.softmax_cross_entropy(h[-1], self._t))
            self.solver = S.Momentum(0.05)
            self.solver.set_parameters(nn.get_parameters())

    def step(self):
        """One step, in the context of the training."""
        with nn.context_scope(self.context):
            self._x.d, self._t.d = self._rng.normal(size=self._x.shape), self._rng.integers(0, 5, self._t.shape)
            self.loss.forward(clear_no_need_grad=True)
            self.solver.zero_grad()
            self.loss.backward(clear_buffer=True)
            self.solver.update()

    def read(self):
        """Note the loss, which waits for the device."""
        self.losses.append(float(self.loss.d))


def test_trainings_on_two_devices_take_turns(backend):
    alone = Training("0", backend.array_class)
    for _ in range(STEPS):
        alone.step()
        alone.read()
    nn.clear_parameters()
    pair = [Training("0", backend.array_class), Training("1", backend.array_class)]
    for _ in range(STEPS):
        for training in pair:
            training.step()
        for training in reversed(pair):
            training.read()
    for training in pair:
        np.testing.assert_allclose(training.losses, alone.losses, rtol=1e-6)
    on_cudnn = {"Convolution", "BatchNormalization", "AveragePooling", "LSTM"}
    assert not [row for row in nn.fallback_report() if row.function in on_cudnn]


def test_each_device_has_its_own_handle_and_scratch_memory(cudnn):
    from nn_ext_cuda.device.runtime import cupy
    from nn_ext_cudnn import handle

    for make in (handle.current, handle.workspace):
        first = make()
        with cupy.cuda.Device(1):
            other = make()
        assert other is not first
        assert make() is first


def test_what_one_device_cannot_do_another_may(cudnn, call_of, monkeypatch):
    from fake_cudnn import RefusedError

    from nn_ext_cuda.device.runtime import cupy
    from nn_ext_cudnn.graph import plans
    from nn_ext_cudnn.kernels import KERNELS
    from nn_ext_cudnn.legacy import batch_norm_frame, networks, recurrent

    caches = plans._built, batch_norm_frame._training, networks._network
    for cache in caches:
        cache.cache_clear()
    monkeypatch.setattr(recurrent, "_UNSUPPORTED", set())
    calls = [
        call_of("Convolution", (4, 3, 6, 6), (6, 3, 3, 3)),
        call_of("BatchNormalization", (4, 3, 6, 6), *[(1, 3, 1, 1)] * 4),
        call_of("LSTM", *NETWORK),
    ]
    require = cudnn._require_device

    def refusing(first):
        has_handle = any(isinstance(value, int) and value in cudnn.parts[0].devices for value in first)
        if has_handle and cupy.cuda.Device().id == 1:
            raise RefusedError(3007, "no code for it")
        require(first)

    monkeypatch.setattr(cudnn, "_require_device", refusing)
    monkeypatch.setattr(cudnn.parts[-1], "refuses", lambda _: "no code for it" if cupy.cuda.Device().id == 1 else None)
    for call in calls:
        other = dataclasses.replace(call, device_id="1")
        assert KERNELS[call.spec.name].refuse(call) is None
        with cupy.cuda.Device(1):
            assert "no code for it" in KERNELS[call.spec.name].refuse(other).reason
        assert KERNELS[call.spec.name].refuse(call) is None
    recurrent._leave(dataclasses.replace(calls[-1], device_id="1"))
    assert KERNELS["LSTM"].refuse(calls[-1]) is None
    for cache in caches:
        cache.cache_clear()
