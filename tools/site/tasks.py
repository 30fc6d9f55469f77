"""Write docs/tasks.md: the tokens of everyday programs here and in other frameworks; `python -m tools.site.tasks [--check]`.

The programs are in examples/tasks, `resume.py` beside `resume_torch.py`, `resume_keras.py` or both.
"""

import ast
import io
import sys
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "tasks"
PAGE = ROOT / "docs" / "tasks.md"
#: The endings of the names of programs of other frameworks.
PEERS = {"torch": "PyTorch", "keras": "Keras"}
_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)

INTRODUCTION = """# Everyday tasks in tokens

Programs for everyday tasks, each beside those that do the same in PyTorch with its usual companions and in Keras, where it has
what the task takes. They are in `examples/tasks`, all written by the same formatter, and the tests run them.

A token is what Python's `tokenize` finds: a name, a number, a text, an operator, a bracket or a comma. Imports count; comments
and docstrings do not.
"""


@dataclass(frozen=True)
class Task:
    """A program of ours and those of other frameworks, by their keys."""

    ours: Path
    peers: Mapping[str, Path]

    @property
    def title(self) -> str:
        """The docstring of our program, without its full stop."""
        return (ast.get_docstring(ast.parse(self.ours.read_text(encoding="utf-8"))) or "").partition("\n")[0].rstrip(".")

    def counts(self) -> dict[str, int]:
        """Return the numbers of tokens by framework, ours first."""
        paths = {"nn_core": self.ours, **self.peers}
        return {name: tokens_of(path.read_text(encoding="utf-8")) for name, path in paths.items()}


def tasks() -> list[Task]:
    """Return all tasks by name; each has a program of another framework at least."""
    found = []
    for ours in sorted(FOLDER.glob("*.py")):
        if not ours.stem.endswith(tuple(f"_{peer}" for peer in PEERS)):
            peers = {name: path for name in PEERS if (path := FOLDER / f"{ours.stem}_{name}.py").exists()}
            assert peers, f"{ours.name} stands alone"
            found.append(Task(ours, peers))
    return found


def tokens_of(program: str) -> int:
    """Return number of tokens of the code."""
    nodes = ast.walk(ast.parse(program))
    documented = [node for node in nodes if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))]
    docstrings = {(node.body[0].lineno, node.body[0].col_offset) for node in documented if ast.get_docstring(node) is not None}
    tokens = tokenize.generate_tokens(io.StringIO(program).readline)
    return sum(token.type not in _NO_CODE and token.start not in docstrings for token in tokens)


def is_longer(counts: Mapping[str, int]) -> bool:
    """Return whether our program has more tokens than the shortest of the others."""
    return counts["nn_core"] > min(count for name, count in counts.items() if name != "nn_core")


def page() -> str:
    """Return the page with its table."""
    rows = [(task, task.counts()) for task in tasks()]
    not_longer = sum(not is_longer(counts) for _, counts in rows)
    lines = [
        INTRODUCTION,
        f"In {not_longer} of {len(rows)} tasks our program has at most as many tokens as the shortest of the others.",
        "",
        f"| task | nn_core | {' | '.join(PEERS.values())} |",
        "|---|---|" + "---|" * len(PEERS),
    ]
    for task, counts in rows:
        paths = {"nn_core": task.ours, **task.peers}
        links = {name: f"[{counts[name]}](../examples/tasks/{path.name})" for name, path in paths.items()}
        cells = [links.get(name, "") for name in ("nn_core", *PEERS)]
        lines.append(f"| {task.title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page, or with --check exit with an error when it is stale."""
    text = page()
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit("docs/tasks.md is stale: run make gen")
        return
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
