"""Whole trainings: tiny nets learn, both kinds of graph agree, files resume exactly, memory stays small."""

import gc
import tracemalloc

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.ext_utils import list_extensions

BATCH = 32
MEGABYTE = 2**20


@pytest.fixture(params=["reference", "cpu"])
def backend(request):
    """Run on each of the backends that a host can have."""
    if request.param not in list_extensions():
        pytest.skip(f"no package brings the backend {request.param}")
    with nn.context_scope(nn.Context([request.param])):
        yield request.param


def xor(x):
    """Two affine layers: (B, 2) -> (B, 1)."""
    return PF.affine(F.tanh(PF.affine(x, 8, name="hidden")), 1, name="out")


def stripes(n, rng):
    """Noisy images (n, 1, 8, 8) of stripes, and whether they are horizontal, (n, 1)."""
    labels = rng.integers(2, size=(n, 1))
    phase = rng.integers(2, size=(n, 1, 1))
    rows = (np.arange(8)[None, :, None] + phase) % 2 * np.ones((1, 1, 8))
    images = np.where(labels[:, :, None] == 1, rows, rows.transpose(0, 2, 1))
    return (images + 0.5 * rng.standard_normal(images.shape))[:, None].astype(np.float32), labels


def classifier(x, test=False):
    """Convolution, batch normalization, pooling, dropout and affine layers: (B, 1, 8, 8) -> (B, 2)."""
    h = PF.convolution(x, 8, (3, 3), pad=(1, 1), with_bias=False, name="conv1")
    h = F.max_pooling(F.relu(PF.batch_normalization(h, batch_stat=not test, name="conv1")), (2, 2))
    h = F.average_pooling(F.tanh(PF.convolution(h, 8, (3, 3), pad=(1, 1), name="conv2")), (2, 2))
    h = F.relu(PF.affine(h, 16, name="fc1"))
    return PF.affine(h if test else F.dropout(h, 0.2), 2, name="fc2")


class Training:
    """The training of `classifier`; the batch of a step follows from its number."""

    def __init__(self, dynamic=False):
        self.x = nn.Variable((BATCH, 1, 8, 8))
        self.t = nn.Variable((BATCH, 1))
        self.dynamic = dynamic
        self.loss = self.build()
        self.solver = S.Adam(alpha=0.01)
        self.solver.set_parameters(nn.get_parameters())

    def build(self):
        return F.mean(F.softmax_cross_entropy(classifier(self.x), self.t))

    def step(self, number):
        self.x.d, self.t.d = stripes(BATCH, np.random.default_rng(number))
        nn.seed(number)
        if self.dynamic:
            with nn.auto_forward():
                self.loss = self.build()
        else:
            self.loss.forward(clear_no_need_grad=True)
        self.solver.zero_grad()
        self.loss.backward(clear_buffer=True)
        self.solver.weight_decay(1e-4)
        self.solver.update()
        return float(self.loss.d)

    def run(self, steps):
        return [self.step(number) for number in steps]


def parameter_values():
    return {name: parameter.d.copy() for name, parameter in nn.get_parameters(grad_only=False).items()}


def assert_same_bits(values, others):
    assert values.keys() == others.keys()
    for name, value in values.items():
        np.testing.assert_array_equal(value, others[name], err_msg=name)


@pytest.mark.parametrize(
    "make_solver",
    [lambda: S.Sgd(0.5), lambda: S.Momentum(0.2), lambda: S.Adam(0.02), lambda: S.AdamW(0.02), lambda: S.RMSprop(0.01)],
    ids=["Sgd", "Momentum", "Adam", "AdamW", "RMSprop"],
)
def test_a_perceptron_learns_exclusive_or(backend, make_solver):
    nn.seed(1)
    x = nn.Variable.from_numpy_array([[0, 0], [0, 1], [1, 0], [1, 1]])
    t = nn.Variable.from_numpy_array([[0], [1], [1], [0]])
    loss = F.mean(F.sigmoid_cross_entropy(xor(x), t))
    solver = make_solver()
    solver.set_parameters(nn.get_parameters())
    for _ in range(600):
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
    assert loss.d < 0.05


def test_a_convolutional_net_learns_stripes(backend):
    nn.seed(1)
    losses = Training().run(range(100))
    assert np.mean(losses[-10:]) < 0.1
    images, labels = stripes(200, np.random.default_rng(1000))
    scores = classifier(nn.Variable.from_numpy_array(images), test=True)
    scores.forward(clear_buffer=True)
    assert np.mean(np.argmax(scores.d, axis=1) == labels[:, 0]) > 0.95


def test_backends_agree_on_a_training_step():
    if "cpu" not in list_extensions():
        pytest.skip("no package brings the backend cpu")
    results = {}
    for name in ("reference", "cpu"):
        nn.clear_parameters()
        nn.seed(1)
        with nn.context_scope(nn.Context([name])):
            training = Training()
            loss = training.step(0)
            results[name] = {"loss": loss, **{key: p.g.copy() for key, p in nn.get_parameters().items()}}
    for key, value in results["reference"].items():
        np.testing.assert_allclose(results["cpu"][key], value, rtol=1e-3, atol=2e-6, err_msg=key)


