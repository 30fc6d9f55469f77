"""NIN: network in network."""

from collections.abc import Iterator
from typing import Final

from nn_core.functions import relu
from nn_core.models.base import Request
from nn_core.models.imagenet.base import ImageNetBase
from nn_core.models.layers import Layers, max_pool
from nn_core.variable import Variable

#: Kernel, stride and padding of the first convolution of each block, and the channels of its three convolutions.
_BLOCKS: Final = (
    (11, 4, 0, (96, 96, 96)),
    (5, 1, 2, (256, 256, 256)),
    (3, 1, 1, (384, 384, 384)),
    (3, 1, 1, (1024, 1024, 1000)),
)


class NIN(ImageNetBase):
    """Network in network: two convolutions of 1 x 1 behind each other one, and no affine layers.

    Args:
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        Lin, Chen and Yan (2013), Network in network.

    Example:
        >>> from nn_core.models.imagenet import NIN
        >>> NIN(weights=None)(nn.Variable((1, 3, 227, 227)), use_up_to="lastconv").shape
        (1, 1000, 6, 6)
    """

    image_size = 227
    final_size = 6

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        h = self._normalized(x)
        for number, (kernel, stride, pad, maps) in enumerate(_BLOCKS, 1):
            if number > 1:
                h = max_pool(relu(h), 3, 2)
            h = layers.dropout(h) if number == len(_BLOCKS) else h
            h = layers.conv(h, f"block{number}/conv1", maps[0], kernel, stride, pad)
            h = layers.conv(relu(h), f"block{number}/conv2", maps[1], 1)
            h = layers.conv(relu(h), f"block{number}/conv3", maps[2], 1)
        yield from self._convolved_classes(h, request)
