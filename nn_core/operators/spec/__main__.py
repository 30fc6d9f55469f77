"""Write the generated modules, or with ``--check`` say which of them are stale."""

import argparse
import difflib
import sys
from pathlib import Path

from nn_core.operators.spec.generate import generate

ROOT = Path(__file__).resolve().parents[3]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Write the stale files, or only name them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m nn_core.operators.spec", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a file is stale")
    check = parser.parse_args(arguments).check
    stale = 0
    for path, text in generate(root).items():
        present = path.read_text(encoding="utf-8") if path.exists() else ""
        if present == text:
            continue
        stale += 1
        added, removed = _changes(present, text)
        print(f"{'stale' if check else 'wrote'}: {path.relative_to(root)} (+{added} -{removed} lines)")  # noqa: T201
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if check and stale:
        print(f"{stale} stale files: run `python -m nn_core.operators.spec`", file=sys.stderr)  # noqa: T201
    return 1 if check and stale else 0


def _changes(before: str, after: str) -> tuple[int, int]:
    """Numbers of lines added and removed between two texts."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))[2:]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


if __name__ == "__main__":
    sys.exit(main())
