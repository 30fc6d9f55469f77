"""Arguments that public functions and classes do not have end in an error of nn_core, with the argument that was meant."""

import dataclasses
import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from nn_core.data import split
from nn_core.errors import ArgumentError, SignatureError
from nn_core.training import Checkpoint, Confusion, cross_entropy, save_checkpoint

PACKAGES = [
    "nn_core.training",
    "nn_core.data",
    "nn_core.functions",
    "nn_core.solvers",
    "nn_core.layers",
    "nn_core.initializer",
]
#: Called in each step, or made by nn_core alone.
BESIDE = {
    "report",
    "observing",
    "BatchSizes",
    "LearningRates",
    "Trigger",
    "Layer",
    "Lambda",
    "BaseInitializer",
    "function_api",
    "SolverState",
}


def callables() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        for name in import_module(package).__all__:
            made: Any = getattr(import_module(package), name)
            if name in BESIDE or not callable(made) or inspect.isabstract(made) or name.startswith("get_"):
                continue
            if inspect.getmodule(made) is not None and not dataclasses.is_dataclass(made):
                yield package, name


@pytest.mark.parametrize(("package", "name"), list(callables()))
def test_unknown_arguments_are_named(package: str, name: str) -> None:
    with pytest.raises(SignatureError, match=r"no_such|missing|must be given"):
        getattr(import_module(package), name)(no_such_argument=1)


def test_what_was_meant_is_told() -> None:
    with pytest.raises(SignatureError, match=r"^save_checkpoint: must get at most 1 positional argument, got 2"):
        save_checkpoint("state.npz", {})  # type: ignore[call-arg]
    with pytest.raises(SignatureError, match=r"^Checkpoint: .*'extention'; did you mean 'extension'"):
        Checkpoint(extention=".npz")  # type: ignore[call-arg]
    with pytest.raises(SignatureError, match=r"^Confusion: must get at most 2 positional arguments, got 3"):
        Confusion(None, None, 2)  # type: ignore[arg-type,call-arg]
    with pytest.raises(SignatureError, match=r"^cross_entropy: .*'label_smothing'; did you mean 'label_smoothing'"):
        cross_entropy(label_smothing=0.1)  # type: ignore[call-arg]


def test_shares_are_numbers() -> None:
    with pytest.raises(ArgumentError, match=r"^split: fractions must be positive .* got \('80%',\)"):
        split(None, "80%")  # type: ignore[arg-type]
