"""The extension of the trainer that writes logs."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from nn_core.ext import ArgumentError, PluginError
from nn_ext_tensorboard.graph import graph_event

#: The names of layouts of images in tensorboardX, by the number of axes.
_LAYOUTS: Final = {2: "HW", 3: "CHW", 4: "NCHW"}


def _require_pillow() -> None:
    """Refuse a training whose images could not be written at its first epoch: tensorboardX packs them by pillow."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise PluginError(
            f"TensorBoard: pillow must be installed to write images, got: {error}\n"
            "  hint: pip install 'nn-ext-tensorboard[images]'"
        ) from error


class TensorBoard:
    """Writes what was reported for TensorBoard, each epoch or as the trigger of ``trainer.extend`` says.

    Args:
        *keys: Names of the values; none: all.
        folder: Folder of the log, in that of the trainer.
        histograms: Write histograms of the parameters of the solvers and of their gradients.
        images: Functions that return images by name: shape (H, W), (C, H, W) or (N, C, H, W), uint8, or numbers from 0 to 1.
            Needs pillow (``pip install 'nn-ext-tensorboard[images]'``).
        graph: A variable whose graph is written when training starts.

    Raises:
        ArgumentError: at a call, when an image has another shape.
        PluginError: when training starts, there are images, and pillow is not installed.
    """

    name = "tensorboard"
    phase = "read"
    first_rank_only = True

    def __init__(
        self,
        *keys: str,
        folder: str = "tensorboard",
        histograms: bool = False,
        images: Mapping[str, Callable[[], Any]] | None = None,
        graph: Any = None,
    ) -> None:
        self._keys = keys
        self._folder = folder
        self._histograms = histograms
        self._images = dict(images or {})
        self._graph = graph
        self._writer: Any = None
        #: sums of values times weights, and of weights, by name
        self._sums: dict[str, list[float]] = {}

    def start(self, trainer: Any) -> None:
        """Open the log; what an earlier run wrote after the checkpoint is hidden."""
        import tensorboardX

        if self._images:
            _require_pillow()
        resumed = trainer.iteration + 1 if trainer.iteration else None
        # files are named after the second in which they are made: a run that is resumed in the same one needs another name
        suffix = f".from_{resumed}" if resumed else ""
        self._writer = tensorboardX.SummaryWriter(str(trainer.out / self._folder), purge_step=resumed, filename_suffix=suffix)
        if self._graph is not None and not resumed:
            self._writer.file_writer.add_event(graph_event(self._graph))

    def observe(self, trainer: Any) -> None:
        """Take in what was reported in this iteration."""
        observation = trainer.observation
        for name in self._keys or list(observation):
            if name in observation:
                weight = observation.weight(name)
                sums = self._sums.setdefault(name, [0.0, 0.0])
                sums[0] += weight * observation[name]
                sums[1] += weight

    def __call__(self, trainer: Any) -> None:
        step = trainer.iteration
        for name, (total, weight) in self._sums.items():
            self._writer.add_scalar(name, total / weight if weight else float("nan"), step)
        self._sums.clear()
        if self._histograms:
            self._write_histograms(trainer, step)
        for name, image in self._images.items():
            self._write_image(name, np.asarray(image()), step)
        self._writer.flush()

    def stop(self, trainer: Any) -> None:
        """Close the log."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def get_state(self) -> dict[str, Any]:
        """Return the open sums."""
        return {"sums": {name: list(sums) for name, sums in self._sums.items()}}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        self._sums = {name: [float(number) for number in sums] for name, sums in state["sums"].items()}

    def _write_histograms(self, trainer: Any, step: int) -> None:
        for solver_name, solver in trainer.updater.solvers.items():
            prefix = "" if len(trainer.updater.solvers) == 1 else f"{solver_name}/"
            for name, parameter in solver.get_parameters().items():
                for kind, values in (("parameters", parameter.d), ("gradients", parameter.g)):
                    finite = np.asarray(values, np.float64).ravel()
                    finite = finite[np.isfinite(finite)]
                    if finite.size:
                        self._writer.add_histogram(f"{kind}/{prefix}{name}", finite, step)

    def _write_image(self, name: str, image: np.ndarray[Any, Any], step: int) -> None:
        if image.ndim not in _LAYOUTS:
            raise ArgumentError(
                f"tensorboard: image {name} must have the shape (H, W), (C, H, W) or (N, C, H, W), got {image.shape}"
            )
        pixels = image if image.dtype == np.uint8 else np.clip(np.asarray(image, np.float32), 0, 1)
        layout = _LAYOUTS[image.ndim]
        if layout == "NCHW" and image.shape[1] == 1:
            pixels = np.repeat(pixels, 3, axis=1)
        self._writer.add_image(name, pixels, step, dataformats=layout)
