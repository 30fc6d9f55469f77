"""SENet-154."""

from collections.abc import Iterator
from typing import Final

from nn_core.functions import relu
from nn_core.models.base import Request
from nn_core.models.imagenet.base import ImageNetBase
from nn_core.models.imagenet.residual import Residual, stages
from nn_core.models.layers import Layers, max_pool
from nn_core.variable import Variable

_FORM: Final = Residual((3, 8, 36, 3), group=64, group_width=4, squeeze=16, wide_first=0.5, skip_kernel=3)
_STEM: Final = ((64, 2), (64, 1), (128, 1))


class SENet(ImageNetBase):
    """SENet-154: a residual network with groups, whose blocks weigh their channels by gates.

    Args:
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        Hu, Shen and Sun (2018), Squeeze-and-excitation networks.

    Example:
        >>> from nn_core.models.imagenet import SENet
        >>> SENet(weights=None).keys
        ('lastconv', 'lastconv+relu', 'pool', 'classifier')
    """

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        h = self._normalized(x)
        for number, (maps, stride) in enumerate(_STEM, 1):
            h = relu(layers.conv_norm(h, (f"layer0/conv{number}", f"layer0/bn{number}"), maps, 3, stride))
        h = stages(max_pool(h, 3, 2, ceil=True), layers, _FORM)
        yield from self._head(h, layers, request, drop=0.2, name="last_linear")
