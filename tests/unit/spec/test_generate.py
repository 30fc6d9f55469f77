"""The generator: committed files are up to date, and the text it writes is what it should be."""

import ast
import inspect
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path

import pytest

from nn_core.operators.rules.defaults import DEFAULT_RULES
from nn_core.operators.spec.__main__ import ROOT, main
from nn_core.operators.spec.builtin import BY_API, BY_NAME, SPECS
from nn_core.operators.spec.generate import generate
from nn_core.operators.spec.load import load
from nn_core.operators.spec.model import PROSE

SPEC = """\
- name: Rotate
  api: rotate
  topic: image
  doc: Turn images "by" an angle.
  formula: y = R x
  inputs:
    x: {doc: Images., shape: "(N, C, H, W)"}
    bias: {doc: Offset, optional: true}
  args:
    angle: {type: float, default: 0.5, shown_as_none: true, doc: Angle}
    axes: {type: axes, default: {rule: all_axes}, doc: Axes to turn.}
    mode: {type: str, default: near, choices: [near, far], keyword_only: true, doc: Mode}
  outputs:
    y: {doc: Turned images.}
    index: {doc: Places., optional: true}
  backward: {needs: []}
- {name: Mix, api: mix, topic: image, doc: Mix., inputs: {w: {doc: W.}, x: {doc: X., variadic: true}},
   args: {axis: {type: axis, doc: Axis.}}, outputs: {y: {doc: Y.}}, backward: {needs: []}}
- {name: Zero, api: zero, topic: random, doc: Zero., outputs: {y: {doc: Y., variadic: true}}, backward: {none: why}}
"""

ROTATE = '''\
def rotate(x=None, bias=None, angle=None, axes=None, n_outputs=-1, outputs=None, *surplus, mode="near", **unknown):
    """Turn images "by" an angle.

    y = R x

    Args:
        x: Images. Shape (N, C, H, W).
        bias: Offset. Optional.
        angle: Angle. Default: 0.5.
        axes: Axes to turn. Default: all axes.
        mode: Mode. One of 'near', 'far'.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Turned images.
        index: Places. Only where asked for.

    Spec: function_spec.yaml, entry Rotate
    """
    if surplus or unknown:
        refuse(ROTATE, surplus, unknown)
    return apply(ROTATE, (x, bias), {"angle": angle, "axes": axes, "mode": mode}, outputs)
'''

ROTATE_STUB = """\
def rotate(
    x: Operand,
    bias: Operand | None = None,
    angle: float | None = None,
    axes: int | Sequence[int] | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
    *,
    mode: str = "near",
) -> Operand | tuple[Operand, ...]: ...
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "function_spec.yaml").write_text(SPEC)
    composite = tmp_path / "nn_core" / "functions" / "composite"
    composite.mkdir(parents=True)
    (composite / "image.py").write_text('__all__ = ["mix"]\n')
    return tmp_path


def test_committed_files_are_not_stale(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().out


def facts(value: object) -> object:
    """Return a specification without what only readers need."""
    if isinstance(value, tuple):
        return tuple(map(facts, value))
    if not is_dataclass(value):
        return value
    return {field.name: facts(getattr(value, field.name)) for field in fields(value) if field.metadata != PROSE}


def prose(value: object) -> list[str]:
    """Return the texts that only readers need, in the order of the fields."""
    if isinstance(value, tuple):
        return [text for part in value for text in prose(part)]
    if not is_dataclass(value):
        return []
    texts = [
        [getattr(value, field.name)] if field.metadata == PROSE else prose(getattr(value, field.name))
        for field in fields(value)
    ]
    return [text for found in texts for text in found]


def test_builtin_specifications_are_those_of_the_file() -> None:
    assert repr(list(map(facts, SPECS))) == repr(list(map(facts, load(ROOT / "function_spec.yaml"))))
    assert BY_NAME["Affine"] is BY_API["affine"]


def test_prose_is_in_the_docstrings_alone() -> None:
    assert set(prose(SPECS)) == {""}
    for spec in load(ROOT / "function_spec.yaml"):
        topic = import_module(f"nn_core.functions.{spec.topic}")
        words = " ".join((inspect.getdoc(getattr(topic, spec.api)) or "").split())
        told = prose(replace(spec, outputs=spec.visible_outputs))
        assert [text for text in told if " ".join(text.split()).rstrip(".") not in words] == []


def test_default_rules_exist() -> None:
    assert {arg.default_rule for spec in SPECS for arg in spec.args if arg.default_rule} <= set(DEFAULT_RULES)


def test_functions_have_the_public_signature_and_docstring(checkout: Path) -> None:
    files = generate(checkout)
    text, stub = (files[checkout / "nn_core" / "functions" / name] for name in ("image.py", "image.pyi"))
    assert ROTATE in text and ROTATE_STUB in stub
    assert "def mix(\n    w: Operand,\n    *x: Operand,\n    axis: int,\n    n_outputs: int = -1,\n" in stub
    assert "def mix(w=None, *x, axis=None, n_outputs=-1, outputs=None, **unknown):" in text
    assert 'return apply(MIX, (w, *x), {"axis": axis}, outputs)' in text


def test_functions_without_inputs_give_variables(checkout: Path) -> None:
    files = generate(checkout)
    text, stub = (files[checkout / "nn_core" / "functions" / name] for name in ("random.py", "random.pyi"))
    assert "-> tuple[Variable, ...]: ..." in stub and "return apply(ZERO, (), {}, outputs)" in text


def test_functions_by_hand_take_the_place_of_generated_ones(checkout: Path) -> None:
    text = generate(checkout)[checkout / "nn_core" / "functions" / "__init__.py"]
    assert "from nn_core.functions.composite.image import mix\n" in text
    assert "from nn_core.functions.image import mix" not in text
    assert '__all__ = [\n    "mix",\n    "rotate",\n    "zero",\n]' in text


def test_generated_specifications_say_what_the_file_says(checkout: Path) -> None:
    text = generate(checkout)[checkout / "nn_core" / "operators" / "spec" / "builtin" / "image.py"]
    names: dict[str, object] = {}
    exec(compile(ast.parse(text), "image.py", "exec"), names)
    assert repr(facts(names["SPECS"])) == repr(facts(load(checkout / "function_spec.yaml")[:2]))


def test_check_changes_nothing_and_names_stale_files(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"], checkout) == 1
    shown = capsys.readouterr()
    assert "stale: nn_core/functions/image.py (+" in shown.out
    assert "stale files: run `python -m nn_core.operators.spec`" in shown.err
    assert not (checkout / "nn_core" / "functions" / "image.py").exists()
    assert main([], checkout) == 0
    assert main(["--check"], checkout) == 0
