"""Shared fixtures: functions on the CPU in float32 and the reference kernels in float64, forward and backward."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nn_core as nn
from nn_ext_cpu import _native, set_num_threads


def run(backend: str, function: Callable[..., Any], arrays: list[Any], seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Outputs, and gradients of the floating inputs for random gradients of the outputs."""
    nn.seed(seed)
    rng = np.random.default_rng(seed)
    with nn.context_scope(nn.Context([backend])):
        inputs = [None if a is None else nn.Variable(a.shape, need_grad=a.dtype.kind == "f") for a in arrays]
        given = [(x, a) for x, a in zip(inputs, arrays, strict=True) if x is not None]
        for x, a in given:
            x.d = a
            x.grad.zero()
        made = function(*inputs)
        outputs = list(made) if isinstance(made, (list, tuple)) else [made]
        for y in outputs:
            y.persistent = True
            y.grad.zero()
        nn.forward_all(outputs)
        results = [y.d.copy() for y in outputs]
        for y in outputs:
            if y.need_grad:
                y.backward(rng.standard_normal(y.shape).astype(np.float32))
        return results + [x.g.copy() for x, a in given if a.dtype.kind == "f"]


def assert_alike(function: Callable[..., Any], *arrays: Any, tolerance: float = 2e-5) -> None:
    """Compare results; `tolerance` is relative to the largest number of an array, or to 1. Falling back is an error."""
    fallbacks = nn.fallback_report()
    found = run("cpu:float", function, list(arrays))
    assert nn.fallback_report() == fallbacks
    for index, (got, true) in enumerate(zip(found, run("reference:double", function, list(arrays)), strict=True)):
        assert got.shape == true.shape
        scale = max(float(np.max(np.abs(true), initial=0.0)), 1.0)
        np.testing.assert_allclose(got, true, rtol=tolerance, atol=tolerance * scale, err_msg=f"result {index}")


@pytest.fixture(name="assert_alike")
def assert_alike_fixture() -> Callable[..., None]:
    """`assert_alike`, for tests."""
    return assert_alike


@pytest.fixture(params=["baseline", "avx2", "avx512"])
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each instruction set that this machine runs, selected for one test."""
    before = _native.isa()
    try:
        _native.select_isa(request.param)
    except ValueError:
        pytest.skip(f"this machine does not run {request.param}")
    yield request.param
    _native.select_isa(before)


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same in each test."""
    return np.random.default_rng(0)


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Two native threads for one test."""
    before = _native.num_threads()
    set_num_threads(2)
    yield
    set_num_threads(before)
