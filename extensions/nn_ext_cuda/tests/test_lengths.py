"""Lengths, means and divergences of distributions on the emulated device, beside the reference."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

SHAPE = (3, 4, 70)


def compare(build, n_inputs, *, positive=False):
    """The result and the gradients of a function of some arrays, on both backends, without a fallback."""
    import emulated

    emulated.compare_with_reference(build, [SHAPE] * n_inputs, 2e-6, positive=positive)


@pytest.mark.parametrize("p", [1, 2, 3.5])
@pytest.mark.parametrize("axes", [(1,), (0, 2), (1, 2)])
def test_norms(cuda, p, axes):
    compare(lambda x: F.norm_normalization(x, p=p, axes=axes), 1)


@pytest.mark.parametrize("base_axis", [1, 2])
def test_noise_of_one_length(cuda, base_axis):
    compare(lambda w: F.vat_noise(nn.Variable.from_numpy_array(np.full(SHAPE, 0.5, "float32")), w, base_axis, 0.3), 1)


@pytest.mark.parametrize("base_axis", [1, 2])
def test_divergences(cuda, base_axis):
    compare(lambda p, q: F.kl_multinomial(p, q, base_axis), 2, positive=True)


def test_a_probability_of_zero_adds_nothing(cuda):
    p, q = (nn.Variable.from_numpy_array(np.array([row], "float32")) for row in ([0.0, 1.0], [0.5, 0.5]))
    y = F.kl_multinomial(p, q)
    y.forward()
    np.testing.assert_allclose(y.d, [[np.log(2)]], rtol=1e-6)


@pytest.mark.parametrize("kind", ["float32", "int64"])
@pytest.mark.parametrize("updates", [False, True])
def test_running_means_pass_by_pass(cuda, updates, kind):
    found = []
    for context in (nn.get_current_context(), nn.Context(["reference:double"])):
        draw = np.random.default_rng(0)
        with nn.context_scope(context):
            x = nn.Variable(SHAPE, need_grad=True)
            mean = nn.Variable.from_numpy_array(draw.normal(size=SHAPE[1:]).astype("float32"), need_grad=True)
            t = nn.Variable.from_numpy_array(np.array([2], kind))
            y = F.mean_subtraction(x, mean, t, update_running_mean=updates)
            found.append([])
            for _ in range(4):
                x.d = draw.normal(size=SHAPE)
                x.grad.zero()
                mean.grad.zero()
                y.forward()
                y.backward(draw.normal(size=SHAPE).astype("float32"))
                found[-1] += [y.d.copy(), mean.d.copy(), t.d.copy(), x.g.copy(), mean.g.copy()]
            assert not nn.fallback_report()
    assert found[0][-3].tolist() == [6 if updates else 2]
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-6 * max(np.abs(other).max(), 1))


@pytest.mark.parametrize("p", [1, 2, 3.5])
@pytest.mark.parametrize("axes", [(1,), (0, 2), None])
def test_gradients_of_norms(cuda, p, axes):
    compare(lambda x: F.norm(x, p=p, axis=axes), 1)


def test_the_gradient_of_a_norm_of_zero(cuda):
    x = nn.Variable.from_numpy_array(np.zeros((2, 3), "float32"), need_grad=True)
    y = F.norm(x, axis=1)
    x.grad.zero()
    y.forward()
    y.backward()
    assert x.g.tolist() == [[0, 0, 0]] * 2
