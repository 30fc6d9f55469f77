"""Read function specifications from YAML into the dataclasses of ``spec.model``.

The same reader serves ``function_spec.yaml`` and the files of plugins, whose functions carry a prefix (``acme.swish``).
Every refusal is a ``SpecError`` whose message starts with ``file:line:``.
"""

import keyword
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from nn_core.errors import SpecError
from nn_core.operators.spec import model
from nn_core.operators.spec.places import Keys, PlacedMapping, parse, text_of

_FUNCTION_NAME = re.compile(r"([a-z][a-z0-9_]*\.)?[A-Za-z][A-Za-z0-9_]*")
#: Names that kernels, gradient rules or generated signatures use for themselves.
_RESERVED = frozenset({"grad", "grads", "wants", "xp", "key", "n_outputs", "outputs", "self"})

_VERSION = re.compile(r"\d+(\.\d+)*")

_INPUT_KEYS: Final = Keys(
    {
        "doc": str,
        "shape": str,
        "dtype": str,
        "optional": bool,
        "variadic": bool,
        "parameter": bool,
        "since": str,
    },
    ("doc",),
)
_OUTPUT_KEYS: Final = Keys(
    {
        "doc": str,
        "shape": str,
        "dtype": str,
        "optional": bool,
        "variadic": bool,
        "aux": bool,
        "private": bool,
    },
    ("doc",),
)
_ARG_KEYS: Final = Keys(
    {
        "type": str,
        "doc": str,
        "default": object,
        "choices": list,
        "minimum": (int, float),
        "maximum": (int, float),
        "keyword_only": bool,
        "shown_as_none": bool,
        "per_spatial_axis": bool,
        "since": str,
    },
    ("type", "doc"),
)
_BACKWARD_KEYS: Final = Keys({"needs": list, "needs_if_negative": dict, "none": str})
_FUNCTION_KEYS: Final = Keys(
    {
        "name": str,
        "api": str,
        "topic": str,
        "doc": str,
        "formula": str,
        "inputs": dict,
        "args": dict,
        "outputs": dict,
        "shape": str,
        "backward": dict,
        "tags": list,
        "updates": list,
        "domain": list,
        "notes": str,
        "references": str,
        "example": str,
        "since": str,
    },
    ("name", "api", "topic", "doc", "outputs", "backward"),
)
_PROSE_KEYS: Final = ("formula", "notes", "references", "example", "since")


def load(path: str | Path) -> tuple[model.FunctionSpec, ...]:
    """Read the specifications in the YAML file `path`."""
    return loads(text_of(Path(path)), str(path))


def loads(text: str, file: str = "<text>") -> tuple[model.FunctionSpec, ...]:
    """Read the specifications in YAML `text`; `file` is named in errors."""
    return tuple(spec for spec, _ in located(text, file))


def located(
    text: str, file: str = "<text>", topics: Collection[str] = (), tags: Collection[str] = ()
) -> tuple[tuple[model.FunctionSpec, str], ...]:
    """Read the specifications in YAML `text`, each with its place as "file:line".

    Args:
        text: A list of functions.
        file: Its name, for errors.
        topics: Topics that are known besides those of the core.
        tags: Tags, likewise.
    """
    entries = parse(text, file)
    try:
        return _located(entries, file, topics, tags)
    except SpecError:
        from nn_core.operators.spec.yaml_text import parse_yaml

        return _located(parse_yaml(text, file), file, topics, tags)  # the complaint with its line, where the text was JSON


def _located(
    entries: Any, file: str, topics: Collection[str], tags: Collection[str]
) -> tuple[tuple[model.FunctionSpec, str], ...]:
    if entries is None:
        return ()
    if not isinstance(entries, list):
        kind = "mapping" if isinstance(entries, PlacedMapping) else type(entries).__name__
        raise SpecError(f"{file}:1: the file must hold a list of functions, got a {kind}")
    specs: list[tuple[model.FunctionSpec, str]] = []
    seen: set[str] = set()
    all_topics, all_tags = (*model.TOPICS, *topics), (*model.TAGS, *tags)
    known: dict[str, _Parts] = {}
    for position, entry in enumerate(entries, 1):
        entries[position - 1] = None  # frees the entry, whose memory serves the next specifications
        if not isinstance(entry, PlacedMapping):
            raise SpecError(f"{file}:1: entry {position} of the list must be a mapping, got {entry!r}")
        spec = _function(entry, all_topics, all_tags, known)
        for key in ("name", "api"):
            if entry[key] in seen:
                entry.refuse(f"{spec.name}: {key} must be unique, got a second {entry[key]!r}", key)
        seen.update((spec.name, spec.api))
        specs.append((spec, f"{file}:{entry.line}"))
    return tuple(specs)


