"""Monitors: what they write, and when."""

import logging
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
from nn_core import monitor
from nn_core.errors import ArgumentError, PluginError, ShapeError
from nn_core.monitor import (
    Monitor,
    MonitorImage,
    MonitorImageTile,
    MonitorSeries,
    MonitorTimeElapsed,
    plot_series,
    plot_time_elapsed,
    tile_images,
)


@pytest.fixture
def folder(tmp_path):
    return Monitor(tmp_path / "results" / "today")


def test_the_folder_is_made(folder, tmp_path):
    assert folder.save_path == str(tmp_path / "results" / "today")
    assert (tmp_path / "results" / "today").is_dir()


def test_series_writes_means_of_intervals(folder, tmp_path, caplog):
    caplog.set_level(logging.INFO, "nn_core")
    series = MonitorSeries("Training loss", folder, interval=3)
    for index in range(8):
        series.add(index, index * 1.5)
    text = (tmp_path / "results/today/Training-loss.series.txt").read_text()
    assert text == "2 1.5\n5 6\n"
    assert caplog.messages == ["iter=2 {Training loss}=1.5", "iter=5 {Training loss}=6.0"]


@pytest.mark.parametrize(
    ("interval", "steps", "lines"),
    [
        (2, [0, 5, 7, 20, 21], [5, 7, 20]),
        (2, [10, 11, 12], [10, 12]),
        (3, [10, 11, 12], [10]),
        (3, [0, 0, 0, 0, 4], [4]),
        (1, [0, 0, 0, 0, 4], [0, 4]),
        (2, [0, 1, 2, 3, 0, 1, 2], [1, 3, 1]),
        (1, [3, 2, 1], [3, 2, 1]),
    ],
)
def test_a_line_is_due_an_interval_after_the_last_one(folder, tmp_path, interval, steps, lines):
    series, timer = [kind("x", folder, interval, verbose=False) for kind in (MonitorSeries, MonitorTimeElapsed)]
    for place, step in enumerate(steps):
        state = series.get_state()
        series.add(step, place)
        timer.add(step)
        series.set_state(state)  # continues as if the step had not been
        series.add(step, place)
    for kind in ("series", "timer"):
        text = (tmp_path / f"results/today/x.{kind}.txt").read_text()
        assert [int(line.split()[0]) for line in text.splitlines()] == lines


@pytest.mark.parametrize(
    "value",
    [
        0.5,
        np.float32(0.5),
        np.array([0.5]),
        np.array(0.5),
        nn.Variable.from_numpy_array(np.array([[0.5]])),
        nn.NdArray.from_numpy_array(np.array(0.5)),
    ],
)
def test_series_takes_any_one_number(folder, tmp_path, value, caplog):
    MonitorSeries("x", folder, verbose=False).add(0, value)
    assert (tmp_path / "results/today/x.series.txt").read_text() == "0 0.5\n"
    assert not caplog.messages


def test_series_refuses_more_numbers():
    with pytest.raises(ShapeError, match=r"MonitorSeries: value must be one number, got an array of shape \(2,\)"):
        MonitorSeries("x").add(0, np.ones(2))


def test_a_new_series_starts_a_new_file(folder, tmp_path):
    MonitorSeries("x", folder).add(0, 1)
    MonitorSeries("x", folder).add(0, 2)
    assert (tmp_path / "results/today/x.series.txt").read_text() == "0 2\n"


def test_time_elapsed(folder, tmp_path, monkeypatch):
    times = iter([10.0, 12.0, 15.5])
    monkeypatch.setattr(monitor.time, "monotonic", lambda: next(times))
    timer = MonitorTimeElapsed("time", folder, interval=2)
    for index in range(4):
        timer.add(index)
    assert (tmp_path / "results/today/time.timer.txt").read_text() == "1 2.0 2 2.0\n3 3.5 2 5.5\n"


