"""Layer normalizations that plans join with the sum before them, and with that of gradients, on an emulated device."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.settings import without

SHAPE = (2, 5, 6)
TOLERANCES = {"float": 1e-6, "half": 4e-3, "bfloat16": 3e-2}


@pytest.fixture
def joined(cuda, monkeypatch):
    """The joins of plans: whether each is one of gradients."""
    from nn_ext_cuda.fusion.summing import SummingStep

    found = []
    summed = SummingStep.summed

    def noting(step, *arrays):
        found.append(step.is_backward)
        return summed(step, *arrays)

    monkeypatch.setattr(SummingStep, "summed", noting)
    return found


def tokens(seed=0, need_grad=True, shape=SHAPE):
    values = np.random.default_rng(seed).normal(size=shape).astype("float32")
    return nn.Variable.from_numpy_array(values, need_grad=need_grad)


def normalized(x, name="norm"):
    return PF.layer_normalization(x, batch_axis=tuple(range(x.ndim - 1)), name=name)


def passes(build, change=None, **options):
    import emulated

    return emulated.passes(build, tokens(), change, **options)


def both_ways(build, joined, **options):
    """The results of a network whose steps are joined, those of one whose steps are not, and the joins."""
    joined.clear()
    found = passes(build, **options)
    joins = list(joined)
    joined.clear()
    with without("fuse"):
        expected = passes(build, **options)
    assert not joined
    return found, expected, joins


def assert_close(found, expected, tolerance):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(np.abs(other).max(), 0.1))


def residual(x):
    """The normalization reads a sum, which the next one reads, too."""
    h = F.tanh(x)
    for number in range(2):
        h = h + F.tanh(normalized(h, f"norm{number}"))
    return h


def after(x):
    """The sum is normalized, and nobody else reads it."""
    h = F.tanh(x)
    return normalized(h + F.sin(h), "one") * 2


def second_summand(x):
    h = F.tanh(x)
    return normalized(F.tanh(normalized(F.exp(h)) + h), "last") + h


def without_scale(x):
    h = F.tanh(x)
    h = h + F.tanh(PF.layer_normalization(h, batch_axis=(0, 1), no_scale=True))
    return h + PF.layer_normalization(h, batch_axis=(0, 1), no_scale=True, no_bias=True)


def of_itself(x):
    h = F.tanh(x)
    return normalized(h + h) + h


def broadcast(x):
    h = F.tanh(x)
    return normalized(h + F.mean(h, axis=1, keepdims=True)) + h


def kept(x):
    h = F.tanh(x)
    total = h + F.sin(h)
    total.persistent = True
    return normalized(total) + total


def in_place(x):
    h = F.tanh(x)
    total = F.add2(F.sin(h), h, inplace=True)
    return F.add2(F.relu(normalized(total), inplace=True), total, inplace=True)


def other_shape(x):
    h = F.tanh(x)
    total = F.reshape(h + F.sin(h), (10, 6))
    return F.reshape(normalized(total) + total, SHAPE)


def over_two_axes(x):
    h = F.tanh(x)
    return PF.layer_normalization(h + F.sin(h), batch_axis=0) + h


NETWORKS = [
    residual, after, second_summand, without_scale, of_itself, broadcast, kept, in_place, other_shape, over_two_axes
]  # fmt: skip


@pytest.mark.parametrize(("build", "joins"), [(residual, [False, True, True]), (after, [False])])
def test_sums_are_part_of_normalizations(joined, build, joins):
    found, expected, own = both_ways(build, joined)
    assert own == joins
    assert_close(found, expected, TOLERANCES["float"])


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("options", [{}, {"clear_no_need_grad": False}])
@pytest.mark.parametrize("build", NETWORKS)
def test_training_is_that_of_functions_apart(joined, build, options, dtype):
    with nn.context_scope(nn.Context([f"cuda:{dtype}"], nn.get_current_context().array_class)):
        found, expected, _ = both_ways(build, joined, **options)
    assert_close(found, expected, TOLERANCES[dtype])


@pytest.mark.parametrize("build", NETWORKS)
def test_training_is_that_of_the_reference(cuda, build):
    found = passes(build)
    with nn.context_scope(nn.Context(["reference:float"])):
        expected = passes(build)
    assert_close(found, expected, 1e-5)


@pytest.mark.parametrize("build", NETWORKS)
def test_inference_is_that_of_functions_apart(joined, build):
    import emulated

    results = [emulated.inferred(build, tokens(), switch) for switch in ("pack", "fuse")]  # the first changes nothing here
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("build", [residual, after])
def test_gradients_are_those_at_the_sums_of_the_forward_pass(joined, build):
    def change(number, x, loss):
        if number > 1:
            x.d = np.random.default_rng(77).normal(size=x.shape)

    found, expected, joins = both_ways(build, joined, change=change)
    assert joins
    assert_close(found, expected, TOLERANCES["float"])


def test_in_float32_the_sum_has_the_same_bits(joined):
    found, expected, joins = both_ways(residual, joined)
    assert False in joins
    np.testing.assert_array_equal(found[0], expected[0])


def random_network(seed):
    """Sums and normalizations in any order, of values some of which others read, too."""

    def build(x):
        rng = np.random.default_rng(seed)
        values = [F.tanh(x)]
        for number in range(6):
            one, other = (values[-1 - int(rng.integers(min(3, len(values))))] for _ in range(2))
            makers = [
                lambda a=one, n=number: normalized(a, f"norm{n}"),
                lambda a=one, b=other, n=number: normalized(F.add2(a, b), f"norm{n}"),
                lambda a=one, b=other, n=number: F.add2(normalized(a, f"norm{n}"), b),
                lambda a=one, b=other: F.add2(F.sin(a), b, inplace=bool(rng.integers(2))),
                lambda a=one, n=number: PF.affine(a, SHAPE[-1], base_axis=2, name=f"layer{n}"),
            ]
            made = makers[rng.choice(len(makers), p=[0.15, 0.25, 0.25, 0.2, 0.15])]()
            made.persistent = bool(rng.random() < 0.1)
            values.append(made)
        return F.add_n(*values[-3:])

    return build


@pytest.mark.parametrize("seed", range(24))
def test_random_networks_compute_what_they_do_apart(joined, seed):
    found, expected, _ = both_ways(random_network(seed), joined, n_passes=4)
    assert_close(found, expected, 1e-5)


@pytest.mark.parametrize("length", [1, 3, 33, 255, 768, 2048, 2050])
def test_rows_of_any_length(joined, length):
    """More rows than blocks go through at once, and parameters whose gradients are sums over all of them."""
    results = []
    for context in (nn.get_current_context(), nn.Context(["reference:float"])):
        with nn.context_scope(context):
            nn.clear_parameters()
            nn.seed(3)
            x, z = tokens(1, shape=(19, length)), tokens(2, shape=(19, length))
            h = F.sin(x) + F.sin(z)
            loss = F.mean((h + F.tanh(normalized(h))) ** 2)
            for _ in range(3):
                loss.forward(clear_no_need_grad=True)
                leaves = [x, z, *nn.get_parameters().values()]
                for leaf in leaves:
                    leaf.grad.zero()
                loss.backward(100.0, clear_buffer=True)
            results.append([leaf.g.copy() for leaf in leaves])
    if length > 32:  # means of short rows may be in the memory of a summand
        assert joined == ([False, True] if length <= 2048 else [])
    assert_close(*results, 1e-5)


@pytest.mark.parametrize("n_blocks", [1, 3, 100])
def test_blocks_go_through_all_rows(joined, monkeypatch, n_blocks):
    from nn_ext_cuda.kernels import normalized_rows

    expected = passes(residual)
    monkeypatch.setattr(normalized_rows, "_BLOCKS", n_blocks)
    monkeypatch.setattr(normalized_rows, "lanes_of", lambda length: 128)
    nn.clear_parameters()
    from nn_core.engine.graph.call import forget

    forget()
    assert_close(passes(residual), expected, 1e-5)
    forget()
