"""Watch training: means of numbers, times and images, written to files and to the log."""

import os
import struct
import time
import zlib
from collections.abc import Callable, Mapping
from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.pictures import plotting
from nn_core.engine.dispatch.attributes import module_attributes
from nn_core.engine.error_messages.refusal import checked_count, described, door, fitted, fitted_methods, real_numbers
from nn_core.engine.runtime.schemas import checked_state, wrong_state
from nn_core.errors import ArgumentError, ShapeError
from nn_core.files.atomic import require_regular
from nn_core.files.paths import path_below, why_not_below
from nn_core.logger import logger
from nn_core.variable import Variable

Array: TypeAlias = np.ndarray[Any, Any]
#: Maps pixel values to the range from 0 to 1.
Normalize: TypeAlias = Callable[[Array], Array]


class Monitor:
    """A folder for what is watched; made if it does not exist.

    Args:
        save_path: Path of the folder.

    Raises:
        FileExistsError: when a file has the path.

    Example:
        >>> from nn_core.monitor import Monitor, MonitorSeries
        >>> monitor = Monitor("log")
        >>> loss = MonitorSeries("training loss", monitor, interval=2, verbose=False)
        >>> for index, value in enumerate([4.0, 2.0, 1.0, 0.0]):
        ...     loss.add(index, value)
        >>> np.loadtxt("log/training-loss.series.txt").tolist()
        [[1.0, 3.0], [3.0, 0.5]]
    """

    @door
    def __init__(self, save_path: str | os.PathLike[str]) -> None:
        if not isinstance(save_path, (str, os.PathLike)):
            raise ArgumentError(f"Monitor: save_path must be the path of a folder, got {described(save_path)}")
        self._save_path = os.fspath(save_path)
        Path(save_path).mkdir(parents=True, exist_ok=True)

    @property
    def save_path(self) -> str:
        """Path of the folder."""
        return self._save_path


class _Interval:
    """The steps since the last line: a line is due where there are as many as an interval has, also if steps are left out."""

    def __init__(self, start: int = 0) -> None:
        self.start = start

    def is_over(self, index: int, length: int) -> bool:
        """Tell whether the interval ends with step `index`; the next one begins then. A step back begins a new count."""
        if index + 1 < self.start:
            self.start = index
        if index + 1 - self.start < length:
            return False
        self.start = index + 1
        return True


