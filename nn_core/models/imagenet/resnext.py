"""ResNeXt with 50 and 101 layers."""

from collections.abc import Iterator
from typing import Final

from nn_core.engine.error_messages.refusal import fitted
from nn_core.models.base import Request
from nn_core.models.imagenet.base import ImageNetBase
from nn_core.models.imagenet.depth import chosen_depth
from nn_core.models.imagenet.residual import Residual, stages, stem
from nn_core.models.layers import Layers
from nn_core.models.weights import PRETRAINED, Weights
from nn_core.variable import Variable

_FORMS: Final = {
    50: Residual((3, 4, 6, 3), group=32, group_width=4),
    101: Residual((3, 4, 23, 3), group=64, group_width=4),
}


class ResNeXt(ImageNetBase):
    """A residual network with groups in the middle of its blocks: 32 of 4 channels, with 101 layers 64 of 4.

    Args:
        num_layers: 50 or 101.
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        Xie et al. (2017), Aggregated residual transformations for deep neural networks.

    Example:
        >>> from nn_core.models.imagenet import ResNeXt50
        >>> ResNeXt50(weights=None)(nn.Variable((1, 3, 224, 224))).shape
        (1, 1000)
    """

    @fitted
    def __init__(self, num_layers: int = 50, weights: Weights = PRETRAINED) -> None:
        self.num_layers = chosen_depth("ResNeXt", num_layers, _FORMS)
        super().__init__(weights)

    @property
    def name(self) -> str:
        """The class with the number of layers."""
        return f"ResNeXt{self.num_layers}"

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        h = stages(stem(self._normalized(x), layers), layers, _FORMS[self.num_layers])
        yield from self._head(h, layers, request)


class ResNeXt50(ResNeXt):
    """ResNeXt of 50 layers; see `ResNeXt`."""

    def __init__(self, weights: Weights = PRETRAINED) -> None:
        super().__init__(50, weights)


class ResNeXt101(ResNeXt):
    """ResNeXt of 101 layers; see `ResNeXt`."""

    def __init__(self, weights: Weights = PRETRAINED) -> None:
        super().__init__(101, weights)
