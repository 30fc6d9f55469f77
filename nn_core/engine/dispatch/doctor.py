"""The state of every installed plugin, found by using each in a process of its own."""

import importlib.util
import json
import os
import re
import stat
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nn_core.engine.dispatch.examination import end_examinations, run_examination
from nn_core.engine.dispatch.exception_text import refusal_text, text_of
from nn_core.engine.dispatch.plugin_manager import PLUGINS, Plugins
from nn_core.engine.dispatch.plugin_record import Failure, Plugin, State, package_names, packages
from nn_core.engine.runtime import installed
from nn_core.engine.runtime.metadata import UNNAMED
from nn_core.errors import BackendNotFoundError, NNCoreError, escaped, one_line, quoted
from nn_core.settings import settings

if TYPE_CHECKING:
    from nn_core.engine.dispatch.extension_registry import Offer
    from nn_core.engine.dispatch.hookspecs import BackendInfo

#: Bytes of a report on one plugin, at most.
_LONGEST_REPORT: Final = 10_000_000
#: Name of the file in a package with the report of ``nn-core check-extension``.
CERTIFICATE: Final = "conformance.json"
#: How the remark begins on API names that PLUGIN_API 2 refuses.
UNPREFIXED: Final = "API names without the prefix"
#: Plugins of one package that are examined, each in a process of its own, unless a program asks for them by name.
MOST_OF_A_PACKAGE: Final = 8


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the doctor's table; `advice` says what to do, and is empty where nothing has to be done.

    `certificate` is what the package says of its conformance, see `certificate_of`.
    """

    name: str
    package: str
    state: State
    reason: str = ""
    devices: str = ""
    advice: str = ""
    remarks: tuple[str, ...] = ()
    certificate: str = ""


def examine(names: Sequence[str] = ()) -> list[Finding]:
    """Import every plugin, probe and load every backend, and say what came of it.

    Each installed plugin is examined in a process of its own, so that one that hangs or crashes is a row like any other.

    Args:
        names: Plugins to look for besides those that are installed.
    """
    everything, rest = _bounded(list(dict.fromkeys([*PLUGINS.names(), *installed.installed_plugins(), *names])), names)
    # threads, because each of them only waits for a process
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        try:
            found = [finding for group in pool.map(_examined, everything) for finding in group]
        except BaseException:  # Ctrl-C does not reach their sessions
            pool.shutdown(wait=False, cancel_futures=True)
            end_examinations()
            raise
    return [*found, *rest, *_passed_over()]


def _bounded(everything: Sequence[str], wanted: Sequence[str]) -> tuple[list[str], list[Finding]]:
    """Return the plugins to examine, and a row for each package of which there are too many."""
    examined: list[str] = []
    counts: Counter[str] = Counter()
    for name in everything:
        package = " and ".join(packages(installed.installed_plugins().get(name, ())))
        counts[package] += 1
        if counts[package] <= MOST_OF_A_PACKAGE or not package or name in wanted:
            examined.append(name)
    rows = [
        Finding(f"{count} plugins", package, State.IGNORED, f"only the first {MOST_OF_A_PACKAGE} were examined")
        for package, count in counts.items()
        if package and count > MOST_OF_A_PACKAGE
    ]
    return examined, rows


def _passed_over() -> Iterator[Finding]:
    """Yield the rows of packages whose metadata is not followed, plugins or not."""
    for fault in installed.faults():
        package = fault.package.partition(" ")[0]
        advice = f"pip uninstall {package}" if fault.is_ours else "it has nothing to do with nn_core"
        if fault.package.startswith(UNNAMED) or installed.is_named_like_ours(package):  # pip would remove nothing, or ours
            advice = f"remove its metadata from {fault.folder}"
        state = State.BROKEN if fault.is_ours else State.IGNORED
        yield Finding("metadata", fault.package, state, f"passed over: {fault.reason}", advice=advice)


def write_findings(name: str, path: str) -> None:
    """Examine one plugin in this process and write the findings to a JSON file."""
    rows = [{**asdict(finding), "state": finding.state.value} for finding in findings(name, PLUGINS, watched=True)]
    Path(path).write_text(json.dumps(rows), encoding="utf-8")


def examined_apart(name: str, paths: Sequence[str] = ()) -> tuple[list[Finding], str]:
    """Examine a plugin in a process of its own, which also imports from `paths`.

    Returns:
        What was found; or nothing, and why.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "findings.json"
        death = run_examination(name, report, paths)
        if death:
            return [], death
        try:
            return read_findings(report), ""
        except ValueError as error:
            return [], str(error)