@fitted_methods()
class MonitorSeries:
    """Write means of a number over intervals, one line "<index> <mean>" each.

    A new series starts a new file when its first line is written, unless `set_state` lets it continue the old one.

    Args:
        name: Name of the series; the file is called <name>.series.txt, with - for blanks.
        monitor: The monitor to write to; None: only the log.
        interval: Number of steps to take the mean over.
        verbose: Write to the log, too.

    Raises:
        ArgumentError: when `name` is not a string or stands for a path outside of the folder, `monitor` is not a Monitor, or
            `interval` is less than 1.

    Example:
        >>> series = MonitorSeries("loss", interval=10, verbose=False)
        >>> series.add(0, 0.7)
    """

    @fitted
    def __init__(self, name: str, monitor: Monitor | None = None, interval: int = 1, verbose: bool = True) -> None:
        self.name = name
        self.interval = checked_count("MonitorSeries: interval", interval)
        self.verbose = verbose
        self._file = _SeriesFile("MonitorSeries", monitor, name, "series")
        self._values: list[float] = []
        self._interval = _Interval()

    def add(self, index: int, value: Any) -> None:
        """Take in one value.

        Args:
            index: Number of the iteration, from 0.
            value: A number, or an array with one element.

        Raises:
            DTypeError: when it is no number.
            ShapeError: when it is an array of another size.
        """
        values = real_numbers("MonitorSeries", _plain(value)).astype(np.float64)
        if values.size != 1:
            raise ShapeError(f"MonitorSeries: value must be one number, got an array of shape {values.shape}")
        self._values.append(float(values.reshape(())))
        if not self._interval.is_over(index, self.interval):
            return
        mean = sum(self._values) / len(self._values)
        self._values.clear()
        self._file.append(f"{index} {mean:g}\n")
        if self.verbose:
            logger.info("iter=%d {%s}=%s", index, self.name, mean)

    def get_state(self) -> dict[str, Any]:
        """Return the length of the file and the values that are not written yet, as plain values."""
        return {"length": self._file.length, "values": list(self._values), "start": self._interval.start}

    @checked_state
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue the file where `get_state` was called; lines that were written later are cut off.

        A file that is shorter than it was, or gone, is continued as it is, which is logged as a warning.
        """
        values = [float(value) for value in state["values"]]
        start = int(state.get("start", 0))
        self._file.cut(state["length"])
        self._values, self._interval = values, _Interval(start)


@fitted_methods()
class MonitorTimeElapsed:
    """Write how long intervals take, one line "<index> <seconds> <interval> <seconds since the start>" each.

    Args:
        name: Name of the series; the file is called <name>.timer.txt, with - for blanks.
        monitor: The monitor to write to; None: only the log.
        interval: Number of iterations of an interval.
        verbose: Write to the log, too.

    Raises:
        ArgumentError: when `name` is not a string or stands for a path outside of the folder, `monitor` is not a Monitor, or
            `interval` is less than 1.

    Example:
        >>> from nn_core.monitor import Monitor, MonitorTimeElapsed
        >>> timer = MonitorTimeElapsed("training time", Monitor("log"), interval=2, verbose=False)
        >>> for index in range(4):
        ...     timer.add(index)
        >>> np.loadtxt("log/training-time.timer.txt")[:, 0].tolist()
        [1.0, 3.0]
    """

    @fitted
    def __init__(self, name: str, monitor: Monitor | None = None, interval: int = 100, verbose: bool = True) -> None:
        self.name = name
        self.interval = checked_count("MonitorTimeElapsed: interval", interval)
        self.verbose = verbose
        self._file = _SeriesFile("MonitorTimeElapsed", monitor, name, "timer")
        self._start = self._lap_start = time.monotonic()
        self._interval = _Interval()

    def add(self, index: int) -> None:
        """Note that iteration `index`, from 0, is over."""
        if not self._interval.is_over(index, self.interval):
            return
        now = time.monotonic()
        lap, total = now - self._lap_start, now - self._start
        self._lap_start = now
        self._file.append(f"{index} {lap} {self.interval} {total}\n")
        if self.verbose:
            logger.info("iter=%d {%s}=%s[sec/%diter] %s[sec]", index, self.name, lap, self.interval, total)

    def get_state(self) -> dict[str, Any]:
        """Return the length of the file and the seconds so far, as plain values."""
        now = time.monotonic()
        lap, total = now - self._lap_start, now - self._start
        return {"length": self._file.length, "lap": lap, "total": total, "start": self._interval.start}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue the file and the times where `get_state` was called; lines that were written later are cut off.

        A file that is shorter than it was, or gone, is continued as it is, which is logged as a warning.
        """
        try:
            length, lap, total = state["length"], float(state["lap"]), float(state["total"])
            start = int(state.get("start", 0))
        except (TypeError, LookupError, ValueError, OverflowError) as error:
            raise wrong_state("MonitorTimeElapsed.set_state", error) from error
        self._file.cut(length)
        now = time.monotonic()
        self._lap_start, self._start, self._interval = now - lap, now - total, _Interval(start)


@fitted_methods()
class MonitorImage:
    """Write images as PNG files, <folder>/<name>/<index>-<number>.png.

    Args:
        name: Name of the images, with - for blanks.
        monitor: The monitor to write to.
        interval: Images are written at index 0 and at the end of each interval.
        verbose: Write to the log, too.
        num_images: Most images of a batch that are written.
        normalize_method: Maps pixel values to the range from 0 to 1. Default: the smallest becomes 0, the largest 1.

    Raises:
        ArgumentError: when `name` is not a string or stands for a path outside of the folder, `monitor` is not a Monitor, or
            `interval` is less than 1.
        ShapeError: by `add`, when the images do not have four axes.

    Example:
        >>> from pathlib import Path
        >>> from nn_core.monitor import Monitor, MonitorImage
        >>> images = MonitorImage("generated", Monitor("log"), interval=100, verbose=False, num_images=2)
        >>> images.add(0, np.random.rand(16, 3, 32, 32))
        >>> sorted(path.name for path in Path("log/generated").iterdir())
        ['000000-000.png', '000000-001.png']
    """

    @fitted
    def __init__(
        self,
        name: str,
        monitor: Monitor,
        interval: int = 1000,
        verbose: bool = True,
        num_images: int = 16,
        normalize_method: Normalize | None = None,
    ) -> None:
        self.name = name
        _require_monitor(type(self).__name__, monitor, name)
        self.interval = checked_count(f"{type(self).__name__}: interval", interval)
        self.verbose = verbose
        self.num_images = checked_count(f"{type(self).__name__}: num_images", num_images, 0)
        self.normalize_method = self.default_normalize_method if normalize_method is None else normalize_method
        self._folder = _path_in(type(self).__name__, monitor, name)
        self._folder.mkdir(parents=True, exist_ok=True)

    def add(self, index: int, var: Variable | NdArray | Array) -> None:
        """Write the first images of a batch.

        Args:
            index: Number of the iteration, from 0.
            var: Images. Shape (N, C, H, W); 3 channels give a coloured image, any other number a gray one of the first.
        """
        if index and (index + 1) % self.interval:
            return
        images = self.normalize_method(_images(var)[: self.num_images])
        self._write(index, images)

    def default_normalize_method(self, x: Array) -> Array:
        """Stretch the values so that the smallest is 0 and the largest 1; all 0 when they are equal."""
        low, high = x.min(), x.max()
        return (x - low) / (high - low) if high > low else np.zeros_like(x, np.float64)

    def _write(self, index: int, images: Array) -> None:
        for number, image in enumerate(images):
            (self._folder / f"{index:06d}-{number:03d}.png").write_bytes(_png(image))
        if self.verbose:
            logger.info("iter=%d {%s} are written to %s/%06d-*.png.", index, self.name, self._folder, index)


