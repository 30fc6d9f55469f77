"""Known failures: lines ``id  date  reason`` in the file xfails.txt beside the tests.

A test that is listed must fail (strict), and a line that names no test is an error. Empty lines and lines that start
with # are for people.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.errors import ArgumentError, FileFormatError
from nn_core.operators.spec.model import FunctionSpec
from nn_core.testing.fusions import FusionCase, is_chosen, require_known

_LINE: Final = re.compile(r"(?P<id>\w+(\[[^\]]*\])?)\s+(?P<date>\d{4}-\d\d-\d\d)\s+(?P<reason>\S.*)")


@dataclass(frozen=True, slots=True)
class XFail:
    """One known failure."""

    id: str
    date: str
    reason: str


@cache
def read_xfails(path: Path) -> dict[str, XFail]:
    """Return the lines of `path` by id; nothing if there is no such file.

    Raises:
        FileFormatError: when a line is not ``id  YYYY-MM-DD  reason``, or lists an id a second time.
    """
    if not path.exists():
        return {}
    found: dict[str, XFail] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise FileFormatError(f"{path}:{number}: a line must read 'id  YYYY-MM-DD  reason', got {text!r}")
        if match["id"] in found:
            raise FileFormatError(f"{path}:{number}: an id must be listed once, got {match['id']!r} again")
        found[match["id"]] = XFail(match["id"], match["date"], match["reason"])
    return found


def xfails_of(module: ModuleType) -> dict[str, XFail]:
    """Return the known failures of a test module."""
    return read_xfails(Path(str(module.__file__)).with_name("xfails.txt"))


def chosen_cases(test: Any, module: ModuleType, backends: Sequence[str], *, fast: bool = False) -> list[Any]:
    """Return the cases of one test on some backends, for the FUNCTIONS and FUSIONS of its module if it names any."""
    functions, fusions = getattr(module, "FUNCTIONS", ()), getattr(module, "FUSIONS", ())
    specs = [_spec(name) for name in functions]
    require_known(fusions)
    cases = test.conformance_cases(backends, fast)
    if not functions and not fusions:
        return [case for case in cases if not isinstance(case, FusionCase) or is_chosen(case, (), (), backends)]
    return [
        case
        for case in cases
        if (is_chosen(case, fusions, functions, ()) if isinstance(case, FusionCase) else getattr(case, "spec", None) in specs)
    ]


def _spec(name: str) -> FunctionSpec:
    spec = PLUGINS.function_named(name)
    if spec is None:
        raise ArgumentError(f"FUNCTIONS: names must be of functions of installed packages, got {name!r}")
    return spec


def test_id(name: str, case: Any) -> str:
    """The id of a test, as pytest prints it after the file."""
    return f"{name}[{case}]"


def check_xfails(module: ModuleType, backends: Sequence[str]) -> None:
    """Every known failure of `module` names one of its tests."""
    known = xfails_of(module)
    tests = [(name, test) for name, test in vars(module).items() if hasattr(test, "conformance_cases")]
    ids = {test_id(name, case) for name, test in tests for case in chosen_cases(test, module, backends)} if known else ()
    unknown = sorted(set(known) - set(ids))
    if unknown:
        raise AssertionError(f"xfails.txt: every id must name a test, got {', '.join(unknown)}")
