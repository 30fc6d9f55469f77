"""The position of a data source between two batches, and the way to return to it."""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.data.blocks import tree_of
from nn_core.data.source import DataSource, OrderedDataSource
from nn_core.errors import ArgumentError
from nn_core.random import Rng, get_generator_state, require_generator_state, set_generator_state

#: The result of `get_generator_state`; shared between marks and never changed.
GeneratorState: TypeAlias = Mapping[str, Any]

#: Bytes of the state of MT19937: 624 words and a position.
_MT19937_BYTES: Final = 625 * 4


@dataclass(frozen=True, eq=False)
class Mark:
    """A place between two samples, with all that is needed to return to it without reading what came before.

    Attributes:
        epoch: Number of epochs that have ended.
        position: Samples of this epoch that were given.
        start: States of the generators before the order of this epoch was drawn.
        now: States of the generators at this place.
        drawn: For each source inside the source, the state of its generator before its order was drawn; None if it was
            not.
        skipped: Samples that are passed over because reading them failed, by epoch and position.
    """

    epoch: int
    position: int
    start: tuple[GeneratorState, ...]
    now: tuple[GeneratorState, ...]
    drawn: tuple[GeneratorState | None, ...]
    skipped: frozenset[tuple[int, int]] = field(default_factory=frozenset)

    def without(self, epoch: int, position: int) -> "Mark":
        """Return this place, after which one more sample is passed over."""
        return replace(self, skipped=self.skipped | {(epoch, position)})

    def as_state(self) -> dict[str, Any]:
        """Plain values for `Course.mark_of`."""
        return {
            "epoch": self.epoch,
            "position": self.position,
            "start": [dict(state) for state in self.start],
            "now": [dict(state) for state in self.now],
            "drawn": [None if state is None else dict(state) for state in self.drawn],
            "skipped": [list(place) for place in sorted(self.skipped)],
        }


class Course:
    """The way of a data source through its epochs, which starts now.

    Args:
        source: The source.
    """

    def __init__(self, source: DataSource) -> None:
        self.source = source
        self.epoch = 0
        self._skipped: frozenset[tuple[int, int]] = frozenset()
        tree = tree_of(source)
        self._inner = [inner for inner in tree[1:] if isinstance(inner, OrderedDataSource)]
        self._watches = [_Watch(rng) for rng in {id(member.rng): member.rng for member in tree}.values()]
        self._start = self._now()
        source.reset()

    def mark(self) -> Mark:
        """Return the present place."""
        drawn = tuple([inner.before_draw for inner in self._inner])
        return Mark(self.epoch, self.source.position, self._start, self._now(), drawn, self._skipped)

    def end_epoch(self) -> None:
        """Start the next epoch."""
        self.epoch += 1
        if self._skipped:
            self._skipped = frozenset(place for place in self._skipped if place[0] >= self.epoch)
        self._start = self._now()
        self.source.reset()

    @property
    def has_skips(self) -> bool:
        """Whether samples are to be passed over, in this epoch or a later one."""
        return bool(self._skipped)

    def skips(self, position: int) -> bool:
        """Return whether the sample at `position` of this epoch is to be passed over."""
        return bool(self._skipped) and (self.epoch, position) in self._skipped

    def go_to(self, mark: Mark) -> None:
        """Return to a place; no sample is read."""
        is_new = mark.start is not self._start
        if is_new:
            self._set(mark.start)
            self._start = mark.start
            self.source.reset()  # draws the order of this epoch again
        for inner, before in zip(self._inner, mark.drawn, strict=True):
            if is_new or inner.before_draw is not before:
                inner.draw_from(before)
        self._set(mark.now)
        self.epoch = mark.epoch
        self.source.go_to(mark.position)
        self._skipped = mark.skipped

    def forget_place(self) -> None:
        """Take nothing for granted when a place is returned to: the source was left in the middle of something."""
        self._start = ()

    def mark_of(self, state: Mapping[str, Any]) -> Mark:
        """Return the place that `Mark.as_state` described.

        Raises:
            ArgumentError: when it is one of another source.
        """
        position = int(state["position"])
        if not 0 <= position <= self.source.size:
            raise ArgumentError(f"DataIterator.set_state: position must be one of {self.source.size} samples, got {position}")
        kinds = [get_generator_state(watch.rng)["bit_generator"] for watch in self._watches]
        for name in ("start", "now"):
            given = [generator["bit_generator"] for generator in state[name]]
            if given != kinds:
                raise ArgumentError(f"DataIterator.set_state: the generators must be {kinds}, got {given}")
            for watch, generator in zip(self._watches, state[name], strict=True):
                require_generator_state(watch.rng, generator)
        self._require_drawn(state["drawn"])
        skipped = frozenset((int(epoch), int(place)) for epoch, place in state["skipped"])
        start, now, drawn = (tuple(state[name]) for name in ("start", "now", "drawn"))
        return Mark(int(state["epoch"]), position, start, now, drawn, skipped)

    def _require_drawn(self, drawn: Any) -> None:
        """Refuse what is not, for each source inside the source, a state of its generator, an empty one, or None."""
        expected = len(self._inner)
        if not isinstance(drawn, (list, tuple)) or len(drawn) != expected:
            got = len(drawn) if isinstance(drawn, (list, tuple)) else drawn
            raise ArgumentError(f"DataIterator.set_state: there must be {expected} sources inside the source, got {got!r}")
        for inner, before in zip(self._inner, drawn, strict=True):
            if before:  # nothing is drawn where it is empty
                require_generator_state(inner.rng, before)

    def _now(self) -> tuple[GeneratorState, ...]:
        return tuple([watch.state() for watch in self._watches])

    def _set(self, states: Sequence[GeneratorState]) -> None:
        for watch, state in zip(self._watches, states, strict=True):
            set_generator_state(watch.rng, state)


class _Watch:
    """A generator and its latest known state.

    NumPy takes 80 microseconds to export the state of a RandomState. Between most batches nothing was drawn, which a
    look at the memory of the generator shows in less than one.
    """

    def __init__(self, rng: Rng) -> None:
        self.rng = rng
        bits = rng.bit_generator if isinstance(rng, np.random.Generator) else getattr(rng, "_bit_generator", None)
        self._address = bits.ctypes.state_address if isinstance(bits, np.random.MT19937) else None
        self._raw: bytes | None = None
        self._state: GeneratorState = {}

    def state(self) -> GeneratorState:
        if self._address is None:
            return get_generator_state(self.rng)
        raw = ctypes.string_at(self._address, _MT19937_BYTES)
        # A second normal number that waits in the RandomState can be taken without a change of the memory.
        if raw != self._raw or self._state.get("has_gauss"):
            self._state = get_generator_state(self.rng)
            self._raw = raw
        return self._state
