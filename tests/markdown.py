"""Python code in Markdown pages: blocks with prompts are doctests, others are programs."""

import doctest
import re
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nn_core

ROOT = Path(nn_core.__file__).parent.parent
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_blocks(path: Path, without: Collection[str | int] = (), given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Run the blocks of a page in their order; return the names that they define, and those that are `given`.

    A block that begins with ``# needs package`` is passed over where that package is not installed, or is one of `without`;
    so are blocks whose numbers are there.
    """
    text = path.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": path.stem, **(given or {})}
    for number, match in enumerate(_BLOCK.finditer(text), 1):
        needed = re.match(r"# needs (\w+)\n", match.group(1))
        if number in without or (needed and (needed[1] in without or find_spec(needed[1]) is None)):
            continue
        line = text.count("\n", 0, match.start()) + 1
        code = match.group(1)
        if ">>> " in code:
            names = _run_doctest(code, names, path, line)
        else:
            exec(compile("\n" * line + code, str(path), "exec"), names)
    return names


def blocks(path: Path) -> list[str]:
    """Return the blocks of a page."""
    return _BLOCK.findall(path.read_text(encoding="utf-8"))


def code_of(path: Path) -> str:
    """The blocks of a page, one after another."""
    return "\n".join(blocks(path))


def relative_links(path: Path) -> list[str]:
    """Return the links of a page to files of the repository."""
    return [link for link in _LINK.findall(path.read_text(encoding="utf-8")) if "://" not in link]


def _run_doctest(code: str, names: dict[str, Any], path: Path, line: int) -> dict[str, Any]:
    test = doctest.DocTestParser().get_doctest(code, names, f"{path.name}:{line}", str(path), line)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=_FLAGS)
    runner.run(test, out=report.append, clear_globs=False)
    assert not runner.failures, "".join(report)
    return test.globs
