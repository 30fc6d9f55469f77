"""Data and predictions that do not fit a task of `fit`, or each other."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nn_core import functions as F
from nn_core.core.evaluating import functions_of_training
from nn_core.engine.error_messages.foreign_values import values_of
from nn_core.errors import ArgumentError, ShapeError
from nn_core.graph_rewriting import functions_of
from nn_core.logger import logger
from nn_core.training.extensions import Log
from nn_core.training.metrics import Array
from nn_core.training.samples import parts
from nn_core.training.trainer import Trainer
from nn_core.variable import Variable

#: Numbers of channels of images as files and cameras have them.
_CHANNELS_OF_IMAGES: Final = (1, 3, 4)


def require_labels(function: str, name: str, t: Array) -> int:
    """Return the largest of the targets of a classification.

    Raises:
        ArgumentError: when they are something else than whole numbers.
    """
    if t.dtype.kind not in "iub":
        values = t if t.dtype.kind == "f" else t.astype(np.float32)
        others = values[values != np.floor(values)]  # NaN among them
        if others.size:
            raise ArgumentError(
                f"{function}: targets of {name} must be labels, whole numbers that count classes from 0, got {others[0]:.6g}\n"
                "  hint: task='regression' for numbers"
            )
    return int(t.max())


def require_scores(y: Variable, largest: int) -> None:
    """Refuse predictions that are no scores of classes, or of fewer classes than `largest`, a label.

    Raises:
        ShapeError: for less than two scores.
        ArgumentError: for a label without a score.
    """
    if y.ndim < 2 or y.shape[1] < 2:
        raise ShapeError(
            f"fit: a network for classification must give a score for each class, on axis 1, got shape {y.plain_shape}\n"
            "  hint: two outputs for two classes; or task='regression', in which predict() returns what the network gives"
        )
    if largest >= y.shape[1]:
        raise ArgumentError(
            f"fit: targets must be labels below {y.shape[1]}, the number of scores that the network gives, got {largest}\n"
            "  hint: labels count from 0; as many outputs as there are classes"
        )


def require_no_softmax(y: Variable) -> None:
    """Refuse probabilities where the loss, and later `Fit.predict`, take the softmax of scores themselves."""
    if y.parent is not None and y.parent.info.type_name == "Softmax":
        raise ArgumentError(
            "fit: a network for classification must give scores, of which the loss takes the softmax, got a softmax\n"
            "  hint: leave the last softmax out; predict() returns probabilities"
        )


def require_no_rows(y: Variable, t: Variable) -> None:
    """Refuse targets with a row for each sample, as long as the scores, where labels are wanted."""
    if t.plain_shape == y.plain_shape:
        raise ShapeError(
            f"fit: targets must be labels, of shape (N,) or (N, 1), got {t.plain_shape}, a number for each class\n"
            "  hint: t.argmax(axis=1) of rows with a single 1; loss= and metrics= for probabilities"
        )


def matched(y: Variable, t: Variable) -> Variable:
    """Return targets of a regression in the shape of the predictions, from which axes of length 1 may set them apart."""
    if t.plain_shape == y.plain_shape or _long_axes(y) != _long_axes(t):
        return t
    return F.reshape(t, (t.shape[0], *y.plain_shape[1:]), inplace=False)


def _long_axes(value: Variable) -> list[int]:
    return [length for length in value.plain_shape[1:] if length != 1]


def require_samples(function: str, x: Array, like: Variable) -> None:
    """Refuse inputs with another number of axes than those of training."""
    if x.ndim == like.ndim:
        return
    hint = "\n  hint: x[None] is one sample" if x.ndim == like.ndim - 1 else ""
    raise ShapeError(f"{function}: x must have the shape {_of_samples(like)}, of N samples, got {x.shape}{hint}")


def _of_samples(value: Variable) -> str:
    lengths = ", ".join(["N", *map(str, value.plain_shape[1:])])
    return f"({lengths})" if value.ndim > 1 else f"({lengths},)"


def warn_of_images(loss: Variable, x: Variable) -> None:
    """Say where a convolution reads rows of pixels as channels."""
    shape = x.plain_shape
    if len(shape) != 4 or shape[3] not in _CHANNELS_OF_IMAGES or shape[1] in _CHANNELS_OF_IMAGES:
        return
    for function in functions_of([loss]):
        reads = function.inputs[0].plain_shape if function.info.type_name == "Convolution" else ()
        if reads[1:] == shape[1:] and function.info.args["base_axis"] == 1 and not function.info.args["channel_last"]:
            logger.warning(
                "fit: images must have the shape (N, C, H, W), got %s, whose axis 1 a convolution reads as channels\n"
                "  hint: x.transpose(0, 3, 1, 2), or channel_last=True",
                _of_samples(x),
            )
            return


def warn_of_training(x: Sequence[Variable], y: Variable | Sequence[Variable]) -> None:
    """Say where a function, as a network that predicts, drops values or normalizes by the batch as in training."""
    found = functions_of_training(x, y)
    if found:
        logger.warning(
            "fit: a network that predicts should do nothing that only training does, got %s\n"
            "  hint: def network(x, test=False): ... F.dropout(x, p) if not test else x, "
            "PF.batch_normalization(x, batch_stat=not test); or a module, whose layers know",
            ", ".join(found),
        )


class LossWatch:
    """An extension that says once when the loss of an epoch is NaN or infinite, and why where the data tell.

    Args:
        log: A log that is an extension of the trainer before this one.
        data: Inputs and targets as arrays; None where they are batches.
    """

    def __init__(self, log: Log, data: Any) -> None:
        self._log = log
        self._data = data
        self._has_told = False

    def __call__(self, trainer: Trainer) -> None:
        loss = self._log.entries[-1].get("loss", 0.0)
        if self._has_told or math.isfinite(loss):
            return
        self._has_told = True
        logger.warning("fit: the loss must be finite, got %s in epoch %d\n  hint: %s", loss, trainer.epoch, self._hint())

    def _hint(self) -> str:
        named = [
            (name, part) for name, given in zip(("inputs", "targets"), self._data or (), strict=False) for part in parts(given)
        ]
        for name, array in named:
            values = values_of(array)
            if values.dtype.kind != "f":
                continue
            is_broken = ~np.isfinite(values)
            if is_broken.any():
                first = tuple(map(int, np.argwhere(is_broken)[0]))
                return f"{int(is_broken.sum())} of the {name} of train are not finite, the first one at {first}"
        return "a smaller learning rate, clip_norm=1.0, or inputs whose standard deviation is about 1"
