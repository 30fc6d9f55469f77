"""Downloads continue where they stopped and are checked; the server is in this process."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from nn_core.errors import ArgumentError, FileFormatError
from nn_core.utils.download import download, get_data_home

CONTENT = bytes(range(256)) * 64
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT, from where it is asked to; cuts connections as often as `server.cuts` says."""

    def do_GET(self):
        self.server.ranges.append(self.headers.get("Range"))
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if self.path == "/missing.bin" or start >= len(CONTENT):
            self.send_error(404 if self.path == "/missing.bin" else 416)
            return
        body = CONTENT[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.cuts:
            self.server.cuts -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.cuts, server.ranges = 0, []
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


def test_a_file_is_fetched_once(server, tmp_path):
    path = tmp_path / "folder" / "a.bin"
    with download(f"{server.url}/a.bin", path, sha256=SHA256) as file:
        assert file.read() == CONTENT
    assert download(f"{server.url}/a.bin", path, open_file=False) is None
    assert server.ranges == [None]
    download(f"{server.url}/a.bin", path, open_file=False, allow_overwrite=True)
    assert len(server.ranges) == 2
    assert [entry.name for entry in path.parent.iterdir()] == ["a.bin"]


def test_a_cut_download_goes_on(server, tmp_path):
    server.cuts = 2
    for _ in range(2):
        with pytest.raises((FileFormatError, OSError)):
            download(f"{server.url}/a.bin", tmp_path / "a.bin")
        assert not (tmp_path / "a.bin").exists()
    download(f"{server.url}/a.bin", tmp_path / "a.bin", open_file=False, sha256=SHA256)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=8192-", "bytes=12288-"]


def test_a_part_that_is_too_long_is_fetched_anew(server, tmp_path):
    (tmp_path / "a.bin.part").write_bytes(CONTENT + b"more")
    download(f"{server.url}/a.bin", tmp_path / "a.bin", open_file=False, sha256=SHA256)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused(server, tmp_path):
    with pytest.raises(FileFormatError, match=f"must have the SHA-256 {'0' * 64}, got {SHA256}"):
        download(f"{server.url}/a.bin", tmp_path / "a.bin", sha256="0" * 64)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a.bin").write_bytes(b"other")
    with pytest.raises(FileFormatError, match="must have the SHA-256"):
        download(f"{server.url}/a.bin", tmp_path / "a.bin", sha256=SHA256)
    assert (tmp_path / "a.bin").read_bytes() == b"other"


def test_errors_name_address_and_path(server, tmp_path):
    with pytest.raises(OSError, match=r"missing\.bin must be reachable to make .*m\.bin, got: HTTP Error 404"):
        download(f"{server.url}/missing.bin", tmp_path / "m.bin")
    with pytest.raises(ArgumentError, match="url must end in a file name"):
        download("http://localhost/")


def test_file_addresses_are_fetched_to_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("nn_core.utils.download.get_data_home", lambda: str(tmp_path / "home"))
    (tmp_path / "a.txt").write_bytes(b"text")
    with download((tmp_path / "a.txt").as_uri()) as file:
        assert file.read() == b"text"
    assert (tmp_path / "home" / "a.txt").exists()


def test_the_data_folder_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("NN_CORE_DATA", raising=False)
    assert Path(get_data_home()).is_dir()
