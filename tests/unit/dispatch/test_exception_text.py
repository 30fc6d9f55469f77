"""Texts of exceptions, whoever wrote them."""

import pytest

from nn_core.engine.dispatch.exception_text import message_of, reason_of, text_of
from nn_core.errors import ArgumentError


class SilentError(Exception):
    def __str__(self):
        raise SystemExit(7)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("x"), "KeyError: 'x'"),
        (SystemExit(), "SystemExit"),
        (ArgumentError("f: a\nhint: b"), "f: a\nhint: b"),
        (SilentError(), "SilentError: (its message raises SystemExit)"),
    ],
)
def test_texts(error, text):
    assert text_of(error) == text
    assert reason_of(error) == text.split("\n", maxsplit=1)[0]


def test_messages():
    assert message_of(ValueError("a")) == "a"
    assert message_of(SilentError()) == "(its message raises SystemExit)"


def test_classes_that_cannot_be_asked_for_anything():
    class Exits(type):
        def __getattribute__(cls, name):
            raise SystemExit(name)

    class HostileError(Exception, metaclass=Exits):
        pass

    assert text_of(type.__call__(HostileError, "c")) == "HostileError: c"
