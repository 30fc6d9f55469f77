"""Functions of plugins in nn_core.functions: built at run time, found by API name."""

import copy
import inspect
import pickle
import types
from collections.abc import Iterator

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core import ext
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.errors import PluginError
from nn_core.functions.plugin_functions import PluginNamespace, build_function
from nn_core.operators.spec.builtin import BY_API
from nn_core.operators.spec.load import loads

SPEC = """\
- name: acme.Scale
  api: acme_scale
  topic: arithmetic
  doc: Scale an array.
  inputs:
    x: {doc: Input., shape: any}
    bias: {doc: Offset., optional: true}
  args:
    factor: {type: float, default: 2, doc: Factor.}
  outputs:
    y: {doc: Output.}
  shape: same_as x
  backward: {none: a test}
"""


@pytest.fixture
def acme() -> Iterator[None]:
    PLUGINS.registry.add("acme", loads(SPEC), {})
    yield
    PLUGINS.registry.remove("acme")


def test_functions_of_plugins_are_found_by_api_name(acme: None) -> None:
    assert F.acme_scale is F.acme_scale
    parameters = inspect.signature(F.acme_scale).parameters
    assert list(parameters) == ["x", "bias", "factor", "n_outputs", "outputs"] and parameters["factor"].default == 2.0
    assert F.acme_scale.__name__ == "acme_scale"
    assert "Spec: acme.Scale" in (F.acme_scale.__doc__ or "")
    assert "acme_scale" in dir(F)


def test_their_calls_are_checked_like_any_other(acme: None) -> None:
    y = F.acme_scale(nn.Variable((2, 3)), factor=3)
    assert y.parent.name == "acme.Scale" and y.parent.arguments == {"factor": 3.0}
    with pytest.raises(TypeError, match="faktor"):
        F.acme_scale(nn.Variable((2,)), faktor=3)


@pytest.mark.parametrize("api", ["relu", "affine", "concatenate", "clip_grad_by_value"])
def test_a_function_built_at_run_time_acts_like_the_generated_one(api: str) -> None:
    built, generated = build_function(BY_API[api]), getattr(F, api)
    names = list(inspect.signature(generated).parameters)
    assert list(inspect.signature(built).parameters) == names
    shapes = {"affine": [(2, 3), (3, 4)], "relu": [(2, 3)]}.get(api, [(2, 3)] * 3)
    arrays = [nn.NdArray.from_numpy_array(np.full(shape, 0.5, np.float32)) for shape in shapes]
    assert built(*arrays).data.tolist() == generated(*arrays).data.tolist()


def test_unknown_functions_are_refused_with_a_hint() -> None:
    with pytest.raises(AttributeError, match="has no function 'rellu', of its own or of a plugin; did you mean 'relu'"):
        _ = F.rellu
    with pytest.raises(AttributeError, match="has no attribute '__nothing__'"):
        _ = F.__nothing__


@pytest.mark.parametrize("protocol", range(2, 6))
def test_functions_of_plugins_are_pickled_by_name(acme: None, protocol: int) -> None:
    function, namespace = pickle.loads(pickle.dumps((F.acme_scale, PluginNamespace("acme")), protocol))
    assert function is F.acme_scale
    assert repr(namespace) == repr(copy.deepcopy(namespace)) == repr(PluginNamespace("acme"))


def double(x: nn.Variable) -> nn.Variable:
    return x + x


@ext.hookimpl
def nn_core_composites() -> list[ext.CompositeInfo]:
    return [ext.CompositeInfo(name="twice_double", target=double)]


@pytest.fixture
def twice() -> Iterator[None]:
    module = types.ModuleType("twice")
    module.nn_core_composites = nn_core_composites  # type: ignore[attr-defined]
    ext.register(module)
    yield
    ext.unregister("twice")


def test_a_composite_is_found_like_an_operator(twice: None) -> None:
    y = F.twice_double(nn.NdArray.from_numpy_array(np.ones(2, np.float32)))
    assert y.data.tolist() == [2.0, 2.0] and "twice_double" in dir(F)
    assert dir(F.twice) == ["twice_double"] and F.twice.twice_double is F.twice_double
    with pytest.raises(AttributeError, match=r"has no function 'twice_doubel'.*; did you mean 'twice_double'"):
        _ = F.twice_doubel


def test_an_operator_and_a_composite_of_one_name_are_refused_with_both_plugins(twice: None) -> None:
    PLUGINS.registry.add("acme", loads(SPEC.replace("acme_scale", "twice_double")), {})
    try:
        with pytest.raises(PluginError, match="'twice_double': must be claimed by one plugin, got 'acme' and 'twice'"):
            _ = F.twice_double
    finally:
        PLUGINS.registry.remove("acme")
        PLUGINS.forget_prepared()
