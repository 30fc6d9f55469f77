"""``nn-core check-extension``: metadata, hygiene, load contract and conformance kit of one package, as one report."""

import json
import os
import re
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import importlib_metadata

from nn_core.engine.dispatch.admission import core_version
from nn_core.engine.dispatch.doctor import UNPREFIXED, examined_apart
from nn_core.engine.dispatch.plugin_record import State
from nn_core.engine.runtime.children import module_command, python_command
from nn_core.engine.runtime.installed import GROUP, INDEX, installed_plugins
from nn_core.errors import ArgumentError

#: The file of tests that the kit runs on a plugin.
_TESTS: Final = """
import importlib, importlib.util, json, pathlib
from nn_core.testing.cases import unavailable
from nn_core.testing.conformance import *
from nn_core.testing.fusions import fusion_cases
from nn_core.testing.support import who_runs
from nn_core.engine.dispatch.plugin_manager import PLUGINS

plugin = PLUGINS.plugin({name!r})
package = plugin.entry_points[0].module.partition(".")[0]
if importlib.util.find_spec(package).submodule_search_locations and importlib.util.find_spec(package + ".samples"):
    importlib.import_module(package + ".samples")
places = PLUGINS.registry.kernels_of({name!r})
usable = {{backend for backend, _ in places if backend in PLUGINS.names() and not unavailable(backend)}}
BACKENDS = tuple(plugin.backends) or tuple(sorted({{"reference"}} | usable))
FUSIONS = tuple(case.fusion for case in fusion_cases(("reference",), True) if case.plugin == {name!r})
FUNCTIONS = (*plugin.functions, *sorted({{name for _, name in places}} - {{*plugin.functions}}))
pathlib.Path(__file__).with_name("kernels.json").write_text(json.dumps(who_runs(BACKENDS, FUNCTIONS)))
if plugin.backends:
    del FUNCTIONS, FUSIONS
"""
#: Whether the kit has anything to run on.
_APPLIES: Final = """
from nn_core.engine.dispatch.plugin_manager import PLUGINS
plugin = PLUGINS.plugin({name!r})
fusions = [offer for offer in PLUGINS.offers.of("passes", {name!r}) if offer.role == "fusion"]
print(len(plugin.functions) + len(plugin.backends) + len(PLUGINS.registry.kernels_of({name!r})) + len(fusions))
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; `ok` is None where it does not apply."""

    section: str
    what: str
    ok: bool | None
    detail: str = ""


@dataclass(slots=True)
class Certificate:
    """The results of checking one package.

    Attributes:
        name: Name of the plugin.
        package: Name and version of the distribution.
        core: The version of nn_core that checked it.
        checks: Everything that was looked at.
        operators: Passed, failed and skipped checks of the kit by operator.
        kernels: For each operator and backend, the dtypes by who runs the samples, {"native": ["float32"], "reference": []}.
        causes: Failed checks of the kit by test.
    """

    name: str
    package: str
    core: str
    checks: list[Check] = field(default_factory=list)
    operators: dict[str, dict[str, int]] = field(default_factory=dict)
    kernels: dict[str, dict[str, dict[str, list[str]]]] = field(default_factory=dict)
    causes: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return all(check.ok is not False for check in self.checks)

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps({"ok": self.ok, **asdict(self)}, indent=1)

    def badge(self) -> str:
        """Return the report as a picture (SVG) for a README."""
        passed = sum(row["passed"] for row in self.operators.values())
        text = f"conforms, {passed} checks" if self.ok else "does not conform"
        color = "#2e7d32" if self.ok else "#c62828"
        width = 70 + 7 * len(text)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="nn_core: {text}">'
            f'<rect width="60" height="20" fill="#555"/><rect x="60" width="{width - 60}" height="20" fill="{color}"/>'
            '<g fill="#fff" font-family="Verdana,sans-serif" font-size="11">'
            f'<text x="6" y="14">nn_core</text><text x="66" y="14">{text}</text></g></svg>\n'
        )

    def lines(self) -> Iterator[str]:
        """Yield the report for a terminal."""
        yield f"{self.package}, plugin {self.name!r}, checked by nn-core {self.core}"
        for check in self.checks:
            mark = {True: "ok", False: "FAILED", None: "-"}[check.ok]
            yield f"{check.section:<10}{mark:<8}{check.what}{': ' + check.detail if check.detail else ''}"
        for operator, row in self.operators.items():
            yield f"{'operator':<10}{operator}: " + ", ".join(f"{count} {status}" for status, count in row.items())
        for operator, backends in self.kernels.items():
            for backend, statuses in backends.items():
                if [*statuses] == ["reference"]:  # as any operator without a kernel of its own
                    continue
                runs = "; ".join(f"{status} in {', '.join(dtypes)}" for status, dtypes in statuses.items())
                yield f"{'kernel':<10}{operator} on {backend}: {runs}"
        for cause, count in sorted(self.causes.items()):
            yield f"{'cause':<10}{cause}: {count} failed"


