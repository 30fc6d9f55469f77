"""Mappings that know the file and the lines that they came from, read from JSON; YAML is read by `yaml_text`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from nn_core.errors import SpecError, quoted

#: Bounds of a file: many times what the specification of the core needs.
MAX_CHARACTERS: Final = 4_000_000
MAX_DEPTH: Final = 32
MAX_NODES: Final = 500_000
_KIND_NAMES = {str: "string", bool: "boolean", list: "list", dict: "mapping"}


#: Number of different mappings, by keys and types of values, that are remembered as sound.
_MOST_FORMS: Final = 256


class Keys:
    """The keys that a mapping may have.

    Args:
        kinds: The type of the value under each, or several.
        required: Those that it must have.
    """

    def __init__(self, kinds: Mapping[str, Any], required: Sequence[str] = ()) -> None:
        self.kinds = kinds
        self.required = required
        self.sound: set[tuple[Any, ...]] = set()


class PlacedMapping(dict[str, Any]):
    """A YAML mapping that remembers its own position and those of its keys."""

    file: str
    line: int
    lines: dict[str, int]

    def refuse(self, text: str, key: str | None = None) -> NoReturn:
        """Raise a SpecError that points at `key`, or at the start of the mapping."""
        line = self.line if key is None else self.lines.get(key, self.line)
        raise SpecError(f"{self.file}:{line}: {text}")

    def check(self, what: str, keys: "Keys") -> None:
        """Refuse keys that are not in `keys` or have another type, and absent ones that it requires."""
        # what is refused depends on keys and types alone, and a file has thousands of mappings with the same ones
        form = (*self, *map(type, self.values()))
        if form not in keys.sound:
            self._check_each(what, keys)
            if len(keys.sound) < _MOST_FORMS:
                keys.sound.add(form)

    def _check_each(self, what: str, keys: "Keys") -> None:
        for key, value in self.items():
            kind = keys.kinds.get(key)
            if type(value) is kind:
                continue
            if kind is None:
                self.refuse(f"{what}: keys must be among {', '.join(keys.kinds)}, got {key!r}", key)
            if not isinstance(value, kind) or (isinstance(value, bool) and kind not in (bool, object)):
                kind_name = _KIND_NAMES.get(kind, "number")
                self.refuse(f"{what}: {key} must be a {kind_name}, got {value!r}", key)
        for key in keys.required:
            if key not in self:
                self.refuse(f"{what}: {key} must be given, got none")

    def names(self, what: str, key: str, allowed: Iterable[str] | None = None) -> tuple[str, ...]:
        """Return the list of strings under `key`, each among `allowed`."""
        values = self.get(key)
        if not values:
            return ()
        known = None if allowed is None else tuple(allowed)
        for value in values:
            if not isinstance(value, str) or (known is not None and value not in known):
                listed = "strings" if known is None else f"among {', '.join(known)}"
                self.refuse(f"{what}: {key} must be {listed}, got {value!r}", key)
        return tuple(values)


def parse(text: str, file: str) -> Any:
    """Return the content of YAML `text`, each mapping a `PlacedMapping`; duplicate keys are refused."""
    _check_size(text, file)
    _check_characters(text, file)
    found = _parsed_json(text, file)
    if found is not None:
        return found
    from nn_core.operators.spec.yaml_text import parse_yaml  # the library for YAML, where it is needed

    return parse_yaml(text, file)


def text_of(path: Path) -> str:
    """Return the text of a file.

    Raises:
        SpecError: when it is not in UTF-8.
    """
    content = path.read_bytes()
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError(f"{path}:{line}: the file must be text in UTF-8, got the byte {content[error.start]:#x}") from error


def _check_characters(text: str, file: str) -> None:
    """Refuse half characters, which Python reads from bytes that are no text, and YAML has not."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise SpecError(f"{file}:{line}: the text must be Unicode, got {quoted(text[error.start])}") from error


def _parsed_json(text: str, file: str) -> list[Any] | None:
    """Return the content of a text that is JSON, which YAML includes and reads fifty times slower; None: it is not JSON.

    Its mappings say that they are in line 1: who has a complaint about one reads the text as YAML to learn the place.
    """
    if not text.lstrip().startswith("["):
        return None

    # one class for all mappings of a text: a plugin may have tens of thousands
    kind = type("JsonMapping", (PlacedMapping,), {"file": file, "line": 1, "lines": {}, "__slots__": ()})

    def mapping(pairs: list[tuple[str, Any]]) -> PlacedMapping:
        entry: PlacedMapping = kind(pairs)
        if len(entry) < len(pairs):
            raise ValueError("keys must be unique")
        return entry

    def constant(name: str) -> NoReturn:
        raise ValueError(f"numbers must be finite, got {name}")

    try:
        found = json.loads(text, object_pairs_hook=mapping, parse_constant=constant)
        return found if isinstance(found, list) and len(found) <= MAX_NODES else None
    except (ValueError, RecursionError):
        return None


def _check_size(text: str, file: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise SpecError(f"{file}:1: the file must have at most {MAX_CHARACTERS} characters, got {len(text)}")
