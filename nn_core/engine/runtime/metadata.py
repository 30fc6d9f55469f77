"""Entry points in the metadata of installed packages, read so that no package can keep those of another from being found.

Metadata belongs to whoever made a package, and most packages have nothing to do with nn_core: what cannot be read is a `Fault`
of that package, and the others are read.
"""

import re
import stat
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from nn_core.errors import quoted

#: Longer files of entry points are not read: the index of a plugin with 2,000 operators has a hundredth of it.
MAX_BYTES: Final = 16 * 2**20
#: Nor are packages followed that have more entry points for us: every process that looks for a plugin reads all of them.
MAX_LINES: Final = 20_000
#: Stands for the name of a package that states no valid one.
UNNAMED: Final = "an unnamed package"
_ENTRY_POINTS: Final = "entry_points.txt"
_METADATA: Final = ("METADATA", "PKG-INFO")
_PROJECT: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]{0,63}")
_NAME: Final = re.compile(r"[^\s\[\]=;#,\x00-\x1f\x7f\ufffd]{1,256}")
_VALUE: Final = re.compile(r"(?P<module>\w+(?:\.\w+)*)(?:\s*:\s*\w+(?:\.\w+)*)?(?:\s*\[[^\[\]]*\])?", re.ASCII)


def is_project_name(text: str) -> bool:
    """Tell whether a package may be called so: a hint names no other for `pip install`."""
    return _PROJECT.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """One line of the entry points of an installed package, which is not read again.

    Attributes:
        group: The group.
        name: The name.
        value: What it names, as it is written: "package.module" or "package.module:attribute".
        package: The project that it belongs to, as pip knows it.
        version: The version of the project, empty where its metadata states none.
        folder: Absolute path of the folder that the metadata is in, empty where it is in none.
    """

    group: str
    name: str
    value: str
    package: str
    version: str
    folder: str = ""

    @property
    def module(self) -> str:
        """The module that it names, empty where it names none."""
        found = _VALUE.fullmatch(self.value)
        return found["module"] if found else ""


class Fault(NamedTuple):
    """Metadata that is passed over: whose, why, whether it is about nn_core as far as can be told, and where it is."""

    package: str
    reason: str
    is_ours: bool
    folder: str = ""


class Scan(NamedTuple):
    """The entry points that were found, and what could not be read."""

    entries: tuple[EntryPoint, ...]
    faults: tuple[Fault, ...]


class _Lines(NamedTuple):
    """The lines of one distribution that are in the groups looked for."""

    distribution: Any
    lines: tuple[tuple[str, str], ...]


def scan(groups: Collection[str], objection: Callable[[EntryPoint], str]) -> Scan:
    """Return the entry points of some groups in the metadata of all packages on the search path.

    Of several packages with one name the first on the path counts; those without metadata of their own, or with an entry point
    that is not followed, come last.

    Args:
        groups: Names of the groups.
        objection: Returns the reason why an entry point is not followed, empty where it is.
    """
    faults: list[Fault] = []
    found: dict[str, list[_Lines]] = {}
    for distribution in _distributions(faults):
        try:
            lines = tuple(islice(_lines_of(_text_of(distribution, _ENTRY_POINTS), groups), MAX_LINES + 1))
            if len(lines) > MAX_LINES:
                raise ValueError(f"must have at most {MAX_LINES} lines in {' and '.join(sorted(groups))}, got more")
        except Exception as error:  # metadata is read by classes of other packages too
            faults.append(_fault_of(distribution, error))
            continue
        found.setdefault(_key_of(distribution), []).append(_Lines(distribution, lines))
    entries: list[EntryPoint] = []
    for candidates in found.values():
        entries += _followed(_complete_first(candidates), objection, faults)
    return Scan(tuple(entries), tuple(faults))


def _followed(candidates: list[_Lines], objection: Callable[[EntryPoint], str], faults: list[Fault]) -> Iterator[EntryPoint]:
    """Iterate over the entry points of the first of several packages with one name, or of the next if one is refused."""
    for position, candidate in enumerate(candidates):
        entries = list(_entries_of(candidate, faults)) if candidate.lines else []
        reasons = {entry: reason for entry in entries if (reason := objection(entry))}
        faults += (_refused(entry, reason) for entry, reason in reasons.items())
        if not reasons or position == len(candidates) - 1:
            yield from (entry for entry in entries if entry not in reasons)
            return


def _distributions(faults: list[Fault]) -> Iterator[Any]:
    """Iterate over all distributions; a finder that fails costs its own only."""
    import importlib_metadata  # a tenth of the time of `import nn_core`, and only needed here

    context = importlib_metadata.DistributionFinder.Context()  # type: ignore[no-untyped-call]
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_distributions", None)
        try:
            yield from () if find is None else find(context)
        except Exception as error:  # any package may put a finder there
            kind = finder if isinstance(finder, type) else type(finder)
            faults.append(Fault(f"{kind.__module__}.{kind.__qualname__}", f"it raises {type(error).__name__}", False))


