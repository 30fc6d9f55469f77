"""Calls of functions that do not fit their signature get errors of nn_core, with the name that was meant where it is known."""

import inspect
import pydoc

import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import NNCoreError, SignatureError
from nn_core.functions.plugin_functions import build_function
from nn_core.operators.spec.builtin import BY_API
from nn_core.operators.spec.signature import signature

#: Names of the context and of decorators, which are no functions of arrays.
HELPERS = {"function_api", "get_auto_forward", "get_current_context"}
FUNCTIONS = {name: getattr(F, name) for name in F.__all__ if name not in HELPERS}
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
x = nn.Variable((2, 3))


def positional(function):
    return [parameter for parameter in inspect.signature(function).parameters.values() if parameter.kind in POSITIONAL]


def required(function):
    return [parameter for parameter in positional(function) if parameter.default is parameter.empty]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_unknown_keywords_are_refused(name):
    function = FUNCTIONS[name]
    with pytest.raises(SignatureError, match=f"^{name}: got an unexpected keyword argument 'nonsense'"):
        function(*[x] * len(required(function)), nonsense=1)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if required(FUNCTIONS[name])])
def test_missing_arguments_are_refused(name):
    with pytest.raises(NNCoreError, match=f"^{name}: .* must "):
        FUNCTIONS[name]()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_surplus_arguments_are_refused(name):
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return
    n_taken = len(positional(FUNCTIONS[name]))
    noun = "argument" if n_taken == 1 else "arguments"
    with pytest.raises(SignatureError, match=f"^{name}: must get at most {n_taken} positional {noun}, got {n_taken + 1}"):
        FUNCTIONS[name](*[x] * (n_taken + 1))


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [
        ("mean", "keepdim", "keepdims"), ("mean", "dim", "axis"), ("mean", "axes", "axis"), ("softmax", "dim", "axis"),
        ("convolution", "padding", "pad"), ("convolution", "strides", "stride"), ("max_pooling", "kernel_size", "kernel"),
        ("relu", "inplce", "inplace"), ("concatenate", "dim", "axis"), ("layer_normalization", "epsilon", "eps"),
        ("dropout", "rate", "p"), ("leaky_relu", "slope", "alpha"), ("one_hot", "shap", "shape"),
    ],
)  # fmt: skip
def test_names_of_other_frameworks_are_understood(name, given, meant):
    function = FUNCTIONS[name]
    with pytest.raises(SignatureError, match=f"^{name}: .*{given!r}; did you mean {meant!r}"):
        function(*[x] * len(required(function)), **{given: 1})


def test_functions_of_plugins_refuse_them_too():
    relu = build_function(BY_API["leaky_relu"])
    for call, text in (
        (lambda: relu(x, slope=1), "^leaky_relu: .*'slope'; did you mean 'alpha'"),
        (relu, "^leaky_relu: x must be given, got none"),
        (lambda: relu(x, 0.1, False, -1, None, 3), "^leaky_relu: must get at most 5 positional arguments, got 6"),
    ):
        with pytest.raises(SignatureError, match=text):
            call()


def test_help_and_inspect_show_the_signature_of_the_specification():
    assert inspect.signature(F.softmax) == signature(BY_API["softmax"])
    text = pydoc.plain(pydoc.render_doc(F.leaky_relu))
    assert "leaky_relu(x: Operand, alpha: float = 0.1, inplace: bool = False, " in text
    assert "unknown" not in text.splitlines()[2]