class MonitorImageTile(MonitorImage):
    """Write the images of a batch as one PNG file, <folder>/<name>/<index>.png.

    Args:
        name: Name of the images, with - for blanks.
        monitor: The monitor to write to.
        interval: Images are written at index 0 and at the end of each interval.
        verbose: Write to the log, too.
        num_images: Most images of a batch that are written.
        normalize_method: Maps pixel values to the range from 0 to 1. Default: the smallest becomes 0, the largest 1.

    Raises:
        ArgumentError: when `name` is not a string or stands for a path outside of the folder, `monitor` is not a Monitor, or
            `interval` is less than 1.
        ShapeError: by `add`, when the images do not have four axes.

    Example:
        >>> from pathlib import Path
        >>> from nn_core.monitor import Monitor, MonitorImageTile
        >>> tiles = MonitorImageTile("generated", Monitor("tiles"), interval=100, verbose=False)
        >>> tiles.add(99, np.random.rand(16, 3, 32, 32))
        >>> [path.name for path in Path("tiles/generated").iterdir()]
        ['000099.png']
    """

    def _write(self, index: int, images: Array) -> None:
        path = self._folder / f"{index:06d}.png"
        path.write_bytes(_png(tile_images(images).transpose(2, 0, 1)))
        if self.verbose:
            logger.info("iter=%d {%s} are written to %s.", index, self.name, path)


@fitted
def plot_series(filename: str | os.PathLike[str], plot_kwargs: Mapping[str, Any] | None = None) -> None:
    """Plot a file of MonitorSeries on the current axes of matplotlib.

    Args:
        filename: Path of the file.
        plot_kwargs: Settings for ``matplotlib.pyplot.plot``.

    Raises:
        FileNotFoundError: when there is no such file.

    Example:
        >>> from nn_core.monitor import Monitor, MonitorSeries, plot_series
        >>> loss = MonitorSeries("loss", Monitor("log"), verbose=False)
        >>> for index in range(3):
        ...     loss.add(index, 1 / (index + 1))
        >>> from matplotlib import pyplot
        >>> plot_series("log/loss.series.txt", {"label": "training"})
        >>> pyplot.savefig("loss.png")
    """
    require_regular(filename)
    table = np.loadtxt(filename, ndmin=2)
    _plot(table[:, 0], table[:, 1], "iteration", None, plot_kwargs)


@fitted
def plot_time_elapsed(
    filename: str | os.PathLike[str],
    elapsed: bool = False,
    unit: str = "s",
    plot_kwargs: Mapping[str, Any] | None = None,
) -> None:
    """Plot a file of MonitorTimeElapsed on the current axes of matplotlib.

    Args:
        filename: Path of the file.
        elapsed: Plot the time since the start; if not, the time of one iteration.
        unit: "s", "m" for minutes, "h" for hours, or "d" for days.
        plot_kwargs: Settings for ``matplotlib.pyplot.plot``.

    Raises:
        ArgumentError: when `unit` is another one.

    Example:
        >>> from nn_core.monitor import Monitor, MonitorTimeElapsed, plot_time_elapsed
        >>> timer = MonitorTimeElapsed("time", Monitor("log"), interval=1, verbose=False)
        >>> for index in range(3):
        ...     timer.add(index)
        >>> from matplotlib import pyplot
        >>> plot_time_elapsed("log/time.timer.txt", elapsed=True, unit="m")
        >>> pyplot.savefig("time.png")
    """
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    if unit not in seconds:
        raise ArgumentError(f"plot_time_elapsed: unit must be one of {', '.join(seconds)}, got {unit!r}")
    require_regular(filename)
    table = np.loadtxt(filename, ndmin=2)
    times = table[:, 3] if elapsed else table[:, 1] / table[:, 2]
    _plot(table[:, 0], times / seconds[unit], "iteration", f"time [{unit}]", plot_kwargs)


