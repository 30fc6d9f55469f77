"""Plans on a backend with a memory of its own: what is copied when, which device is current, what is merged."""

import types

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.engine.arrays import spaces
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.registry import spec_of
from nn_core.engine.graph import backward
from nn_core.engine.graph.call import resolved_call


class Device:
    """A backend whose arrays are NumPy's, but which claims that they are elsewhere."""

    def __init__(self):
        self.name, self.array_class, self.kernels = "device", "DeviceArray", {}
        self.events = []
        self.current = None

    def namespace(self):
        return types.SimpleNamespace(**vars(np))

    def empty(self, shape, dtype):
        return np.empty(shape, dtype)

    def from_numpy(self, array):
        return np.array(array)

    def to_numpy(self, array):
        return np.array(array)

    def upload(self, target, values):
        self.events.append("upload")
        np.copyto(target, values, casting="unsafe")

    def use_device(self, device_id):
        self.current = device_id

    def flush(self):
        self.events.append("flush")

    def fuse(self, steps):
        self.events.append(f"fuse {len(steps)} on {self.current}")
        return list(steps)


@pytest.fixture
def device(install):
    install(
        "device",
        "from nn_core.ext import *\n"
        "made = []\n"
        "@hookimpl\n"
        "def nn_core_backends():\n"
        "    return [BackendInfo(name='device', array_class='DeviceArray', load=lambda: made[0])]\n",
    )
    PLUGINS.refresh()
    backend = Device()
    PLUGINS.module("device").made.append(backend)
    with nn.context_scope(nn.Context(["device:float"])):
        yield backend
    spaces._SPACES.pop(("DeviceArray", "0"), None)
    spaces._SPACES.pop(("DeviceArray", "1"), None)
    PLUGINS.refresh()


def uploads(device):
    count = device.events.count("upload")
    device.events.clear()
    return count


def test_parameters_are_copied_once_and_inputs_when_they_change(device):
    x = nn.Variable((4, 3))
    y = PF.affine(x, 2)
    x.d = 1
    y.forward()
    uploads(device)
    y.forward()
    assert uploads(device) == 0
    x.d = np.ones((4, 3))
    y.forward()
    assert uploads(device) == 1
    for _ in range(3):
        y.forward()
    assert uploads(device) == 0


def test_what_is_written_through_an_array_that_is_still_held_is_seen(device):
    x = nn.Variable((2, 3))
    y = F.tanh(x)
    held = x.d[1]
    for value in (0.5, 0.25):
        held[...] = value
        y.forward()
        np.testing.assert_allclose(y.d[1], np.tanh(value), rtol=1e-6)


def test_what_is_written_through_an_array_that_is_given_up_after_a_pass_is_seen(device):
    x = nn.Variable((2, 3))
    y = F.tanh(x)
    for value in (0.5, 0.25, 0.75):
        held = x.d
        y.forward()
        held[...] = value
        del held
        y.forward()
        np.testing.assert_allclose(y.d, np.full((2, 3), np.tanh(value)), rtol=1e-6)


def test_a_number_that_fills_an_array_of_the_device_is_seen_by_functions_in_another_dtype(device):
    x = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32), need_grad=True)
    with nn.context_scope(nn.Context(["device:half"])):
        y = F.tanh(x)
    solver = S.Sgd(1.0)
    solver.set_parameters({"x": x})
    for value in (0.5, 0.25, 0.0):
        x.g = 1
        solver.update()  # brings the values to the device, in float32
        for _ in range(3):
            y.forward()
        x.data.fill(value)
        y.forward()
        np.testing.assert_allclose(y.d, np.full((2, 3), np.tanh(value)), rtol=2e-3)


def test_the_backward_pass_copies_nothing_again(device):
    x, t = nn.Variable((4, 3)), nn.Variable((4, 1))
    loss = F.mean(F.softmax_cross_entropy(PF.affine(x, 5), t))
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())
    for _ in range(4):
        x.d, t.d = np.ones((4, 3)), np.zeros((4, 1))
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        device.events.clear()
        loss.backward(clear_buffer=True)
        assert uploads(device) == 0
        solver.update()


@pytest.mark.parametrize("read", [False, True])
def test_gradients_are_right_whether_or_not_somebody_reads_the_loss(device, read):
    rng = np.random.default_rng(0)
    x, w = (nn.Variable.from_numpy_array(rng.normal(size=3), need_grad=need) for need in (False, True))
    h = F.tanh(F.sigmoid(w * x) ** 2.0)
    loss = F.sum(h * h)
    for _ in range(4):
        loss.forward(clear_no_need_grad=True)
        w.grad.zero()
        loss.backward(clear_buffer=True)
        s = 1 / (1 + np.exp(-w.d * x.d))
        u = np.tanh(s * s)
        np.testing.assert_allclose(w.g, 2 * u * (1 - u * u) * 2 * s * s * (1 - s) * x.d, rtol=1e-5)
        w.d -= 0.5 * w.g
        if read:
            assert np.isfinite(loss.d)  # brings it to the host: the plan lays claim to its arrays anew


def test_copies_come_first_so_that_all_functions_are_neighbours(device):
    x, t = nn.Variable((4, 3)), nn.Variable((4, 1))
    loss = F.mean(F.softmax_cross_entropy(F.tanh(PF.affine(x, 5)), t))
    for _ in range(3):
        x.d, t.d = np.ones((4, 3)), np.zeros((4, 1))
        loss.forward()
    merges = [event for event in device.events if event.startswith("fuse")]
    assert merges == ["fuse 4 on 0"]


