"""Files that are replaced as a whole: modes, owners, links, names, and targets that are no files."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest

import nn_core as nn
from nn_core.errors import ArgumentError, FileFormatError
from nn_core.files import FORMATS, Entry, atomic_writer, read_entries, write_entries

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")


def save(path, value=1.0):
    write_entries(path, {"w": Entry(np.full(3, value, np.float32), {})}, path.suffix)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400, 0o666, 0o700])
def test_saving_again_keeps_the_mode(extension, mode, tmp_path):
    path = tmp_path / f"file{extension}"
    save(path)
    path.chmod(mode)
    save(path, 2.0)
    assert mode_of(path) == mode
    assert read_entries(path, extension)["w"].values[0] == 2


def test_the_mode_is_set_before_the_first_byte(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with atomic_writer(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
        file.write(b"new")


def test_new_files_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_writer(tmp_path / "new") as file:
            file.write(b"new")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "new") == 0o640


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_is_kept(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chown(path, 12345, 54321)
    with atomic_writer(path) as file:
        file.write(b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


@pytest.mark.parametrize("extension", FORMATS)
def test_a_link_stays_and_its_target_is_replaced(extension, tmp_path):
    (tmp_path / "store").mkdir()
    target, link, chain = tmp_path / "store" / f"v1{extension}", tmp_path / f"a{extension}", tmp_path / f"b{extension}"
    save(target)
    link.symlink_to(target)
    chain.symlink_to(link.name)
    save(chain, 2.0)
    assert link.is_symlink()
    assert chain.is_symlink()
    assert read_entries(target, extension)["w"].values[0] == 2
    assert list((tmp_path / "store").iterdir()) == [target]


def test_a_link_to_a_file_that_is_to_be_made(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "later")
    with atomic_writer(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "later").read_bytes() == b"new"


def test_other_hard_links_keep_their_contents(tmp_path):
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(b"old")
    other.hardlink_to(path)
    with atomic_writer(path) as file:
        file.write(b"new")
    assert (path.read_bytes(), other.read_bytes()) == (b"new", b"old")


@pytest.mark.parametrize("length", [238, 247, 255])
def test_long_names(length, tmp_path):
    path = tmp_path / ("n" * (length - 4) + ".npz")
    save(path)
    assert list(tmp_path.iterdir()) == [path]


def test_targets_that_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "folder.npz").mkdir()
    for name, kind in (("pipe.npz", "a device, a pipe or a socket"), ("folder.npz", "a folder")):
        with pytest.raises(ArgumentError, match=f"must be a file or not exist, got {kind}"):
            save(tmp_path / name)
        assert not list(tmp_path.glob(".*"))
    with pytest.raises(ArgumentError, match="got a device"), atomic_writer(os.devnull):
        pass


@pytest.mark.parametrize("extension", FORMATS)
def test_readers_refuse_what_is_no_file(extension, tmp_path):
    endless = tmp_path / f"zero{extension}"
    endless.symlink_to("/dev/zero")
    pipe = tmp_path / f"pipe{extension}"
    os.mkfifo(pipe)
    for path in (endless, pipe):
        with pytest.raises(FileFormatError, match="must be a regular file, got a device, a pipe or a socket"):
            nn.load_parameters(path)


def test_a_link_to_itself_and_a_path_with_nul_are_refused(tmp_path):
    (loop := tmp_path / "loop.npz").symlink_to(loop)
    for path, told in [(loop, "a link must lead to a file"), (f"{tmp_path}/a\0b.npz", "a path must have no NUL character")]:
        with pytest.raises(ArgumentError, match=told), atomic_writer(path):
            pass
    assert loop.is_symlink()


@pytest.mark.parametrize("name", ["a" * 256 + ".npz", "b" * 5000 + ".h5", "c" * 300 + "/d.safetensors"])
def test_names_that_the_system_does_not_take_are_refused(name, tmp_path):
    told = "a path must have names that the system takes, got one too long"
    with pytest.raises(ArgumentError, match=told) as caught, atomic_writer(tmp_path / name):
        pass
    assert len(str(caught.value)) < 4500
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with (
        pytest.raises(ArgumentError, match="its folder must be a folder, got a file"),
        atomic_writer(tmp_path / "file" / "w.npz"),
    ):
        pass


TRUNCATED = """
import os, sys
import nn_core as nn
from nn_core.ext import contents_of
with open(sys.argv[1], "rb") as file:
    contents, _ = contents_of(file)
    os.truncate(sys.argv[1], 10)
    print(len(bytes(contents)))
"""


@pytest.mark.parametrize("size", [5, 1 << 20])
def test_a_file_that_is_made_shorter_while_it_is_read_does_not_end_the_process(size, tmp_path):
    (tmp_path / "file").write_bytes(bytes(size))
    done = subprocess.run([sys.executable, "-c", TRUNCATED, tmp_path / "file"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{size}\n"), done.stderr