def check_extension(what: str, *, fast: bool = False) -> Certificate:
    """Check a package.

    Args:
        what: The folder of a package with a pyproject.toml, or the name of an installed plugin.
        fast: One sample of each operator in float32, in place of all.

    Raises:
        ArgumentError: when there is no such package.
    """
    with _staged(what) as (name, distribution, paths):
        metadata = distribution.metadata
        certificate = Certificate(name, f"{metadata['Name']} {distribution.version}", core_version())
        certificate.checks += _metadata_checks(name, distribution)
        loads = _load_checks(name, paths)
        certificate.checks += loads
        if all(check.ok is not False for check in loads):
            _run_kit(certificate, paths, fast=fast)
        else:
            certificate.checks.append(Check("kit", "conformance", None, "the plugin does not load"))
        return certificate


# Finding the package -------------------------------------------------------------------------------------------------


@contextmanager
def _staged(what: str) -> Iterator[tuple[str, Any, list[str]]]:
    """Yield the name, the distribution and the folders to import from, of an installed plugin or of one in a folder."""
    if not Path(what, "pyproject.toml").is_file():
        found = installed_plugins().get(what, ())
        if not found:
            raise ArgumentError(
                f"check-extension: must be a folder with a pyproject.toml or the name of an installed plugin, got {what!r}"
            )
        yield what, importlib_metadata.distribution(found[0].package), []
        return
    project = project_of(Path(what))
    names = list(project.get("entry-points", {}).get(GROUP, {}))
    if len(names) != 1:
        raise ArgumentError(f"check-extension: {what} must have one entry point of the group {GROUP}, got {names}")
    if Path(what, "CMakeLists.txt").exists():
        raise ArgumentError(
            f"check-extension: a package with native code must be installed to be checked, got the folder {what}\n"
            f"  hint: pip install {what}, then nn-core check-extension {names[0]}"
        )
    with tempfile.TemporaryDirectory() as folder:
        info = write_metadata(project, Path(folder))
        root = str(Path(what).resolve())
        yield names[0], importlib_metadata.Distribution.at(info), [root, str(Path(root, "src")), folder]


def write_metadata(project: Mapping[str, Any], folder: Path) -> Path:
    """Write into `folder` what installing a project would write: with the folder on the path its plugins are found.

    Args:
        project: The table [project] of its pyproject.toml.
        folder: An existing folder.
    """
    info = folder / f"{project['name'].replace('-', '_')}-{project.get('version', '0')}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(_metadata_of(project), encoding="utf-8")
    groups: Mapping[str, Mapping[str, str]] = project.get("entry-points", {})
    lines = [line for group, entries in groups.items() for line in (f"[{group}]", *(f"{k} = {v}" for k, v in entries.items()))]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return info


def project_of(folder: Path) -> dict[str, Any]:
    """Return the table [project] of the pyproject.toml in `folder`.

    Raises:
        ArgumentError: when it has no name, or Python has no reader of TOML.
    """
    try:
        import tomllib  # type: ignore[import-not-found, unused-ignore]  # from Python 3.11 on
    except ImportError as error:
        raise ArgumentError(
            "check-extension: a folder can be checked from Python 3.11 on; install the package and give the name of the plugin"
        ) from error
    project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
    if "name" not in project:
        raise ArgumentError(f"check-extension: {folder / 'pyproject.toml'} must have a [project] with a name, got none")
    return project


def _metadata_of(project: Mapping[str, Any]) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project.get('version', '0')}"]
    lines += [f"Summary: {project['description']}"] if "description" in project else []
    lines += [f"Requires-Python: {project['requires-python']}"] if "requires-python" in project else []
    lines += [f"Requires-Dist: {each}" for each in project.get("dependencies", ())]
    lines += [f"Classifier: {each}" for each in project.get("classifiers", ())]
    return "\n".join(lines) + "\n"


# The sections --------------------------------------------------------------------------------------------------------


def _metadata_checks(name: str, distribution: Any) -> Iterator[Check]:
    metadata = distribution.metadata
    summary = bool(metadata.get("Summary"))
    yield Check("metadata", "description", summary, "" if summary else "write one line")
    python = metadata.get("Requires-Python") or ""
    yield Check("metadata", "requires-python", bool(python), python or "state the versions of Python")
    yield _check_of_versions(metadata.get_all("Requires-Dist") or ())
    yield _check_of_index(name, distribution.entry_points)
    typed = any("Typed" in line for line in metadata.get_all("Classifier") or ())
    yield Check("metadata", "typed", True if typed else None, "" if typed else "no classifier 'Typing :: Typed'")