@fitted
def tile_images(data: Array, padsize: int = 1, padval: float = 0) -> Array:
    """Put images into a square grid, row by row.

    Args:
        data: Images. Shape (N, C, H, W).
        padsize: Width of the border right of and below each image.
        padval: Value of the border and of empty places.

    Returns:
        Shape (n * (H + padsize), n * (W + padsize), C), where n is the least number with n * n >= N.

    Raises:
        ShapeError: when `data` does not have four axes.

    Example:
        >>> from nn_core.monitor import tile_images
        >>> tile_images(np.ones((5, 3, 8, 8)), padsize=2).shape
        (30, 30, 3)
    """
    if np.ndim(data) != 4:
        raise ShapeError(f"tile_images: data must have the shape (N, C, H, W), got {np.shape(data)}")
    data = np.asarray(data)
    count, channels, height, width = data.shape
    n = ceil(sqrt(count))
    padded = np.pad(
        data,
        ((0, n * n - count), (0, 0), (0, padsize), (0, padsize)),
        mode="constant",
        constant_values=padval,
    )
    grid = padded.reshape(n, n, channels, height + padsize, width + padsize).transpose(0, 3, 1, 4, 2)
    return grid.reshape(n * (height + padsize), n * (width + padsize), channels)


def _require_monitor(kind: str, monitor: Any, name: Any) -> None:
    if not isinstance(name, str):
        raise ArgumentError(f"{kind}: name must be a string, got {described(name)}")
    if not isinstance(monitor, Monitor):
        raise ArgumentError(f"{kind}: monitor must be a Monitor, got {described(monitor)}\n  hint: Monitor({monitor!r})")


def _path_in(kind: str, monitor: Monitor, name: str, ending: str = "") -> Path:
    """Return a path in the folder of a monitor, or refuse a name that leads elsewhere; it may come from a network's file."""
    # "./": the name "D: loss" has no drive
    stem = name if name[:1] in ("/", "\\") else f"./{name.replace(' ', '-')}"
    problem = why_not_below(monitor.save_path, f"{stem}{ending}")
    if problem:
        raise ArgumentError(f"{kind}: name must stay below the folder of the monitor, got {problem}")
    return path_below(monitor.save_path, f"{stem}{ending}")


class _SeriesFile:
    """A file of lines. It is made anew when the first line is written, so that it can be continued instead."""

    def __init__(self, owner: str, monitor: Monitor | None, name: str, kind: str) -> None:
        if monitor is not None or not isinstance(name, str):
            _require_monitor(owner, monitor, name)
        self._path = None if monitor is None else _path_in(owner, monitor, name, f".{kind}.txt")
        self.length = 0
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()

    def append(self, line: str) -> None:
        """Write one line."""
        if self._path is not None:
            with self._path.open("ab" if self.length else "wb") as file:
                self.length += file.write(line.encode())

    def cut(self, length: int) -> None:
        """Keep the first `length` bytes."""
        if isinstance(length, bool) or not isinstance(length, int) or not 0 <= length < 2**63:
            raise ArgumentError(f"set_state: length must be a whole number of at least 0, got {described(length)}")
        if self._path is not None:
            size = self._path.stat().st_size if self._path.exists() else 0
            if size < length:
                logger.warning(
                    "%s is continued without lines that are gone: it had %d bytes, got %d", self._path, length, size
                )
                length = size
            else:
                os.truncate(self._path, length)
        self.length = length


def _plain(value: Any) -> Any:
    if isinstance(value, Variable):
        value = value.data
    return value.get_data("r") if isinstance(value, NdArray) else value


def _images(var: Variable | NdArray | Array) -> Array:
    images = np.asarray(_plain(var), np.float64)
    if images.ndim != 4:
        raise ShapeError(f"MonitorImage: images must have the shape (N, C, H, W), got {images.shape}")
    return images if images.shape[1] == 3 else images[:, :1]


def _png(image: Array) -> bytes:
    """Return a PNG file of an image with values from 0 to 1, shape (1 or 3, H, W). Format: ISO/IEC 15948."""
    channels, height, width = image.shape
    pixels = (np.clip(image, 0.0, 1.0) * 255).round().astype(np.uint8).transpose(1, 2, 0)
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row starts with its filter, 0
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    parts = [struct.pack(">I", len(d)) + kind + d + struct.pack(">I", zlib.crc32(kind + d)) for kind, d in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _plot(x: Array, y: Array, x_label: str, y_label: str | None, settings: Mapping[str, Any] | None) -> None:
    pyplot = plotting("plot", "matplotlib.pyplot")
    pyplot.plot(x, y, **(settings or {}))
    pyplot.xlabel(x_label)
    if y_label is not None:
        pyplot.ylabel(y_label)
    pyplot.grid(True)


if not TYPE_CHECKING:  # so that checkers report names that do not exist
    __getattr__, __dir__ = module_attributes(__name__, "viewers", ("monitor",))
