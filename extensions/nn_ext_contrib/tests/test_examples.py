"""Every function of the package has an example in its docstring, which runs and gives what it says."""

import doctest
import inspect
import re

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.ext import function_spec, list_offers
from nn_ext_contrib.plugin import SPECIFICATION

OPERATORS = [name for name in dir(F.contrib) if hasattr(getattr(F.contrib, name), "__signature__")]
COMPOSITES = [name for name in dir(F.contrib) if name not in OPERATORS]
NAMES = re.findall(r"^- name: (\S+)", SPECIFICATION.read_text("utf-8"), re.MULTILINE)
SPECIFIED = {spec.api: spec for spec in map(function_spec, NAMES)}
LAYERS = [name.removeprefix("contrib.") for name in list_offers("parametric_functions") if name.startswith("contrib.")]


def examples_of(function):
    text = inspect.getdoc(function) or ""
    return doctest.DocTestParser().get_doctest(text, {"nn": nn, "F": F, "PF": PF, "np": np}, function.__name__, None, None)


@pytest.mark.parametrize("function", [*(getattr(F.contrib, n) for n in COMPOSITES), *(getattr(PF.contrib, n) for n in LAYERS)])
def test_examples_run_and_give_what_they_say(function):
    test = examples_of(function)
    test.globs[function.__name__] = function
    assert test.examples, f"{function.__name__} has no example"
    with nn.parameter_scope("", {}):
        failed = doctest.DocTestRunner().run(test).failed
    assert not failed


@pytest.mark.parametrize("name", OPERATORS)
def test_examples_of_operators_run_and_give_what_they_say(name):
    *lines, last = SPECIFIED[name].example.splitlines()
    names = {"nn": nn, "F": F, "np": np}
    exec("\n".join(lines), names)
    code, _, said = last.partition("  # ")
    np.testing.assert_allclose(eval(code, names), eval(said), rtol=1e-3)
