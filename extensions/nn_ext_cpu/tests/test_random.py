"""Random numbers: the bits of the reference for the same key, in parts and on threads."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_ext_cpu import _native

Make: TypeAlias = Callable[[tuple[int, ...]], nn.Variable]

DISTRIBUTIONS: dict[str, Make] = {
    "rand": lambda shape: F.rand(shape=shape),
    "rand from -3 to 0.1": lambda shape: F.rand(-3.0, 0.1, shape=shape),
    "randn": lambda shape: F.randn(shape=shape),
    "randn around 2": lambda shape: F.randn(2.0, 0.3, shape=shape),
    "randint": lambda shape: F.randint(-5, 1000, shape=shape),
    "randint of all words": lambda shape: F.randint(0, 2**32, shape=shape),
    "rand_binomial": lambda shape: F.rand_binomial(20, 0.3, shape=shape),
    "rand_binomial without doubt": lambda shape: F.rand_binomial(3, 1.0, shape=shape),
    "rand_gamma": lambda shape: F.rand_gamma(0.4, 2.0, shape=shape),
    "rand_gamma above 1": lambda shape: F.rand_gamma(7.0, 0.5, shape=shape),
    "rand_beta": lambda shape: F.rand_beta(0.3, 2.0, shape=shape),
}


#: The instruction set that is chosen when the library is loaded.
WIDEST = _native.isa()


def drawn(backend: str, make: Make, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Numbers of a backend."""
    nn.seed(seed)
    with nn.context_scope(nn.Context([backend])):
        y = make(shape)
        y.forward()
        values: np.ndarray[Any, Any] = y.d.copy()
        return values


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (7, 5), (2, 30001), (0, 4)])
def test_numbers_are_those_of_the_reference(name: str, shape: tuple[int, ...]) -> None:
    fallbacks = nn.fallback_report()
    found, true = (drawn(backend, DISTRIBUTIONS[name], shape, 5) for backend in ("cpu:float", "reference:float"))
    assert nn.fallback_report() == fallbacks
    assert found.dtype == true.dtype
    # Logarithms and cosines of the C library differ in the last place of double precision, and so seldom in one of float32.
    np.testing.assert_allclose(found, true, rtol=2e-7, atol=1e-15)
    assert np.mean(found != true) < 1e-3 if found.size else True


def test_numbers_do_not_depend_on_the_threads() -> None:
    threads = _native.num_threads()
    try:
        _native.set_num_threads(1)
        alone = [drawn("cpu:float", make, (70001,), 2) for make in DISTRIBUTIONS.values()]
        _native.set_num_threads(3)
        together = [drawn("cpu:float", make, (70001,), 2) for make in DISTRIBUTIONS.values()]
    finally:
        _native.set_num_threads(threads)
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)


def test_numbers_do_not_depend_on_the_vector_width(isa: str) -> None:
    narrow = [drawn("cpu:float", DISTRIBUTIONS[name], (4099,), 3) for name in ("rand", "randn", "randint")]
    _native.select_isa(WIDEST)
    wide = [drawn("cpu:float", DISTRIBUTIONS[name], (4099,), 3) for name in ("rand", "randn", "randint")]
    for a, b in zip(narrow, wide, strict=True):
        np.testing.assert_array_equal(a, b)


def test_long_tables_of_a_binomial_distribution_are_refused() -> None:
    with nn.context_scope(nn.Context(["cpu:float"])):
        text = str(nn.explain(F.rand_binomial(100000, 0.5, shape=(4,))))
    assert "takes distributions of at most 65536 steps, got 100000" in text


#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]

MOVES: dict[str, Callable[[nn.Variable], nn.Variable]] = {
    "crop": lambda x: F.random_crop(x, (3, 11, 13)),
    "flip rows": lambda x: F.random_flip(x, axes=(2,)),
    "flip both": lambda x: F.random_flip(x, axes=(2, 3)),
    "shift": lambda x: F.random_shift(x, (5, 9)),
    "shift, mirrored": lambda x: F.random_shift(x, (20, 40), border_mode="reflect"),
    "shift, constant": lambda x: F.random_shift(x, (5, 9), border_mode="constant", constant_value=0.25),
    "erase": lambda x: F.random_erase(x, prob=0.7, n=2),
    "erase channels": lambda x: F.random_erase(x, prob=0.7, share=False, replacements=(-1.0, 2.0), ste_fine_grained=False),
}


@pytest.mark.parametrize("name", MOVES)
def test_samples_are_altered_as_by_the_reference(assert_alike: Compare, name: str) -> None:
    assert_alike(MOVES[name], np.random.default_rng(0).standard_normal((21, 3, 17, 19)).astype(np.float32))


@pytest.mark.parametrize("share", [False, True])
def test_images_with_channels_last_are_erased(assert_alike: Compare, share: bool) -> None:
    x = np.random.default_rng(0).standard_normal((9, 17, 19, 5)).astype(np.float32)
    assert_alike(lambda v: F.random_erase(v, prob=0.8, n=2, share=share, channel_last=True), x)