def read_findings(path: Path) -> list[Finding]:
    """Return the findings in a file, which code of the plugin that was examined may have written.

    Raises:
        ValueError: when it is no such file.
    """
    try:
        # neither a pipe nor a device, which might never end
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(file, "rb") as report:
            if not stat.S_ISREG(os.fstat(file).st_mode) or os.fstat(file).st_size > _LONGEST_REPORT:
                raise ValueError("no regular file of a sensible length")
            rows = [_finding(**row) for row in json.load(report)]
    except FileNotFoundError:
        raise ValueError("the examination ended without a result") from None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        raise ValueError(f"the examination ended with a result that is none: {quoted(one_line(error))}") from error
    if not rows:
        raise ValueError("the examination ended without a result")
    return rows


def _finding(*, state: str, remarks: Sequence[str], **texts: str) -> Finding:
    plain = {key: escaped(text) for key, text in texts.items()}
    return Finding(**plain, state=State(state), remarks=tuple(map(escaped, remarks)))


def findings(name: str, plugins: Plugins, *, watched: bool) -> Iterator[Finding]:
    """Examine one plugin in this process; `watched` tells also what importing it did."""
    remarks: tuple[str, ...] = ()
    try:
        if watched:
            remarks = _import_watched(name, plugins)
        plugin = plugins.plugin(name)
    except BackendNotFoundError:
        yield Finding(name, "", State.ABSENT, "not installed", advice=_installation(name))
        return
    package = " and ".join(packages(plugin.entry_points))
    if plugin.unprefixed:
        remarks += (f"{UNPREFIXED} {name}_: {', '.join(plugin.unprefixed)}",)
    if plugin.failure is not None:
        state = plugins.state(name)
        yield Finding(name, package, state, plugin.failure.reason, "", _advice(plugin, plugin.failure), remarks)
        return
    rows = [*_summary(plugin, package, plugins)]
    rows += [_engine_finding(plugin, package, offer, plugins) for offer in plugins.offers.of("communicators", name)]
    rows += [_backend_finding(plugin, package, info, plugins) for info in plugin.backends.values()]
    yield from [replace(row, remarks=remarks, certificate=certificate_of(plugin)) for row in rows[:1]]
    yield from rows[1:]


def certificate_of(plugin: Plugin) -> str:
    """Return the certificate that a package ships, in one line; empty where it ships none.

    It is the file conformance.json in the package, which ``nn-core check-extension NAME --json`` has written. It is what the
    author has found, and counts for the version of the package that it names.
    """
    try:
        spec = importlib.util.find_spec(plugin.package) if plugin.entry_points else None
    except (ImportError, ValueError):  # a module that says so of itself
        return ""
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder, CERTIFICATE)
        if path.is_file():
            return _summary_of(path, packages(plugin.entry_points))
    return ""


def _summary_of(path: Path, installed_packages: Sequence[str]) -> str:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        package, core = str(report["package"]), str(report["core"])
        passed = sum(int(row["passed"]) for row in report["operators"].values())
        failed = [str(check["what"]) for check in report["checks"] if check["ok"] is False]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return f"certificate: {path.name} must be written by nn-core check-extension --json, got {type(error).__name__}"
    if package not in installed_packages:
        return f"certificate: of {package}, which is another version"
    if failed or not report.get("ok"):
        return f"certificate: does not conform ({', '.join(failed)}), checked by nn-core {core}"
    return f"certificate: conforms{f', {passed} checks' if passed else ''}, checked by nn-core {core}"


def _examined(name: str) -> list[Finding]:
    entry_points = installed.installed_plugins().get(name)
    if entry_points is None:  # absent, or registered by the program
        return list(findings(name, PLUGINS, watched=False))
    package = " and ".join(packages(entry_points))
    if name not in installed.entry_points():
        how = settings().how_to_allow(name)
        return [Finding(name, package, State.BLOCKED, "NN_CORE_PLUGINS blocks it", advice=f"to use it, {how}")]
    rows, reason = examined_apart(name)
    if rows:
        return [replace(row, package=package) for row in rows]
    failure = Failure(State.BROKEN, reason)
    return [Finding(name, package, State.BROKEN, failure.reason, advice=_advice(Plugin(name, entry_points), failure))]


def _import_watched(name: str, plugins: Plugins) -> tuple[str, ...]:
    from nn_core.engine.dispatch.import_audit import observe

    # first: what importing the core does is not to be told of the plugin
    plugins.plugin(installed.CORE_PLUGIN)
    if name == installed.CORE_PLUGIN:
        return ()
    entries = installed.entry_points().get(name)
    return observe(lambda: plugins.plugin(name), entries[0].module.partition(".")[0] if entries else name).lines


