"""Xception."""

from collections.abc import Iterator, Sequence
from typing import Final

from nn_core.functions import relu
from nn_core.models.base import Request
from nn_core.models.imagenet.base import ImageNetBase
from nn_core.models.layers import Layers, max_pool
from nn_core.variable import Variable

#: Channels of the separable convolutions of each block, and whether it halves the size.
_BLOCKS: Final = (
    ((128, 128), True),
    ((256, 256), True),
    ((728, 728), True),
    *[((728, 728, 728), False)] * 8,
    ((728, 1024), True),
)


class Xception(ImageNetBase):
    """Xception: residual blocks of convolutions within channels, then across them.

    Args:
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        Chollet (2017), Xception: deep learning with depthwise separable convolutions.

    Example:
        >>> from nn_core.models.imagenet import Xception
        >>> Xception(weights=None)(nn.Variable((1, 3, 299, 299)), use_up_to="lastconv").shape
        (1, 2048, 10, 10)
    """

    image_size = 299
    final_size = 10
    means = (127.5, 127.5, 127.5)
    deviations = (127.5, 127.5, 127.5)

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        h = layers.conv_norm(self._normalized(x), ("conv1", "bn1"), 32, 3, 2, pad=0)
        h = relu(layers.conv_norm(relu(h), ("conv2", "bn2"), 64, 3, pad=0))
        for number, (maps, down) in enumerate(_BLOCKS, 1):
            h = _block(h, layers, f"block{number}", maps, down, starts_with_relu=number > 1)
        h = separable(h, layers, ("conv3", "bn3"), 1536)
        h = separable(relu(h), layers, ("conv4", "bn4"), 2048)
        yield from self._head(h, layers, request)


def separable(h: Variable, layers: Layers, names: tuple[str, str], maps: int, stride: int = 1, dilation: int = 1) -> Variable:
    """Return a convolution of 3 x 3 within channels, one of 1 x 1 across them, and batch normalization."""
    conv, norm = names
    h = layers.conv(h, f"{conv}/conv1", h.shape[1], 3, stride, group=h.shape[1], dilation=dilation, bias=False)
    return layers.norm(layers.conv(h, f"{conv}/pointwise", maps, 1, bias=False), norm)


def _block(x: Variable, layers: Layers, name: str, maps: Sequence[int], down: bool, starts_with_relu: bool) -> Variable:
    h = x
    for number, outmaps in enumerate(maps, 1):
        h = relu(h) if number > 1 or starts_with_relu else h
        h = separable(h, layers, (f"{name}/sep{number}", f"{name}/bn{number}"), outmaps)
    if down:
        h = max_pool(h, 3, 2, pad=1)
        x = layers.conv_norm(x, (f"{name}/skip", f"{name}/skipbn"), maps[-1], 1, 2)
    added: Variable = h + x
    return added
