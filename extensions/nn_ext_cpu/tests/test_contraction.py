"""Contractions and products of stacked matrices that share some of them, beside the reference."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_ext_cpu.contraction import Einsum

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]


def normal(*shape: int) -> np.ndarray[Any, Any]:
    """Random numbers that do not depend on the order of tests."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("equation", "a", "b"),
    [
        ("ij,jk->ik", (5, 7), (7, 9)),
        ("ij,kj->ki", (5, 7), (9, 7)),
        ("bqhd,bkhd->bhqk", (2, 6, 3, 8), (2, 5, 3, 8)),
        ("bhqk,bkhd->bqhd", (2, 3, 6, 5), (2, 5, 3, 8)),
        ("ijkl,lkm->mij", (2, 3, 4, 5), (5, 4, 6)),
        ("i,j->ji", (40,), (30,)),
        ("bi,bi->b", (6, 50), (6, 50)),
        ("bi,bi->ib", (6, 50), (6, 50)),
        ("ij,jk", (4, 3), (3, 2)),
        ("a b c, c d -> a b d", (3, 4, 5), (5, 6)),
    ],
)
def test_einsum_of_two_arrays(assert_alike: Compare, equation: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    assert_alike(lambda x, y: F.einsum(x, y, equation=equation), normal(*a), normal(*b), tolerance=1e-4)


@pytest.mark.parametrize("equation", ["...ij,...jk->...ik", "ii,ij->j", "ij,kl->ik"])
def test_other_equations_are_refused(equation: str) -> None:
    with nn.context_scope(nn.Context(["cpu:float"])):
        text = str(nn.explain(F.einsum(nn.Variable((4, 4)), nn.Variable((4, 4)), equation=equation)))
    assert f"got {equation}" in text


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(
    ("a", "b"),
    [((2, 3), (1, 3)), ((2, 1), (1, 3)), ((3,), (2, 1)), ((4,), (1,)), ((1,), (4,)), ((1, 1), (2, 3)), ((), (5,))],
    ids=str,
)
def test_products_that_share_matrices(
    assert_alike: Compare, a: tuple[int, ...], b: tuple[int, ...], transpose_a: bool, transpose_b: bool
) -> None:
    x, y = normal(*a, *((7, 6) if transpose_a else (6, 7))), normal(*b, *((5, 7) if transpose_b else (7, 5)))
    assert_alike(lambda x, y: F.batch_matmul(x, y, transpose_a=transpose_a, transpose_b=transpose_b), x, y, tolerance=1e-4)


def test_gradients_of_contractions_have_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    backward = Einsum.backward
    monkeypatch.setattr(Einsum, "backward", lambda *args: made.append(backward(*args)) or made[-1])
    x, y = nn.Variable((4, 3), need_grad=True), nn.Variable((3, 7), need_grad=True)
    x.d, y.d = normal(4, 3), normal(3, 7)
    with nn.context_scope(nn.Context(["cpu:float"])):
        z = F.einsum(x, y, equation="ij,jk->ki")
    z.forward()
    z.backward()
    assert len(made) == 1
    assert made[0] is not None
