"""The pages of the functions say what the specification says."""

from pathlib import Path

from nn_core.operators.spec.builtin import SPECS
from nn_core.operators.spec.load import loads
from tools.site.function_pages import composites, function_section, overview, pages, table

ROOT = Path(__file__).parents[2]

SPEC = """\
- name: Rotate
  api: rotate
  topic: image
  doc: Turn images by an angle.
  formula: y = |R| x
  inputs:
    x: {doc: Images., shape: "(N, C, H, W)"}
    rest: {doc: More images., variadic: true, dtype: same}
  args:
    angle: {type: float, default: 0.5, minimum: 0, maximum: 1, doc: Part of |a| turn.}
    axes: {type: axes, default: {rule: all_axes}, doc: Axes to turn.}
    mode: {type: str, choices: [near, far], keyword_only: true, doc: How.}
  outputs:
    y: {doc: Turned images.}
    index: {doc: Places., optional: true, dtype: index}
    mask: {doc: Kept for the gradient., aux: true}
  backward: {needs: [x]}
  tags: [seeded]
  updates: [x]
  notes: Turns to the left.
  example: F.rotate(x)
"""

SECTION = """\
## rotate

```python
F.rotate(x, *rest, angle=0.5, axes=None, mode)
```

Turn images by an angle.

```text
y = |R| x
```

| input | shape | values | meaning |
|---|---|---|---|
| `x` | (N, C, H, W) | floating | Images. |
| `*rest` |  | any | More images. |

| argument | type | default | meaning |
|---|---|---|---|
| `angle` | float, at least 0, at most 1 | `0.5` | Part of \\|a\\| turn. |
| `axes` | axes | all axes | Axes to turn. |
| `mode` | `'near'` or `'far'` |  | How. |

| output | shape | values | meaning |
|---|---|---|---|
| `y` |  | floating | Turned images. |
| `index`, where asked for |  | int64 | Places. |

**Gradient:** reads `x`.

**Tags:** seeded

**Rewrites:** `x`

**Notes:** Turns to the left.

```python
F.rotate(x)
```

Operator `Rotate`, since 0.1."""


def test_a_section_says_everything_that_the_specification_says():
    assert function_section(loads(SPEC)[0]) == SECTION


def test_a_section_shows_the_public_arguments_before_those_of_the_operator():
    text = function_section(loads(SPEC)[0], by_hand="x, angle=0.5")
    assert "F.rotate(x, angle=0.5)\n" in text
    assert "the operator beneath, `rotate(x, *rest, angle=0.5, axes=None, mode)`" in text


def test_a_function_without_gradient_says_why():
    (spec,) = loads(
        "- {name: Zero, api: zero, topic: random, doc: Zero., outputs: {y: {doc: Y.}}, backward: {none: It is flat.}}"
    )
    assert "**Gradient:** none, because it is flat." in function_section(spec)
    (spec,) = loads("- {name: One, api: one, topic: random, doc: One., outputs: {y: {doc: Y.}}, backward: {needs: []}}")
    assert "**Gradient:** reads no values." in function_section(spec)


def test_functions_by_hand_are_listed_with_their_arguments():
    found = composites(ROOT / "nn_core" / "functions")
    assert found["mean"] == ("x, axis=None, keepdims=False", "Average over axes.")
    assert not [name for name in found if name.startswith("_")]


def test_a_table_without_rows_is_left_out():
    assert table(("a",), []) == ""


def test_every_operator_has_a_section_on_the_page_of_its_topic():
    found = pages(ROOT)
    assert [spec.api for spec in SPECS if f"\n\n## {spec.api}\n\n" not in found[f"{spec.topic}.md"]] == []


def test_the_overview_leads_to_every_function():
    text = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    whole = overview(ROOT, text)
    assert [spec.api for spec in SPECS if f"[{spec.api}]({spec.topic}.md#{spec.api})" not in whole] == []
    assert "| `mean(x, axis=None, keepdims=False)` | Average over axes. |" in whole
    assert [line for line in text.splitlines() if line not in whole.splitlines()] == []


def test_the_pages_follow_the_specification(tmp_path):
    (tmp_path / "function_spec.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "nn_core" / "functions").mkdir(parents=True)
    assert pages(tmp_path) == {"image.md": f"# Image\n\n{SECTION}\n"}
    assert "- [image](image.md): [rotate](image.md#rotate)\n" in overview(tmp_path, "# Functions\n\n## Errors\n\nNone.\n")
