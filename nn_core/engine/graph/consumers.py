"""The readers of a value, known to it without being held by it."""

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nn_core.engine.graph.node import Node


class Consumers:
    """The nodes that read a value, held weakly."""

    __slots__ = ("_limit", "_references")

    #: so many are kept without looking whether they are still there
    MIN_LIMIT = 8

    def __init__(self) -> None:
        self._references: list[weakref.ref[Node]] = []
        self._limit = self.MIN_LIMIT

    def add(self, reference: "weakref.ref[Node]") -> None:
        """Note one more; in the long run, dropping those that are gone costs a constant time for each."""
        self._references.append(reference)
        if len(self._references) > self._limit:
            self._references = [reference for reference in self._references if reference() is not None]
            self._limit = max(2 * len(self._references), self.MIN_LIMIT)

    def living(self) -> "list[Node]":
        """Those that are still there, each once."""
        found = dict.fromkeys(reference() for reference in self._references)
        return [node for node in found if node is not None]
