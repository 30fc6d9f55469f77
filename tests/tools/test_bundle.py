"""Wheels with libraries inside: they no longer require the packages that bring these, and their records are right."""

import base64
import csv
import hashlib
import io
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from tools.release import bundle

METADATA = """\
Metadata-Version: 2.4
Name: acme-kernels
Requires-Dist: numpy<3,>=2
Requires-Dist: onednn-cpu-gomp<2024,>=2023.2; sys_platform == "linux"
Requires-Python: >=3.10

Kernels.
"""
INFO = "acme_kernels-1.2.dist-info"


def digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def wheel_with(library: str, path: Path) -> Path:
    files = {f"{INFO}/METADATA": METADATA.encode(), f"acme_kernels.libs/{library}": b"library"}
    record = "".join(f"{name},{digest(content)},{len(content)}\n" for name, content in files.items())
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**files, f"{INFO}/RECORD": f"{record}{INFO}/RECORD,,\n".encode()}.items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the wheel be one to which auditwheel has nothing to add."""

    def repaired(wheel: Path, folder: Path) -> Path:
        return Path((folder / wheel.name).write_bytes(wheel.read_bytes()) and folder / wheel.name)

    monkeypatch.setattr(bundle, "repaired", repaired)


@pytest.mark.usefixtures("copies")
def test_what_is_inside_is_not_required(tmp_path: Path) -> None:
    wheel = wheel_with("libdnnl-e6376208.so.3", tmp_path / "acme_kernels-1.2-cp311-cp311-linux_x86_64.whl")
    result = CliRunner().invoke(bundle.main, [str(wheel), "--to", str(tmp_path / "release")])
    assert result.exit_code == 0, result.output
    with zipfile.ZipFile(result.output.strip()) as archive:
        text = archive.read(f"{INFO}/METADATA").decode()
        assert text.count("Requires-Dist") == 1 and "numpy<3,>=2" in text and text.endswith("\nKernels.\n")
        for name, recorded, size in csv.reader(io.StringIO(archive.read(f"{INFO}/RECORD").decode())):
            content = archive.read(name)
            assert not recorded or (recorded, int(size)) == (digest(content), len(content))


@pytest.mark.usefixtures("copies")
def test_what_is_elsewhere_stays_required(tmp_path: Path) -> None:
    wheel = wheel_with("libgomp-f9a9ad78.so.1", tmp_path / "acme_kernels-1.2-cp311-cp311-linux_x86_64.whl")
    CliRunner().invoke(bundle.main, [str(wheel), "--to", str(tmp_path)], catch_exceptions=False)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read(f"{INFO}/METADATA").decode().count("Requires-Dist") == 2
