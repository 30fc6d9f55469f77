"""The reader of specifications: what it makes of an entry, and every refusal with its place."""

import random
import re
from pathlib import Path

import pytest
import yaml

from nn_core.errors import SpecError
from nn_core.operators.spec.load import load, loads
from nn_core.operators.spec.model import REQUIRED
from nn_core.operators.spec.yaml_text import parse_yaml
from tests.calls import n_calls

ENTRY = """\
- name: Scale
  api: scale
  topic: arithmetic
  doc: Scale an array.
  inputs:
    x: {doc: Input., shape: any}
    bias: {doc: Offset., optional: true}
  args:
    factor: {type: float, default: 2, minimum: 0, doc: Factor.}
    mode: {type: str, default: up, choices: [up, down], doc: Direction.}
    axes: {type: axes, default: {rule: all_axes}, doc: Axes.}
    pad: {type: ints, default: [1, 2], doc: Padding.}
  outputs:
    y: {doc: Output.}
  shape: same_as x
  backward: {needs: [x]}
  tags: [pointwise]
  domain: [-1, 2]
"""


def refusal(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        loads(text, "spec.yaml")
    return str(caught.value)


def test_values_arrive_with_their_types() -> None:
    (spec,) = loads(ENTRY)
    assert (spec.name, spec.api, spec.topic) == ("Scale", "scale", "arithmetic")
    assert [entry.optional for entry in spec.inputs] == [False, True]
    assert spec.arg("factor").default == 2.0 and type(spec.arg("factor").default) is float
    assert spec.arg("axes").default is REQUIRED and spec.arg("axes").default_rule == "all_axes"
    assert not spec.arg("axes").required
    assert spec.arg("pad").default == (1, 2)
    assert spec.domain == (-1.0, 2.0)
    assert spec.backward.needs == ("x",) and spec.differentiable


def test_exponents_without_a_point_are_numbers() -> None:
    (spec,) = loads(ENTRY.replace("default: 2, minimum: 0", "default: 1e-5"))
    assert spec.arg("factor").default == 1e-5


def test_names_of_plugins_have_a_prefix() -> None:
    (spec,) = loads(ENTRY.replace("name: Scale", "name: acme.Scale"))
    assert spec.name == "acme.Scale"


def test_empty_files_hold_no_functions(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("# nothing yet\n")
    assert load(path) == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: Scale", "name: 3rd", "1: name must be like 'Swish' or 'acme.Swish', got '3rd'"),
        ("api: scale", "api: lambda", "2: Scale: names must be public Python identifiers, got 'lambda'"),
        ("topic: arithmetic", "topic: maths", "3: Scale: topic must be one of activation, .*, got 'maths'"),
        ("  doc: Scale an array.\n", "", "1: Scale: doc must be given, got none"),
        ("  doc: Scale", "  docs: Scale", "4: Scale: keys must be among name, .*, got 'docs'"),
        ("  doc: Scale an array.", "  api: scale", "4: keys must be unique, got a second 'api'"),
        ("doc: Scale an array.", "doc: 3", "4: Scale: doc must be a string, got 3"),
        (
            "shape: any}",
            "dtype: int}",
            "6: Scale.x: dtype must be one of float, parameter, statistic, index, int32, same, exact, got 'int'",
        ),
        ("x: {doc: Input., shape: any}", "x: input", "6: Scale: x must be a mapping, got 'input'"),
        ("optional: true", "optional: 1", "7: Scale.bias: optional must be a boolean, got 1"),
        ("    x: {doc: Input., shape: any}", "    x: {shape: any}", "6: Scale.x: doc must be given, got none"),
        ("shape: any}", "variadic: true}", "6: Scale: only the last input must be variadic, got 'x'"),
        ("shape: any}", "optional: true}\n    z: {doc: z}", "7: .*: required inputs must come before .* 'z' after 'x'"),
        ("    bias:", "    grad:", "7: Scale: names must not be one of .*, got 'grad'"),
        ("    bias:", "    mode:", "1: Scale: names of inputs, args and outputs must differ, got 'mode' twice"),
        ("type: float", "type: double", "9: Scale.factor: type must be one of bool, .*, got 'double'"),
        ("default: 2, minimum: 0", "default: x", "9: Scale.factor: default must be of type float, got 'x'"),
        ("default: 2,", "default: -1,", "9: Scale.factor: default must be within minimum and maximum, got -1.0"),
        ("default: 2, ", "", "9: Scale: required args must come before .*, got 'factor' after 'bias'"),
        ("minimum: 0", "choices: [a]", "9: .*: choices must belong to an argument of type str, got type float"),
        ("default: up", "default: left", "10: Scale.mode: default must be one of up, down, got 'left'"),
        ("choices: [up, down]", "minimum: 1", "10: .*: minimum and maximum must belong to numbers, got type str"),
        ("choices: [up, down]", "choices: [up, 1]", "10: Scale.mode: choices must be strings, got 1"),
        ("{rule: all_axes}", "{role: all_axes}", "11: .*: default must be a value or {rule: name}, got {'role': .*"),
        ("default: [1, 2]", "default: [1, 2.5]", r"12: Scale.pad: default must be of type ints, got \(1, 2.5\)"),
        ("type: ints, default: [1, 2]", "type: bool, default: 1", "12: Scale.pad: default must be of type bool, got 1"),
        ("    y: {doc: Output.}", "    {}", "13: Scale: there must be an output, got none"),
        ("{doc: Output.}", "{doc: Output., private: true}", "14: Scale.y: a private output must be aux, got .*"),
        (
            "{doc: Output.}",
            "{doc: Output., dtype: exact}",
            "14: Scale.y: an output must have a dtype of its own or that of an input, got .*",
        ),
        ("same_as x", "same_as z", "15: Scale: shape must be rule, broadcast or 'same_as <input>', got 'same_as z'"),
        ("needs: [x]", "needs: [z]", "16: Scale.backward: needs must be among x, bias, y, got 'z'"),
        (
            "needs: [x]",
            "needs: [x], needs_if_negative: {axes: [x]}",
            "16: .*: needs_if_negative must come with needs and name numbers, got ..axes..",
        ),
        ("needs: [x]", "needs: [x], needs_if_negative: {factor: [z]}", "16: .*: factor must be among x, .*, got .z."),
        ("needs: [x]", "needs: [x], none: why", "16: .*: exactly one of needs and none must be given, got .*"),
        ("  backward: {needs: [x]}\n", "", "1: Scale: backward must be given, got none"),
        ("tags: [pointwise]", "tags: [quick]", "17: Scale: tags must be among pointwise, .*, got 'quick'"),
        ("tags: [pointwise]", "updates: [y]", "17: Scale: updates must be among x, bias, got 'y'"),
        ("domain: [-1, 2]", "domain: [2, -1]", r"18: .*: domain must be \[low, high\] with low < high, got \[2, -1\]"),
        ("domain: [-1, 2]", "domain: [1", "19: the file must be YAML, got: .*"),
        ("domain: [-1, 2]", "3: 4", "18: keys must be strings, got 3"),
    ],
)
def test_refusals_name_file_line_and_value(old: str, new: str, message: str) -> None:
    assert old in ENTRY
    assert re.fullmatch(f"spec.yaml:{message}", refusal(ENTRY.replace(old, new, 1)))