def _summary(plugin: Plugin, package: str, plugins: Plugins) -> Iterator[Finding]:
    """Yield the row of what a plugin brings beside backends."""
    from nn_core.engine.dispatch.kinds import KINDS

    brought = {"functions": list(plugin.functions)}
    brought |= {key: [offer.info.name for offer in plugins.offers.of(key, plugin.name)] for key in KINDS}
    passes = plugins.offers.of("passes", plugin.name)
    brought["fusions"] = [offer.info.name for offer in passes if offer.role == "fusion"]
    brought["passes"] = [name for name in brought["passes"] if name not in brought["fusions"]]
    brought["overlays"] = [f"{name} on {backend}" for backend, name in plugins.registry.overlays_of(plugin.name)]
    text = "; ".join(f"{key.replace('_', ' ')}: {_listed(names)}" for key, names in brought.items() if names)
    if text or not plugin.backends:
        yield Finding(plugin.name, package, State.LOADED, text)


def _listed(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def _engine_finding(plugin: Plugin, package: str, offer: "Offer", plugins: Plugins) -> Finding:
    """Return the row of an engine of communicators; its libraries are asked, and no process is started."""
    from nn_core.engine.dispatch.guard import guarded

    label, seconds = offer.label, settings().plugin_timeout
    try:
        refusal = offer.info.probe and guarded(label, seconds, plugins.offers.load(offer, "probe"))  # type: ignore[attr-defined]  # a CommunicatorInfo
        if refusal:
            failure = Failure(State.NO_DEVICE, refusal_text(plugin.name, refusal.reason))
            return Finding(label, package, failure.state, failure.reason, advice=_advice(plugin, failure))
        described = offer.info.devices and guarded(label, seconds, plugins.offers.load(offer, "devices"))  # type: ignore[attr-defined]  # a CommunicatorInfo
    except Exception as error:  # whatever a plugin raises
        failure = Failure(State.BROKEN, text_of(error))
        return Finding(label, package, failure.state, failure.reason, advice=_advice(plugin, failure))
    return Finding(label, package, State.LOADED, offer.info.description, "\n".join(described or ()))


def _backend_finding(plugin: Plugin, package: str, info: "BackendInfo", plugins: Plugins) -> Finding:
    from nn_core.engine.dispatch.guard import guarded

    try:
        plugins.backend(info.name)
    except NNCoreError:
        failure = plugins.failure(info.name)
        assert failure is not None
        return Finding(info.name, package, failure.state, failure.reason, advice=_advice(plugin, failure))
    try:
        devices = "\n".join(guarded(f"backend {info.name!r}: devices()", settings().plugin_timeout, info.devices))
    except Exception as error:  # whatever a plugin raises
        failure = Failure(State.BROKEN, f"devices(): {text_of(error)}")
        return Finding(info.name, package, failure.state, failure.reason, advice=_advice(plugin, failure))
    return Finding(info.name, package, plugins.state(info.name), info.description, devices)


def _installation(name: str) -> str:
    known = installed.OWN_PACKAGES.get(name)
    return "correct the name or install it" if known is None else f"pip install {known}"


def _advice(plugin: Plugin, failure: Failure) -> str:
    """Advice about a failure: the hint of its message, or one that fits its cause."""
    # the words of a plugin are shown as such, and are no advice of ours
    hints = [line.strip()[6:] for line in failure.reason.splitlines() if line.strip().startswith("hint: ")]
    if hints and not hints[0].startswith("nn-core doctor"):  # which is running
        return hints[0]
    remedy = re.search(r"pip install [^\n;,]+", failure.reason) if plugin.name in installed.OWN_PLUGINS else None
    if remedy is not None:
        return remedy[0]
    if failure.state is not State.BROKEN:
        return ""
    names = " ".join(package_names(plugin.entry_points))
    if isinstance(failure.cause, BackendNotFoundError):
        return f"install the plugin that it needs, or pip uninstall {names}"
    missing = _missing_module(failure.cause)
    if missing:
        if missing == plugin.package:
            return f"pip install --force-reinstall {names}"
        return f"pip install --upgrade {names}, or install what provides {missing}"
    return f"pip install --upgrade {names}, or pip uninstall {names}"


def _missing_module(error: BaseException | None) -> str:
    """Return the top-level module that an exception says is missing, or nothing: the plugin may have made up its name."""
    name = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
    return name.partition(".")[0] if isinstance(name, str) and name.replace(".", "_").isidentifier() else ""
