"""Archives of NNP files: zip, with members chosen by their extensions. Nothing is unpacked into folders."""

import struct
import zipfile
import zlib
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, Final

from nn_core.ext import FileFormatError, MemoryFile, budget, contents_of, crc32, one_line

VERSION_MEMBER: Final = "nnp_version.txt"
VERSION: Final = b"0.1\n"
#: Members that are read; the others are left alone.
EXTENSIONS: Final = (".nntxt", ".prototxt", ".protobuf", ".h5", ".optimizer")
_ALWAYS_ALLOWED_BYTES: Final = 16 << 20
#: The exceptions with which reading a damaged archive ends.
_DAMAGE: Final = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError)


@dataclass(frozen=True, slots=True)
class Member:
    """A file of an archive.

    Attributes:
        name: with folders.
        contents: its bytes, which may not have been compared with the checksum of the archive.
        wrong: says so when they have been, in the background; None when nothing is left to be compared.
        is_verified: whether the archive has a checksum, with which `data` is compared.
    """

    name: str
    contents: bytes | memoryview
    wrong: Future[str | None] | None = None
    is_verified: bool = False

    @property
    def extension(self) -> str:
        """With the dot, lower case."""
        return PurePosixPath(self.name).suffix.lower()

    @property
    def data(self) -> bytes | memoryview:
        """The bytes.

        Raises:
            FileFormatError: when they are not those of the checksum.
        """
        message = None if self.wrong is None else self.wrong.result()
        if message is not None:
            raise FileFormatError(message)
        return self.contents


def read_archive(file: IO[bytes], name: str) -> list[Member]:
    """Return the members of known extensions, in the order of the archive.

    Raises:
        FileFormatError: when the archive is damaged; when members are encrypted, have the same name, would leave the
            folder, or are larger than an honest archive of this size makes them.
    """
    try:
        contents, is_mapped = contents_of(file)
        with zipfile.ZipFile(MemoryFile(contents)) as archive:  # type: ignore[arg-type]  # it is a binary file
            chosen = _checked(archive, name)
            for info in archive.infolist():
                archive.open(info).close()  # compares the name in the list with that of the data: no member is overlooked
            return [_member(archive, info, contents if is_mapped else None, name) for info in chosen]
    except _DAMAGE as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{name}: the file must be a whole zip archive, got: {one_line(error)}") from error


def write_archive(file: IO[bytes], members: Iterable[Member]) -> None:
    """Write an archive of `members`, with the version that NNabla writes in front. Same members, same bytes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for member in (Member(VERSION_MEMBER, VERSION), *members):
            archive.writestr(zipfile.ZipInfo(member.name, (1980, 1, 1, 0, 0, 0)), member.data)


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, mapped: memoryview | None, name: str) -> Member:
    """Return a member; of arrays in a mapped archive that are stored as they are, with the bytes of the file."""
    if mapped is None or info.compress_type != zipfile.ZIP_STORED or not info.filename.lower().endswith(".h5"):
        return Member(info.filename, archive.read(info), is_verified=True)
    # the header, whose lengths may be others than in the list of members, and which `open` has compared with that
    lengths = struct.unpack_from("<2H", mapped, info.header_offset + 26)
    start = info.header_offset + 30 + sum(lengths)
    contents = mapped[start : start + info.file_size]
    pool = ThreadPoolExecutor(1)  # texts are parsed meanwhile
    wrong = pool.submit(_difference, contents, info, name)
    pool.shutdown(wait=False)
    return Member(info.filename, contents, wrong, is_verified=True)


def _difference(contents: memoryview, info: zipfile.ZipInfo, name: str) -> str | None:
    """Return how the bytes of a member differ from those that the archive lists."""
    if len(contents) == info.file_size and crc32(contents) == info.CRC:
        return None
    return f"{name}: the file must be a whole zip archive, got: Bad CRC-32 for file {info.filename!r}"


def _checked(archive: zipfile.ZipFile, name: str) -> list[zipfile.ZipInfo]:
    infos = archive.infolist()
    budget().require("members", len(infos), f"{name}: members of an archive")
    seen: set[str] = set()
    for info in infos:
        if not info.filename:
            raise FileFormatError(f"{name}: members of the archive must have names, got an empty one")
        if info.filename in seen:
            raise FileFormatError(f"{name}: members must have different names, got {info.filename!r} twice")
        seen.add(info.filename)
        _require_inside(info.filename, name)
        if info.flag_bits & 0x1:
            raise FileFormatError(f"{name}: members must not be encrypted, got {info.filename!r}")
    chosen = [i for i in infos if not i.is_dir() and PurePosixPath(i.filename).suffix.lower() in EXTENSIONS]
    total, packed = sum(i.file_size for i in chosen), sum(i.compress_size for i in chosen)
    if total > _ALWAYS_ALLOWED_BYTES:
        budget().require("archive_growth", -(-total // max(packed, 1)), f"{name}: the growth of an archive that is read")
    return chosen


def _require_inside(member: str, name: str) -> None:
    path = PurePosixPath(member.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or "\0" in member or (path.parts and path.parts[0].endswith(":")):
        raise FileFormatError(f"{name}: members must be inside the archive's folder, got {member!r}")


def as_file(member: Member, name: str) -> IO[bytes]:
    """Return the bytes of a member as a file with a name."""
    data = member.data
    file: Any = MemoryFile(memoryview(data), name, isinstance(data, memoryview), member.is_verified)
    return file  # type: ignore[no-any-return]  # a raw file, which `IO` does not comprise
