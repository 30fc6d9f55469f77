"""Every optimization can be switched off, changes no result beyond rounding, and does what it is for."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.engine.graph import replay
from nn_core.engine.graph.forward import KEEP_OUTPUTS, forward_plan
from nn_core.ext_utils import get_extension_context
from nn_core.settings import OPTIMIZATIONS, without

IMAGE = (2, 3, 12, 12)


@pytest.fixture(autouse=True)
def on_cpu():
    """Run on the backend that has all of them."""
    with nn.context_scope(get_extension_context("cpu")):
        yield


def convolution(h, name, maps=16):
    return PF.convolution(h, maps, (3, 3), pad=(1, 1), name=name)


def network(x, batch_stat=True):
    """Class scores of a small residual net."""
    h = F.relu(PF.batch_normalization(convolution(x, "c1"), batch_stat=batch_stat, name="b1"))
    g = PF.batch_normalization(convolution(h, "c2"), batch_stat=batch_stat, name="b2")
    h = F.max_pooling(F.relu(g + h), (2, 2))
    h = PF.fused_batch_normalization(convolution(h, "c3"), h, batch_stat=batch_stat, name="b3")
    return PF.affine(F.tanh(h) * F.sigmoid(h), 5, name="fc")


def trained(dynamic):
    """Losses, parameters and scores of a few steps of training and of inference after it."""
    nn.clear_parameters()
    nn.seed(5)
    rng = np.random.default_rng(0)
    x, t = nn.Variable(IMAGE), nn.Variable((IMAGE[0], 1))
    with nn.auto_forward(dynamic):
        loss = F.mean(F.softmax_cross_entropy(network(x), t))
    solver = S.Momentum(lr=0.02)
    solver.set_parameters(nn.get_parameters())
    losses = []
    for _ in range(4):
        x.d, t.d = rng.standard_normal(IMAGE), rng.integers(0, 5, (IMAGE[0], 1))
        if dynamic:
            with nn.auto_forward():
                loss = F.mean(F.softmax_cross_entropy(network(x), t))
        else:
            loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        losses.append(float(loss.d))
    y = network(x, batch_stat=False)
    for _ in range(3):
        y.forward(clear_buffer=True)
    return [np.array(losses), y.d.copy(), *[p.d.copy() for p in nn.get_parameters(grad_only=False).values()]]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("names", [*[(name,) for name in OPTIMIZATIONS], tuple(OPTIMIZATIONS)], ids=",".join)
def test_results_are_the_same_without(names, dynamic):
    expected = trained(dynamic)
    with without(*names):
        found = trained(dynamic)
    for ours, truth in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, truth, rtol=2e-3, atol=2e-4)


def steps_of(plan):
    """The bound steps of a plan that has run."""
    return plan._steps


def inference():
    """A net in test mode after three passes, and their plan."""
    nn.seed(3)
    x = nn.Variable(IMAGE)
    x.d = np.random.default_rng(1).standard_normal(IMAGE)
    y = network(x, batch_stat=False)
    for _ in range(3):
        y.forward(clear_buffer=True)
    return y, forward_plan((y,), KEEP_OUTPUTS)


def names_of(plan):
    return [entry.node.spec.name for entry in plan.entries if entry.node is not None]


def test_fuse_makes_one_step_of_many():
    fused = len(steps_of(inference()[1]))
    with without("fuse"):
        _, plan = inference()
    assert fused < len(steps_of(plan)) == len(plan.entries)


def test_join_makes_one_function_of_convolution_normalization_addition_and_activation():
    _, plan = inference()
    assert names_of(plan).count("FusedConvolution") == 3
    assert not {"Convolution", "BatchNormalization", "Add2", "ReLU"} & set(names_of(plan))
    with without("inference_fusion"):
        _, plan = inference()
    assert "FusedConvolution" not in names_of(plan)


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("shape", [(2, 5, 9, 8), (2, 5, 30)])
def test_join_takes_depthwise_convolutions(shape, multiplier):
    nn.seed(3)
    rng = np.random.default_rng(0)
    x = nn.Variable.from_numpy_array(rng.standard_normal(shape).astype(np.float32))
    n = len(shape) - 2
    h = PF.depthwise_convolution(x, (3,) * n, pad=(1,) * n, stride=(2,) * n, multiplier=multiplier)
    y = F.relu(PF.batch_normalization(h, batch_stat=False))
    weight = nn.get_parameters()["depthwise_conv/W"]
    for _ in range(3):
        weight.d = rng.standard_normal(weight.shape)
        y.forward(clear_buffer=True)
        found = y.d.copy()
        assert names_of(forward_plan((y,), KEEP_OUTPUTS)) == ["FusedConvolution"]
        with without("inference_fusion"):
            y.forward(clear_buffer=True)
            assert "DepthwiseConvolution" in names_of(forward_plan((y,), KEEP_OUTPUTS))
        np.testing.assert_allclose(found, y.d, rtol=1e-4, atol=1e-5)


def test_join_leaves_depthwise_filters_apart_that_are_computed():
    x, w = nn.Variable((1, 3, 6, 6)), nn.Variable((3, 2, 2))
    x.d, w.d = 1, 0.5
    y = F.relu(F.depthwise_convolution(x, w * 2))
    y.forward(clear_buffer=True)
    np.testing.assert_array_equal(y.d, np.full((1, 3, 5, 5), 4.0))
    assert "FusedConvolution" not in names_of(forward_plan((y,), KEEP_OUTPUTS))


@pytest.mark.parametrize("batch_stat", [False, True])
def test_join_leaves_functions_apart_when_their_statistics_are_rewritten_between_them(batch_stat):
    """The addition waits for another normalization, which changes the running statistics in training mode."""
    rng = np.random.default_rng(0)

    def variable(shape, low=-1.0):
        return nn.Variable.from_numpy_array(rng.uniform(low, 1, shape).astype(np.float32))

    x, w = variable((2, 3, 6, 5)), variable((3, 3, 1, 1))
    statistics = [variable((1, 3, 1, 1), low) for low in (-1, -1, -1, 0.5)]
    start = [v.d.copy() for v in statistics]
    a = F.batch_normalization(F.convolution(x, w), *statistics, batch_stat=False)
    y = F.relu(a + F.batch_normalization(x * 3, *statistics, batch_stat=batch_stat, decay_rate=0.1))
    y.forward(clear_buffer=True)
    found = y.d.copy()
    functions = names_of(forward_plan((y,), KEEP_OUTPUTS))
    # convolution and normalization stand side by side in any case
    assert ("Add2" in functions) == batch_stat and "FusedConvolution" in functions
    for v, values in zip(statistics, start, strict=True):
        v.d = values
    with without("inference_fusion"):
        y.forward(clear_buffer=True)
    np.testing.assert_allclose(found, y.d, rtol=1e-4, atol=1e-5)


def signed(h, first):
    """Something that goes from `h` to a jump."""
    return {
        "sign": lambda: F.sign(h, alpha=0.0),
        "binary": lambda: F.binary_tanh(h),
        "comparison": lambda: F.greater_scalar(h, 0.0),
        "rounding": lambda: F.ceil(h),
        "pooled": lambda: F.sign(F.max_pooling(F.relu(h), (1, 1)), alpha=0.0),
        "summed": lambda: F.binary_sigmoid(F.relu(h) + F.reshape(F.transpose(h, (0, 1, 3, 2)), h.shape)),
    }[first]()


@pytest.mark.parametrize("first", ["sign", "binary", "comparison", "rounding", "pooled", "summed"])
def test_no_normalization_is_folded_into_a_convolution_before_a_jump(first):
    """The normalization gives exactly beta where the convolution gives the mean; a sign shows the difference."""
    rng = np.random.default_rng(0)
    x = nn.Variable.from_numpy_array(rng.integers(-1, 2, (2, 3, 5, 5)).astype(np.float32))
    w = nn.Variable.from_numpy_array(rng.integers(-1, 2, (16, 3, 1, 1)).astype(np.float32))
    mean, variance = (nn.Variable((1, 16, 1, 1)) for _ in range(2))
    mean.d = rng.integers(-1, 2, (1, 16, 1, 1)) * 0.3
    variance.d = rng.uniform(0.1, 2, (1, 16, 1, 1))
    bias = nn.Variable.from_numpy_array(mean.d.reshape(16))
    y = signed(F.batch_normalization(F.convolution(x, w, bias), None, None, mean, variance, batch_stat=False), first)
    for _ in range(3):
        y.forward(clear_buffer=True)
    found = y.d.copy()
    with without("inference_fusion"):
        y.forward()
    np.testing.assert_array_equal(found, y.d)
    assert "FusedConvolution" not in names_of(forward_plan((y,), KEEP_OUTPUTS))


def test_what_a_sum_makes_of_a_normalization_may_jump():
    shapes = (2, 3, 5, 5), (4, 3, 1, 1), (2, 4, 1, 1)
    x, w, v = (nn.Variable.from_numpy_array(np.ones(shape, np.float32)) for shape in shapes)
    mean, variance = (nn.Variable.from_numpy_array(np.ones((1, 4, 1, 1), np.float32)) for _ in range(2))
    h = F.relu(F.batch_normalization(F.convolution(x, w), None, None, mean, variance, batch_stat=False))
    y = F.sign(F.convolution(h, v))
    y.forward(clear_buffer=True)
    assert names_of(forward_plan((y,), KEEP_OUTPUTS)).count("FusedConvolution") == 1


def test_channels_last_images_lie_so():
    def layouts(plan):
        return [a.flags.c_contiguous for e in plan.entries for a in e.arrays if a is not None and a.ndim == 4]

    assert not all(layouts(inference()[1]))
    with without("channels_last"):
        assert all(layouts(inference()[1]))


def test_shared_memory_is_less():
    shared = inference()[1].arena.n_bytes
    with without("share_memory"):
        assert inference()[1].arena.n_bytes > 1.5 * shared


def test_packed_weights_are_kept():
    y, _ = inference()
    weights = nn.get_parameters()["c2/conv/W"].data.synced
    before = y.d.copy()
    weights.copies[weights.latest][...] = 0  # without anyone's knowledge
    y.forward(clear_buffer=True)
    np.testing.assert_array_equal(y.d, before)
    with without("pack"):
        y.forward(clear_buffer=True)
        assert not np.array_equal(y.d, before)


def test_replay_compiles_no_backward_pass_twice(monkeypatch):
    compiled = []
    monkeypatch.setattr(replay, "remember", lambda *a, original=replay.remember: compiled.append(1) or original(*a))
    trained(dynamic=True)
    n_templates = len(compiled)
    assert 0 < n_templates < 4
    with without("replay"):
        trained(dynamic=True)
    assert len(compiled) == n_templates


def test_winograd_changes_the_last_digits():
    y, _ = inference()
    before = y.d.copy()
    with without("winograd"):
        y.forward(clear_buffer=True)
        np.testing.assert_allclose(y.d, before, rtol=1e-4, atol=1e-4)
        assert not np.array_equal(y.d, before)


def test_solvers_change_all_parameters_at_once():
    trained(dynamic=False)
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())
    loss = F.mean(network(nn.Variable(IMAGE)))

    def kinds():
        solver.zero_grad()
        loss.forward()
        loss.backward()
        solver.update()
        return {type(group.update._step).__name__ for group in solver._groups._groups}

    together = kinds()
    with without("multi_tensor"):
        assert kinds() != together
