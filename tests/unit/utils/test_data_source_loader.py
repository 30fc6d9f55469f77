"""Loaders of single files, and readers of files by address."""

import http.server
import io
import sys
import threading
import types
import wave

import h5py
import numpy as np
import pytest

import nn_core.utils.data_source_loader as loader
from nn_core.errors import ArgumentError, FileFormatError
from nn_core.utils.image_utils import imsave

IMAGE = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)


def written(folder, name):
    path = folder / name
    if name.endswith(".npy"):
        np.save(path, np.arange(6, dtype=np.uint8))
    elif name.endswith(".csv"):
        path.write_text("\ufeff1, 2, 3\n# a comment\n4, 5, 6e0\n")
    elif name.endswith(".wav"):
        with wave.open(str(path), "wb") as file:
            file.setparams((2, 2, 8000, 0, "NONE", ""))
            file.writeframes(np.array([[1, -2], [3, -4], [5, -6]], "<i2").tobytes())
    else:
        pytest.importorskip("PIL")
        imsave(path, IMAGE)
    return path


EXPECTED = {
    "a.npy": np.arange(6, dtype=np.uint8),
    "a.csv": np.array([[1, 2, 3], [4, 5, 6]], np.float32),
    "a.wav": np.array([[1, -2], [3, -4], [5, -6]], np.int16),
    "a.png": np.moveaxis(IMAGE, -1, 0),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_values_of_a_path_and_of_an_open_file(tmp_path, name):
    path = written(tmp_path, name)
    load = loader.load(loader.get_file_extension(path))
    with path.open("rb") as file:
        assert loader.get_file_extension(file) == path.suffix
        for values in (load(path), load(str(path)), load(file)):
            assert values.dtype == EXPECTED[name].dtype
            np.testing.assert_array_equal(values, EXPECTED[name])


@pytest.mark.parametrize("name", EXPECTED)
def test_normalized_values(tmp_path, name):
    values = loader.load(f".{name[-3:]}")(written(tmp_path, name), normalize=True)
    expected = EXPECTED[name]
    np.testing.assert_array_equal(values, expected / np.float32(255) if expected.dtype == np.uint8 else expected)


@pytest.mark.parametrize("name", ["a.npy", "a.csv", "a.wav"])
def test_another_shape(tmp_path, name):
    path = written(tmp_path, name)
    load = loader.load(path.suffix.upper())
    assert load(path, (3, 1, 2)).ravel().tolist() == EXPECTED[name].ravel().tolist()
    with pytest.raises(ArgumentError, match=r"shape must have the 6 elements of the file, got \(4, 2\)"):
        load(path, (4, 2))


@pytest.mark.parametrize("name", EXPECTED)
def test_damaged_and_missing_files(tmp_path, name):
    path = written(tmp_path, name)
    path.write_bytes(path.read_bytes()[:9] + b"?")
    load = loader.load(path.suffix)
    with pytest.raises(FileFormatError, match=rf"a\.{name[-3:]}: the file must"):
        load(path)
    with pytest.raises(FileFormatError, match=r"missing\.\w+: the file must"):
        load(tmp_path / f"missing{path.suffix}")


def test_images_are_converted(tmp_path):
    path = written(tmp_path, "a.png")
    assert loader.load_image(path, (1, 2, 4)).shape == (1, 2, 4)
    assert loader.load_image(path, (4, 2, 4))[3].tolist() == [[255] * 4] * 2
    large = loader.load_image(path, (3, 4, 8), normalize=True)
    assert (large.shape, large.dtype) == ((3, 4, 8), np.float32)
    assert loader.load_image(path, (1, 4, 8)).shape == (1, 4, 8)
    with pytest.raises(ArgumentError, match=r"load_image: shape must be 1, 3 or 4 channels, .* got \(2, 4\)"):
        loader.load_image(path, (2, 4))
    np.testing.assert_allclose(loader.load_image_imread(path), np.moveaxis(IMAGE, -1, 0) / 255, rtol=1e-6)
    np.testing.assert_allclose(loader.load_image_imread(path, max_range=255.0), np.moveaxis(IMAGE, -1, 0), rtol=1e-6)


def test_images_of_16_bits_keep_them(tmp_path):
    pytest.importorskip("PIL")
    deep = np.array([[0, 300], [40000, 65535]], np.uint16)
    imsave(tmp_path / "deep.png", deep, as_uint16=True)
    values = loader.load_image(tmp_path / "deep.png")
    assert (values.dtype, values.tolist()) == (np.uint16, [deep.tolist()])
    np.testing.assert_array_equal(loader.load_image(tmp_path / "deep.png", normalize=True)[0], deep / np.float32(65535))


def test_unknown_extensions():
    with pytest.raises(ArgumentError, match=r"load: ext must be one of \.npy, .*, got '\.xyz'"):
        loader.load(".xyz")
    assert loader.load(".flac") is loader.load_audio
    assert loader.get_file_extension(io.BytesIO()) == ""


def test_pydub(tmp_path, monkeypatch):
    path = written(tmp_path, "a.wav")
    monkeypatch.setitem(sys.modules, "pydub", None)
    with pytest.raises(ImportError, match=r"pydub must be installed, got: .*\n  hint: pip install pydub"):
        loader.load_audio_pydub(path)
    asked = []

    class Segment:
        channels = 2

        @classmethod
        def from_file(cls, place):
            asked.append(place)
            return cls()

        def get_array_of_samples(self):
            return [1, -2, 3, -4, 5, -6]

    monkeypatch.setitem(sys.modules, "pydub", types.SimpleNamespace(AudioSegment=Segment))
    np.testing.assert_array_equal(loader.load_audio_pydub(path), EXPECTED["a.wav"])
    assert asked == [path]


def test_local_files(tmp_path):
    (tmp_path / "b.txt").write_text("\ufefftext", encoding="utf-8")
    written(tmp_path, "a.npy")
    for base in (tmp_path, tmp_path / "b.txt"):
        reader = loader.FileReader(base)
        assert reader.listdir() == ["a.npy", "b.txt"]
        with reader.open("b.txt", textmode=True) as file:
            assert file.read() == "text"
    with loader.FileReader(tmp_path / "a.npy").open() as file:
        assert np.load(file).tolist() == list(range(6))
    with loader.ResourceFileReader(tmp_path / "a.npy").open() as file:
        assert loader.ResourceFileReader(file).open() is file
    with pytest.raises(OSError, match=r"missing"):
        loader.FileReader(tmp_path).open("missing")


def test_files_of_a_cache(tmp_path):
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["x"] = [1, 2]
    np.save(tmp_path / "c.npy", np.ones(2))
    reader = loader.FileReader(tmp_path)
    with reader.open_cache("c.h5") as store:
        assert store["x"][()].tolist() == [1, 2]
    with reader.open_cache("c.npy") as file:
        assert np.load(file).tolist() == [1, 1]


def test_files_of_a_web_server(tmp_path):
    (tmp_path / "set.csv").write_text("x\n1\n")
    (tmp_path / "other.csv").write_text("y\n2\n")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(tmp_path))

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            reader = loader.FileReader(f"http://127.0.0.1:{server.server_port}/set.csv")
            with reader.open(textmode=True) as file, reader.open("other.csv") as other:
                assert (file.read(), other.read()) == ("x\n1\n", b"y\n2\n")
            with pytest.raises(OSError, match="404"):
                reader.open("missing.csv")
            with pytest.raises(ArgumentError, match=r"listdir: base_uri must be a folder or of S3, got http"):
                reader.listdir()
        finally:
            server.shutdown()
            thread.join()


