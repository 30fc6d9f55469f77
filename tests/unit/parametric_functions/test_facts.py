"""Every parametric function makes the parameters that NNabla makes, with its initial values, and gives its results.

nnabla_parameters.json was recorded from NNabla 1.39: for each call the parameters in order, the first three initial
values of each, mean and first values of the outputs, and the parameters that the forward pass changed.
"""

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.parametric_functions as PF

FACTS = json.loads(Path(__file__).with_name("nnabla_parameters.json").read_text())
#: Not in the file: it needs a communicator.
NOT_RECORDED = {"sync_batch_normalization", "LSTMCell", "parametric_function_api"}


def label(fact: dict[str, Any]) -> str:
    settings = ",".join(f"{name}={value}" for name, value in fact["kwargs"].items())
    return f"{fact['function']}({fact['args']},{settings})"


def value(given: Any, random: np.random.RandomState) -> Any:
    if isinstance(given, str) and given.startswith("V"):
        shape = [int(length) for length in given[1:].split(",")]
        return nn.Variable.from_numpy_array(random.rand(*shape).astype(np.float32))
    return tuple(given) if isinstance(given, list) else given


def call(fact: dict[str, Any]) -> tuple[nn.Variable, ...]:
    nn.seed(313)
    random = np.random.RandomState(0)
    arrays = [random.rand(*shape).astype(np.float32) for shape in fact["inputs"]]
    if fact["function"] == "embed":  # NNabla cuts the fractions of indices off
        arrays = [np.floor(array) for array in arrays]
    inputs = [nn.Variable.from_numpy_array(array) for array in arrays]
    args = [value(given, random) for given in fact["args"]]
    kwargs = {name: value(given, random) for name, given in fact["kwargs"].items()}
    results = getattr(PF, fact["function"])(*inputs, *args, **kwargs)
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("fact", FACTS, ids=label)
def test_agrees_with_nnabla(fact):
    results = call(fact)
    parameters = nn.get_parameters(grad_only=False)
    assert list(parameters) == list(fact["parameters"])
    for name, parameter in parameters.items():
        expected = fact["parameters"][name]
        assert list(parameter.shape) == expected["shape"], name
        assert parameter.need_grad == expected["need_grad"], name
        if "values" in expected:
            np.testing.assert_allclose(parameter.d.ravel()[:3], expected["values"], rtol=2e-5, atol=1e-6, err_msg=name)
    assert [list(result.shape) for result in results] == [output["shape"] for output in fact["outputs"]]
    if "mean" not in fact["outputs"][0]:
        return
    nn.forward_all(results)
    for result, expected in zip(results, fact["outputs"], strict=True):
        given = [result.d.mean(), *result.d.ravel()[:3]]
        np.testing.assert_allclose(given, [expected["mean"], *expected["values"]], rtol=1e-4, atol=2e-6)
    for name, values in fact.get("after", {}).items():
        np.testing.assert_allclose(parameters[name].d.ravel()[:3], values, rtol=1e-4, atol=1e-6, err_msg=name)


def test_every_parametric_function_is_recorded():
    assert set(PF.__all__) - NOT_RECORDED == {fact["function"] for fact in FACTS}


@pytest.mark.parametrize("name", sorted(set(PF.__all__) - {"LSTMCell", "parametric_function_api"}))
def test_signature_ends_with_name_and_every_argument_is_documented(name):
    function = getattr(PF, name)
    signature = inspect.signature(function)
    by_place = [one.name for one in signature.parameters.values() if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert by_place[-1] == "name"
    assert signature.parameters["name"].default is None
    for parameter in signature.parameters:
        assert f"\n    {parameter}: " in function.__doc__, parameter


@pytest.mark.parametrize("fact", [fact for fact in FACTS if fact["function"] != "mean_subtraction"], ids=label)
def test_fixed_parameters_leave_no_gradient(fact):
    trained = call(fact | {"kwargs": fact["kwargs"] | {"fix_parameters": True}})
    assert not any(result.need_grad for result in trained)
