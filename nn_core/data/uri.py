"""Files by address: local ones, those of web servers, and objects of Amazon S3 by the package boto3."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urljoin, urlparse
from urllib.request import urlopen

from nn_core.errors import ArgumentError
from nn_core.files.atomic import open_to_read

_TIMEOUT_S: Final = 30
_WEB: Final = ("http", "https", "ftp")


class FileReader:
    """Opens a file and its neighbours, wherever they are.

    Args:
        base_uri: A file or a folder: a path, an address of a web server, or ``s3://bucket/key``.
    """

    def __init__(self, base_uri: str | PathLike[str]) -> None:
        self._uri = fspath(base_uri)
        parts = urlparse(self._uri)
        self._scheme = parts.scheme if parts.scheme in (*_WEB, "s3") else ""
        self._bucket, self._key = parts.netloc, parts.path.lstrip("/")

    def open(self, filename: str | None = None, textmode: bool = False, encoding: str = "utf-8-sig") -> IO[Any]:
        """Open a file for reading.

        Args:
            filename: Path relative to the folder of `base_uri`; None: `base_uri` itself.
            textmode: Read text, not bytes.
            encoding: The encoding of the text.

        Raises:
            OSError: when there is no such file, or it cannot be reached.
            ImportError: when an object of S3 is asked for and boto3 is not installed.
        """
        if self._scheme in _WEB:
            with urlopen(self._uri if filename is None else urljoin(self._uri, filename), timeout=_TIMEOUT_S) as response:
                file: IO[bytes] = io.BytesIO(response.read())
        elif self._scheme == "s3":
            file = io.BytesIO(self.read_s3_object(self._key if filename is None else f"{self._s3_folder()}{filename}"))
        else:
            file = open_to_read(Path(self._uri) if filename is None else self._folder() / filename)
        return io.TextIOWrapper(file, encoding=encoding) if textmode else file

    def listdir(self) -> list[str]:
        """Return the names of the files in the folder, in alphabetical order.

        Raises:
            ArgumentError: when it is a folder of a web server, which has no list.
        """
        if self._scheme in _WEB:
            raise ArgumentError(f"FileReader.listdir: base_uri must be a folder or of S3, got {self._uri}")
        if self._scheme == "s3":
            folder = self._s3_folder()
            objects = self._s3().Bucket(self._bucket).objects.filter(Prefix=folder, Delimiter="/")
            return sorted(item.key[len(folder) :] for item in objects if item.key != folder)
        return sorted(path.name for path in self._folder().iterdir())

    @contextmanager
    def open_cache(self, cache_name: str) -> Iterator[Any]:
        """Return a file of a cache for a ``with`` block: an ``h5py.File`` for .h5, else a file open for reading."""
        with self.open(cache_name) as file:
            if not cache_name.endswith(".h5"):
                yield file
                return
            with import_module("h5py").File(file, "r") as store:
                yield store

    def read_s3_object(self, key: str) -> bytes:
        """Return the bytes of an object in the bucket of `base_uri`."""
        content: bytes = self._s3().Object(self._bucket, key).get()["Body"].read()
        return content

    def _folder(self) -> Path:
        path = Path(self._uri)
        return path if path.is_dir() else path.parent

    def _s3_folder(self) -> str:
        folder = self._key.rpartition("/")[0]
        return f"{folder}/" if folder else ""

    def _s3(self) -> Any:
        try:
            return import_module("boto3").resource("s3")
        except ImportError as error:
            raise ImportError(f"{self._uri}: boto3 must be installed, got: {error}\n  hint: pip install boto3") from error


class ResourceFileReader:
    """Opens what a loader was given: a path, or a file that is open.

    Args:
        source: The path or the file.
    """

    def __init__(self, source: str | PathLike[str] | IO[bytes]) -> None:
        self._source = source

    def open(self) -> IO[bytes]:
        """Return the file, open for reading; one that was open is given as it is."""
        return open_to_read(self._source) if isinstance(self._source, (str, PathLike)) else self._source
