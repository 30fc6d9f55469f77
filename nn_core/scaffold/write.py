"""Write packages from the templates."""

import re
from pathlib import Path
from typing import Final

from nn_core.engine.runtime import installed
from nn_core.errors import ArgumentError
from nn_core.scaffold.kinds import KINDS, Kind

_TEMPLATES: Final = Path(__file__).with_name("templates")
_NAME: Final = re.compile(r"[a-z][a-z0-9]{1,30}")
_OPERATOR: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
#: Files and templates of new operators of a package.
_FILES: Final = {"functions.yaml": "operator.yaml.in", "operators.py": "operator.py.in", "samples.py": "sample.py.in"}


def new_extension(name: str, kind: str, folder: Path) -> Path:
    """Write a package called ``nn-ext-<name>`` into a new folder below `folder`; returns it.

    Args:
        name: Name of the plugin: lower-case letters and digits.
        kind: Kind of extension: a key of `KINDS`.
        folder: An existing folder.

    Raises:
        ArgumentError: when the name is not a name or is taken, the kind is not known, or the folder of the package exists.
    """
    name = name.removeprefix("nn-ext-")
    if not _NAME.fullmatch(name):
        raise ArgumentError(f"new-extension: NAME must be lower-case letters and digits, such as 'acme', got {name!r}")
    if kind not in KINDS:
        raise ArgumentError(f"new-extension: KIND must be one of {', '.join(KINDS)}, got {kind!r}")
    if name in installed.installed_plugins():
        raise ArgumentError(f"new-extension: NAME must not be taken by an installed plugin, got {name!r}")
    target = folder / f"nn-ext-{name}"
    if target.exists():
        raise ArgumentError(f"new-extension: {target} must not exist, got a folder with that name")
    values = _values(name, kind, KINDS[kind])
    parts = ["common", "native_build" if KINDS[kind].native else "pure_build"]
    parts += ["operators"] if kind == "native" else []
    for part in (*parts, kind):
        _copy(_TEMPLATES / part, target, values)
    return target


def new_operator(name: str, folder: Path) -> list[Path]:
    """Add an operator to the package of operators in `folder`; returns the files that were changed.

    Args:
        name: Name of the operator in the style of nn_core, without the prefix of the plugin ("HardSwish").
        folder: The folder that ``new-extension --kind operators`` has written.

    Raises:
        ArgumentError: when the name is not a name or is taken, or there is no package of operators.
    """
    if not _OPERATOR.fullmatch(name):
        raise ArgumentError(f"new-operator: NAME must be a capital letter and letters or digits, as HardSwish, got {name!r}")
    found = sorted(folder.glob("src/nn_ext_*/functions.yaml"))
    if len(found) != 1:
        raise ArgumentError(f"new-operator: {folder} must have one src/nn_ext_*/functions.yaml, got {len(found)}")
    package = found[0].parent
    plugin = package.name.removeprefix("nn_ext_")
    api = f"{plugin}_{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', name).lower()}"
    if f"name: {plugin}.{name}\n" in found[0].read_text(encoding="utf-8"):
        raise ArgumentError(f"new-operator: NAME must be new, got {name!r}, which functions.yaml has")
    values = {"name": plugin, "Operator": name, "api": api, "function": api.removeprefix(f"{plugin}_")}
    changed = []
    for file, template in _FILES.items():
        addition = _filled((_TEMPLATES / "new_operator" / template).read_text(encoding="utf-8"), values)
        path = package / file
        path.write_text(path.read_text(encoding="utf-8").rstrip("\n") + "\n" + addition, encoding="utf-8")
        changed.append(path)
    project = folder / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    heading = '[project.entry-points."nn_core.index"]\n'
    project.write_text(text.replace(heading, f'{heading}"functions.{api}" = "{plugin}"\n'), encoding="utf-8")
    return [*changed, project]


def _values(name: str, kind: str, row: Kind) -> dict[str, str]:
    base = {"name": name, "Name": name.capitalize(), "package": f"nn_ext_{name}", "dist": f"nn-ext-{name}", "kind": kind}
    own = {
        "what": row.what, "hook": row.hook, "info": row.info, "entry": _filled(row.entry, base), "use": _filled(row.use, base),
        "index": _filled(row.index, base), "requires": "".join(f', "{each}"' for each in row.requires),
    }  # fmt: skip
    return {**base, **own}


def _copy(source: Path, target: Path, values: dict[str, str]) -> None:
    for path in sorted(source.rglob("*.in")):
        relative = str(path.relative_to(source)).removesuffix(".in").replace("PACKAGE", values["package"])
        file = target / relative.replace("NAME", values["name"])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_filled(path.read_text(encoding="utf-8"), values), encoding="utf-8")


def _filled(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], text)
