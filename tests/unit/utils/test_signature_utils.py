"""Signatures that are changed and written as source code; the texts are those of NNabla 1.39."""

import inspect

import pytest

from nn_core.utils.nnp_format import nnp_version
from nn_core.utils.signature_utils import SignatureEx


def function(a, b: int, c=3, *args, d=4, **kw) -> float:
    return 0.0


SIGNATURE = SignatureEx.from_callable(function)


def test_the_source_code_of_a_definition_and_a_call():
    assert SIGNATURE.format_argument_signature() == "a, b: int, c=3, *args, d=4, **kw"
    assert SIGNATURE.format_caller_argument_signature() == "a, b, c, *args, d=d, **kw"
    assert (SIGNATURE.format_return_annotation(), SIGNATURE.has_return_annotation) == (" -> float", True)
    plain = SignatureEx.from_callable(lambda x: x)
    assert (plain.format_return_annotation(), plain.has_return_annotation) == ("", False)


def test_an_added_argument_follows_those_of_its_kind():
    assert str(SIGNATURE.add_arg("z", default=5)) == "(a, b: int, c=3, z=5, *args, d=4, **kw) -> float"
    added = SIGNATURE.add_arg("q", inspect.Parameter.KEYWORD_ONLY, default=None)
    assert str(added) == "(a, b: int, c=3, *args, d=4, q=None, **kw) -> float"
    assert str(SIGNATURE) == "(a, b: int, c=3, *args, d=4, **kw) -> float"
    with pytest.raises(ValueError, match=r"non-default argument follows default argument|parameter without a default"):
        SIGNATURE.add_arg("z")


def test_a_dropped_argument():
    assert str(SIGNATURE.drop_arg("b")) == "(a, c=3, *args, d=4, **kw) -> float"
    assert str(SIGNATURE.drop_arg("none")) == str(SIGNATURE)
    with pytest.raises(KeyError, match=r"drop_arg: argname must be one of \['a', .*, got 'none'"):
        SIGNATURE.drop_arg("none", raise_if_not_found=True)


def test_the_version_of_the_format():
    assert nnp_version() == "0.1"
