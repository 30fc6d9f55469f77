"""Write the table of NNabla's public names in docs/from_nnabla.md; `python -m tools.nnabla.nnabla_names [--check]`.

`nnabla_names.txt` lists the names of NNabla 1.39, a module a line; members of classes follow their class, and a module that is
refused has none. A name is there, or `nn_core.compat.substitutes` says what to use instead.
"""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from nn_core.compat.substitutes import RENAMED, substitute

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "from_nnabla.md"
NAMES = Path(__file__).with_suffix(".txt")
BEGIN, END = "<!-- names: written by tools/nnabla/nnabla_names.py -->\n", "<!-- end of names -->\n"


def modules() -> Iterator[tuple[str, list[str]]]:
    """Yield the modules of NNabla with their names."""
    for line in NAMES.read_text(encoding="utf-8").splitlines():
        module, _, names = line.partition(":")
        yield module, names.split()


def is_there(module: str, name: str) -> bool:
    """Return whether nn_core has a name of a module of NNabla."""
    try:
        found = import_module(RENAMED.get(module, module.replace("nnabla", "nn_core", 1)))
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return False
    return True


def missing() -> dict[str, list[str]]:
    """Return the names that are not there by module; a class stands for its members."""
    found: dict[str, list[str]] = {}
    for module, names in modules():
        gone = [name for name in names if not is_there(module, name)]
        found[module] = [name for name in gone if name.partition(".")[0] == name or name.partition(".")[0] not in gone]
    return found


def table() -> str:
    """Return the table: a row for each module, and how many names are there in all."""
    gone = missing()
    lines = ["| module | names | there | missing, and what to use instead |", "|---|---|---|---|"]
    total = present = 0
    for module, names in modules():
        if names:
            there = sum(is_there(module, name) for name in names)
            total, present = total + len(names), present + there
            shown = there if there < len(names) else "all"
            lines.append(f"| `{module}` | {len(names)} | {shown} | {_told(module, gone[module])} |")
        else:
            lines.append(f"| `{module}` | all | none | the module: {substitute(module)} |")
    count = (
        f"Of {total:,} public names of NNabla 1.39, members of classes and values of modules included, {present:,} are there;"
        " modules that are refused as a whole have a row each."
    )
    return "\n".join([count, "", *lines, ""])


def _told(module: str, names: list[str]) -> str:
    by_text: dict[str, list[str]] = {}
    for name in names:
        by_text.setdefault(substitute(f"{module}.{name}") or "", []).append(f"`{name}`")
    return "; ".join(f"{', '.join(found)}: {text}" for text, found in by_text.items())


def page() -> str:
    """Return the page with the table of today."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Write the page, or with --check exit with an error when it is stale."""
    text = page()
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text(encoding="utf-8") != text:
            sys.exit("docs/from_nnabla.md is stale: run python -m tools.nnabla.nnabla_names")
        return
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