def test_parameters_and_what_is_rewritten_are_wide_unless_said() -> None:
    text = ENTRY.replace("doc: Offset.", "parameter: true, doc: Offset.").replace("tags: [pointwise]", "updates: [x]")
    assert [entry.dtype for entry in loads(text)[0].inputs] == ["parameter", "parameter"]
    given = loads(text.replace("shape: any", "dtype: same"))[0]
    assert [entry.dtype for entry in given.inputs] == ["same", "parameter"]


def test_an_axis_needs_an_input() -> None:
    text = ENTRY[: ENTRY.index("  inputs")]
    text += "  args: {axis: {type: axis, doc: d}}\n  outputs: {}\n  backward: {needs: []}\n"
    assert refusal(text) == "spec.yaml:5: Scale.axis: type axis must belong to a function with an input, got none"


def test_none_shown_for_a_default_needs_the_default() -> None:
    text = ENTRY.replace(", optional: true", "").replace("default: 2, minimum: 0", "shown_as_none: true")
    assert refusal(text) == "spec.yaml:9: Scale.factor: shown_as_none must come with a default, got none"


def test_names_are_unique_in_a_file() -> None:
    assert refusal(ENTRY + ENTRY) == "spec.yaml:19: Scale: name must be unique, got a second 'Scale'"
    again = ENTRY.replace("name: Scale", "name: Other")
    assert refusal(ENTRY + again) == "spec.yaml:20: Other: api must be unique, got a second 'scale'"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "the file must hold a list of functions, got a mapping"),
        ("- 1", "entry 1 of the list must be a mapping, got 1"),
    ],
)
def test_a_file_is_a_list_of_mappings(text: str, message: str) -> None:
    assert refusal(text) == f"spec.yaml:1: {message}"