def test_objects_of_s3(monkeypatch):
    objects = {"sets/a.csv": b"x\n1\n", "sets/b.csv": b"y\n2\n", "other/c.csv": b""}

    class Service:
        def __init__(self, bucket=None):
            assert bucket in (None, "bucket")
            self.objects = self

        Bucket = property(lambda self: Service)

        def Object(self, bucket, key):  # boto3's name
            content = io.BytesIO(objects[key])
            return types.SimpleNamespace(get=lambda: {"Body": content}, bucket=bucket)

        def filter(self, Prefix, Delimiter):  # boto3's names
            assert Delimiter == "/"
            return [types.SimpleNamespace(key=key) for key in objects if key.startswith(Prefix)]

    monkeypatch.setitem(sys.modules, "boto3", types.SimpleNamespace(resource=lambda name: Service()))
    reader = loader.FileReader("s3://bucket/sets/a.csv")
    assert reader.listdir() == ["a.csv", "b.csv"]
    with reader.open() as file, reader.open("b.csv", textmode=True) as other:
        assert (file.read(), other.read()) == (b"x\n1\n", "y\n2\n")
    assert reader.read_s3_object("sets/b.csv") == b"y\n2\n"
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ImportError, match=r"boto3 must be installed, got: .*\n  hint: pip install boto3"):
        reader.open()
