"""Batch normalizations that plans join with the sum and the ReLU after them, on an emulated device."""

import contextlib

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.settings import without

SHAPE = (4, 3, 5, 5)


@pytest.fixture
def joined(cuda, monkeypatch):
    """The joins of plans: "forward" or "backward", and whether there is a sum."""
    from nn_ext_cuda.fusion.joinable import JoinableStep

    found = []
    with_relu, through_relu = JoinableStep.with_relu, JoinableStep.through_relu

    def noting_forward(step, y, z):
        found.append(("forward", z is not None))
        return with_relu(step, y, z)

    def noting_backward(step, y, dy, dz):
        found.append(("backward", dz is not None))
        return through_relu(step, y, dy, dz)

    monkeypatch.setattr(JoinableStep, "with_relu", noting_forward)
    monkeypatch.setattr(JoinableStep, "through_relu", noting_backward)
    return found


def image(seed=0, need_grad=True):
    values = np.random.default_rng(seed).normal(size=SHAPE).astype("float32")
    return nn.Variable.from_numpy_array(values, need_grad=need_grad)


def passes(y, leaves, times=3, **options):
    """Values and gradients after some passes, and what batch normalizations keep."""
    loss = F.mean(y**2)
    for _ in range(times):
        loss.forward(**(options or {"clear_no_need_grad": True}))
        for leaf in [*leaves, *nn.get_parameters().values()]:
            leaf.grad.zero()
        loss.backward(64.0, clear_buffer=True)
    gradients = [leaf.g.copy() for leaf in [*leaves, *nn.get_parameters().values()]]
    statistics = [p.d.copy() for p in nn.get_parameters(grad_only=False).values()]
    return [np.asarray(loss.d), *gradients, *statistics]


def both_ways(build, joined, times=3, **options):
    """The results of a network whose steps are joined, those of one whose steps are not, and the joins."""
    results = []
    for fuses in (True, False):
        nn.clear_parameters()
        nn.seed(3)
        leaves, y = build()
        joined.clear()
        if fuses:
            results.append(passes(y, leaves, times, **options))
            joins = list(joined)
        else:
            with without("fuse"):
                results.append(passes(y, leaves, times, **options))
            assert not joined
    return *results, joins


def plain():
    x = image()
    return [x], F.relu(PF.batch_normalization(x))


def residual():
    x = image()
    z = F.tanh(x)
    return [x], F.relu(F.add2(PF.batch_normalization(F.sin(z)), z))


def shortcut_first():
    x = image()
    return [x], F.relu(F.tanh(x) + PF.batch_normalization(F.sin(x)))


def two_normalizations():
    x = image()
    return [x], F.relu(PF.batch_normalization(x, name="a") + PF.batch_normalization(F.tanh(x), name="b"))


def no_scale():
    x = image()
    return [x], F.relu(PF.batch_normalization(x, no_scale=True, no_bias=True))


def matrices():
    x = nn.Variable.from_numpy_array(image().d.reshape(20, 15), need_grad=True)
    return [x], F.relu(PF.batch_normalization(x))


def running_statistics():
    x = image()
    return [x], F.relu(PF.batch_normalization(x, batch_stat=False))


NETWORKS = {
    plain: False,
    residual: True,
    shortcut_first: True,
    two_normalizations: True,
    no_scale: False,
    matrices: False,
    running_statistics: False,
}


@pytest.mark.parametrize("build", NETWORKS)
def test_sum_and_relu_are_part_of_the_normalization(joined, build):
    found, expected, joins = both_ways(build, joined)
    assert joins == [("forward", NETWORKS[build]), ("backward", NETWORKS[build])]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["half", "bfloat16"])
@pytest.mark.parametrize("build", NETWORKS)
def test_in_short_types_values_are_rounded_once_instead_of_after_each_function(joined, build, dtype):
    context = nn.Context([f"cuda:{dtype}"], nn.get_current_context().array_class)
    with nn.context_scope(context):
        found, expected, joins = both_ways(build, joined)
    assert len(joins) == 2
    tolerance = 4e-3 if dtype == "half" else 3e-2
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(np.abs(other).max(), 1e-2))


def read_before_the_sum():
    x, z = image(), image(1)
    h = PF.batch_normalization(x)
    return [x, z], F.relu(F.add2(h, z)) + F.tanh(h)


def read_before_the_relu():
    x, z = image(), image(1)
    total = F.add2(PF.batch_normalization(x), z)
    return [x, z], F.relu(total) + F.tanh(total)


def kept_before_the_relu():
    x = image()
    h = PF.batch_normalization(x)
    h.persistent = True
    return [x], F.relu(h)


def added_to_itself():
    x = image()
    h = PF.batch_normalization(x)
    return [x], F.relu(F.add2(h, h))


def broadcast_sum():
    x = image()
    z = nn.Variable.from_numpy_array(image(1).d[:, :1], need_grad=True)
    return [x, z], F.relu(PF.batch_normalization(x) + z)


def one_set_of_statistics():
    """The first normalization would be moved past the second one, which rewrites its running statistics."""
    x = image()
    first = PF.batch_normalization(x, name="shared")
    return [x], F.relu(first) + F.relu(F.add2(PF.batch_normalization(F.tanh(x), name="shared"), F.sin(x)))


def other_shape():
    x = image()
    return [x], F.relu(F.reshape(PF.batch_normalization(x), (4, 75)))


