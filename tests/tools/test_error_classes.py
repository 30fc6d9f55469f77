"""The comparison of classes of exceptions, without NNabla."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "nnabla"))

import error_classes
import run_error_cases


@pytest.mark.parametrize("name", ["concatenate", "affine", "linspace", "pad_packed_sequence"])
def test_cases_have_one_wrong_argument_and_are_refused_by_an_error_of_ours(name):
    cases = list(error_classes.cases_of(name, 0))
    assert cases[0]["change"] == "as it is" and run_error_cases.run("nn_core", cases[0]) == []
    refused = [found for found in (run_error_cases.run("nn_core", case) for case in cases[1:]) if found]
    assert len(refused) >= 5
    for classes, stage, text in refused:
        assert "NNCoreError" in classes or "multiple values" in text
        assert stage in ("call", "forward") and text


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        ([], [], "taken by both"),
        ([], [["ShapeError"]], "refused here only"),
        ([["TypeError", "Exception"]], [], "refused there only"),
        ([["TypeError", "Exception"]], [["ArgumentTypeError", "TypeError", "Exception"]], "caught"),
        ([["TypeError", "Exception"]], [["ShapeError", "ValueError", "Exception"]], "another class"),
        ([["the process ends"]], [["ShapeError", "Exception"]], "ends the process there"),
    ],
)
def test_what_catches_the_one_catches_the_other(theirs, ours, expected):
    assert error_classes.verdict(theirs, ours) == expected


@pytest.mark.parametrize("change", error_classes.WRONG_SHAPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_wrong_shapes_are_others(shape, change):
    array = np.ones(shape, np.float32)
    changed = error_classes.reshaped(array, change).shape
    assert changed != shape or (shape == () and change == "no axis")
