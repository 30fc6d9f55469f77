"""Make data sets for the detection of objects: images of one size, and what a grid of anchors has to find in each."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from nn_core.ext import ArgumentError, FileFormatError, atomic_writer, open_to_read, say
from nn_ext_nnp.commands.context import watched
from nn_ext_nnp.commands.pictures import Split, is_image, placement, prepared, shaping_options, write_image

Array = np.ndarray[Any, Any]

_FOLDER: Final = click.Path(exists=True, file_okay=False, path_type=Path)
_POSITIVE: Final = click.IntRange(min=1)
#: Rounds after which anchors are taken as they are.
_ROUNDS: Final = 100


@dataclass(frozen=True, slots=True)
class _Picture:
    """An image with its boxes: rows of class, and centre, width and height relative to the prepared image."""

    path: Path
    boxes: Array


@click.command("create_object_detection_dataset")
@click.option("-i", "--sourcedir", required=True, type=_FOLDER, help="Folder with images and texts of their boxes.")
@click.option("-n", "--num_class", required=True, type=_POSITIVE, help="Number of classes.")
@click.option("-a", "--num_anchor", required=True, type=_POSITIVE, help="Number of anchors.")
@click.option("-d", "--grid_size", required=True, type=_POSITIVE, help="Pixels of a cell of the grid, both ways.")
@shaping_options
def create_object_detection_dataset(
    sourcedir: Path, outdir: Path, num_class: int, num_anchor: int, grid_size: int, channel: int, width: int, height: int,
    mode: str, split: Split,
) -> None:  # fmt: skip
    """Bring images to one size, and write the class and the place of the boxes for each cell of a grid and each anchor.

    A text beside an image has a line for each box: class, centre, width and height, relative to the image. The anchors are the
    centres of clusters of the sizes of all boxes, in pixels in anchors.csv.

    Example: nn-core create_object_detection_dataset -i photos -o data -n 20 -c 3 -w 416 -g 416 -a 5 -d 16 -m padding -s true
    -f1 train.csv -r1 80 -f2 test.csv -r2 20
    """
    if width % grid_size or height % grid_size:
        raise ArgumentError(f"--grid_size must divide the width and the height, got {grid_size} for {width} and {height}")
    paths = sorted(path for path in sourcedir.iterdir() if is_image(path) and path.with_suffix(".txt").is_file())
    pictures = [_Picture(path, _boxes(path, num_class, width, height, mode)) for path in paths]
    sizes = np.concatenate([np.zeros((0, 2)), *(picture.boxes[:, 3:] for picture in pictures)])
    if len(sizes) < num_anchor:
        raise ArgumentError(f"--num_anchor must be at most the number of boxes in {sourcedir}, {len(sizes)}, got {num_anchor}")
    anchors = cluster_sizes(sizes, num_anchor)
    grid = (height // grid_size, width // grid_size)
    rows: list[tuple[str, ...]] = []
    left_out = 0
    for picture in watched(pictures, len(pictures), "images"):
        stem = f"./data/{picture.path.stem}"
        write_image(outdir / f"{stem}.png", prepared(picture.path, channel, width, height, mode))
        labels, regions, missed = targets(picture.boxes, anchors, grid)
        _write_table(outdir / f"{stem}_label.csv", labels, "%d")
        _write_table(outdir / f"{stem}_region.csv", regions, "%.6f")
        rows.append((f"{stem}.png", f"{stem}_label.csv", f"{stem}_region.csv"))
        left_out += missed
    _write_table(outdir / "anchors.csv", anchors * (width, height), "%.6f")
    split.write(outdir, ("x:image", "y:label", "r:region"), rows)
    say(f"{len(rows)} images with {len(sizes)} boxes, {left_out} left out for others with the same cell and anchor")


def _boxes(image: Path, classes: int, width: int, height: int, mode: str) -> Array:
    """Return the boxes of an image, clipped to what is left of it, without those that are cut away."""
    path = image.with_suffix(".txt")
    found: list[tuple[float, ...]] = []
    with open_to_read(path) as file:
        lines = file.read().decode().splitlines()
    left, top, columns, rows, shaped_columns, shaped_rows = placement(image, width, height, mode)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        kind, *place = _numbers(line, f"{path}, line {number}")
        if not (kind.is_integer() and 0 <= kind < classes):
            raise FileFormatError(f"{path}, line {number}: the class must be a number below {classes}, got {kind:g}")
        center, half = np.array(place[:2]), np.array(place[2:]) / 2
        corners = np.stack([center - half, center + half]) * (columns, rows) + (left, top)
        start, end = np.clip(corners / (shaped_columns, shaped_rows), 0, 1)
        if (end > start).all():
            found.append((kind, *((start + end) / 2), *(end - start)))
    return np.array(found, np.float64).reshape(-1, 5)


def _numbers(line: str, where: str) -> list[float]:
    try:
        values = [float(part) for part in line.split()]
    except ValueError as error:
        raise FileFormatError(f"{where}: must have numbers, got {line!r}") from error
    if len(values) != 5 or not np.isfinite(values).all() or min(values[3:]) <= 0:
        raise FileFormatError(f"{where}: must have a class, x, y, and a positive width and height, got {line!r}")
    return values


def _overlaps(sizes: Array, anchors: Array) -> Array:
    """Intersection over union of boxes at one place, shape (boxes, anchors)."""
    common = np.minimum(sizes[:, None], anchors[None]).prod(-1)
    return np.asarray(common / (sizes.prod(-1)[:, None] + anchors.prod(-1)[None] - common))


def cluster_sizes(sizes: Array, count: int) -> Array:
    """Return the mean sizes of clusters of boxes that overlap most, small ones first. Start: sizes evenly spaced by area."""
    order = sizes[np.argsort(sizes.prod(-1), kind="stable")]
    anchors = order[np.linspace(0, len(order) - 1, count).round().astype(int)]
    for _ in range(_ROUNDS):
        nearest = _overlaps(order, anchors).argmax(-1)
        moved = np.stack([order[nearest == n].mean(0) if (nearest == n).any() else anchors[n] for n in range(count)])
        if np.array_equal(moved, anchors):
            break
        anchors = moved
    return np.asarray(anchors[np.argsort(anchors.prod(-1), kind="stable")])


def targets(boxes: Array, anchors: Array, grid: tuple[int, int]) -> tuple[Array, Array, int]:
    """Return what the cells of a grid have to find.

    Args:
        boxes: rows of class, centre, width and height, relative to the image.
        anchors: sizes, relative to the image. Shape (A, 2).
        grid: number of rows R and columns C.

    Returns:
        Classes, -1 where there is none, shape (A * R, C); the place of the centre in its cell, from 0 to 1, and the
        logarithms of the size over that of the anchor, shape (A * R, C * 4); and the number of boxes for which no anchor was
        left.
    """
    rows, columns = grid
    labels = np.full((len(anchors), rows, columns), -1, np.int64)
    regions = np.zeros((len(anchors), rows, columns, 4))
    missed = 0
    for kind, x, y, *size in boxes:
        column, row = min(int(x * columns), columns - 1), min(int(y * rows), rows - 1)
        by_overlap: Sequence[int] = np.argsort(-_overlaps(np.array([size]), anchors)[0], kind="stable").tolist()
        free = [n for n in by_overlap if labels[n, row, column] < 0]
        if not free:
            missed += 1
            continue
        labels[free[0], row, column] = int(kind)
        regions[free[0], row, column] = (x * columns - column, y * rows - row, *np.log(size / anchors[free[0]]))
    return labels.reshape(-1, columns), regions.reshape(-1, columns * 4), missed


def _write_table(path: Path, values: Array, form: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_writer(path) as file:
        np.savetxt(file, values, fmt=form, delimiter=",")
