"""How far normalizations and their gradients are from float64, in units of the last place of float32."""

from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

CPU, DOUBLE = nn.Context(["cpu:float"]), nn.Context(["cpu:double"])
ULP = float(np.finfo(np.float32).eps)

#: Images in which a channel has 4 to 4,096 values, of one sample and of several, stored with channels last.
SHAPES = [(1, 64, 2, 2), (16, 64), (1, 64, 4, 4), (1, 64, 8, 8), (2, 64, 8, 8), (4, 24, 32, 32)]
#: The same stored channel by channel.
FLAT = [(64, 64), (64, 512), (33, 4096)]


def batch(x: nn.Variable, beta: nn.Variable, gamma: nn.Variable) -> nn.Variable:
    return F.batch_normalization(x, beta, gamma, None, None)


def batch_by_rows(x: nn.Variable, beta: nn.Variable, gamma: nn.Variable) -> nn.Variable:
    return F.batch_normalization(x, beta, gamma, None, None, axes=(0,))


def instance(x: nn.Variable, beta: nn.Variable, gamma: nn.Variable) -> nn.Variable:
    return F.instance_normalization(x, beta, gamma)


def instance_behind_convolution(x: nn.Variable, beta: nn.Variable, gamma: nn.Variable) -> nn.Variable:
    """Normalize images as a convolution leaves them, here one that changes nothing."""
    same = nn.Variable.from_numpy_array(np.eye(x.shape[1], dtype=np.float32).reshape(x.shape[1], -1, 1, 1))
    return F.instance_normalization(F.convolution(x, same), beta, gamma)


def errors(normalize: Any, shape: tuple[int, ...], axis: int, rng: np.random.Generator) -> list[float]:
    """Return the largest errors of y, dx, dbeta and dgamma in three draws: root mean squares, in parts of the truth's."""
    found = []
    parameters = tuple(length if i == axis else 1 for i, length in enumerate(shape))
    for _ in range(3):
        arrays = [rng.normal(1, 2, shape), rng.normal(0, 1, parameters), rng.normal(0, 1, parameters)]
        dy, sides = rng.normal(0, 1, shape).astype(np.float32), []
        for context in (CPU, DOUBLE):
            with nn.context_scope(context):
                variables = [nn.Variable.from_numpy_array(a.astype(np.float32), need_grad=True) for a in arrays]
                y = normalize(*variables)
                y.forward()
                for variable in variables:
                    variable.grad.zero()
                y.backward(dy, clear_buffer=False)
            sides.append([np.array(a, np.float64) for a in (y.d, *(v.g for v in variables))])
        found.append([np.sqrt(np.mean((a - b) ** 2) / np.mean(b**2)) / ULP for a, b in zip(*sides, strict=True)])
    return [float(error) for error in np.max(found, axis=0)]


#: Of y, dx, dbeta and dgamma. Chains of 64 sums around the first value gave up to 2.2, 2.8, 1.8 and 3.3.
LIMITS = [0.6, 1.6, 2.0, 2.0]


def assert_near(found: list[float]) -> None:
    assert all(error < limit for error, limit in zip(found, LIMITS, strict=True)), f"must be below {LIMITS}, got {found}"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_batch_normalization_by_columns(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    assert_near(errors(batch, shape, 1, rng))


@pytest.mark.parametrize("shape", FLAT, ids=str)
def test_batch_normalization_by_rows(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    assert_near(errors(batch_by_rows, shape, 0, rng))


@pytest.mark.parametrize("normalize", [instance, instance_behind_convolution])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if len(shape) == 4], ids=str)
def test_instance_normalization(normalize: Any, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    assert_near(errors(normalize, shape, 1, rng))
