"""The array contract: every reference kernel keeps to it on every sample of the kit, and each breach of it is caught."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nn_core
from nn_core.array_contract import ATTRIBUTES, CONTRACT_VERSION, FUNCTIONS, METHODS
from nn_core.operators.reference.registry import KERNELS
from nn_core.operators.rules.arguments import resolve_args
from nn_core.operators.spec.builtin import SPECS
from nn_core.operators.spec.model import FunctionSpec
from nn_core.testing.assertions import assert_identical
from nn_core.testing.operators import KEY
from nn_core.testing.samples.registry import numbers_of, samples_of
from nn_core.testing.strict_namespace import ContractError, plain_array, strict_array, strict_namespace

ROOT = Path(nn_core.__file__).parent.parent
KERNELS_OF_THE_CORE = [spec for spec in SPECS if spec.name in KERNELS]


def results_of(
    spec: FunctionSpec, xp: Any, arrays: list[Any], settings: dict[str, Any], take: Callable[[Any], Any]
) -> list[Any]:
    extra = {"key": take(np.array(KEY, np.uint64))} if spec.has("seeded") else {}
    with np.errstate(all="ignore"):
        results = KERNELS[spec.name](xp, *[None if a is None else take(a) for a in arrays], **settings, **extra)
    return [plain_array(result) for result in (results if isinstance(results, tuple) else (results,))]


@pytest.mark.parametrize("spec", KERNELS_OF_THE_CORE, ids=lambda spec: spec.name)
def test_every_reference_kernel_keeps_to_the_array_contract(spec: FunctionSpec) -> None:
    xp = strict_namespace()
    for sample in samples_of(spec):
        for dtype in (np.float32, np.float16):
            drawn = numbers_of(spec, sample)
            arrays = [None if a is None else a.astype(dtype) if a.dtype.kind == "f" else a for a in drawn]
            settings = dict(resolve_args(spec, sample.args, [None if a is None else a.shape for a in arrays]))
            expected = results_of(spec, np, arrays, settings, lambda array: array.copy())
            for given, wanted in zip(results_of(spec, xp, arrays, settings, strict_array), expected, strict=True):
                if wanted is not None:
                    assert_identical(np.asarray(given), np.asarray(wanted), f"{spec.name}: {sample.name}")


def test_the_kit_has_kernels_to_run() -> None:
    assert len(KERNELS_OF_THE_CORE) > 220


X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("breach", "pattern"),
    [
        (lambda xp, x: xp.convolve(x, x), r"got xp\.convolve"),
        (lambda xp, x: xp.linalg.svd(x), "svd"),
        (lambda xp, x: np.exp(x), "does not support ufuncs"),
        (lambda xp, x: np.add(x, 1), "does not support ufuncs"),
        (lambda xp, x: np.concatenate([x, x]), r"numpy\.concatenate"),
        (lambda xp, x: np.asarray(x), "where one of NumPy belongs"),
        (lambda xp, x: x + np.ones(3), "array of NumPy"),
        (lambda xp, x: xp.maximum(x, np.ones(3)), r"array of NumPy in xp\.maximum"),
        (lambda xp, x: x.cumsum(), "attribute cumsum"),
        (lambda xp, x: x.flags, "attribute flags"),
        (lambda xp, x: x.__setitem__(0, 1.0), "assignment to an input"),
        (lambda xp, x: x.copy()[0].__setitem__(0, 1.0), "part of another array"),
        (lambda xp, x: x.reshape(-1).__setitem__(0, 1.0), "part of another array"),
        (lambda xp, x: xp.moveaxis(x.copy(), 0, 1).__setitem__(0, 1.0), "part of another array"),
        (lambda xp, x: xp.add.at(x, (0, 0), 1.0), r"xp\.add\.at on an input"),
    ],
)
def test_breaches_are_caught(breach: Callable[[Any, Any], Any], pattern: str) -> None:
    with pytest.raises((ContractError, TypeError, AttributeError), match=pattern):
        breach(strict_namespace(), strict_array(X))


def test_what_the_contract_allows() -> None:
    xp = strict_namespace()
    x = strict_array(X)
    y = x.copy()
    y[0] += 2
    y[:, 1:] = xp.where(x > 2, x, 0)[:, 1:]
    xp.add.at(y, (xp.asarray([0, 0]), xp.asarray([1, 1])), 1.0)
    y -= 1
    assert plain_array(y).tolist() == [[1.0, 1.0, -1.0], [2.0, 3.0, 4.0]]
    assert plain_array(1 / (x + 1)).shape == (2, 3)
    assert int(xp.sum(x)) == 15
    assert [float(part.max()) for part in x] == [2.0, 5.0]


def test_the_page_of_the_contract_lists_it() -> None:
    text = (ROOT / "docs" / "array_contract.md").read_text(encoding="utf-8")
    section = text.partition("## Functions")[2].partition("The only constant")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("|")][2:]
    assert sorted(re.findall(r"`([a-z0-9_.]+)`", " ".join(rows))) == sorted(FUNCTIONS)
    members = text.partition("Arrays have")[2].partition("the operators")[0]
    assert sorted(re.findall(r"`(\w+)`", members)) == sorted(ATTRIBUTES | METHODS)
    assert f"Version {CONTRACT_VERSION}." in text