def _text_of(distribution: Any, name: str) -> str:
    """Return the text of a file of the metadata, empty where there is none; neither a pipe nor a device is waited for."""
    path = _path_of(distribution)
    if path is None:
        return str(distribution.read_text(name) or "")
    file = path / name
    try:
        status = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("must be a regular file")
    if status.st_size > MAX_BYTES:
        raise ValueError(f"must have at most {MAX_BYTES} bytes, got {status.st_size}")
    return file.read_text(encoding="utf-8-sig")  # editors put a mark in front


def _path_of(distribution: Any) -> Path | None:
    """Return the folder (or file) of the metadata, where it is one; zip archives and other finders have none."""
    path = getattr(distribution, "_path", None)
    return path if isinstance(path, Path) else None


def _lines_of(text: str, groups: Collection[str]) -> Iterator[tuple[str, str]]:
    if not any(group in text for group in groups):  # as in most packages
        return
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif (group in groups or not group) and line and line[0] not in "#;":
            yield group, line


def _entries_of(found: _Lines, faults: list[Fault]) -> Iterator[EntryPoint]:
    package, version = _identity_of(found.distribution)
    path = _path_of(found.distribution)
    folder = str(path.resolve().parent) if path else ""
    for group, line in found.lines:
        name, equals, value = map(str.strip, line.partition("="))
        if group and equals and _NAME.fullmatch(name):
            yield EntryPoint(group, name, value, package, version, folder)
        else:
            reason = f"[{group}] must have lines name = value" if group else "entry points must stand below a [group]"
            reason += f", got {quoted(line)}"
            faults.append(Fault(f"{package} {version}".strip(), reason, True))


def _identity_of(distribution: Any) -> tuple[str, str]:
    """Return name and version, from the name of the folder where the metadata does not state them in a valid form."""
    stem, _, rest = _stem_of(distribution).partition("-")
    try:
        text = next(filter(None, (_text_of(distribution, name) for name in _METADATA)), "")
        name, version = _header(text, "Name"), _header(text, "Version")
    except Exception:  # not UTF-8, no permission, or a class of another package
        name, version = "", ""
    if not _PROJECT.fullmatch(name):
        name = stem.replace("_", "-") if _PROJECT.fullmatch(stem) else UNNAMED
    if not _VERSION.fullmatch(version):
        version = rest.partition("-")[0] if _VERSION.fullmatch(rest.partition("-")[0]) else ""
    return name, version


def _header(text: str, field: str) -> str:
    """Return the value of a field of metadata, which has the form of the head of a mail."""
    for line in text.splitlines():
        if not line.strip():
            break
        name, colon, value = line.partition(":")
        if colon and name == field:
            return value.strip()
    return ""


def _stem_of(distribution: Any) -> str:
    path = getattr(distribution, "_path", None)
    name = getattr(path, "name", "")
    return re.sub(r"\.(dist-info|egg-info)$", "", name if isinstance(name, str) else "")


def _key_of(distribution: Any) -> str:
    """Return the normalized name; that of the distribution itself where its folder has none, as inside of an egg."""
    stem = _stem_of(distribution)
    name = "" if stem == "EGG-INFO" else stem.partition("-")[0]
    return canonical(name or _identity_of(distribution)[0])


@lru_cache(maxsize=256)
def canonical(project: str) -> str:
    """Return the name of a project as all its spellings are compared: "NN_Core" is "nn-core"."""
    return re.sub(r"[-_.]+", "-", project).lower()


def _refused(entry: EntryPoint, reason: str) -> Fault:
    return Fault(f"{entry.package} {entry.version}".strip(), reason, True, entry.folder)


def _complete_first(candidates: list[_Lines]) -> list[_Lines]:
    if len(candidates) == 1:
        return candidates
    return sorted(candidates, key=lambda candidate: not _is_complete(candidate.distribution))


def _is_complete(distribution: Any) -> bool:
    path = _path_of(distribution)
    return path is None or path.is_file() or any((path / name).exists() for name in _METADATA)


def _fault_of(distribution: Any, error: Exception) -> Fault:
    path = _path_of(distribution)
    # whoever saved the file in another encoding wrote the name of the group all the same
    is_ours = path is not None and b"nn_core." in _bytes_of(path / _ENTRY_POINTS).replace(b"\0", b"")
    reason = str(error) if type(error) is ValueError else type(error).__name__
    package = " ".join(filter(None, _identity_of(distribution)))
    return Fault(package, f"{_ENTRY_POINTS}: {reason}", is_ours, str(path.resolve().parent) if path else "")


def _bytes_of(path: Path) -> bytes:
    try:
        with path.open("rb") if path.is_file() else BytesIO() as file:
            return file.read(MAX_BYTES)
    except OSError:
        return b""
