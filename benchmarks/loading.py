"""Samples a second of `DataIterator` beside PyTorch's DataLoader, with two workers.

    python -m benchmarks.loading
    python -m benchmarks.loading decode

"decode": each sample is a JPEG of 192 x 256 pixels that Pillow decodes, flipped at random. "copy": each sample is 600 kB of
numbers that are ready, so that passing batches on is all the work. Both give batches of arrays, (B, C, H, W) of bytes and
float32, and both draw a new order each epoch. Each measurement is a process of its own; the loaders take turns.
"""

import argparse
import importlib
import importlib.util
import io
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

WORKERS, ROUNDS, SECONDS = 2, 5, 4.0
SIZES = {"decode": (512, 32), "copy": (256, 32)}  # samples, batch size


@cache
def _pictures() -> list[bytes]:
    from PIL import Image

    random = np.random.default_rng(0)
    pictures = []
    for _ in range(16):
        coarse = Image.fromarray(random.integers(0, 256, (12, 16, 3), np.uint8))
        file = io.BytesIO()
        coarse.resize((256, 192), Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
        pictures.append(file.getvalue())
    return pictures


def decode(index: int) -> tuple[Any, int]:
    """Decode a picture from its JPEG."""
    from PIL import Image

    pixels = np.asarray(Image.open(io.BytesIO(_pictures()[index % 16])))
    return np.ascontiguousarray(pixels[:, :: -1 if index % 2 else 1].transpose(2, 0, 1)), index


@cache
def _numbers() -> Any:
    return np.random.default_rng(0).standard_normal((16, 3, 224, 224), np.float32)


def copy(index: int) -> tuple[Any, int]:
    """Numbers that are ready."""
    return _numbers()[index % 16], index


class Samples:
    """The samples as PyTorch asks for them."""

    def __init__(self, name: str) -> None:
        self._sample, self._size = globals()[name], SIZES[name][0]

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self._sample(index)  # type: ignore[no-any-return]  # one of the functions above


def nn_core_batches(name: str, worker_type: str) -> Iterator[Any]:
    """Batches of a `DataIterator`, for ever."""
    from nn_core.data.iterator import DataIterator
    from nn_core.data.source import SimpleDataSource

    size, batch_size = SIZES[name]
    source = SimpleDataSource(getattr(_here(), name), size, shuffle=True)
    return DataIterator(source, batch_size, workers=WORKERS, worker_type=worker_type)


def torch_batches(name: str) -> Iterator[Any]:
    """Batches of a DataLoader, for ever; its workers live as long as it does."""
    import torch.utils.data

    loader = torch.utils.data.DataLoader(
        _here().Samples(name), SIZES[name][1], shuffle=True, num_workers=WORKERS, persistent_workers=True
    )
    while True:
        yield from loader


def _here() -> Any:
    """Return this module under the name by which workers import it; in the main process it has another one."""
    return importlib.import_module("benchmarks.loading")


LOADERS = {
    "nn_core processes": lambda name: nn_core_batches(name, "process"),
    "nn_core threads": lambda name: nn_core_batches(name, "thread"),
    "torch": torch_batches,
}


def rate(loader: str, name: str) -> float:
    """Measure samples a second, after two epochs in which workers start."""
    size, batch_size = SIZES[name]
    batches = LOADERS[loader](name)
    for _ in range(2 * size // batch_size):
        next(batches)
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        batch = next(batches)
        count += len(batch[1])
        float(np.asarray(batch[0]).reshape(-1)[::4096].sum())  # a page of each is read, as training would
    return count / (time.perf_counter() - start)


def measured(name: str) -> dict[str, list[float]]:
    """Measure samples a second by loader; each measurement is a process of its own, and the loaders take turns."""
    loaders = [loader for loader in LOADERS if loader != "torch" or importlib.util.find_spec("torch")]
    rates: dict[str, list[float]] = {loader: [] for loader in loaders}
    for _ in range(ROUNDS):
        for loader in loaders:
            command = [sys.executable, "-m", "benchmarks.loading", name, "--loader", loader]
            rates[loader].append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    return rates


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SIZES)}; default: both")
    parser.add_argument("--loader", choices=LOADERS, help="measure one in this process, and print its rate")
    options = parser.parse_args()
    names = options.names or list(SIZES)
    if options.loader:
        print(rate(options.loader, names[0]))
        return
    for name in names:
        rates = measured(name)
        medians = {loader: statistics.median(values) for loader, values in rates.items()}
        for loader, values in rates.items():
            ratio = f"  {medians[loader] / medians['torch']:.2f} of torch" if "torch" in medians else ""
            print(f"{name:8}{loader:20} {medians[loader]:8.0f} samples/s ({min(values):.0f}-{max(values):.0f}){ratio}")


if __name__ == "__main__":
    main()
