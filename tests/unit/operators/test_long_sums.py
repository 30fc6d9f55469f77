"""Sums of very many numbers by the reference, over the axis that NumPy adds up row by row."""

from collections.abc import Callable

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

ROWS = 250_000

X = np.random.default_rng(0).uniform(0, 1, (ROWS, 2)).astype(np.float32)
WIDE = X.astype(np.float64)


def array(values: np.ndarray) -> nn.NdArray:
    return nn.NdArray.from_numpy_array(np.ascontiguousarray(values))


def statistic(place: int) -> Callable[[nn.NdArray], nn.NdArray]:
    return lambda x: F.batch_normalization(x, None, None, None, None, output_stat=True)[place]


def columns(x: nn.NdArray) -> nn.NdArray:
    return F.transpose(x, (1, 0))


SUMS: dict[str, tuple[Callable[[nn.NdArray], nn.NdArray], np.ndarray]] = {
    "sum": (lambda x: F.sum(x, axis=0), WIDE.sum(axis=0)),
    "mean": (lambda x: F.mean(x, axis=0), WIDE.mean(axis=0)),
    "var": (lambda x: F.var(x, axis=0), WIDE.var(axis=0)),
    "std": (lambda x: F.std(x, axis=0), WIDE.std(axis=0)),
    "norm": (lambda x: F.norm(x, axis=0), np.sqrt((WIDE**2).sum(axis=0))),
    "prod": (lambda x: F.prod(x * 1e-4 + 1, axis=0), np.exp(np.log1p(np.float32(1e-4) * WIDE).sum(axis=0))),
    "cumsum": (lambda x: F.cumsum(x, axis=0), WIDE.cumsum(axis=0)),
    "logsumexp": (lambda x: F.logsumexp(x, axis=0), np.log(np.exp(WIDE).sum(axis=0))),
    "log_softmax": (lambda x: F.log_softmax(x, axis=0), WIDE - np.log(np.exp(WIDE).sum(axis=0))),
    "einsum": (lambda x: F.einsum(x, x, equation="ij,ij->j"), (WIDE**2).sum(axis=0)),
    "batch mean": (statistic(1), WIDE.mean(axis=0, keepdims=True)),
    "batch variance": (statistic(2), WIDE.var(axis=0, keepdims=True)),
    "kl_multinomial": (
        lambda x: F.kl_multinomial(columns(x), columns(x) * 0.5),
        np.log(2) * WIDE.sum(axis=0)[:, np.newaxis],
    ),
    "global_average_pooling": (
        lambda x: F.global_average_pooling(F.reshape(columns(x), (1, 2, ROWS, 1))),
        WIDE.mean(axis=0).reshape(1, 2, 1, 1),
    ),
    "norm_normalization": (
        lambda x: F.norm_normalization(x, axes=(0,), eps=0.0) * 100,
        100 * WIDE / np.sqrt((WIDE**2).sum(axis=0)),
    ),
    "scatter_add": (
        lambda x: F.scatter_add(array(np.zeros((1, 2))), array(np.zeros((ROWS, 2), int)), x, axis=0),
        WIDE.sum(axis=0, keepdims=True),
    ),
    "scatter_nd": (
        lambda x: F.scatter_nd(x, array(np.zeros((1, ROWS), int)), shape=(1, 2), add=True),
        WIDE.sum(axis=0, keepdims=True),
    ),
}
#: The product of rounded factors; its logarithm is off by as much as they are together.
LOOSE = {"prod": 1e-3}


@pytest.mark.parametrize("name", SUMS)
def test_reference(name: str) -> None:
    compute, truth = SUMS[name]
    with nn.context_scope(nn.Context(["reference:float"])):
        found = compute(array(X)).numpy()
    np.testing.assert_allclose(found, truth, rtol=LOOSE.get(name, 1e-6))


@pytest.mark.parametrize("value", np.random.default_rng(1).standard_normal(20).astype(np.float32))
def test_mean_of_equal_numbers_is_that_number(value: np.float32) -> None:
    x = array(np.full((999, 1), value))
    with nn.context_scope(nn.Context(["reference:float"])):
        y, mean, variance = F.batch_normalization(x, None, None, None, None, output_stat=True)
        assert (F.mean(x, axis=0).item(), mean.item(), variance.item()) == (value, value, 0)
        assert not y.numpy().any()
