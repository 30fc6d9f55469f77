"""Functions stay short enough to be read: few paths lead through each of them."""

from pathlib import Path

import pytest
from radon.complexity import cc_visit
from radon.visitors import Function

from tests.markdown import ROOT

#: Cyclomatic complexity as radon counts it, with the operators of conditions.
LIMIT = 12
#: Functions that each call passes, where a call more would be felt; the comments there say so.
HOT = {
    ("nn_core/engine/graph/trace.py", "Trace.follow"),
    ("nn_core/engine/graph/run.py", "run"),
    ("nn_core/engine/graph/plan.py", "Plan.run"),
    ("nn_core/operators/rules/arguments.py", "resolve_args"),
}
PACKAGES = [ROOT / "nn_core", *sorted(path.parent for path in (ROOT / "extensions").glob("*/nn_ext_*/__init__.py"))]
LONGEST_LINE = 120


def above_limit(path: Path) -> set[tuple[str, str]]:
    blocks = cc_visit(path.read_text(encoding="utf-8"))
    functions = [block for block in blocks if isinstance(block, Function)]
    return {(str(path.relative_to(ROOT)), block.fullname) for block in functions if block.complexity > LIMIT}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_no_function_has_more_paths_than_the_limit_but_the_hot_ones(package):
    modules = [path for path in package.rglob("*.py") if "templates" not in path.parts]
    assert modules
    found = set().union(*map(above_limit, modules))
    assert found == {(path, name) for path, name in HOT if (ROOT / path).is_relative_to(package)}


def test_lines_of_cpp_are_not_too_long():
    sources = [path for suffix in ("cpp", "hpp") for path in (ROOT / "extensions/nn_ext_cpu/src").rglob(f"*.{suffix}")]
    assert sources
    lines = [(path.name, line) for path in sources for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(name, line) for name, line in lines if len(line) > LONGEST_LINE] == []
