"""The classes of errors that programs written for NNabla catch."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import (
    ArgumentError,
    ArgumentTypeError,
    BackendNotFoundError,
    DTypeError,
    InputTypeError,
    IntegerRangeError,
    ShapeError,
    SignatureError,
)
from nn_core.ext_utils import get_extension_context


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: F.affine(nn.Variable((2, 3)), nn.Variable((4, 5))), ShapeError),
        (lambda: F.softmax(nn.Variable((2, 3)), axis=7), ArgumentError),
        (lambda: nn.Variable((2,)).reset_shape((3,)), ShapeError),
    ],
)
def test_wrong_shapes_and_arguments_are_runtime_errors(call, error):
    with pytest.raises(RuntimeError) as caught:
        call()
    assert type(caught.value) is error and isinstance(caught.value, ValueError)


@pytest.mark.parametrize("number", [1e30, -float("inf"), np.float32(2.0**63), 2**70], ids=str)
@pytest.mark.parametrize(
    "call",
    [
        lambda x, n: F.concatenate(x, x, axis=n),
        lambda x, n: F.sum(x, axis=n),
        lambda x, n: F.tile(x, (1, n)),
        lambda x, n: F.slice(x, start=(0, n)),
    ],
)
def test_integers_that_64_bits_do_not_hold_are_overflow_errors(call, number):
    with pytest.raises(OverflowError) as caught:
        call(nn.Variable((2, 3)), number)
    assert type(caught.value) is IntegerRangeError and isinstance(caught.value, (TypeError, RuntimeError))


def test_wrong_signatures_and_dtypes_are_not_runtime_errors():
    assert not issubclass(SignatureError, RuntimeError) and not issubclass(DTypeError, RuntimeError)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.concatenate(x, x, axis="last"),
        lambda x: F.dropout(x, "half"),
        lambda x: F.softmax(x, axis=0.5),
        lambda x: F.reshape(x, "23"),
        lambda x: F.max_pooling(x, None),
        lambda x: F.pad(x, (1, "1")),
        lambda x: F.linspace(0, 1, 2.5),
        lambda x: F.slice(x, start=1),
        lambda x: F.sum(x, axis=0.5),
        lambda x: F.relu(x, inplace="no"),
        lambda x: F.pad(x, (1, 1), mode=3),
        lambda x: F.quantize_linear(x, x, x, dtype="a text"),
        lambda x: PF.convolution(x, 4.5, (1, 1)),
    ],
)
def test_arguments_of_a_wrong_type_are_type_errors(call):
    with pytest.raises(TypeError) as caught:
        call(nn.Variable((2, 3, 4, 4)))
    assert type(caught.value) is ArgumentTypeError and isinstance(caught.value, ArgumentError)


@pytest.mark.parametrize("value", [np.ones(3), [1.0], "x", None, 1.5])
@pytest.mark.parametrize(
    "call",
    [
        F.relu,
        lambda value: F.add2(nn.Variable((3,)), value),
        lambda value: F.concatenate(nn.Variable((3,)), value),
        F.add_n,
        lambda value: F.stack(value, nn.Variable((3,))),
        lambda value: F.einsum("i,i->i", nn.Variable((3,)), value),
        lambda value: F.meshgrid(nn.Variable((3,)), value),
        lambda value: F.matmul(nn.Variable((3,)), value),
        lambda value: F.sink(nn.Variable((3,)), value),
    ],
)
def test_inputs_that_are_no_variables_are_assertion_errors(call, value):
    with pytest.raises(AssertionError, match=r"must be a Variable or an NdArray, got") as caught:
        call(value)
    assert type(caught.value) is InputTypeError and isinstance(caught.value, TypeError)


@pytest.mark.parametrize("function", [F.concatenate, F.stack, F.add_n, F.mul_n])
def test_no_inputs_at_all_are_an_assertion_error(function):
    with pytest.raises(AssertionError, match="at least 1 input must be given, got 0") as caught:
        function()
    assert type(caught.value) is InputTypeError


def test_splitting_nothing_is_a_runtime_error():
    with pytest.raises(RuntimeError, match="split"):
        F.split(nn.Variable((2, 0)), axis=1)


def test_a_fraction_and_a_probability_out_of_range_are_told_apart():
    with pytest.raises(ArgumentError) as caught:
        F.dropout(nn.Variable((2, 3)), 1.5)
    assert not isinstance(caught.value, TypeError) and isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize("error", [ShapeError("a"), ArgumentError("a"), InputTypeError("a"), BackendNotFoundError("a")])
def test_errors_keep_their_text(error):
    copied = pickle.loads(pickle.dumps(error))
    assert str(error) == str(copied) == "a" and type(copied) is type(error)


def test_a_missing_backend_is_an_import_error():
    with pytest.raises(ImportError, match="got 'acme'"):
        get_extension_context("acme")


def test_a_program_may_do_without_a_module_whose_package_is_missing():
    code = """
import sys
sys.modules["nn_ext_nnp"] = None  # as if it were not installed
import nn_core.compat.nnabla
try:
    from nnabla.utils.nnp_graph import NnpLoader
except ImportError as error:
    print("without", str(error).splitlines()[0])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("without ")


@pytest.mark.parametrize("function", [F.interpolate, F.slice, F.relu, F.affine])
@pytest.mark.parametrize("wrong", [[1.0], "text", 1.5])
def test_what_is_no_variable_has_one_class(function, wrong):
    further = {F.interpolate: {"scale": (2,)}, F.affine: {"weight": nn.Variable((3, 2))}}.get(function, {})
    with pytest.raises(AssertionError, match=r"x must be (a )?Variable or ") as caught:
        function(wrong, **further)
    assert isinstance(caught.value, InputTypeError)
