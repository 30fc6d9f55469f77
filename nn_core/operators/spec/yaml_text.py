"""YAML read so that every mapping knows the file and the lines it came from."""

import re
from collections.abc import Iterable
from typing import Any, Final, NoReturn

import yaml

from nn_core.engine.error_messages.refusal import described
from nn_core.errors import SpecError
from nn_core.operators.spec.places import MAX_DEPTH, MAX_NODES, PlacedMapping

_SafeLoader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEPTH_LIMIT: Final = f"be nested at most {MAX_DEPTH} deep, got more"
#: The words of libyaml for lists beyond a depth of its own, which newer versions have: it reads ahead of the events.
_TOO_DEEP: Final = "exceeded maximum nesting depth"
_STRING: Final = "tag:yaml.org,2002:str"
#: Tags of values that a file may have; dates and merged mappings are not among them.
_SCALARS: Final = (_STRING, *(f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float", "null")))
_COLLECTIONS: Final = ("tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")


def parse_yaml(text: str, file: str) -> Any:
    """Return what `parse` returns, with the line of everything."""
    try:
        return Builder(file).built(yaml.parse(text, _SafeLoader))
    except yaml.YAMLError as error:
        raise SpecError(_complaint(error, file)) from error


def _scalars() -> Any:
    """Return a loader that says what plain scalars are, and reads 1e-5 as a number."""

    class Loader(_SafeLoader):  # type: ignore[misc]  # the base is chosen at run time
        """The safe loader, without a text."""

    exponent_only = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+$")
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", exponent_only, list("-+0123456789"))
    return Loader("")


class Builder:
    """The content of YAML, built from its events.

    The usual way makes a tree of nodes first, and looks at each scalar anew: it takes four times as long.

    Args:
        file: Its name.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._loader = _scalars()
        self._plain: dict[str, Any] = {}
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._size = 0

    def built(self, events: Iterable[Any]) -> Any:
        """Return the value of the only document; None where there is none.

        Raises:
            SpecError: when the file is too large or too deep, has tags, merged or repeated keys or several documents.
        """
        found: list[Any] = []
        open_ones: list[_Open] = [_Open(found, None, 0)]
        n_documents = 0
        for event in events:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._count(event, 1, len(open_ones))
                value = self._scalar(event)
                self._remember(event, value, 1)
                open_ones[-1].add(value, event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                open_ones.append(self._opened(event, len(open_ones)))
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                ended = open_ones.pop()
                self._remember(ended.event, ended.content, self._size - ended.before)
                open_ones[-1].add(ended.content, ended.event)
            elif kind is yaml.AliasEvent:
                value, size = self._anchor(event)
                self._count(event, size, len(open_ones))
                open_ones[-1].add(value, event)
            elif kind is yaml.DocumentStartEvent:
                n_documents += 1
                if n_documents > 1:
                    self.refuse(event, "be YAML, got: expected a single document in the stream")
        return found[0] if found else None

    def refuse(self, event: Any, must: str) -> NoReturn:
        """Raise an error at the line of an event."""
        line = 1 if event.start_mark is None else event.start_mark.line + 1
        raise SpecError(f"{self._file}:{line}: the file must {must}")

    def _opened(self, event: Any, depth: int) -> "_Open":
        if event.tag not in (None, "!", *_COLLECTIONS):
            self.refuse(event, f"be YAML, got: the tag {event.tag!r}")
        before = self._size
        self._count(event, 1, depth + 1)
        if type(event) is yaml.SequenceStartEvent:
            return _Open([], event, before)
        mapping = PlacedMapping()
        mapping.file, mapping.line, mapping.lines = self._file, event.start_mark.line + 1, {}
        return _Open(mapping, event, before)

    def _count(self, event: Any, size: int, depth: int) -> None:
        self._size += size
        if self._size > MAX_NODES:
            self.refuse(event, f"have at most {MAX_NODES} values, got more with its aliases")
        if depth > MAX_DEPTH + 1:
            self.refuse(event, _DEPTH_LIMIT)

    def _remember(self, event: Any, value: Any, size: int) -> None:
        if event.anchor is not None:
            self._anchors[event.anchor] = value, size

    def _anchor(self, event: Any) -> tuple[Any, int]:
        if event.anchor not in self._anchors:
            self.refuse(event, f"be YAML, got: found undefined alias {event.anchor!r}")
        return self._anchors[event.anchor]

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if event.tag not in (None, "!"):
            return self._value_of(event, text, event.tag)
        if not event.implicit[0]:
            return text
        if text not in self._plain:
            tag = self._loader.resolve(yaml.ScalarNode, text, (True, False))
            self._plain[text] = text if tag == _STRING else self._value_of(event, text, tag)
        return self._plain[text]

    def _value_of(self, event: Any, text: str, tag: str) -> Any:
        if tag not in _SCALARS:
            self.refuse(event, f"be YAML, got: the tag {tag!r}")
        try:
            return self._loader.construct_object(yaml.ScalarNode(tag, text, event.start_mark, event.end_mark))
        except (ValueError, TypeError, AttributeError, yaml.YAMLError) as error:  # a scalar that is not what its form says
            self.refuse(event, f"hold plain values, got: {error}")


class _Open:
    """A list or mapping whose end has not come.

    Args:
        content: What it holds so far.
        event: The one that began it.
        before: Number of values before it.
    """

    __slots__ = ("before", "content", "event", "key")

    def __init__(self, content: Any, event: Any, before: int) -> None:
        self.content = content
        self.event = event
        self.before = before
        self.key: str | None = None

    def add(self, value: Any, event: Any) -> None:
        """Take an element of a list, a key of a mapping, or the value of the last key."""
        content = self.content
        if type(content) is list:
            content.append(value)
        elif self.key is not None:
            content[self.key] = value
            self.key = None
        else:
            self._take_key(value, event, content)

    def _take_key(self, key: Any, event: Any, content: PlacedMapping) -> None:
        line = event.start_mark.line + 1
        if not isinstance(key, str):
            raise SpecError(f"{content.file}:{line}: keys must be strings, got {described(key)}")
        if key in content:
            raise SpecError(f"{content.file}:{line}: keys must be unique, got a second {key!r}")
        content.lines[key] = line
        self.key = key


def _complaint(error: yaml.YAMLError, file: str) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or error
    line = mark.line + 1 if mark else 1
    return f"{file}:{line}: the file must {_DEPTH_LIMIT if problem == _TOO_DEEP else f'be YAML, got: {problem}'}"
