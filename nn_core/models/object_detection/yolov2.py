"""YOLO v2."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

import nn_core.functions as F
from nn_core.engine.error_messages.refusal import fitted
from nn_core.models.base import Request
from nn_core.models.imagenet.depth import chosen_depth
from nn_core.models.layers import Layers, concatenated, max_pool
from nn_core.models.object_detection.base import ObjectDetection
from nn_core.models.weights import PRETRAINED, Weights
from nn_core.variable import Variable

#: Channels of the convolutions before and after each pooling; those of 3 x 3 take turns with those of 1 x 1.
_EARLY: Final = ((32,), (64,), (128, 64, 128), (256, 128, 256), (512, 256, 512, 256, 512))
_LATE: Final = (1024, 512, 1024, 512, 1024)
#: Number of categories, and width and height of each anchor in cells, as the authors' configuration files have them.
_DATASETS: Final = {
    "voc": (20, ((1.3221, 1.73145), (3.19275, 4.00944), (5.05587, 8.09892), (9.47112, 4.84053), (11.2364, 10.0071))),
    "coco": (80, ((0.57273, 0.677385), (1.87446, 2.06253), (3.33843, 5.47434), (7.88282, 3.52778), (9.77052, 9.16828))),
}


class YoloV2(ObjectDetection):
    """YOLO v2: boxes and categories from one pass of a network, five boxes for each cell of 32 x 32.

    Args:
        dataset: "voc" with 20 categories, or "coco" with 80.
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        Redmon and Farhadi (2017), YOLO9000: better, faster, stronger.

    Example:
        >>> from nn_core.models.object_detection import YoloV2
        >>> YoloV2("voc", weights=None)(nn.Variable((1, 3, 64, 96))).shape
        (1, 30, 25)
    """

    @fitted
    def __init__(self, dataset: str = "voc", weights: Weights = PRETRAINED) -> None:
        self.dataset = chosen_depth("YoloV2", dataset, _DATASETS, "dataset")
        self.n_categories, self.anchors = _DATASETS[dataset]
        super().__init__(weights)

    @property
    def name(self) -> str:
        """The class with the data set."""
        return f"YoloV2_{self.dataset}"

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        h, number = x / 255, 0
        fine = h
        for stage, maps in enumerate((*_EARLY, _LATE)):
            fine = h
            h = max_pool(h, 2, 2) if stage else h
            for position, outmaps in enumerate(maps):
                number += 1
                h = _convolved(h, layers, f"conv{number}", outmaps, 1 if position % 2 else 3)
        for number in (19, 20):
            h = _convolved(h, layers, f"conv{number}", 1024, 3)
        fine = _cells(_convolved(fine, layers, "conv21", 64, 1))
        h = _convolved(concatenated(fine, h), layers, "conv22", 1024, 3)
        yield "lastconv", h
        h = layers.conv(h, "detection", len(self.anchors) * (5 + self.n_categories), 1)
        yield "convdetect", h
        yield "detection", F.nms_detection2d(_boxes(h, self.anchors))


def _convolved(h: Variable, layers: Layers, name: str, maps: int, kernel: int) -> Variable:
    normalized = layers.conv_norm(h, (f"{name}/conv", f"{name}/bn"), maps, kernel)
    return F.leaky_relu(normalized, alpha=0.1)


def _cells(h: Variable) -> Variable:
    """Each 2 x 2 positions as one, with four times the channels."""
    _, maps, height, width = h.shape
    split = F.reshape(h, (-1, maps, height // 2, 2, width // 2, 2))
    return F.reshape(F.transpose(split, (0, 3, 5, 1, 2, 4)), (-1, 4 * maps, height // 2, width // 2))


def _boxes(h: Variable, anchors: tuple[tuple[float, float], ...]) -> Variable:
    """Shape (N, anchors * (5 + C), H, W) to (N, H * W * anchors, 5 + C), in parts of the image."""
    _, maps, height, width = h.shape
    length = maps // len(anchors)
    rows: Any = F.transpose(F.reshape(h, (-1, len(anchors), length, height, width)), (0, 3, 4, 1, 2))
    size = np.array([width, height], np.float32)
    corners = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1).reshape(1, height, width, 1, 2)
    centres = (F.sigmoid(rows[..., :2]) + _constant(corners)) * _constant(1 / size)
    sizes = F.exp(rows[..., 2:4]) * _constant(np.array(anchors).reshape(1, 1, 1, -1, 2) / size)
    parts = (centres, sizes, F.sigmoid(rows[..., 4:5]), F.softmax(rows[..., 5:]))
    return F.reshape(F.concatenate(*parts, axis=4), (-1, height * width * len(anchors), length))


def _constant(values: Any) -> Variable:
    array = np.asarray(values, np.float32)
    return Variable.from_numpy_array(array.reshape((1,) * (5 - array.ndim) + array.shape))
