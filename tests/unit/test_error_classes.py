"""The classes of errors that programs written for NNabla catch."""

import pickle
import subprocess
import sys

import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, BackendNotFoundError, DTypeError, ShapeError, SignatureError
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


def test_wrong_signatures_and_dtypes_are_not_runtime_errors():
    assert not issubclass(SignatureError, RuntimeError) and not issubclass(DTypeError, RuntimeError)


@pytest.mark.parametrize("error", [ShapeError("a"), ArgumentError("a"), BackendNotFoundError("a")])
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
