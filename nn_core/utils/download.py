"""Fetch files, with resumption and checksums."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final
from urllib.error import HTTPError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from nn_core.errors import ArgumentError, FileFormatError, quoted
from nn_core.logger import logger
from nn_core.settings import is_nnabla_program, settings

_BLOCK_BYTES: Final = 1 << 20
_TIMEOUT_S: Final = 30
#: The server has nothing after the bytes that are here.
_RANGE_NOT_SATISFIABLE: Final = 416
_PARTIAL: Final = 206


def get_data_home() -> str:
    """Return the folder for what is fetched: NN_CORE_DATA, or ~/nn_core_data; made if it does not exist.

    Under ``nn-core run`` it is ~/nnabla_data in place of ~/nn_core_data, where NNabla has put what it has fetched.

    Raises:
        ArgumentError: when NN_CORE_DATA is no folder, and none can be made there.
    """
    usual = "nnabla_data" if is_nnabla_program() else "nn_core_data"
    given = settings().data
    try:
        folder = Path(given or Path.home() / usual).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError, ValueError) as error:  # a file in its way, no such user, half a character
        if given is None:
            raise
        why = getattr(error, "strerror", None) or quoted(error, 200)  # the rest of an OSError repeats the path
        raise ArgumentError(f"NN_CORE_DATA: must be a folder that can be made, got {quoted(given)}: {why}") from error
    return str(folder)


def download(
    url: str,
    output_file: str | os.PathLike[str] | None = None,
    open_file: bool = True,
    allow_overwrite: bool = False,
    sha256: str | None = None,
) -> IO[bytes] | None:
    """Fetch a file, unless it is there already.

    The bytes go to a file with ``.part`` at the end of its name, which becomes the file when it is complete. A download that
    was interrupted continues where it stopped, if the server can.

    Args:
        url: Address: https, http, ftp or file.
        output_file: Path of the file; None: the last part of the address, in `get_data_home()`.
        open_file: Return the file, open for reading.
        allow_overwrite: Fetch again a file that is there.
        sha256: Checksum that the file must have, as hexadecimal digits.

    Returns:
        The open file, or None.

    Raises:
        FileFormatError: when the file has another checksum or ends too early. A file with another checksum is removed.
        OSError: when the server cannot be reached or refuses; the message has the address and the path.
    """
    path = Path(output_file) if output_file is not None else Path(get_data_home()) / _name_in(url)
    if allow_overwrite or not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        try:
            _fetch(url, part)
        except OSError as error:
            raise OSError(
                f"download: {url} must be reachable to make {path}, got: {error}\n"
                f"  hint: fetch it on another machine and put it there"
            ) from error
        _require_checksum(url, part, sha256)
        part.replace(path)
    elif sha256 is not None:
        _require_checksum(url, path, sha256, remove=False)
    return path.open("rb") if open_file else None


def _name_in(url: str) -> str:
    name = Path(urlparse(url).path).name
    if not name:
        raise ArgumentError(f"download: url must end in a file name where output_file is not given, got {url!r}")
    return name


def _fetch(url: str, part: Path) -> None:
    """Complete the file `part`."""
    present = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"Range": f"bytes={present}-"} if present else {})
    try:
        response: Any = urlopen(request, timeout=_TIMEOUT_S)
    except HTTPError as error:
        if error.code != _RANGE_NOT_SATISFIABLE or not present:
            raise
        error.close()
        part.unlink()  # what is there is not the start of what the server has now
        _fetch(url, part)
        return
    with response:
        goes_on = getattr(response, "status", None) == _PARTIAL
        if present and goes_on:
            logger.info("download: %s continues after %d bytes", url, present)
        expected = response.headers.get("Content-Length")
        with part.open("ab" if goes_on else "wb") as file:
            start = file.tell()
            while block := response.read(_BLOCK_BYTES):
                file.write(block)
            received = file.tell() - start
            file.flush()
            os.fsync(file.fileno())
    if expected is not None and received != int(expected):
        raise FileFormatError(f"download: {url} must have {expected} more bytes, got {received}; the next call continues")


def _require_checksum(url: str, path: Path, sha256: str | None, remove: bool = True) -> None:
    if sha256 is None:
        return
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            found.update(block)
    if found.hexdigest() != sha256.lower():
        if remove:
            with suppress(OSError):
                path.unlink()
        raise FileFormatError(f"download: {path} from {url} must have the SHA-256 {sha256}, got {found.hexdigest()}")
