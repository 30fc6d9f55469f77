"""YAML read so that every mapping knows the file and the lines it came from."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn

import yaml

from nn_core.errors import SpecError

_SafeLoader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Bounds of a file: many times what the specification of the core needs.
MAX_CHARACTERS: Final = 4_000_000
MAX_DEPTH: Final = 32
MAX_NODES: Final = 500_000
_DEPTH_LIMIT: Final = f"be nested at most {MAX_DEPTH} deep, got more"
#: The words of libyaml for lists beyond a depth of its own, which newer versions have: it reads ahead of the events.
_TOO_DEEP: Final = "exceeded maximum nesting depth"
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
        """The list of strings under `key`, each among `allowed`."""
        values = self.get(key, [])
        known = None if allowed is None else tuple(allowed)
        for value in values:
            if not isinstance(value, str) or (known is not None and value not in known):
                listed = "strings" if known is None else f"among {', '.join(known)}"
                self.refuse(f"{what}: {key} must be {listed}, got {value!r}", key)
        return tuple(values)


def parse(text: str, file: str) -> Any:
    """The content of YAML `text`, each mapping a `PlacedMapping`; duplicate keys are refused."""
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

    class Loader(_SafeLoader):  # type: ignore[misc]  # the base is chosen at run time
        """The safe loader with places, without duplicate keys, and with 1e-5 read as a number."""

    def mapping(loader: Any, node: yaml.MappingNode) -> PlacedMapping:
        entry = PlacedMapping()
        entry.file, entry.line, entry.lines = file, node.start_mark.line + 1, {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if not isinstance(key, str):
                raise SpecError(f"{file}:{line}: keys must be strings, got {key!r}")
            if key in entry:
                raise SpecError(f"{file}:{line}: keys must be unique, got a second {key!r}")
            entry.lines[key] = line
            entry[key] = loader.construct_object(value_node, deep=True)
        return entry

    exponent_only = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+$")
    Loader.add_constructor("tag:yaml.org,2002:map", mapping)
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", exponent_only, list("-+0123456789"))
    try:
        _check_structure(text, file)
        return yaml.load(text, Loader)  # a subclass of the safe loader
    except yaml.YAMLError as error:
        raise SpecError(_complaint(error, file)) from error
    except SpecError:
        raise
    except (ValueError, TypeError, AttributeError) as error:  # a scalar that is not what its tag or form says
        raise SpecError(f"{file}:1: the file must hold plain values, got: {error}") from error


def _complaint(error: yaml.YAMLError, file: str) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or error
    line = mark.line + 1 if mark else 1
    return f"{file}:{line}: the file must {_DEPTH_LIMIT if problem == _TOO_DEEP else f'be YAML, got: {problem}'}"


def _check_size(text: str, file: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise SpecError(f"{file}:1: the file must have at most {MAX_CHARACTERS} characters, got {len(text)}")


def _check_structure(text: str, file: str) -> None:
    """Refuse what is too deep, or too large when its aliases are written out, before anything is built from it."""
    size = 0
    sizes: dict[str | None, int] = {}
    starts: list[tuple[str | None, int]] = []
    for event in yaml.parse(text, _SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            size += sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.NodeEvent):
            size += 1
            sizes[event.anchor] = 1
        if isinstance(event, yaml.CollectionStartEvent):
            starts.append((event.anchor, size))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, start = starts.pop()
            sizes[anchor] = size - start + 1
        if len(starts) > MAX_DEPTH or size > MAX_NODES:
            line = 1 if event.start_mark is None else event.start_mark.line + 1
            too_large = f"have at most {MAX_NODES} values, got more with its aliases"
            raise SpecError(f"{file}:{line}: the file must {too_large if size > MAX_NODES else _DEPTH_LIMIT}")
