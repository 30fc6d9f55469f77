"""Seconds to write and read a checkpoint of 120 MB, and the pause of training when it is written in the background.

python -m benchmarks.checkpoint
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import nn_core as nn
from nn_core.training import load_checkpoint, save_checkpoint
from nn_core.training.checkpoint import take_snapshot

ROUNDS = 7
EXTENSIONS = (".npz", ".safetensors", ".h5")
PAUSE, COPY = "pause of a write in the background", "copy of one array of this size"


def parameters() -> dict[str, nn.Variable]:
    """30 million numbers, as a network of 30 layers would have them."""
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((1000, 1000), np.float32) for _ in range(30)]
    return {f"layer{number}/W": nn.Variable.from_numpy_array(array) for number, array in enumerate(arrays)}


def seconds(function: Callable[[], object]) -> float:
    """Time of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measured() -> dict[str, list[float]]:
    """Seconds; the formats take turns, so that a change of the machine's speed meets all of them."""
    objects = parameters()
    whole = np.concatenate([variable.d.ravel() for variable in objects.values()])
    snapshot = take_snapshot(parameters=objects)
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for extension in EXTENSIONS:
                path = Path(folder) / f"checkpoint{extension}"
                for label, function in (("write", save_checkpoint), ("read", load_checkpoint)):
                    took = seconds(lambda act=function, path=path: act(path, parameters=objects))  # type: ignore[misc]  # typed by use
                    times.setdefault(f"{label} {extension}", []).append(took)
            times.setdefault(PAUSE, []).append(seconds(snapshot.copy))
            times.setdefault(COPY, []).append(seconds(whole.copy))
    return times


def main() -> None:
    """Print the medians."""
    for label, values in measured().items():
        print(f"{label:35} {statistics.median(values):.3f} s, least {min(values):.3f}")


if __name__ == "__main__":
    main()
