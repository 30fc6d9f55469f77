"""Write docs/tasks.md: the lines of everyday programs here and in another framework; `python -m tools.site.tasks [--check]`.

The programs are in examples/tasks, `resume.py` beside `resume_torch.py` or `resume_keras.py`.
"""

import ast
import sys
import tokenize
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "tasks"
PAGE = ROOT / "docs" / "tasks.md"
#: The endings of the names of programs of other frameworks.
PEERS = {"torch": "PyTorch", "keras": "Keras"}
_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)

INTRODUCTION = """# Everyday tasks in lines

Programs for everyday tasks, each beside one that does the same in PyTorch with its usual companions, or in Keras where ours is
a call of `fit`. They are in `examples/tasks`, and the tests run them.

A line is a statement or the head of a block, even if it is broken into several; imports count, and so do the lines of text in
a string that runs over several lines. Blank lines, comments and docstrings do not count.
"""


@dataclass(frozen=True)
class Task:
    """A program of ours and one of another framework."""

    ours: Path
    peer: Path

    @property
    def framework(self) -> str:
        """Key of the other framework."""
        return self.peer.stem.rpartition("_")[2]

    @property
    def title(self) -> str:
        """The docstring of our program, without its full stop."""
        return (ast.get_docstring(ast.parse(self.ours.read_text(encoding="utf-8"))) or "").partition("\n")[0].rstrip(".")


def tasks() -> list[Task]:
    """All tasks by name; each has one program of another framework."""
    found = []
    for ours in sorted(FOLDER.glob("*.py")):
        if not ours.stem.endswith(tuple(f"_{peer}" for peer in PEERS)):
            (peer,) = (path for name in PEERS if (path := FOLDER / f"{ours.stem}_{name}.py").exists())
            found.append(Task(ours, peer))
    return found


def lines_of(program: str) -> int:
    """Return number of lines of code."""
    nodes = ast.walk(ast.parse(program))
    documented = [node for node in nodes if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))]
    docstrings = {node.body[0].lineno for node in documented if ast.get_docstring(node) is not None}
    count, start = 0, 0
    for token in tokenize.generate_tokens(iter(program.splitlines(keepends=True)).__next__):
        if token.type == tokenize.NEWLINE:
            count += start not in docstrings
            start = 0
        elif token.type not in _NO_CODE:
            start = start or token.start[0]
            if token.type == tokenize.STRING and start not in docstrings:
                # the first line is that of the statement, and the last one has the quotes only
                count += max(token.end[0] - token.start[0] - 1, 0)
    return count


def page() -> str:
    """Return the page with its table."""
    rows = [(task, *(lines_of(path.read_text(encoding="utf-8")) for path in (task.ours, task.peer))) for task in tasks()]
    not_longer = sum(ours <= theirs for _, ours, theirs in rows)
    totals = [sum(row[column] for row in rows) for column in (1, 2)]
    said = f"all have {totals[0]} lines, the others {totals[1]}"
    lines = [
        INTRODUCTION,
        f"Our program has at most as many lines in {not_longer} of {len(rows)} tasks; {said}.",
        "",
    ]
    lines += ["| task | nn_core | other framework |", "|---|---|---|"]
    for task, ours, theirs in rows:
        ours_link, peer_link = (f"../examples/tasks/{path.name}" for path in (task.ours, task.peer))
        lines.append(f"| {task.title} | [{ours}]({ours_link}) | [{theirs}]({peer_link}) {PEERS[task.framework]} |")
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
