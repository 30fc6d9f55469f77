"""Sound is read, written and resized."""

import io
import wave

import numpy as np
import pytest

from nn_core.errors import ArgumentError, FileFormatError
from nn_core.utils.audio_utils import auread, auresize, ausave


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
