"""Marks for some of many tests that are alike: the others run with every change."""

from collections.abc import Iterable
from typing import Any

import pytest


def some_slow(values: Iterable[Any], one_of: int) -> list[Any]:
    """Return the parameters of a test, all but one of so many marked as slow."""
    return [pytest.param(value, marks=[pytest.mark.slow] if number % one_of else []) for number, value in enumerate(values)]
