"""The examples of function_spec.yaml, which the docstrings and the reference pages show, run and give what they say."""

import ast
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.operators.spec.builtin import SPECS
from nn_core.operators.spec.load import load

ROOT = Path(__file__).parents[3]
EXAMPLES = {spec.api: spec.example for spec in load(ROOT / "function_spec.yaml") if spec.example}


def test_functions_have_an_example():
    assert {spec.api for spec in SPECS} == EXAMPLES.keys()


@pytest.mark.parametrize("api", EXAMPLES)
def test_examples_give_what_they_say(api):
    names = {"nn": nn, "F": F, "np": np}
    for line in EXAMPLES[api].splitlines():
        code, _, said = line.partition("  # ")
        try:
            ast.parse(code, mode="eval")
        except SyntaxError:
            exec(code, names)
            continue
        result = eval(code, names)
        try:
            expected = ast.literal_eval(said.partition(" (")[0])
        except (SyntaxError, ValueError):
            continue  # words
        if isinstance(expected, tuple):
            assert result == expected
        elif isinstance(expected, list):
            np.testing.assert_allclose(np.asarray(result, float), expected, rtol=6e-3, atol=1e-6)


def test_the_examples_are_checked():
    checked = [text for text in EXAMPLES.values() if ").shape  # (" in text or "  # [" in text]
    assert len(checked) >= 170