class _Parts(NamedTuple):
    """The fields of a specification that do not name or describe the function."""

    inputs: tuple[model.InputSpec, ...]
    outputs: tuple[model.OutputSpec, ...]
    args: tuple[model.ArgSpec, ...]
    shape: str
    backward: model.BackwardSpec
    tags: tuple[str, ...]
    updates: tuple[str, ...]
    domain: tuple[float, float] | None


def _function(
    entry: PlacedMapping, topics: Sequence[str], tags: Sequence[str], known: dict[str, _Parts]
) -> model.FunctionSpec:
    what = str(entry.get("name", "function"))
    entry.check(what, _FUNCTION_KEYS)
    name, api, topic = entry["name"], entry["api"], entry["topic"]
    if not _FUNCTION_NAME.fullmatch(name):
        entry.refuse(f"name must be like 'Swish' or 'acme.Swish', got {name!r}", "name")
    _check_identifier(entry, what, "api", api)
    if topic not in topics:
        entry.refuse(f"{what}: topic must be one of {', '.join(topics)}, got {topic!r}", "topic")
    parts = _known_parts(what, entry, tags, known)
    prose = {key: entry[key].strip() for key in _PROSE_KEYS if key in entry}
    return model.FunctionSpec(name, api, topic, entry["doc"].strip(), *parts, **prose)


def _known_parts(what: str, entry: PlacedMapping, tags: Sequence[str], known: dict[str, _Parts]) -> _Parts:
    """Return the parts of a function; equal ones of a file are checked once, since files of thousands have many.

    Args:
        what: The function, for messages.
        entry: Its entry.
        tags: The tags that it may have.
        known: The parts that passed, by their representation, in which 1, 1.0 and True differ.
    """
    text = repr([entry.get(key) for key in _Parts._fields])
    if text not in known:
        known[text] = _parts(what, entry, tags)
    return known[text]


def _parts(what: str, entry: PlacedMapping, tags: Sequence[str]) -> _Parts:
    updates = entry.get("updates", ())
    inputs = tuple([_input(what, entry["inputs"], name, name in updates) for name in entry.get("inputs", ())])
    outputs = tuple([_output(what, entry["outputs"], name) for name in entry["outputs"]])
    args = tuple([_arg(what, entry["args"], name, bool(inputs)) for name in entry.get("args", ())])
    _check_order(what, entry, inputs, outputs, args)
    names = [item.name for item in inputs]
    return _Parts(
        inputs,
        outputs,
        args,
        _shape(what, entry, names),
        _backward(what, entry["backward"], names + [item.name for item in outputs], args),
        entry.names(what, "tags", tags),
        entry.names(what, "updates", names),
        _domain(what, entry),
    )


def _input(what: str, parent: PlacedMapping, name: str, updated: bool) -> model.InputSpec:
    fields = _array_entry(what, parent, name, _INPUT_KEYS)
    if updated or fields.get("parameter"):
        fields.setdefault("dtype", "parameter")
    _check_since(f"{what}.{name}", parent[name], bool(fields.get("optional")), "be optional")
    return model.InputSpec(name, **fields)


def _check_since(what: str, entry: PlacedMapping, may_be_left_out: bool, remedy: str) -> None:
    """Refuse what was added to a function that calls of before do not give."""
    if "since" not in entry:
        return
    if not _VERSION.fullmatch(entry["since"]):
        entry.refuse(f"{what}: since must be a version such as '0.2', got {entry['since']!r}", "since")
    if not may_be_left_out:
        entry.refuse(f"{what}: what was added later must {remedy}, got since {entry['since']!r}", "since")


