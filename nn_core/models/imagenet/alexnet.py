"""AlexNet."""

from collections.abc import Iterator
from typing import Final

from nn_core.functions import relu
from nn_core.models.base import Request
from nn_core.models.imagenet.plain import PlainNet
from nn_core.models.layers import Layers, max_pool
from nn_core.variable import Variable

#: Name, channels, kernel, stride, padding of each convolution, and whether a pooling comes before it.
_CONVOLUTIONS: Final = (
    ("features/0", 64, 11, 4, 2, False),
    ("features/3", 192, 5, 1, 2, True),
    ("features/6", 384, 3, 1, 1, True),
    ("features/8", 256, 3, 1, 1, False),
    ("features/10", 256, 3, 1, 1, False),
)


class AlexNet(PlainNet):
    """Five convolutions and three affine layers, in the form for one device.

    Args:
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        Krizhevsky (2014), One weird trick for parallelizing convolutional neural networks.

    Example:
        >>> from nn_core.models.imagenet import AlexNet
        >>> AlexNet(weights=None)(nn.Variable((1, 3, 227, 227)), use_up_to="pool").shape
        (1, 256, 6, 6)
    """

    image_size = 227
    final_size = 6
    affine_names = ("classifier/1", "classifier/4", "classifier/6")

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        h = self._normalized(x)
        for number, (name, maps, kernel, stride, pad, pooled) in enumerate(_CONVOLUTIONS):
            h = relu(h) if number else h
            h = max_pool(h, 3, 2) if pooled else h
            h = layers.conv(h, name, maps, kernel, stride, pad)
        yield from self._tail(h, layers, request, kernel=3)