def test_text_objects_of_python_are_not_made() -> None:
    assert "the file must be YAML" in refusal("- !!python/object/apply:os.getcwd []")


# Hostile text.

_ALIASES = "- &a0 [x, x]\n" + "".join(f"- &a{n + 1} [*a{n}, *a{n}]\n" for n in range(30))
_SWISH = """
- name: acme.Swish
  api: acme_swish
  topic: activation
  doc: Swish.
  inputs:
    x: {doc: Any array.}
  args:
    beta: {type: float, default: 1.0, doc: Slope.}
  outputs:
    y: {doc: Array of the shape of x.}
  shape: same_as x
  backward: {needs: [x, y]}
  tags: [pointwise]
"""


@pytest.mark.parametrize(
    "text",
    ["- 2020-13-45", "- !!int x", "- !!float x", "- !!timestamp x", "&a [*a]", "- &a {name: *a}", "- !!python/object:os.x {}"],
)
def test_values_that_are_not_what_they_seem_are_refused(text):
    with pytest.raises(SpecError, match=r"acme\.yaml:1: "):
        loads(text, "acme.yaml")


def test_a_damaged_specification_is_read_or_refused_and_nothing_else():
    rng = random.Random(313)
    refused = 0
    for _ in range(400):
        characters = list(_SWISH)
        for _ in range(rng.randint(1, 6)):
            position = rng.randrange(len(characters) - 10)
            characters[position : position + rng.randint(0, 8)] = rng.choice("{}[]:,-&*!|>'%@`#? ab0.~<=") * rng.randint(0, 1)
        try:
            loads("".join(characters), "acme.yaml")
        except SpecError as error:
            refused += 1
            assert str(error).startswith("acme.yaml:")
    assert 100 < refused <= 400


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 20_000, "acme.yaml:1: the file must be nested at most 32 deep"),
        (_ALIASES, "must have at most 500000 values, got more with its aliases"),
        ("x" * 4_000_001, "acme.yaml:1: the file must have at most 4000000 characters, got 4000001"),
    ],
)
def test_a_specification_that_would_take_for_ever_is_refused_at_once(text, message):
    def refused():
        with pytest.raises(SpecError, match=message):
            loads(text, "acme.yaml")

    assert n_calls(refused) < 20_000


FORMS = """
- {a: [1, -2, 0x1F, 0o7, 1_000, 1.5, -.inf, .5, true, No, null, ~, '', "a\tb", 'it''s'], b: {}, c: 1e-5}
- &shared
  text: >-
    folded
    lines
  other: |
    kept
    lines
  n: !!str 5
- [*shared, *shared, []]
-
- "quoted key": not a list
"""


class UsualReader(yaml.SafeLoader):
    """The safe loader, which reads 1e-5 as a number."""


UsualReader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+$"), list("-+0123456789"))