def _output(what: str, parent: PlacedMapping, name: str) -> model.OutputSpec:
    output = model.OutputSpec(name, **_array_entry(what, parent, name, _OUTPUT_KEYS))
    if output.private and not output.aux:
        parent.refuse(f"{what}.{name}: a private output must be aux, got one that is returned", name)
    if output.dtype == "exact":
        parent.refuse(f"{what}.{name}: an output must have a dtype of its own or that of an input, got 'exact'", name)
    return output


def _array_entry(what: str, parent: PlacedMapping, name: str, keys: Keys) -> dict[str, Any]:
    entry = _named_entry(what, parent, name, keys)
    if entry.get("dtype", "float") not in model.DTYPE_KINDS:
        known = ", ".join(model.DTYPE_KINDS)
        entry.refuse(f"{what}.{name}: dtype must be one of {known}, got {entry['dtype']!r}", "dtype")
    return dict(entry)


def _arg(what: str, parent: PlacedMapping, name: str, has_inputs: bool) -> model.ArgSpec:
    entry = _named_entry(what, parent, name, _ARG_KEYS)
    what = f"{what}.{name}"
    fields = dict(entry)
    kind = fields["type"]
    if kind not in model.ARG_TYPES:
        entry.refuse(f"{what}: type must be one of {', '.join(model.ARG_TYPES)}, got {kind!r}", "type")
    if kind in ("axis", "axes") and not has_inputs:
        entry.refuse(f"{what}: type {kind} must belong to a function with an input, got none", "type")
    if "choices" in fields:
        fields["choices"] = entry.names(what, "choices")
        if kind != "str":
            entry.refuse(f"{what}: choices must belong to an argument of type str, got type {kind}", "choices")
    if kind in ("bool", "str") and ("minimum" in fields or "maximum" in fields):
        entry.refuse(f"{what}: minimum and maximum must belong to numbers, got type {kind}")
    if "default" in fields:
        fields.update(_default(what, entry))
    if fields.get("shown_as_none") and "default" not in entry:
        entry.refuse(f"{what}: shown_as_none must come with a default, got none", "shown_as_none")
    _check_since(what, entry, "default" in entry, "have a default")
    return model.ArgSpec(name, **fields)


def _default(what: str, entry: PlacedMapping) -> dict[str, Any]:
    value = entry["default"]
    if isinstance(value, PlacedMapping):
        if set(value) != {"rule"} or not isinstance(value["rule"], str):
            entry.refuse(f"{what}: default must be a value or {{rule: name}}, got {dict(value)!r}", "default")
        return {"default": model.REQUIRED, "default_rule": value["rule"]}
    if value is None:
        return {"default": None}
    kind = entry["type"]
    value = _as_floats(tuple(value) if isinstance(value, list) else value, kind)
    if not _has_type(value, kind):
        entry.refuse(f"{what}: default must be of type {kind}, got {value!r}", "default")
    if "choices" in entry and value not in entry["choices"]:
        entry.refuse(f"{what}: default must be one of {', '.join(entry['choices'])}, got {value!r}", "default")
    if not all(_is_within(number, entry) for number in (value if isinstance(value, tuple) else (value,))):
        entry.refuse(f"{what}: default must be within minimum and maximum, got {value!r}", "default")
    return {"default": value}


def _as_floats(value: Any, kind: str) -> Any:
    """Return a default of type float or floats that is written without a point."""
    if kind == "float" and type(value) is int:
        return float(value)
    if kind == "floats" and isinstance(value, tuple):
        return tuple(float(item) if type(item) is int else item for item in value)
    return value


def _is_within(number: Any, entry: Mapping[str, Any]) -> bool:
    below = "minimum" in entry and number < entry["minimum"]
    return not (below or ("maximum" in entry and number > entry["maximum"]))


def _has_type(value: Any, kind: str) -> bool:
    scalars = {"bool": bool, "int": int, "axis": int, "float": float, "str": str}
    if kind in scalars:
        return type(value) is scalars[kind]
    element = float if kind == "floats" else int
    return isinstance(value, tuple) and all(type(item) is element for item in value)


def _named_entry(what: str, parent: PlacedMapping, name: str, keys: Keys) -> PlacedMapping:
    _check_identifier(parent, what, name, name)
    entry = parent[name]
    if name in _RESERVED:
        parent.refuse(f"{what}: names must not be one of {', '.join(sorted(_RESERVED))}, got {name!r}", name)
    if not isinstance(entry, PlacedMapping):
        parent.refuse(f"{what}: {name} must be a mapping, got {entry!r}", name)
    entry.check(f"{what}.{name}", keys)
    return entry