class Prepared:
    """A kernel that notes which device was current when it was asked for something."""

    def __init__(self, device):
        self.device, self.seen = device, []

    def refuse(self, call):
        self.seen.append(("refuse", call.device_id, self.device.current))

    def forward(self, call):
        self.seen.append(("forward", call.device_id, self.device.current))
        return lambda x, y: np.tanh(x, out=y)

    def backward(self, call, wanted):
        self.seen.append(("backward", call.device_id, self.device.current))
        return lambda x, y, dy, dx: np.copyto(dx, dy * (1 - y * y))


def test_kernels_are_prepared_on_the_device_of_their_call(device):
    device.kernels = {"Tanh": Prepared(device)}
    variables = []
    for device_id in ("1", "0"):
        x = nn.Variable.from_numpy_array(np.float32([0.25]), need_grad=True)
        with nn.context_scope(nn.Context(["device:float"], device_id=device_id)):
            variables.append((x, F.tanh(x)))
    for x, y in variables:
        y.forward()
        x.grad.zero()
        y.backward()
        np.testing.assert_allclose(x.g, 1 - np.tanh(0.25) ** 2, rtol=1e-6)
    seen = device.kernels["Tanh"].seen
    assert {what for what, *_ in seen} == {"refuse", "forward", "backward"}
    assert {wanted for _, wanted, _ in seen} == {"0", "1"}
    assert all(wanted == current for _, wanted, current in seen)


@pytest.mark.parametrize(
    "prepare",
    [
        lambda kernel: kernel.forward,
        lambda kernel: kernel.forward_for((True, True)),
        lambda kernel: kernel.backward_for((True,), (False, False)),
    ],
)
def test_a_kernel_is_prepared_on_its_device_whatever_was_used_since_it_was_chosen(device, prepare):
    device.kernels = {"Tanh": Prepared(device)}
    context = nn.Context(["device:float"], device_id="1")
    kernel = resolved_call(spec_of("Tanh"), {}, [(2, 3, 4, 5)]).kernel(context)
    device.use_device("0")
    prepare(kernel)
    assert [current for what, _, current in device.kernels["Tanh"].seen if what != "refuse"] == ["1"]


def test_a_context_names_the_device_that_is_current_when_its_functions_run(device):
    x = nn.Variable((2, 2))
    with nn.context_scope(nn.Context(["device:float"], device_id="1")):
        y = F.tanh(x)
    z = F.exp(x)
    x.d = 1
    for graph, number in ((y, "1"), (z, "0"), (y, "1")):
        graph.forward()
        assert device.current == number
    both = F.add2(y, z)
    for _ in range(3):
        both.forward()
        np.testing.assert_allclose(both.d, np.tanh(1) + np.exp(1), rtol=1e-6)


def test_functions_at_once_use_their_device_too(device):
    with nn.context_scope(nn.Context(["device:float"], device_id="1")):
        F.tanh(nn.NdArray.from_numpy_array(np.ones(2, np.float32)))
    assert device.current == "1"


def test_functions_that_run_in_half_convert_parameters_on_their_device(device):
    x = nn.Variable((2, 3), need_grad=True)
    with nn.context_scope(nn.Context(["device:half"])):
        y = F.mean(F.tanh(PF.affine(x, 4)))
    solver = S.Sgd(0.1)
    solver.set_parameters(nn.get_parameters())
    before = {name: p.d.copy() for name, p in nn.get_parameters().items()}
    for step in range(4):
        x.d = 1
        y.forward(clear_no_need_grad=True)
        solver.zero_grad()
        y.backward(clear_buffer=True)
        if step > 1:
            assert uploads(device) <= 1
        solver.update()
        device.events.clear()
    assert all(np.abs(p.d - before[name]).max() > 0 for name, p in nn.get_parameters().items())


class Keeping:
    """A kernel for RNN that keeps what it likes in the trace, and looks for it in the backward pass."""

    def refuse(self, call):
        return None

    def private_shapes(self, call):
        return [(7,)]

    def forward(self, call):
        def run(x, h, weight_l0, weight, bias, y, h_n, trace, mask, key):
            y[...], h_n[...], trace[...] = 1, 2, np.arange(7)

        return run

    def backward(self, call, wanted):
        def run(x, h, weight_l0, weight, bias, y, h_n, trace, mask, dy, dh_n, *gradients):
            np.testing.assert_array_equal(trace, np.arange(7))
            for gradient in gradients:
                if gradient is not None:
                    gradient[...] = 3

        return run


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("clear", [False, True])
def test_a_kernel_chooses_the_shape_of_what_it_keeps_for_itself(device, dynamic, clear):
    device.kernels["RNN"] = Keeping()
    x, h, w = (nn.Variable.from_numpy_array(np.ones(s), need_grad=True) for s in ((4, 2, 3), (1, 1, 2, 5), (1, 5, 8)))
    for _ in range(3):
        with nn.auto_forward(dynamic):
            y, _ = F.rnn(F.tanh(x), h, w)
            loss = F.sum(y)
        for _ in range(1 if dynamic else 3):
            if not dynamic:
                loss.forward(clear_no_need_grad=clear)
            w.grad.zero()
            loss.backward(clear_buffer=clear)
            assert (w.g == 3).all()
            assert loss.d == y.size


def test_a_dynamic_graph_is_compiled_once_on_a_device_too(device, monkeypatch):
    compiled = []
    compile_backward = backward.compile_backward
    monkeypatch.setattr(backward, "compile_backward", lambda *given: compiled.append(1) or compile_backward(*given))
    x = nn.Variable((4, 3))
    solver = S.Sgd(0.1)
    for step in range(5):
        x.d = np.full((4, 3), step)
        with nn.auto_forward():
            loss = F.mean(F.tanh(PF.affine(x, 2)))
        if step == 0:
            solver.set_parameters(nn.get_parameters())
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
    assert len(compiled) <= 2
