"""Sums of products over named axes, emulated: equations that the samples of the conformance kit leave out."""

import numpy as np
import pytest

RNG = np.random.default_rng(0)
#: Equation and shapes.
CASES = [
    ("bij,bjk->bik", (3, 4, 5), (3, 5, 6)),
    ("bij,bkj->kbi", (3, 4, 5), (3, 6, 5)),
    ("jbi,jkb->bik", (5, 3, 4), (5, 6, 3)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("...ij,jk->...ik", (2, 3, 4, 5), (5, 6)),
    ("...i,...i", (2, 1, 4), (3, 4)),
    ("ijl,jk->ik", (3, 4, 2), (4, 5)),
    ("ij,jkl->i", (3, 4), (4, 5, 2)),
    ("iij,jk->ik", (4, 4, 3), (3, 5)),
    ("ij,ij->ij", (3, 4), (3, 4)),
    ("ij,kl->iljk", (3, 4), (5, 2)),
    ("ijk->ki", (3, 4, 5)),
    ("iji->j", (3, 4, 3)),
    ("ij,jk,kl,lm->im", (2, 3), (3, 4), (4, 5), (5, 6)),
    ("abc,cd,bde->ae", (2, 3, 4), (4, 5), (3, 5, 6)),
    ("i,i,i->i", (4,), (4,), (4,)),
    ("ij,->ji", (3, 4), ()),
]


@pytest.fixture
def products(device, monkeypatch):
    """Matrix products by a stand-in."""
    import fake_cublas

    fake_cublas.install(monkeypatch, fake_cublas.FakeCublas())
    return device


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_products_and_sums(products, case):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    equation, *shapes = case
    inputs = [RNG.normal(size=shape).astype("float32") for shape in shapes]
    call = emulated.call_of("Einsum", inputs, equation=equation)
    assert KERNELS["Einsum"].refuse(call) is None
    (y,) = emulated.forward(products, KERNELS["Einsum"], call, inputs)
    np.testing.assert_allclose(y, np.einsum(equation, *(each.astype("float64") for each in inputs)), rtol=0, atol=2e-5)


def test_products_of_matrices_in_order_copy_nothing(device):
    from emulated import call_of

    from nn_ext_cuda.kernels import KERNELS

    for equation, shapes in (("bij,bjk->bik", CASES[0][1:]), ("bij,bkj->bik", CASES[1][1:]), ("bji,bjk->bik", CASES[0][1:])):
        inputs = [RNG.normal(size=shape).astype("float32") for shape in shapes]
        if equation.startswith("bji"):
            inputs[0] = np.moveaxis(inputs[0], 1, 2).copy()
        assert KERNELS["Einsum"].forward(call_of("Einsum", inputs, equation=equation)).launches == ()


def test_what_would_be_rounded_between_two_steps_is_refused(device):
    from emulated import call_of

    from nn_ext_cuda.kernels import KERNELS

    inputs = [RNG.normal(size=shape).astype("float16") for shape in ((2, 3), (3, 4), (4, 5))]
    reason = KERNELS["Einsum"].refuse(call_of("Einsum", inputs, "float16", equation="ij,jk,kl->il")).reason
    assert "more than one sum in float32 and float64 only, got float16" in reason
    assert KERNELS["Einsum"].refuse(call_of("Einsum", inputs[:2], "float16", equation="ij,jk->ik")) is None
