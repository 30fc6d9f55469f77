"""Sound is read, written and resized."""

import io
import wave

import numpy as np
import pytest

from nn_core.errors import ArgumentError, FileFormatError
from nn_core.utils import audio_utils
from nn_core.utils.audio_utils import auread, auresize, ausave, common, minmax_auto_scale
from nn_core.utils.audio_utils.backend_manager import AudioUtilsBackendManager


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32])
@pytest.mark.parametrize("channel_first", [False, True])
def test_sound_comes_back(tmp_path, dtype, channel_first):
    sound = np.random.default_rng(0).integers(0, 120, (7, 2)).astype(dtype)
    sound = sound.T if channel_first else sound
    ausave(tmp_path / "a.wav", sound, channel_first, frame_rate=8000)
    read = auread(tmp_path / "a.wav", channel_first)
    assert read.dtype == dtype
    assert np.array_equal(read, sound)


def test_three_bytes_are_widened():
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setparams((1, 3, 8000, 2, "NONE", ""))
        writer.writeframes((1).to_bytes(3, "little") + (-2).to_bytes(3, "little", signed=True))
    assert auread(io.BytesIO(file.getvalue())).tolist() == [[256], [-512]]


def test_one_channel_needs_no_axis(tmp_path):
    ausave(tmp_path / "a.wav", np.arange(3, dtype=np.int16))
    assert auread(tmp_path / "a.wav").tolist() == [[0], [1], [2]]


def test_resizing_interpolates_and_maps_channels():
    sound = np.array([[0, 4], [10, 14]], np.int16)
    assert auresize(sound, (3, 1)).tolist() == [[2], [7], [12]]
    assert auresize(sound[:, :1], (2, 2)).tolist() == [[0, 0], [10, 10]]
    assert auresize(sound.T, (3, 2), channel_first=True).tolist() == [[0, 5, 10], [4, 9, 14]]


def test_wrong_sounds_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="must be uint8, int16 or int32"):
        ausave(tmp_path / "a.wav", np.zeros((2, 2)))
    with pytest.raises(ArgumentError, match="2 channels must become as many or one, got 3"):
        auresize(np.zeros((4, 2), np.int16), (2, 3))
    with pytest.raises(FileFormatError, match="must be a sound"):
        auread(tmp_path / "nothing.wav")
    ausave(tmp_path / "a.wav", np.zeros((50, 2), np.int16))
    (tmp_path / "a.wav").write_bytes((tmp_path / "a.wav").read_bytes()[:-9])
    with pytest.raises(FileFormatError, match="the file is truncated"):
        auread(tmp_path / "a.wav")


@pytest.mark.parametrize(("width", "dtype"), [(1, np.uint8), (2, np.int16), (4, np.int32)])
def test_a_file_without_a_header_is_read_as_it_is_described(tmp_path, width, dtype):
    sound = np.random.default_rng(0).integers(0, 120, (7, 2)).astype(dtype)
    (tmp_path / "a.raw").write_bytes(sound.astype(sound.dtype.newbyteorder("<")).tobytes())
    about = {"sample_width": width, "channels": 2, "frame_rate": 8000}
    for channel_first in (False, True):
        read = auread(tmp_path / "a.raw", channel_first, about)
        assert read.dtype == dtype and np.array_equal(read, sound.T if channel_first else sound)
    with pytest.raises(FileFormatError, match="must be a sound, got: cannot reshape"):
        auread(tmp_path / "a.raw", raw_format_param={**about, "channels": 5})


@pytest.mark.parametrize(
    "about", [None, {}, {"sample_width": 2, "channels": 1}, {"sample_width": 3, "channels": 1, "frame_rate": 8000}]
)
def test_a_file_without_a_header_must_be_described(tmp_path, about):
    (tmp_path / "a.raw").write_bytes(bytes(8))
    with pytest.raises(ArgumentError, match="raw_format_param must have sample_width"):
        auread(tmp_path / "a.raw", raw_format_param=about)


def test_sounds_with_a_header_say_it_themselves(tmp_path):
    ausave(tmp_path / "a.wav", np.arange(3, dtype=np.int16))
    assert auread(tmp_path / "a.wav", raw_format_param={"sample_width": 4}).tolist() == [[0], [1], [2]]


def test_numbers_of_one_byte_are_those_in_the_file():
    """NNabla gives them moved by 128, the sign bit inverted."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setparams((1, 1, 8000, 3, "NONE", ""))
        writer.writeframes(bytes([0, 128, 255]))
    assert auread(io.BytesIO(file.getvalue())).tolist() == [[0], [128], [255]]


@pytest.mark.parametrize("size", [(20, 2), (5, 1), (1, 2)])
def test_a_resized_sound_has_the_length_that_was_asked_for(size):
    assert auresize(np.zeros((10, 2), np.int16), size).shape == size


@pytest.mark.parametrize(
    ("sound", "dtype", "expected"),
    [
        ([-2.0, 0.0, 6.0], np.uint8, [0, 63, 255]),
        ([-2.0, 0.0, 6.0], np.int16, [-32768, -16384, 32767]),
        ([-2.0, 0.0, 6.0], np.int32, [-2147483648, -1073741824, 2147483647]),
        (np.array([-32768, 0, 32767], np.int16), np.uint8, [0, 127, 255]),
        (np.array([-32768, 0, 32767], np.int16), np.int16, [-32768, 0, 32767]),
        (np.array([-32768, 0, 32767], np.int16), np.int32, [-2147483648, 32768, 2147483647]),
        ([3.0, 3.0], np.int16, [0, 0]),
    ],
)
def test_ranges_of_dtypes(sound, dtype, expected):
    """All but the last row as NNabla 1.39.0 computes them."""
    scaled = minmax_auto_scale(np.asarray(sound), dtype)
    assert (scaled.dtype, scaled.tolist()) == (dtype, expected)


def test_other_ranges():
    assert common.rescale_intensity(np.array([-2, 0, 6]), -2, 6, output_type=np.uint8).tolist() == [0, 63, 255]
    assert common.rescale_intensity(np.array([0, 255])).dtype == np.float64
    with pytest.raises(ArgumentError, match="input_low must be less than input_high, got 1 and 1"):
        common.normalize_intensity(np.zeros(2), 1, 1)
    with pytest.raises(ArgumentError, match="out_datatype must be a dtype of integers, got float32"):
        minmax_auto_scale(np.zeros(2), np.float32)


def test_the_choice_of_a_backend(tmp_path, monkeypatch):
    monkeypatch.setattr("nn_core.data.backend_choice.find_spec", lambda name: None if name == "soundfile" else name)
    assert audio_utils.get_available_backends() == ["wave"]
    assert audio_utils.get_backend() is None
    with pytest.raises(ArgumentError, match=r"backend must be one that is available \(wave\), got 'soundfile'"):
        audio_utils.set_backend("soundfile")
    audio_utils.set_backend("wave")
    try:
        ausave(tmp_path / "a.other", np.zeros((3, 1), np.int16))
        assert auread(tmp_path / "a.other").shape == (3, 1)
        assert audio_utils.get_backend() == "wave"
    finally:
        audio_utils.set_backend(None)
    assert AudioUtilsBackendManager().module is wave