def test_text_gives_what_the_usual_reader_gives() -> None:
    specification = (Path(__file__).parents[3] / "function_spec.yaml").read_text(encoding="utf-8")
    for text in (specification[:20_000], FORMS, ""):
        whole = text[: text.rindex("\n- name")] if len(text) == 20_000 else text
        assert parse_yaml(whole, "f") == yaml.load(whole, UsualReader)  # a subclass of the safe loader


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n--- \n- b", "f:2: the file must be YAML, got: expected a single document in the stream"),
        ("- *a", "f:1: the file must be YAML, got: found undefined alias 'a'"),
        ("- &a [*a]", "f:1: the file must be YAML, got: found undefined alias 'a'"),
        ("- 1\n- <<: {a: 1}", "f:2: the file must be YAML, got: the tag 'tag:yaml.org,2002:merge'"),
        ("- 2026-01-01", "f:1: the file must be YAML, got: the tag 'tag:yaml.org,2002:timestamp'"),
        ("- !!int x", "f:1: the file must hold plain values, got: "),
        ("- {1: 2}", "f:1: keys must be strings, got 1"),
        ("- {[1]: 2}", r"f:1: keys must be strings, got \[1\]"),
        ("- a: 1\n  a: 2", "f:2: keys must be unique, got a second 'a'"),
    ],
)
def test_text_that_is_no_plain_yaml_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_yaml(text, "f")


def test_a_part_with_equal_words_of_other_types_is_no_known_one():
    """True is equal to 1: an entry that was sound must not let another pass."""
    text = (
        '[{"name": "A", "api": "a", "topic": "math", "doc": "A.", "backward": {"needs": []}, "outputs": {"y": {"doc": "Y."}},'
    )
    entry = text.replace('"math"', '"arithmetic"') + ' "inputs": {"x": {"doc": "X.", "optional": %s}}, "shape": "same_as x"}]'
    assert loads(entry % "true", "f")[0].inputs[0].optional is True
    with pytest.raises(SpecError, match="optional must be a boolean, got 1"):
        loads(entry % "1", "f")


def alike(number: int, default: str = "1", kind: str = "int") -> str:
    """Return the entry of a function that differs in its names and prose, and in the default of its argument."""
    return (
        f'{{"name": "F{number}", "api": "f{number}", "topic": "arithmetic", "doc": "Function {number}.", '
        f'"inputs": {{"x": {{"doc": "X."}}}}, "args": {{"a": {{"type": "{kind}", "default": {default}, "doc": "A."}}}}, '
        '"outputs": {"y": {"doc": "Y."}}, "shape": "same_as x", "backward": {"needs": ["x"]}, "tags": ["pointwise"]}'
    )


@pytest.mark.parametrize("wrong", ["true", "1.0", '"1"'])
def test_a_wrong_function_among_hundreds_that_are_alike_is_named(wrong: str) -> None:
    entries = [alike(number, wrong if number == 250 else "1") for number in range(300)]
    with pytest.raises(SpecError, match=r"^f:251: F250.a: default must be of type int, got (True|1.0|'1')"):
        loads("[" + ",\n".join(entries) + "]", "f")


def test_functions_that_are_alike_are_checked_once() -> None:
    """A plugin of thousands of operators must not pay for each what they have in common."""

    def read(count: int) -> None:
        specs = loads("[" + ",".join(map(alike, range(count))) + "]", "f")
        assert [spec.doc for spec in specs] == [f"Function {number}." for number in range(count)]
        assert {spec.inputs for spec in specs} == {specs[0].inputs}

    few, many = n_calls(read, 100), n_calls(read, 200)
    assert (many - few) / 100 < 80  # 57 each; 111 if parts were looked up one by one


def test_bytes_that_are_no_text_are_refused_with_their_line(tmp_path) -> None:
    (tmp_path / "f.yaml").write_bytes(b"- name: acme.A\n  api: \xff\n")
    with pytest.raises(SpecError, match=r"f\.yaml:2: the file must be text in UTF-8, got the byte 0xff"):
        load(tmp_path / "f.yaml")


@pytest.mark.parametrize("text", ["- \ud800", '["\udcff"]'])
def test_half_characters_are_refused(text: str) -> None:
    with pytest.raises(SpecError, match="f:1: the text must be Unicode"):
        loads(text, "f")
