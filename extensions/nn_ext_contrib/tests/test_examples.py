"""Every function of the package has an example in its docstring, which runs and gives what it says."""

import doctest
import inspect

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.ext import function_spec, list_offers

OPERATORS = [name for name in dir(F.contrib) if hasattr(getattr(F, name), "__signature__")]
COMPOSITES = [name for name in dir(F.contrib) if name not in OPERATORS]
LAYERS = [name.removeprefix("contrib.") for name in list_offers("parametric_functions") if name.startswith("contrib.")]


def examples_of(function):
    text = inspect.getdoc(function) or ""
    return doctest.DocTestParser().get_doctest(text, {"nn": nn, "F": F, "PF": PF, "np": np}, function.__name__, None, None)


@pytest.mark.parametrize("function", [*(getattr(F, n) for n in COMPOSITES), *(getattr(PF, n) for n in LAYERS)])
def test_examples_run_and_give_what_they_say(function):
    test = examples_of(function)
    test.globs[function.__name__] = function
    assert test.examples, f"{function.__name__} has no example"
    with nn.parameter_scope("", {}):
        failed = doctest.DocTestRunner().run(test).failed
    assert not failed


@pytest.mark.parametrize("name", OPERATORS)
def test_examples_of_operators_run_and_give_what_they_say(name):
    (spec,) = [s for s in map(function_spec, SPECIFIED) if s.api == name]
    *lines, last = spec.example.splitlines()
    names = {"nn": nn, "F": F, "np": np}
    exec("\n".join(lines), names)
    code, _, said = last.partition("  # ")
    np.testing.assert_allclose(eval(code, names), eval(said), rtol=1e-3)


SPECIFIED = [f"contrib.{n}" for n in (
    "ArgmaxCrf1d", "Crf1d", "CtcLoss", "Log1p", "MaxPooling2dIndexes", "RoiPooling2d", "Upsampling2d"
)]  # fmt: skip