@lru_cache(maxsize=1024)
def _is_public(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")


def _check_identifier(entry: PlacedMapping, what: str, key: str, name: str) -> None:
    if not _is_public(name):
        entry.refuse(f"{what}: names must be public Python identifiers, got {name!r}", key)


def _check_order(
    what: str,
    entry: PlacedMapping,
    inputs: Sequence[model.InputSpec],
    outputs: Sequence[model.OutputSpec],
    args: Sequence[model.ArgSpec],
) -> None:
    names = [item.name for group in (inputs, args, outputs) for item in group]
    for position, name in enumerate(names):
        if name in names[:position]:
            entry.refuse(f"{what}: names of inputs, args and outputs must differ, got {name!r} twice")
    if not outputs:
        entry.refuse(f"{what}: there must be an output, got none", "outputs")
    _check_inputs(what, entry, inputs)
    _check_args(what, entry, inputs, args)


def _check_inputs(what: str, entry: PlacedMapping, inputs: Sequence[model.InputSpec]) -> None:
    for item, following in pairwise(inputs):
        if item.variadic:
            entry["inputs"].refuse(f"{what}: only the last input must be variadic, got {item.name!r}", item.name)
        if item.optional and not (following.optional or following.variadic):
            text = f"{what}: required inputs must come before optional ones, got {following.name!r} after {item.name!r}"
            entry["inputs"].refuse(text, following.name)


def _check_args(what: str, entry: PlacedMapping, inputs: Sequence[model.InputSpec], args: Sequence[model.ArgSpec]) -> None:
    defaulted = next((item.name for item in inputs if item.optional), None)
    for arg in args:
        if arg.keyword_only or (inputs and inputs[-1].variadic):
            continue
        if not arg.required:
            defaulted = arg.name
        elif defaulted is not None:
            text = f"{what}: required args must come before ones with defaults, got {arg.name!r} after {defaulted!r}"
            entry["args"].refuse(text, arg.name)


def _shape(what: str, entry: PlacedMapping, inputs: Sequence[str]) -> str:
    rule: str = entry.get("shape", "rule")
    if rule in ("rule", "broadcast") or (rule.startswith("same_as ") and rule[8:] in inputs):
        return rule
    return entry.refuse(f"{what}: shape must be rule, broadcast or 'same_as <input>', got {rule!r}", "shape")


def _backward(what: str, entry: PlacedMapping, names: Sequence[str], args: Sequence[model.ArgSpec]) -> model.BackwardSpec:
    entry.check(f"{what}.backward", _BACKWARD_KEYS)
    if ("needs" in entry) == ("none" in entry):
        entry.refuse(f"{what}.backward: exactly one of needs and none must be given, got {list(entry)}")
    return model.BackwardSpec(
        entry.names(f"{what}.backward", "needs", names),
        entry.get("none"),
        _needs_if_negative(f"{what}.backward", entry, names, [arg.name for arg in args if arg.type in ("int", "float")]),
    )


def _needs_if_negative(
    what: str, entry: PlacedMapping, names: Sequence[str], numbers: Sequence[str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """For each argument that is named, what the gradient rule reads where it is negative."""
    if "needs_if_negative" not in entry:
        return ()
    cases = entry["needs_if_negative"]
    unknown = [name for name in cases if name not in numbers]
    if unknown or "none" in entry:
        entry.refuse(f"{what}: needs_if_negative must come with needs and name numbers, got {list(cases)}")
    return tuple((name, cases.names(f"{what}.needs_if_negative", name, names)) for name in cases)


def _domain(what: str, entry: PlacedMapping) -> tuple[float, float] | None:
    if "domain" not in entry:
        return None
    bounds = entry["domain"]
    numbers = [float(bound) for bound in bounds if type(bound) in (int, float)]
    if len(bounds) != 2 or len(numbers) != 2 or not numbers[0] < numbers[1]:
        entry.refuse(f"{what}: domain must be [low, high] with low < high, got {bounds!r}", "domain")
    return numbers[0], numbers[1]