def _check_of_index(name: str, entry_points: Iterable[Any]) -> Check:
    index = [entry for entry in entry_points if entry.group == INDEX and entry.value == name]
    found = f"{len(index)} names" if index else "look-ups of names will import the plugin"
    return Check("metadata", "index", bool(index), found)


def _check_of_versions(requirements: Iterable[str]) -> Check:
    from packaging.requirements import Requirement

    core = [each.specifier for each in map(Requirement, requirements) if each.name == "nn-core"]
    operators = {specifier.operator for each in core for specifier in each}
    bounded = bool(operators & {">=", ">", "~=", "=="}) and bool(operators & {"<", "<=", "~=", "=="})
    stated = ", ".join(str(each) for each in core) or "none"
    return Check("metadata", "versions of nn-core", bounded, stated if bounded else f"write 'nn-core>=0.1,<1', got {stated}")


def _load_checks(name: str, paths: list[str]) -> list[Check]:
    rows, reason = examined_apart(name, paths)
    if not rows:
        return [Check("load", "import, hooks and load()", False, reason)]
    checks = _hygiene_checks([remark for row in rows for remark in row.remarks])
    for row in rows:
        works = row.state in (State.LOADED, State.NO_DEVICE)
        checks.append(Check("load", row.name, works, row.reason if not works else row.state.value))
    return checks


def _hygiene_checks(remarks: Sequence[str]) -> list[Check]:
    slow = [remark for remark in remarks if remark.startswith("importing took")]
    bare = [remark for remark in remarks if remark.startswith(UNPREFIXED)]
    changes = [remark for remark in remarks if remark not in (*slow, *bare)]
    return [
        Check("hygiene", "importing is free of work", not changes, ", ".join(changes)),
        Check("hygiene", "importing is quick", None if slow else True, ", ".join(slow)),
        Check("hygiene", "API names have the prefix", not bare, ", ".join(bare)),
    ]


def _run_kit(certificate: Certificate, paths: list[str], *, fast: bool) -> None:
    name = certificate.name
    with tempfile.TemporaryDirectory() as folder:
        command = python_command(_APPLIES.format(name=name), paths=paths)
        applies = subprocess.run(command, capture_output=True, text=True, check=False)
        if applies.stdout.strip() == "0":
            certificate.checks.append(Check("kit", "conformance", None, "no operators and no backends"))
            return
        tests, results = Path(folder) / "test_kit.py", Path(folder) / "results.xml"
        tests.write_text(_TESTS.format(name=name), encoding="utf-8")
        options = ["-q", "-p", "nn_core.testing.pytest_plugin", "-p", "no:cacheprovider"]
        options += ["--rootdir", folder, "-c", os.devnull, "--junitxml", str(results), str(tests)]
        options += ["--tier=smoke"] if fast else []
        command = module_command("pytest", *options, paths=paths)
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if not results.exists():
            last = (run.stderr or run.stdout).strip().rpartition("\n")[2]
            certificate.checks.append(Check("kit", "conformance", False, last))
            return
        certificate.kernels = json.loads((Path(folder) / "kernels.json").read_text(encoding="utf-8"))
        _count(certificate, ElementTree.parse(results).getroot())


def _count(certificate: Certificate, root: "ElementTree.Element") -> None:
    """Add up the results of the kit by operator and by cause."""
    totals = {"passed": 0, "failed": 0, "skipped": 0}
    for case in root.iter("testcase"):
        test, _, rest = (case.get("name") or "").partition("[")
        failed = case.find("failure") is not None or case.find("error") is not None
        status = "failed" if failed else "skipped" if case.find("skipped") is not None else "passed"
        totals[status] += 1
        operator = _operator_of(rest.rstrip("]"))
        if operator:
            row = certificate.operators.setdefault(operator, {"passed": 0, "failed": 0, "skipped": 0})
            row[status] += 1
        if failed:
            certificate.causes[test] = certificate.causes.get(test, 0) + 1
    detail = ", ".join(f"{count} {status}" for status, count in totals.items())
    certificate.checks.append(Check("kit", "conformance", not totals["failed"] and totals["passed"] > 0, detail))


def _operator_of(case: str) -> str:
    """Return the operator of an id such as ``cpu-acme.Cube-float32-plain``."""
    parts = (part for part in case.split("-") if part != "NOTSET")  # pytest's word for a test without cases
    return next((part for part in parts if re.fullmatch(r"([a-z0-9_]+\.)?[A-Z]\w*", part)), "")
