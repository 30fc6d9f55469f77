"""Ctrl-C at random places: some in the tests, more by ``python -m tools.lanes.interrupts``; a planted fault is found."""

import contextvars
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from nn_core.engine.runtime.context_values import AmbientScope
from tools.lanes import interrupts

#: A file that is opened by the very call that is interrupted is closed by the garbage collector, with a warning.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


class OddError(Exception):
    """An exception that nobody expects, as a hook or a kernel may raise it."""


@pytest.mark.parametrize("name", list(interrupts.SCENARIOS))
def test_an_interrupt_leaves_what_was_before_or_what_is_after(name: str) -> None:
    assert list(interrupts.check(name, 5, 1)) == []


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt, OddError])
@pytest.mark.parametrize("name", list(interrupts.SCENARIOS))
def test_many_interrupts(name: str, error: type[BaseException]) -> None:
    assert list(interrupts.check(name, 50, 2, error)) == []


def test_a_scope_that_stays_entered_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AmbientScope, "_leave", lambda scope: None)
    texts = contextvars.copy_context().run(lambda: list(interrupts.check("scopes", 3, 1)))
    assert any("a scope was left entered" in text for text in texts)
