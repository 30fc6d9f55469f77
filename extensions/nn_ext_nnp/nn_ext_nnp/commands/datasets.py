"""Make data sets: caches of tables, and tables of images in folders."""

import tempfile
from pathlib import Path
from typing import Final

import click

from nn_core.ext import ArgumentError, say
from nn_core.utils.create_cache import CreateCache
from nn_core.utils.data_source import DataSourceWithFileCache
from nn_core.utils.data_source_implements import CacheDataSource
from nn_ext_nnp.commands.context import watched
from nn_ext_nnp.commands.failing import clean_failures
from nn_ext_nnp.commands.pictures import Split, is_image, prepared, shaping_options, write_image

_FOLDER: Final = click.Path(exists=True, file_okay=False, path_type=Path)
#: The file that every cache has.
_INDEX: Final = "cache_index.csv"


@click.command("conv_dataset")
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.argument("destination", type=click.Path(path_type=Path))
@click.option("-F", "--force", is_flag=True, help="Replace a cache at DESTINATION.")
@click.option("-S", "--shuffle", is_flag=True, help="Save the samples in an order that is drawn.")
@click.option("-N", "--normalize", is_flag=True, help="Divide images by the largest value of their dtype.")
@click.option("-t", "--num_of_threads", type=int, default=10, help="Without effect; kept for scripts that give it.")
@clean_failures
def conv_dataset(source: Path, destination: Path, force: bool, shuffle: bool, normalize: bool, num_of_threads: int) -> None:
    """Copy the samples of SOURCE, a CSV file or a cache, to a cache in the folder DESTINATION.

    The folder appears when it is complete.

    Example: nn-core conv_dataset -F -N data.csv data.cache
    """
    _check_destination(source, destination, force)
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=f".{destination.name}.") as folder:
        made = Path(folder) / "cache"
        count = _copy(source, made, shuffle, normalize)
        if destination.exists():
            destination.replace(Path(folder) / "old")
        made.replace(destination)
    say(f"{count} samples")


def _check_destination(source: Path, destination: Path, force: bool) -> None:
    if not destination.exists():
        return
    if destination.resolve() == source.resolve():
        raise ArgumentError(f"conv_dataset: DESTINATION must be another folder than SOURCE, got {destination} for both")
    if not force:
        raise ArgumentError(f"conv_dataset: DESTINATION must be new without --force, got {destination}, which exists")
    is_empty = destination.is_dir() and not any(destination.iterdir())
    if not is_empty and not (destination / _INDEX).is_file():
        raise ArgumentError(f"conv_dataset: --force must replace a cache, got {destination}, which has no {_INDEX}")


def _copy(source: Path, made: Path, shuffle: bool, normalize: bool) -> int:
    if source.is_dir():
        with CacheDataSource(source, shuffle, normalize=normalize) as samples, DataSourceWithFileCache(samples, made):
            return samples.size
    with CreateCache(source, shuffle=shuffle) as table:
        table.create(made, normalize=normalize)
        return table.size


@click.command("create_image_classification_dataset")
@click.option("-i", "--sourcedir", required=True, type=_FOLDER, help="Folder with a folder of images for each class.")
@shaping_options
def create_image_classification_dataset(
    sourcedir: Path, outdir: Path, channel: int, width: int, height: int, mode: str, split: Split
) -> None:
    """Bring images to one size, and list them with the numbers of their classes, the folders in the order of their names.

    Example: nn-core create_image_classification_dataset -i photos -o data -c 3 -w 32 -g 32 -m trimming -s true
    -f1 train.csv -r1 80 -f2 test.csv -r2 20
    """
    if outdir.resolve() == sourcedir.resolve():
        raise ArgumentError(f"create_image_classification_dataset: OUTDIR must not be SOURCEDIR, got {outdir} for both")
    classes = sorted(path for path in sourcedir.iterdir() if path.is_dir())
    found = [(path, number) for number, folder in enumerate(classes) for path in sorted(folder.iterdir()) if is_image(path)]
    if not found:
        raise ArgumentError(
            f"create_image_classification_dataset: {sourcedir} must have folders with images, got {len(classes)} folders"
        )
    rows: list[tuple[str, ...]] = []
    taken: set[str] = set()
    for path, number in watched(found, len(found), "images"):
        name = f"./{path.parent.name}/{path.stem}.png"
        name = name if name not in taken else f"./{path.parent.name}/{path.name}.png"
        taken.add(name)
        write_image(outdir / name, prepared(path, channel, width, height, mode))
        rows.append((name, str(number)))
    split.write(outdir, ("x:image", "y:label"), rows)
    say(f"{len(rows)} images of {len(classes)} classes")
