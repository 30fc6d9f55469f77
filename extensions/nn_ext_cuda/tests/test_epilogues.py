"""Products that compute the GELU of their results, too, on an emulated device and an emulated cublasLt."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S


@pytest.fixture
def library(cuda, monkeypatch):
    import fake_cublaslt

    from nn_ext_cuda import light

    library = fake_cublaslt.FakeCublasLt()
    monkeypatch.setattr(light, "library", lambda: library)
    light._CHOSEN.clear()
    return library


def trained(context, width, steps=5):
    """Parameters after a few steps, and the values before the activation in the last one."""
    nn.clear_parameters()
    nn.seed(5)
    with nn.context_scope(context):
        x = nn.Variable.from_numpy_array(np.random.default_rng(0).normal(size=(16, 4)).astype("float32"))
        hidden = PF.affine(x, width, name="a")
        loss = F.mean(PF.affine(F.gelu(hidden), 3, name="b") ** 2)
        solver = S.Sgd(0.1)
        solver.set_parameters(nn.get_parameters())
        for _ in range(steps):
            loss.forward()
            solver.zero_grad()
            loss.backward()
            solver.update()
        return hidden.d.copy(), {name: p.d.copy() for name, p in nn.get_parameters().items()}


@pytest.mark.parametrize(("width", "fuses"), [(8, True), (12, False)])
def test_a_product_with_a_bias_takes_the_gelu_of_its_result(library, width, fuses):
    expected = trained(nn.Context(["reference:float"]), width)
    found = trained(nn.get_current_context(), width)
    assert (164 in {settings[7] for settings in library.products}) == fuses
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)
    for name, values in expected[1].items():
        np.testing.assert_allclose(found[1][name], values, rtol=1e-4, atol=1e-5)


def test_without_an_algorithm_both_are_computed_apart(library):
    library.knows_algorithms = False
    expected = trained(nn.Context(["reference:float"]), 8)
    found = trained(nn.get_current_context(), 8)
    assert not library.products
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)


def test_the_activation_is_no_launch_of_its_own(library):
    from nn_ext_cuda import graph_report

    x = nn.Variable.from_numpy_array(np.ones((16, 4), "float32"))
    y = F.gelu(PF.affine(x, 8))
    before = graph_report()
    for _ in range(4):
        y.forward()
    after = graph_report()
    assert after.n_recorded - before.n_recorded == 1
    assert np.isfinite(y.d).all()


def test_an_activation_in_the_memory_of_the_operand_is_a_launch_of_its_own(library):
    rng = np.random.default_rng(2)
    x = nn.Variable.from_numpy_array(rng.normal(size=(16, 8)).astype("float32"))
    y = x
    for number in range(3):
        y = F.gelu(PF.affine(y, 8, name=f"layer{number}"))
    y.forward()
    expected = y.d.copy()
    library.products.clear()
    for _ in range(4):
        y.forward(clear_buffer=True)  # each layer writes where the one before has read
    # the operand of the first layer belongs to the program
    assert [settings[7] for settings in library.products[-3:]] == [164, 4, 4]
    np.testing.assert_allclose(y.d, expected, rtol=1e-5, atol=1e-6)
