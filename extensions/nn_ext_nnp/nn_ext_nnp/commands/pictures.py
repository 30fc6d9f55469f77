"""Images of one size from images of any, and tables that list them."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from nn_core.ext import ArgumentError, atomic_writer
from nn_core.utils.image_utils import imread, imresize, imsave
from nn_ext_nnp.commands.failing import clean_failures

Image = np.ndarray[Any, Any]

_EXTENSIONS: Final = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
#: Of the order of shuffled tables.
_SEED: Final = 313


def is_image(path: Path) -> bool:
    """Return whether a path is an image by its extension."""
    return path.suffix.lower() in _EXTENSIONS and path.is_file()


def prepared(path: Path, channel: int, width: int, height: int, mode: str) -> Image:
    """Return an image in another size, its proportions kept.

    The image is cut or gets black borders, the same on both sides, before it is resized.

    Args:
        path: the image.
        channel: 1 or 3.
        width: of the result.
        height: of the result.
        mode: "trimming" cuts what is too much, "padding" adds what is missing.

    Returns:
        Shape (height, width) or (height, width, 3).
    """
    image = imread(path, num_channels=channel)
    borders = _borders(image.shape[0], image.shape[1], width, height, mode)
    (top, bottom), (left, right) = [(max(-n, 0), max(-m, 0)) for n, m in borders]
    cut = image[top : image.shape[0] - bottom, left : image.shape[1] - right]
    shaped = np.pad(cut, [*((max(n, 0), max(m, 0)) for n, m in borders), *[(0, 0)] * (image.ndim - 2)])
    return imresize(shaped, (width, height))


def placement(path: Path, width: int, height: int, mode: str) -> tuple[int, int, int, int, int, int]:
    """Return the place of an image before `prepared` resizes it.

    Returns:
        Pixels left of it and above, negative when cut; its width and height; those of the cut or padded image.
    """
    rows, columns = imread(path).shape[:2]
    (top, bottom), (left, right) = _borders(rows, columns, width, height, mode)
    return left, top, columns, rows, columns + left + right, rows + top + bottom


def _borders(rows: int, columns: int, width: int, height: int, mode: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Rows to add above and below, and columns to add left and right; negative ones are to be cut."""
    is_wide = columns * height > rows * width
    if mode == "trimming":
        top = 0 if is_wide else (rows - int(columns * height / width)) // 2
        left = (columns - int(rows * width / height)) // 2 if is_wide else 0
        return (-top, -top), (-left, -left)
    more_rows = int(columns * height / width) - rows if is_wide else 0
    more_columns = 0 if is_wide else int(rows * width / height) - columns
    return (more_rows // 2, more_rows - more_rows // 2), (more_columns // 2, more_columns - more_columns // 2)


def write_image(path: Path, image: Image) -> None:
    """Write a PNG, which appears when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    imsave(content, image)
    with atomic_writer(path) as file:
        file.write(content.getvalue())


@dataclass(frozen=True, slots=True)
class Split:
    """How rows are shared between one or two tables: `percent` of them go to the first."""

    first: str
    second: str | None
    percent: float
    shuffle: bool

    def write(self, folder: Path, header: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
        """Write the tables."""
        order = np.random.default_rng(_SEED).permutation(len(rows)) if self.shuffle else np.arange(len(rows))
        end = int(len(rows) * self.percent / 100)
        for name, part in ((self.first, order[:end]), (self.second, order[end:])):
            if name is not None:
                text = io.StringIO()
                csv.writer(text, lineterminator="\n").writerows([header, *(rows[index] for index in part)])
                with atomic_writer(folder / name) as file:
                    file.write(text.getvalue().encode())


def _split(shuffle: str, file1: str, ratio1: float | None, file2: str | None, ratio2: float | None) -> Split:
    if file2 is None:
        if ratio2 is not None or ratio1 not in (None, 100):
            raise ArgumentError(f"--ratio1 must be 100 without --file2, got {ratio1} and --ratio2 {ratio2}")
        return Split(file1, None, 100, shuffle == "true")
    first = ratio1 if ratio1 is not None else 100 - (50 if ratio2 is None else ratio2)
    if not 0 <= first <= 100 or (ratio2 is not None and first + ratio2 != 100):
        raise ArgumentError(f"--ratio1 and --ratio2 must add up to 100, got {first:g} and {ratio2}")
    if file1 == file2:
        raise ArgumentError(f"--file1 and --file2 must be different, got {file1} for both")
    return Split(file1, file2, first, shuffle == "true")


def shaping_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for size, channels and tables; the command gets a `Split` in place of the last, and fails cleanly."""

    @wraps(command)
    def run(*, shuffle: str, file1: str, ratio1: float | None, file2: str | None, ratio2: float | None, **rest: Any) -> None:
        command(**rest, split=_split(shuffle, file1, ratio1, file2, ratio2))

    described: Callable[..., None] = clean_failures(run)
    for option in reversed(_OPTIONS):
        described = option(described)
    return described


_POSITIVE: Final = click.IntRange(min=1)
_OPTIONS: Final = (
    click.option("-o", "--outdir", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder."),
    click.option("-c", "--channel", required=True, type=click.Choice([1, 3]), help="Number of colour channels."),
    click.option("-w", "--width", required=True, type=_POSITIVE, help="Width of the images to write."),
    click.option("-g", "--height", required=True, type=_POSITIVE, help="Height of the images to write."),
    click.option(
        "-m", "--mode", required=True, type=click.Choice(["trimming", "padding"]), help="Cut what is too much, or add black."
    ),
    click.option("-s", "--shuffle", required=True, type=click.Choice(["true", "false"]), help="Draw the order of the rows."),
    click.option("-f1", "--file1", required=True, help="Name of the table."),
    click.option("-r1", "--ratio1", type=float, help="Percentage of the rows in the first table."),
    click.option("-f2", "--file2", help="Name of a second table."),
    click.option("-r2", "--ratio2", type=float, help="Percentage of the rows in the second table."),
)
