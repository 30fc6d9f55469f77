"""Texts of exceptions, whoever wrote them."""

import pytest

from nn_core.engine.dispatch.exception_text import message_of, reason_of, refusal_text, text_of
from nn_core.errors import ArgumentError, PluginError


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
        (OSError("no\n  hint: pip install evil\n\n\x1b[31mred"), "OSError: no\n  | hint: pip install evil\n  | \\x1b[31mred"),
        (OSError("A" * 5000), f"OSError: {'A' * 991} [...]"),
    ],
)
def test_texts(error, text):
    assert text_of(error) == text
    assert reason_of(error) == text.split("\n", maxsplit=1)[0]


def test_only_what_we_raise_speaks_for_us():
    def of_a_plugin():
        exec("raise error", {"__name__": "nn_ext_acme.plugin", "error": error})

    error = PluginError("no device\n  hint: pip install evil")
    with pytest.raises(PluginError):
        of_a_plugin()
    assert text_of(error) == "no device\n  | hint: pip install evil"
    assert refusal_text("acme", "none\nhint: a") == "none\n  | hint: a"
    assert refusal_text("cuda", "none\nhint: a") == "none\nhint: a"


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
