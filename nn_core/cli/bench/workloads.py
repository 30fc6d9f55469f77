"""The workloads of the benchmark, their sizes, and the frameworks that may take part."""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: One step of a workload: returns when the result is computed.
Step = Callable[[], object]
#: Makes the step of each workload that a framework has.
Programs = Mapping[str, Callable[[], Step]]

#: The workloads in the order of the table, with the titles of their rows.
TITLES: Final = {
    "matmul": "matrix product, {0.matmul} x {0.matmul}",
    "convolution": "convolution 3 x 3, {0.images} images, {0.maps} maps, {0.side} x {0.side}",
    "training": "digits network, training step, batch {0.batch}",
    "inference": "digits network, inference, batch {0.batch}",
}
#: Maps of the three convolutions of the network of ``examples/digits_demo.py``; the last two are followed by poolings.
DEMO_MAPS: Final = (32, 64, 64)
DEMO_CLASSES: Final = 10
DROPOUT: Final = 0.3
LEARNING_RATE: Final = 2e-3


@dataclass(frozen=True)
class Sizes:
    """The sizes of the workloads, and the number of threads of each framework."""

    threads: int
    matmul: int = 1024
    images: int = 16
    maps: int = 64
    side: int = 56
    batch: int = 64

    def matrices(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Two square matrices."""
        return _normal(self.matmul, self.matmul), _normal(self.matmul, self.matmul)

    def convolution(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Images (N, C, H, W) and weights (C, C, 3, 3)."""
        return _normal(self.images, self.maps, self.side, self.side), _normal(self.maps, self.maps, 3, 3)

    def digits(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Images (B, 1, 8, 8) and labels (B, 1)."""
        return _normal(self.batch, 1, 8, 8), np.arange(self.batch).reshape(-1, 1) % DEMO_CLASSES


def quick_sizes(threads: int) -> Sizes:
    """Sizes that take milliseconds in all."""
    return Sizes(threads, matmul=32, images=2, maps=8, side=8, batch=4)


def _normal(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@dataclass(frozen=True)
class Framework:
    """A framework that can take part: the packages it needs, and the module with its programs."""

    packages: tuple[str, ...]
    module: str

    def is_installed(self) -> bool:
        """Return whether all packages can be found; none is imported."""
        return all(importlib.util.find_spec(package) is not None for package in self.packages)


_PROGRAMS = "nn_core.cli.bench.programs"
OURS: Final = "nn_core"
FRAMEWORKS: Final[dict[str, Framework]] = {
    OURS: Framework((), f"{_PROGRAMS}.nnabla_api"),
    "torch": Framework(("torch",), f"{_PROGRAMS}.pytorch"),
    "jax": Framework(("jax",), f"{_PROGRAMS}.jax_numpy"),
    "onnxruntime": Framework(("onnxruntime", "onnx"), f"{_PROGRAMS}.onnx_models"),
    "nnabla": Framework(("nnabla",), f"{_PROGRAMS}.nnabla_api"),
}


def programs_of(module: Any, package: str, sizes: Sizes) -> Programs:
    """Return the programs of a module: it has one function ``programs(package, sizes)``."""
    programs: Programs = module.programs(package, sizes)
    return programs
