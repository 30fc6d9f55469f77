"""Read function specifications from YAML into the dataclasses of ``spec.model``.

The same reader serves ``function_spec.yaml`` and the files of plugins, whose functions carry a prefix (``acme.swish``).
Every refusal is a ``SpecError`` whose message starts with ``file:line:``.
"""

import keyword
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

from nn_core.errors import SpecError
from nn_core.operators.spec import model
from nn_core.operators.spec.places import PlacedMapping, parse, text_of

_FUNCTION_NAME = re.compile(r"([a-z][a-z0-9_]*\.)?[A-Za-z][A-Za-z0-9_]*")
#: Names that kernels, gradient rules or generated signatures use for themselves.
_RESERVED = frozenset({"grad", "grads", "wants", "xp", "key", "n_outputs", "outputs", "self"})

_VERSION = re.compile(r"\d+(\.\d+)*")

_INPUT_KEYS = {
    "doc": str,
    "shape": str,
    "dtype": str,
    "optional": bool,
    "variadic": bool,
    "parameter": bool,
    "since": str,
}
_OUTPUT_KEYS = {
    "doc": str,
    "shape": str,
    "dtype": str,
    "optional": bool,
    "variadic": bool,
    "aux": bool,
    "private": bool,
}
_ARG_KEYS = {
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
}
_BACKWARD_KEYS = {"needs": list, "needs_if_negative": dict, "none": str}
T = TypeVar("T")
_FUNCTION_KEYS = {
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
}
_REQUIRED = ("name", "api", "topic", "doc", "outputs", "backward")


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
    for position, entry in enumerate(entries, 1):
        if not isinstance(entry, PlacedMapping):
            raise SpecError(f"{file}:1: entry {position} of the list must be a mapping, got {entry!r}")
        spec = _function(entry, all_topics, all_tags)
        for key in ("name", "api"):
            if entry[key] in seen:
                entry.refuse(f"{spec.name}: {key} must be unique, got a second {entry[key]!r}", key)
        seen.update((spec.name, spec.api))
        specs.append((spec, f"{file}:{entry.line}"))
    return tuple(specs)


def _function(entry: PlacedMapping, topics: Sequence[str], tags: Sequence[str]) -> model.FunctionSpec:
    what = str(entry.get("name", "function"))
    entry.check(what, _FUNCTION_KEYS, _REQUIRED)
    if not _FUNCTION_NAME.fullmatch(entry["name"]):
        entry.refuse(f"name must be like 'Swish' or 'acme.Swish', got {entry['name']!r}", "name")
    _check_identifier(entry, what, "api", entry["api"])
    if entry["topic"] not in topics:
        entry.refuse(f"{what}: topic must be one of {', '.join(topics)}, got {entry['topic']!r}", "topic")
    updates = entry.get("updates", ())
    inputs = tuple([_known(_input, what, entry["inputs"], name, name in updates) for name in entry.get("inputs", ())])
    outputs = tuple([_known(_output, what, entry["outputs"], name, False) for name in entry["outputs"]])
    args = tuple([_known(_arg, what, entry["args"], name, bool(inputs)) for name in entry.get("args", ())])
    _check_order(what, entry, inputs, outputs, args)
    names = [entry.name for entry in inputs] + [entry.name for entry in outputs]
    return model.FunctionSpec(
        name=entry["name"],
        api=entry["api"],
        topic=entry["topic"],
        doc=entry["doc"].strip(),
        inputs=inputs,
        outputs=outputs,
        args=args,
        shape=_shape(what, entry, [item.name for item in inputs]),
        backward=_backward(what, entry["backward"], names, args),
        tags=entry.names(what, "tags", tags),
        updates=entry.names(what, "updates", [item.name for item in inputs]),
        domain=_domain(what, entry),
        **{key: entry[key].strip() for key in ("formula", "notes", "references", "example", "since") if key in entry},
    )


#: Inputs, outputs and arguments that were found sound: functions of a plugin have many that are alike.
_KNOWN: Final[dict[tuple[Any, ...], Any]] = {}
_MOST_KNOWN: Final = 4096


def _known(make: Callable[..., T], what: str, parent: PlacedMapping, name: str, flag: bool) -> T:
    """Return what `make` returns; it is not asked again for a part with the same words."""
    entry = parent[name]
    try:
        # the types too, since True is equal to 1
        key = (make, name, flag, *entry.items(), *map(type, entry.values()))
        return _KNOWN[key]
    except (KeyError, TypeError, AttributeError):  # a new one, one with lists or mappings, or no mapping
        made = make(what, parent, name, flag)
    if len(_KNOWN) < _MOST_KNOWN and _is_plain(entry):
        _KNOWN[key] = made
    return made


def _is_plain(entry: Mapping[str, Any]) -> bool:
    return all(type(value) in (str, int, float, bool) for value in entry.values())


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


def _output(what: str, parent: PlacedMapping, name: str, _: bool) -> model.OutputSpec:
    output = model.OutputSpec(name, **_array_entry(what, parent, name, _OUTPUT_KEYS))
    if output.private and not output.aux:
        parent.refuse(f"{what}.{name}: a private output must be aux, got one that is returned", name)
    if output.dtype == "exact":
        parent.refuse(f"{what}.{name}: an output must have a dtype of its own or that of an input, got 'exact'", name)
    return output


def _array_entry(what: str, parent: PlacedMapping, name: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    entry = _named_entry(what, parent, name, keys, ("doc",))
    if entry.get("dtype", "float") not in model.DTYPE_KINDS:
        known = ", ".join(model.DTYPE_KINDS)
        entry.refuse(f"{what}.{name}: dtype must be one of {known}, got {entry['dtype']!r}", "dtype")
    return dict(entry)


def _arg(what: str, parent: PlacedMapping, name: str, has_inputs: bool) -> model.ArgSpec:
    entry = _named_entry(what, parent, name, _ARG_KEYS, ("type", "doc"))
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


def _named_entry(
    what: str, parent: PlacedMapping, name: str, keys: Mapping[str, Any], required: Sequence[str]
) -> PlacedMapping:
    _check_identifier(parent, what, name, name)
    entry = parent[name]
    if name in _RESERVED:
        parent.refuse(f"{what}: names must not be one of {', '.join(sorted(_RESERVED))}, got {name!r}", name)
    if not isinstance(entry, PlacedMapping):
        parent.refuse(f"{what}: {name} must be a mapping, got {entry!r}", name)
    entry.check(f"{what}.{name}", keys, required)
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