@pytest.mark.parametrize(
    "build", [read_before_the_sum, read_before_the_relu, kept_before_the_relu, added_to_itself, broadcast_sum, other_shape]
)
def test_what_others_read_is_computed_apart(joined, build):
    found, expected, joins = both_ways(build, joined)
    assert ("forward", True) not in joins
    assert ("forward", False) not in joins
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_running_statistics_of_two_normalizations_move_in_order(joined):
    found, expected, _ = both_ways(one_set_of_statistics, joined)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_where_a_shortcut_is_computed_in_between_the_forward_pass_is_joined(joined):
    def build():
        x = image()
        h = PF.batch_normalization(PF.convolution(x, 3, (1, 1), name="main"))
        return [x], F.relu(h + PF.convolution(x, 3, (1, 1), name="shortcut"))

    found, expected, joins = both_ways(build, joined)
    assert ("forward", True) in joins
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_graph_that_keeps_its_values_has_them_all(joined):
    x = image()
    h = PF.batch_normalization(x)
    y = F.relu(h)
    for _ in range(3):
        y.forward()
    assert not joined
    np.testing.assert_array_equal(y.d, np.maximum(h.d, 0))
    assert h.d.min() < 0


@pytest.mark.parametrize("place", [0, 1])
def test_nan_passes_through(joined, place):
    def build():
        leaves = [image(), image(1)]
        leaves[place].d[0, 1, 2, 3] = np.nan
        return leaves, F.relu(F.add2(PF.batch_normalization(leaves[0]), leaves[1]))

    found, expected, joins = both_ways(build, joined)
    assert len(joins) == 2
    assert np.isnan(found[0])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


class RandomNetwork:
    """Residual blocks some of whose values several functions read, are computed in place or again, or are kept."""

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)
        self.x = image(seed)
        self.values = [self.x]
        for number in range(6):
            with nn.recompute() if self._happens(0.2) else contextlib.nullcontext():
                self.values.append(self._block(number))

    def result(self):
        return self.values[-1] + F.mean(self.values[-2]) if self._happens(0.3) else self.values[-1]

    def _happens(self, probability):
        return bool(self._rng.random() < probability)

    def _some(self):
        return self.values[-1] if self._happens(0.6) else self.values[self._rng.integers(len(self.values))]

    def _normalized(self, number):
        source = self._some()
        source = PF.convolution(source, 3, (1, 1), name=f"layer{number}") if self._happens(0.5) else source
        name = "shared" if self._happens(0.15) else f"layer{number}"
        h = PF.batch_normalization(source, batch_stat=self._happens(0.85), name=name)
        h.persistent = self._happens(0.1)
        if self._happens(0.1):
            self.values.append(h)
        return h

    def _block(self, number):
        h = self._normalized(number)
        if self._happens(0.6):
            h = self._added(h, number)
        return F.relu(h, inplace=h is not self.values[-1] and self._happens(0.3))

    def _added(self, h, number):
        makers = [self._some, lambda: self._normalized(f"{number}b"), lambda: F.tanh(self._some()), lambda: h]
        pair = [h, makers[self._rng.choice(4, p=[0.4, 0.3, 0.2, 0.1])]()]
        pair = pair[::-1] if self._happens(0.5) else pair
        is_own = pair[0].parent is not None and pair[0].parent.name.startswith("batch")
        total = F.add2(*pair, inplace=is_own and self._happens(0.3))
        if self._happens(0.1):
            self.values.append(total)
        return total


def random_network(seed):
    network = RandomNetwork(seed)
    return [network.x], network.result()


@pytest.mark.parametrize("options", [{"clear_no_need_grad": True}, {"clear_no_need_grad": False}])
@pytest.mark.parametrize("seed", range(20))
def test_random_networks_compute_what_they_do_apart(joined, seed, options):
    found, expected, _ = both_ways(lambda: random_network(seed), joined, **options)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(20))
def test_random_networks_without_gradients_compute_what_they_do_apart(joined, seed):
    results = []
    for name in ("fuse", "pack"):  # the second changes nothing here
        nn.clear_parameters()
        nn.seed(3)
        _, y = random_network(seed)
        with without(name):
            for _ in range(3):
                y.forward(clear_buffer=True)
        results.append([y.d.copy(), *[p.d.copy() for p in nn.get_parameters(grad_only=False).values()]])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_random_networks_are_joined_in_all_ways(joined):
    for seed in range(8):
        nn.clear_parameters()
        passes(random_network(seed)[1], [])
    assert set(joined) == {(direction, has_sum) for direction in ("forward", "backward") for has_sum in (True, False)}


@pytest.mark.parametrize("shares", [False, True])
def test_a_gradient_of_a_shortcut_in_the_memory_of_x_is_not_written_before_x_is_read(device, shares):
    import emulated

    from nn_ext_cuda.fusion.joinable import JoinableStep
    from nn_ext_cuda.fusion.residual import take_gradients
    from nn_ext_cuda.launch.program import Program, Step

    def step(name, arrays, ends=()):
        made = Step([(None, (), (), (), 0, name)], arrays)
        made.ends = ends
        return made

    x, y, dy, dsum, own_dy, dx, dz = (device.asarray(np.zeros(SHAPE, "float32")) for _ in range(7))
    parameters = [np.ones((1, SHAPE[1], 1, 1), "float32")] * 4
    call = emulated.call_of("BatchNormalization", [np.zeros(SHAPE, "float32"), *parameters])
    dz = x if shares else dz
    steps = [step("relu_backward", [None, y, dy, dsum]), step("add2_backward", [None, None, None, dsum, own_dy, dz], [3])]
    arrays = [x, *[None] * 7, own_dy, dx, *[None] * 4]
    made = []

    def joined(has_z):
        made.append(has_z)
        return Program([], len(arrays) + 1)

    normalization = JoinableStep(None, arrays, call, joined, True)
    normalization.ends = [8]
    assert take_gradients(steps, normalization) != shares
    assert made == ([] if shares else [True])