def test_static_and_dynamic_graphs_agree_bit_for_bit(backend):
    results = []
    for dynamic in (False, True):
        nn.clear_parameters()
        nn.seed(1)
        losses = Training(dynamic).run(range(10))
        results.append(({"losses": np.array(losses)}, parameter_values()))
    for static, dynamic in zip(*results, strict=True):
        if backend == "reference":
            assert_same_bits(static, dynamic)
        for name, value in static.items():
            np.testing.assert_allclose(dynamic[name], value, rtol=1e-2, atol=1e-3, err_msg=name)


def test_training_repeats_bit_for_bit(backend):
    results = []
    for _ in range(2):
        nn.clear_parameters()
        nn.seed(1)
        Training().run(range(10))
        results.append(parameter_values())
    assert_same_bits(*results)


@pytest.mark.parametrize("extension", [".h5", ".npz", ".safetensors"])
def test_a_saved_training_resumes_bit_for_bit(backend, extension, tmp_path):
    if extension == ".safetensors":
        pytest.importorskip("safetensors")
    parameters, states = str(tmp_path / f"parameters{extension}"), str(tmp_path / f"states{extension}")
    nn.seed(1)
    training = Training()
    training.run(range(5))
    nn.save_parameters(parameters)
    training.solver.save_states(states)
    losses = training.run(range(5, 10))
    expected = parameter_values()

    nn.clear_parameters()
    nn.load_parameters(parameters)
    resumed = Training()
    resumed.solver.load_states(states)
    assert resumed.run(range(5, 10)) == losses
    assert_same_bits(parameter_values(), expected)


def deep(x, n_layers=20):
    """A chain of layers of one size, in which each output of a layer is as large as the input."""
    h = x
    for _ in range(n_layers):
        h = F.tanh(F.mul_scalar(h, 1.01))
    return h


def peak_bytes(function):
    """Largest number of bytes that `function` holds beyond what was held before."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak - before


def test_inference_that_clears_holds_two_layers_instead_of_all():
    x = nn.Variable.from_numpy_array(np.ones(MEGABYTE // 4, np.float32))
    peaks = {}
    for clear in (False, True):
        y = deep(x)
        peaks[clear] = peak_bytes(lambda y=y, clear=clear: y.forward(clear_buffer=clear))
    # 20 layers of two functions hold 40 MB; a chain needs one input and one output at a time.
    assert peaks[False] > 35 * MEGABYTE
    assert peaks[True] < 6 * MEGABYTE


def test_training_that_clears_holds_less():
    x = nn.Variable.from_numpy_array(np.ones(MEGABYTE // 4, np.float32), need_grad=True)
    x.grad.zero()
    peaks = {}
    for clear in (False, True):
        y = F.sum(deep(x))

        def train(y=y, clear=clear):
            y.forward(clear_no_need_grad=clear)
            y.backward(clear_buffer=clear)

        peaks[clear] = peak_bytes(train)
    # Kept: 40 values and 40 gradients. Cleared: the 20 values that tanh's gradient reads, and two gradients.
    assert peaks[False] > 75 * MEGABYTE
    assert peaks[True] < 30 * MEGABYTE


def test_recomputing_trades_memory_for_time():
    x = nn.Variable.from_numpy_array(np.ones(MEGABYTE // 4, np.float32), need_grad=True)
    x.grad.zero()
    peaks, gradients = {}, {}
    for recompute in (False, True):
        h = x
        for i in range(8):
            with nn.recompute(recompute and i % 4 != 3):
                h = F.tanh(F.mul_scalar(h, 1.01))
        y = F.sum(h)

        def train(y=y):
            y.forward(clear_no_need_grad=True)
            x.grad.zero()
            y.backward(clear_buffer=True)

        peaks[recompute] = peak_bytes(train)
        gradients[recompute] = x.g.copy()
    np.testing.assert_array_equal(gradients[True], gradients[False])
    assert peaks[True] < peaks[False]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_many_steps_hold_no_more_than_a_few(backend, dynamic):
    training = Training(dynamic)
    training.run(range(5))
    gc.collect()
    tracemalloc.start()
    training.run(range(5, 10))
    gc.collect()
    before, objects = tracemalloc.get_traced_memory()[0], len(gc.get_objects())
    training.run(range(10, 60))
    gc.collect()
    growth, new_objects = tracemalloc.get_traced_memory()[0] - before, len(gc.get_objects()) - objects
    tracemalloc.stop()
    assert growth < 60_000  # NumPy keeps small pieces for later
    assert new_objects < 100


def test_graphs_are_freed_without_the_garbage_collector(backend):
    training = Training(dynamic=True)
    training.run(range(3))
    gc.collect()
    gc.disable()
    try:
        tracemalloc.start()
        training.run(range(3, 6))
        before = tracemalloc.get_traced_memory()[0]
        training.run(range(6, 16))
        growth = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        gc.enable()
    # The activations of one step take more than 200 kB: ten steps that waited for the collector would be 2 MB.
    assert growth < 400_000
