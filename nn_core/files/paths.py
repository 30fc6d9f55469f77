"""Paths made from names that come from files."""

import os
import re
from pathlib import Path
from typing import Final

from nn_core.engine.error_messages.refusal import fitted
from nn_core.errors import FileFormatError

_WINDOWS: Final = os.name == "nt"
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_FORBIDDEN_ON_WINDOWS: Final = re.compile(r'[<>:"|?*]|[. ]$')
#: Names of devices, which Windows has in every folder and with any extension.
_DEVICE: Final = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3]) *(\..*)?", re.IGNORECASE)
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_MAX_BYTES: Final = 255


@fitted
def path_below(folder: str | os.PathLike[str], name: str) -> Path:
    r"""Return the path below `folder` that a name from a file stands for.

    A name may have parts, separated by ``/`` or ``\``. Links that the folder contains are resolved.

    Raises:
        FileFormatError: when the name is empty, absolute, has a drive or the part ``..``, leaves the folder by a link, or
            has a part that no file should have (control characters, more than 255 bytes) or, on Windows, cannot have.

    Example:
        >>> from nn_core.ext import path_below
        >>> path_below("out", "images/0.png").as_posix()
        'out/images/0.png'
        >>> path_below("out", "../evil")
        Traceback (most recent call last):
        nn_core.errors.FileFormatError: a name in a file must stay below its folder, got '../evil': it has the part '..'
    """
    problem = why_not_below(folder, name)
    if problem:
        raise FileFormatError(f"a name in a file must stay below its folder, got {problem}")
    return Path(folder).joinpath(*_parts(name))


def why_not_below(folder: str | os.PathLike[str], name: str) -> str:
    """Return the name that stands for no path below `folder` with the reason, or nothing."""
    problem = _problem(name)
    if not problem and not Path(folder).joinpath(*_parts(name)).resolve().is_relative_to(Path(folder).resolve()):
        problem = "a link leads out of the folder"
    shown = name if len(name) <= _MAX_BYTES else f"{name[:_MAX_BYTES]}..."
    return problem and f"{shown!r}: {problem}"


def _parts(name: str) -> list[str]:
    return [part for part in re.split(r"[/\\]", name) if part not in ("", ".")]


def _problem(name: str) -> str:
    """Return why a name cannot become a path below a folder, or nothing."""
    parts = _parts(name)
    if not parts:
        return "it is empty"
    if name[:1] in ("/", "\\") or _DRIVE.match(name):
        return "it is absolute"
    return next(filter(None, map(_problem_of_part, parts)), "")


def _problem_of_part(part: str) -> str:
    if part == "..":
        return "it has the part '..'"
    forbidden = _FORBIDDEN.search(part) or (_FORBIDDEN_ON_WINDOWS.search(part) if _WINDOWS else None)
    if forbidden:
        return f"it has the character {forbidden[0]!r}"
    if _WINDOWS and _DEVICE.fullmatch(part):
        return f"{part!r} is the name of a device"
    return f"a part is longer than {_MAX_BYTES} bytes" if len(part.encode()) > _MAX_BYTES else ""
