"""MobileNet and MobileNetV2."""

from collections.abc import Iterator
from typing import Final

from nn_core.functions import relu, relu6
from nn_core.models.base import Request
from nn_core.models.imagenet.base import N_CLASSES, ImageNetBase
from nn_core.models.layers import Layers
from nn_core.variable import Variable

#: Channels and stride of each pair of a depthwise and a pointwise convolution.
_PAIRS: Final = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)
)  # fmt: skip
#: Expansion, channels, repetitions and first stride of the blocks of the second version.
_INVERTED: Final = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
)  # fmt: skip


class MobileNet(ImageNetBase):
    """MobileNet: convolutions within channels, and convolutions of 1 x 1 across them.

    Args:
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        Howard et al. (2017), MobileNets: efficient convolutional neural networks for mobile vision applications.

    Example:
        >>> from nn_core.models.imagenet import MobileNet
        >>> MobileNet(weights=None)(nn.Variable((1, 3, 224, 224)), use_up_to="lastconv").shape
        (1, 1024, 7, 7)
    """

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        h = layers.conv_norm(self._normalized(x), ("conv1", "bn1"), 32, 3, 2)
        for number, (maps, stride) in enumerate(_PAIRS, 1):
            name = f"block{number}"
            h = layers.conv_norm(relu(h), (f"{name}/depthwise", f"{name}/bn1"), h.shape[1], 3, stride, group=h.shape[1])
            h = layers.conv_norm(relu(h), (f"{name}/pointwise", f"{name}/bn2"), maps, 1)
        yield from self._head(h, layers, request)


class MobileNetV2(ImageNetBase):
    """MobileNetV2: residual blocks that are widest in their middle.

    Args:
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        Sandler et al. (2018), MobileNetV2: inverted residuals and linear bottlenecks.

    Example:
        >>> from nn_core.models.imagenet import MobileNetV2
        >>> MobileNetV2(weights=None)(nn.Variable((1, 3, 224, 224)), use_up_to="lastconv").shape
        (1, 1280, 7, 7)
    """

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        h = _relu6(layers.conv_norm(self._normalized(x), ("features/0/0", "features/0/1"), 32, 3, 2))
        position = 1
        for expansion, maps, n_blocks, stride in _INVERTED:
            for number in range(n_blocks):
                h = _inverted(h, layers, f"features/{position}/conv", expansion, maps, stride if number == 0 else 1)
                position += 1
        h = layers.conv_norm(h, (f"features/{position}/0", f"features/{position}/1"), 1280, 1)
        yield "lastconv", h
        h = _relu6(h)
        yield "lastconv+relu", h
        h = self._pooled(h, request)
        yield "pool", h
        yield "classifier", layers.affine(layers.dropout(h, 0.2), "classifier/1", N_CLASSES)


def _inverted(x: Variable, layers: Layers, name: str, expansion: int, maps: int, stride: int) -> Variable:
    h, wide, position = x, expansion * x.shape[1], 0
    if expansion > 1:
        h = _relu6(layers.conv_norm(h, (f"{name}/0/0", f"{name}/0/1"), wide, 1))
        position = 1
    h = _relu6(layers.conv_norm(h, (f"{name}/{position}/0", f"{name}/{position}/1"), wide, 3, stride, group=wide))
    h = layers.conv_norm(h, (f"{name}/{position + 1}", f"{name}/{position + 2}"), maps, 1)
    added: Variable = h + x if h.shape == x.shape and stride == 1 else h
    return added


def _relu6(x: Variable) -> Variable:
    return relu6(x)
