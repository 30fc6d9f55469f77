"""An extension of a trainer with its trigger."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.runtime.schemas import checked_state_without
from nn_core.errors import ArgumentError
from nn_core.training.triggers import TriggerLike, as_trigger, every

if TYPE_CHECKING:
    from nn_core.training.trainer import Trainer

#: The order in which extensions run after an iteration: they report, change, read what was reported, and save.
PHASES: Final = ("measure", "edit", "read", "save")
#: A function of the trainer; see `Trainer` for what else it may have.
Extension: TypeAlias = Callable[["Trainer"], object]


class Entry:
    """An extension of a trainer with its trigger."""

    def __init__(self, extension: Extension, trigger: TriggerLike | None, name: str) -> None:
        if not callable(extension):
            raise ArgumentError(f"extend: an extension must be a function of the trainer, got {extension!r}")
        self.extension = extension
        self.name = name
        self.phase: str = getattr(extension, "phase", "read")
        if self.phase not in PHASES:
            raise ArgumentError(f"extend: the phase of {name} must be one of {', '.join(PHASES)}, got {self.phase!r}")
        chosen = trigger if trigger is not None else getattr(extension, "every", None)
        self.runs = True
        # A copy, because a trigger counts for one extension.
        self.trigger = copy.deepcopy(as_trigger(every(1, "epoch") if chosen is None else chosen))
        self.observe: Callable[[Trainer], object] | None = getattr(extension, "observe", None)

    def call(self, method: str, *args: Any) -> None:
        """Call a method that the extension may have."""
        function = getattr(self.extension, method, None)
        if function is not None:
            function(*args)

    def files(self) -> Sequence[str]:
        """Names of what the extension writes in the folder."""
        function = getattr(self.extension, "files", None)
        return function() if callable(function) else ()

    def get_state(self) -> dict[str, Any]:
        """Return the states of the trigger and the extension."""
        own = getattr(self.extension, "get_state", None)
        return {"trigger": self.trigger.get_state(), "own": None if own is None else own()}

    @checked_state_without("own")
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave; an extension that had no state in an earlier version starts anew."""
        self.trigger.set_state(state["trigger"])
        if state["own"] is not None:
            self.call("set_state", state["own"])


def save_by_trigger(trainer: "Trainer", savers: Sequence[Entry]) -> None:
    """Call the savers whose triggers fire, and let all of them observe the iteration."""
    for entry in savers:
        if entry.trigger(trainer):
            entry.extension(trainer)
        if entry.observe is not None:
            entry.observe(trainer)


def call_each(entries: Sequence[Entry], method: str, *args: Any) -> None:
    """Call a method that extensions may have, of each that has it."""
    for entry in entries:
        entry.call(method, *args)


def offered(name: str) -> Extension:
    """Return the extension that a plugin offers under a name, or a logger of that name as an extension.

    Raises:
        ArgumentError: when there is none.
    """
    offer = PLUGINS.offer("training", name)
    if offer is None:
        known = ", ".join(PLUGINS.names_of("training")) or "none is"
        raise ArgumentError(
            f"extend: the name must be that of an extension that a plugin offers ({known}), got {name!r}\n"
            f"  hint: pip install nn-ext-{name.lower()}, if there is such a package"
        )
    found = PLUGINS.offers.load(offer, "target")
    with offer.called():
        made = found() if isinstance(found, type) else found
    if offer.role == "logger":
        from nn_core.training.extensions.tables import Tell  # which imports this module

        return Tell(made)
    return made