def decoded(path):
    """Pixels of a PNG file as this module writes them."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    position, chunks = 8, {}
    while position < len(data):
        (length,) = struct.unpack(">I", data[position : position + 4])
        kind, body = data[position + 4 : position + 8], data[position + 8 : position + 8 + length]
        (crc,) = struct.unpack(">I", data[position + 8 + length : position + 12 + length])
        assert crc == zlib.crc32(kind + body)
        chunks[kind] = body
        position += 12 + length
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert depth == 8
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3 if colour == 2 else 1)


def test_images(folder, tmp_path):
    images = MonitorImage("an image", folder, interval=2, num_images=2)
    x = np.linspace(-1, 1, 3 * 3 * 4 * 5).reshape(3, 3, 4, 5)
    for index in range(4):
        images.add(index, nn.Variable.from_numpy_array(x))
    written = sorted(path.name for path in (tmp_path / "results/today/an-image").iterdir())
    assert written == [f"{index:06d}-{number:03d}.png" for index in (0, 1, 3) for number in (0, 1)]
    pixels = decoded(tmp_path / "results/today/an-image/000003-001.png")
    assert pixels.shape == (4, 5, 3)
    part = x[:2]
    expected = ((part - part.min()) / (part.max() - part.min()) * 255).round()[1].transpose(1, 2, 0)
    assert np.array_equal(pixels, expected)


def test_other_numbers_of_channels_are_gray(folder, tmp_path):
    images = MonitorImage("gray", folder, normalize_method=lambda x: x)
    images.add(0, np.full((1, 2, 2, 3), [[[[2.0]], [[0.5]]]]))
    assert np.array_equal(decoded(tmp_path / "results/today/gray/000000-000.png"), np.full((2, 3, 1), 255))


def test_equal_values_are_black(folder, tmp_path):
    MonitorImage("flat", folder).add(0, np.ones((1, 1, 2, 2)))
    assert not decoded(tmp_path / "results/today/flat/000000-000.png").any()


def test_image_tile(folder, tmp_path, caplog):
    caplog.set_level(logging.INFO, "nn_core")
    MonitorImageTile("tile", folder, num_images=5).add(0, np.random.rand(7, 1, 5, 6))
    assert decoded(tmp_path / "results/today/tile/000000.png").shape == (18, 21, 1)
    assert caplog.messages == [f"iter=0 {{tile}} are written to {tmp_path / 'results/today/tile/000000.png'}."]


def test_images_have_four_axes(folder):
    with pytest.raises(ShapeError, match=r"MonitorImage: images must have the shape \(N, C, H, W\), got \(2, 2\)"):
        MonitorImage("bad", folder).add(0, np.ones((2, 2)))
    with pytest.raises(ShapeError, match=r"tile_images: data must have the shape \(N, C, H, W\), got \(2,\)"):
        tile_images(np.ones(2))


def test_tile_images():
    data = np.arange(3 * 2 * 1 * 2).reshape(3, 2, 1, 2)
    tiles = tile_images(data, padsize=1, padval=-1)
    assert tiles.shape == (4, 6, 2)
    assert tiles[:, :, 1].tolist() == [
        [2, 3, -1, 6, 7, -1],
        [-1] * 6,
        [10, 11, -1, -1, -1, -1],
        [-1] * 6,
    ]


@pytest.mark.parametrize("make", [MonitorSeries, MonitorTimeElapsed])
def test_intervals_are_positive(make):
    with pytest.raises(ArgumentError, match=f"{make.__name__}: interval must be a whole number of at least 1, got 0"):
        make("x", interval=0)


def test_plots_need_matplotlib(tmp_path, monkeypatch):
    (tmp_path / "x.series.txt").write_text("9 1.5\n")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PluginError, match=r"plot: matplotlib must be installed.*\n  hint: pip install 'nn-core\[plots\]'"):
        plot_series(tmp_path / "x.series.txt")


def test_plots(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    (tmp_path / "x.series.txt").write_text("0 1.5\n1 2.5\n")
    (tmp_path / "x.timer.txt").write_text("1 120.0 2 120.0\n3 240.0 2 360.0\n")
    for plot, expected in (
        (lambda: plot_series(tmp_path / "x.series.txt", {"label": "x"}), [1.5, 2.5]),
        (lambda: plot_time_elapsed(tmp_path / "x.timer.txt", unit="m"), [1.0, 2.0]),
        (lambda: plot_time_elapsed(tmp_path / "x.timer.txt", elapsed=True), [120.0, 360.0]),
    ):
        pyplot.figure()
        plot()
        assert pyplot.gca().lines[0].get_ydata().tolist() == expected
        pyplot.close()
    with pytest.raises(ArgumentError, match="plot_time_elapsed: unit must be one of s, m, h, d, got 'y'"):
        plot_time_elapsed(tmp_path / "x.timer.txt", unit="y")


def test_a_resumed_series_continues_its_file(folder, tmp_path):
    path = tmp_path / "results/today/x.series.txt"
    series = MonitorSeries("x", folder, interval=2)
    for index in range(5):
        series.add(index, index)
    state = series.get_state()
    series.add(5, 5.0)
    whole = path.read_text()
    series.add(6, 6.0)
    series.add(7, 7.0)
    again = MonitorSeries("x", folder, interval=2)
    again.set_state(state)
    again.add(5, 5.0)
    assert path.read_text() == whole == "1 0.5\n3 2.5\n5 4.5\n"


def test_resumed_times_go_on(folder, tmp_path, monkeypatch):
    times = iter([10.0, 12.0, 12.5, 100.0, 101.0, 103.0])
    monkeypatch.setattr(monitor.time, "monotonic", lambda: next(times))
    timer = MonitorTimeElapsed("t", folder, interval=1)
    timer.add(0)
    state = timer.get_state()
    again = MonitorTimeElapsed("t", folder, interval=1)
    again.set_state(state)
    again.add(1)
    assert (tmp_path / "results/today/t.timer.txt").read_text() == "0 2.0 1 2.0\n1 2.5 1 4.5\n"


@pytest.mark.parametrize("left", ["1 0.5\n", None])
def test_a_series_that_was_cut_or_removed_is_continued_and_told(folder, tmp_path, caplog, left):
    path = tmp_path / "results/today/x.series.txt"
    series = MonitorSeries("x", folder)
    series.set_state({"length": 0, "values": []})
    if left is None:
        path.unlink()
    else:
        path.write_text(left)
    series.set_state({"length": 12, "values": []})
    series.add(5, 4.5)
    assert path.read_text() == f"{left or ''}5 4.5\n"
    assert f"x.series.txt is continued without lines that are gone: it had 12 bytes, got {len(left or '')}" in caplog.text


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil", "\\\\host\\evil", "a\0b", "a\nb", "a" * 256, "out/evil"])
@pytest.mark.parametrize("kind", [MonitorSeries, MonitorTimeElapsed, MonitorImage, MonitorImageTile])
def test_names_stay_below_the_folder(kind, name, folder, tmp_path):
    """Refuse names that lead elsewhere, which a program may have from a network's file."""
    Path(folder.save_path, "out").symlink_to(tmp_path)
    with pytest.raises(ArgumentError, match=f"^{kind.__name__}: name must stay below the folder of the monitor, got"):
        kind(name, folder)


@pytest.mark.parametrize(("name", "path"), [("D: loss", "D:-loss"), ("train/loss", "train/loss"), ("...", "...")])
def test_names_of_any_files_below_the_folder(name, path, folder):
    MonitorSeries(name, folder, verbose=False, interval=1).add(0, 1.0)
    assert Path(folder.save_path, f"{path}.series.txt").read_text() == "0 1\n"
