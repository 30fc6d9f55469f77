"""Check typed programs of users by mypy and by pyright: those in tests/typing/programs, the README and the tutorials must be
accepted, and in tests/typing/wrong exactly the lines marked ``# rejected`` must be reported.

Run: python tools/release/check_types.py
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TYPED = ROOT / "tests" / "typing"
TUTORIALS = ROOT / "examples" / "tutorials"
#: The options for programs without annotations; everything else of ``--strict`` holds for them too.
UNTYPED = ("--allow-untyped-defs", "--allow-untyped-calls", "--check-untyped-defs", "--allow-any-generics")


def main() -> int:
    """Print what is wrong; the exit status is 1 if anything is."""
    with tempfile.TemporaryDirectory() as folder:
        readme = Path(folder) / "readme.py"
        readme.write_text(readme_program(), encoding="utf-8")
        programs = [*sorted((TYPED / "programs").glob("*.py")), readme]
        tutorials = sorted(TUTORIALS.glob("*.py"))
        wrong = sorted((TYPED / "wrong").glob("*.py"))
        found = [
            *by_mypy(programs),
            *by_mypy(tutorials, *UNTYPED),
            *by_pyright(folder, [*programs, *tutorials]),
        ]
        problems = [f"{path.name}:{line}: {checker}: {text}" for checker, path, line, text in found]
        for checker, reports in (("mypy", by_mypy(wrong)), ("pyright", by_pyright(folder, wrong))):
            problems += unexpected(checker, wrong, {(path, line) for _, path, line, _ in reports})
    summary = f"{len(programs) + len(tutorials)} programs accepted, {len(wrong)} rejected where they must be"
    sys.stdout.write("\n".join(problems or [summary]) + "\n")
    return 1 if problems else 0


Report = tuple[str, Path, int, str]


def by_mypy(files: Iterable[Path], *options: str) -> list[Report]:
    """Return the reports of ``mypy --strict``."""
    command = [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--ignore-missing-imports", "--no-error-summary"]
    environment = {"MYPYPATH": str(TUTORIALS)}
    text = _output([*command, "--hide-error-context", "--no-pretty", *options, *map(str, files)], environment)
    matches = [re.fullmatch(r"(.+?):(\d+): (error: .*)", line) for line in text.splitlines()]
    return [("mypy", (ROOT / match[1]).resolve(), int(match[2]), match[3]) for match in matches if match]


def by_pyright(folder: str, files: Iterable[Path]) -> list[Report]:
    """Return the reports of pyright (its distribution ``basedpyright``, whose wheel brings all it needs)."""
    settings = {
        "include": [str(path) for path in files],
        "typeCheckingMode": "standard",
        "pythonVersion": "3.10",
        "extraPaths": [str(TUTORIALS)],
        "venvPath": str(Path(sys.prefix).parent),
        "venv": Path(sys.prefix).name,
        "reportMissingImports": False,
        "reportPossiblyUnboundVariable": False,  # a loop that runs at least once
        "useLibraryCodeForTypes": False,
    }
    project = Path(folder) / "pyrightconfig.json"
    project.write_text(json.dumps(settings), encoding="utf-8")
    text = _output([str(Path(sys.executable).parent / "basedpyright"), "--outputjson", "-p", str(project)])
    return [
        ("pyright", Path(entry["file"]).resolve(), entry["range"]["start"]["line"] + 1, entry["message"])
        for entry in json.loads(text)["generalDiagnostics"]
        if entry["severity"] == "error"
    ]


def unexpected(checker: str, files: Iterable[Path], reported: set[tuple[Path, int]]) -> list[str]:
    """Return the lines that should be reported and are not, and the other way round."""
    problems = []
    for path in files:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if ("# rejected" in line) != ((path.resolve(), number) in reported):
                verb = "accepts" if "# rejected" in line else "reports"
                problems.append(f"{path.name}:{number}: {checker} {verb}: {line}")
    return problems


def readme_program() -> str:
    """Return the Python blocks of the README, one after the other."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def _output(command: list[str], environment: dict[str, str] | None = None) -> str:
    variables = {**os.environ, **(environment or {})}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=variables)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command[0]} failed: {done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
