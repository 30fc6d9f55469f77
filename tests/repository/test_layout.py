"""The folder `nn_core` can be seen at once: few entries beside the modules that NNabla has."""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Entries beside NNabla's module names, each a word that a user or an author of plugins knows.
LIMIT = 25
#: Modules that stand above the rest of their package in the layers.
HIGHER = {"engine.runtime.registrations"}


def modules_of_nnabla() -> set[str]:
    lines = (ROOT / "tools" / "nnabla" / "nnabla_names.txt").read_text(encoding="utf-8").splitlines()
    return {parts[1] for parts in (line.partition(":")[0].split(".") for line in lines) if len(parts) > 1}


def test_the_top_of_the_package_has_few_entries() -> None:
    entries = {path.name.partition(".")[0] for path in (ROOT / "nn_core").iterdir() if path.name != "__pycache__"}
    ours = sorted(entries - modules_of_nnabla())
    assert {"engine", "operators", "files", "data", "training"} <= set(ours)
    assert len(ours) <= LIMIT, ours
    assert len(entries - set(ours)) > 20, "the list of NNabla's names was not read"


def test_every_entry_of_the_top_is_in_the_picture_or_a_door_of_nnabla() -> None:
    picture = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Layers")[0]
    folders = {path.name for path in (ROOT / "nn_core").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert sorted(name for name in folders - modules_of_nnabla() if f"{name}/" not in picture) == []


def test_no_module_or_class_has_a_name_that_the_glossary_replaced() -> None:
    rows = re.findall(r"^\|.*\| ([^|]*) \|$", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    replaced = {name for row in rows for name in re.findall(r"`([\w/]+)`", row)}
    modules = {name for name in replaced if "/" in name}
    assert {"graph/shown", "nn_ext_cuda/held"} <= modules and "Places" in replaced
    endings = tuple(f"/{name}" for name in modules)
    files = [path for folder in ("nn_core", "extensions", "tools") for path in sorted((ROOT / folder).rglob("*.py"))]
    sources = [path for path in files if not {"tests", "build", ".venv"} & set(path.relative_to(ROOT).parts)]
    assert [str(path.relative_to(ROOT)) for path in sources if path.with_suffix("").as_posix().endswith(endings)] == []
    pattern = re.compile(rf"^class ({'|'.join(sorted(replaced - modules))})\b", re.MULTILINE)
    assert [str(path.relative_to(ROOT)) for path in sources if pattern.search(path.read_text(encoding="utf-8"))] == []


def test_the_table_of_layers_has_the_order_of_the_contract() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Layers")[2]
    cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    names = [re.findall(r"`([\w.]+)`", cell) for cell in cells]
    rows = {name: number for number, row in enumerate(names) for name in row}
    assert len(rows) == sum(map(len, names)) > 30, "a module stands in one row"
    contract = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("\nlayers = [")[2].partition("]")[0]
    modules = [name for name in re.findall(r"nn_core\.([\w.]+)", contract) if name not in HIGHER]
    found = [(rows[name], module) for module in modules for name in [closest(module, rows)] if name]
    assert len(found) > len(rows)
    assert found == sorted(found, key=lambda pair: pair[0])


def test_helpers_of_tests_that_are_imported_by_a_bare_name_have_names_of_their_own() -> None:
    # One process runs the tests of all packages: of two `ranks.py` it imports one for both.
    files = (path for folder in (ROOT / "extensions").glob("*/tests") for path in sorted(folder.rglob("*.py")))
    helpers = [path for path in files if not path.name.startswith(("test_", "conftest", "__"))]
    bare = [path for path in helpers if not (path.parent / "__init__.py").exists()]
    counts = Counter(path.name for path in bare)
    assert len(counts) > 15
    assert {name for name, count in counts.items() if count > 1} == set()


def closest(module, names):
    """Return the longest of `names` that is `module` or a package around it."""
    return max((name for name in names if f"{module}.".startswith(f"{name}.")), key=len, default="")
