"""YAML read so that every mapping knows the file and the lines it came from."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn

import yaml

from nn_core.engine.error_messages.refusal import described
from nn_core.errors import SpecError

_SafeLoader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Bounds of a file: many times what the specification of the core needs.
MAX_CHARACTERS: Final = 4_000_000
MAX_DEPTH: Final = 32
MAX_NODES: Final = 500_000
_DEPTH_LIMIT: Final = f"be nested at most {MAX_DEPTH} deep, got more"
#: The words of libyaml for lists beyond a depth of its own, which newer versions have: it reads ahead of the events.
_TOO_DEEP: Final = "exceeded maximum nesting depth"
_STRING: Final = "tag:yaml.org,2002:str"
#: Tags of values that a file may have; dates and merged mappings are not among them.
_SCALARS: Final = (_STRING, *(f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float", "null")))
_COLLECTIONS: Final = ("tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")
_KIND_NAMES = {str: "string", bool: "boolean", list: "list", dict: "mapping"}


class PlacedMapping(dict[str, Any]):
    """A YAML mapping that remembers its own position and those of its keys."""

    file: str
    line: int
    lines: dict[str, int]

    def refuse(self, text: str, key: str | None = None) -> NoReturn:
        """Raise a SpecError that points at `key`, or at the start of the mapping."""
        line = self.line if key is None else self.lines.get(key, self.line)
        raise SpecError(f"{self.file}:{line}: {text}")

    def check(self, what: str, keys: Mapping[str, Any], required: Iterable[str] = ()) -> None:
        """Refuse keys that are not in `keys` or have another type, and absent `required` ones."""
        for key, value in self.items():
            if key not in keys:
                self.refuse(f"{what}: keys must be among {', '.join(keys)}, got {key!r}", key)
            kind = keys[key]
            if not isinstance(value, kind) or (isinstance(value, bool) and kind not in (bool, object)):
                kind_name = _KIND_NAMES.get(kind, "number")
                self.refuse(f"{what}: {key} must be a {kind_name}, got {value!r}", key)
        for key in required:
            if key not in self:
                self.refuse(f"{what}: {key} must be given, got none")

    def names(self, what: str, key: str, allowed: Iterable[str] | None = None) -> tuple[str, ...]:
        """Return the list of strings under `key`, each among `allowed`."""
        values = self.get(key, [])
        known = None if allowed is None else tuple(allowed)
        for value in values:
            if not isinstance(value, str) or (known is not None and value not in known):
                listed = "strings" if known is None else f"among {', '.join(known)}"
                self.refuse(f"{what}: {key} must be {listed}, got {value!r}", key)
        return tuple(values)


def parse(text: str, file: str) -> Any:
    """Return the content of YAML `text`, each mapping a `PlacedMapping`; duplicate keys are refused."""
    _check_size(text, file)
    found = _parsed_json(text, file)
    return parse_yaml(text, file) if found is None else found


def _parsed_json(text: str, file: str) -> list[Any] | None:
    """Return the content of a text that is JSON, which YAML includes and reads fifty times slower; None: it is not JSON.

    Its mappings say that they are in line 1: who has a complaint about one reads the text as YAML to learn the place.
    """
    if not text.lstrip().startswith("["):
        return None

    def mapping(pairs: list[tuple[str, Any]]) -> PlacedMapping:
        entry = PlacedMapping(pairs)
        if len(entry) < len(pairs):
            raise ValueError("keys must be unique")
        entry.file, entry.line, entry.lines = file, 1, {}
        return entry

    def constant(name: str) -> NoReturn:
        raise ValueError(f"numbers must be finite, got {name}")

    try:
        found = json.loads(text, object_pairs_hook=mapping, parse_constant=constant)
        return found if isinstance(found, list) and len(found) <= MAX_NODES else None
    except (ValueError, RecursionError):
        return None


def parse_yaml(text: str, file: str) -> Any:
    """As `parse`, with the line of everything."""
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


def _check_size(text: str, file: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise SpecError(f"{file}:1: the file must have at most {MAX_CHARACTERS} characters, got {len(text)}")
