"""DenseNet-161."""

from collections.abc import Iterator
from typing import Final

from nn_core.functions import relu
from nn_core.models.base import Request
from nn_core.models.imagenet.base import ImageNetBase
from nn_core.models.layers import Layers, average_pool, concatenated, max_pool
from nn_core.variable import Variable

_BLOCKS: Final = (6, 12, 36, 24)
_GROWTH: Final = 48


class DenseNet(ImageNetBase):
    """DenseNet-161: every layer of a block sees the results of all layers before it.

    Args:
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        Huang et al. (2017), Densely connected convolutional networks.

    Example:
        >>> from nn_core.models.imagenet import DenseNet
        >>> DenseNet(weights=None)(nn.Variable((1, 3, 224, 224)), use_up_to="lastconv").shape
        (1, 2208, 7, 7)
    """

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        h = layers.conv_norm(self._normalized(x), ("features/conv0", "features/norm0"), 2 * _GROWTH, 7, 2)
        h = max_pool(relu(h), 3, 2, pad=1)
        for number, n_layers in enumerate(_BLOCKS, 1):
            h = _dense_block(h, layers, f"features/denseblock{number}", n_layers)
            if number < len(_BLOCKS):
                h = _transition(h, layers, f"features/transition{number}")
        yield from self._head(layers.norm(h, "features/norm5"), layers, request, name="classifier")


def _dense_block(h: Variable, layers: Layers, name: str, n_layers: int) -> Variable:
    for number in range(1, n_layers + 1):
        layer = f"{name}/denselayer{number}"
        new = relu(layers.norm(h, f"{layer}/norm1"))
        new = relu(layers.conv_norm(new, (f"{layer}/conv1", f"{layer}/norm2"), 4 * _GROWTH, 1))
        h = concatenated(h, layers.conv(new, f"{layer}/conv2", _GROWTH, 3, bias=False))
    return h


def _transition(h: Variable, layers: Layers, name: str) -> Variable:
    """Half of the channels, half of the size."""
    h = layers.conv(relu(layers.norm(h, f"{name}/norm")), f"{name}/conv", h.shape[1] // 2, 1, bias=False)
    return average_pool(h, 2, 2)
