"""ResNet with 18 to 152 layers."""

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
    18: Residual((2, 2, 2, 2), bottleneck=False),
    34: Residual((3, 4, 6, 3), bottleneck=False),
    50: Residual((3, 4, 6, 3)),
    101: Residual((3, 4, 23, 3)),
    152: Residual((3, 8, 36, 3)),
}


class ResNet(ImageNetBase):
    """A residual network, with the stride of bottlenecks in the convolution of 3 x 3.

    Args:
        num_layers: 18, 34, 50, 101 or 152.
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        He et al. (2016), Deep residual learning for image recognition.

    Example:
        >>> from nn_core.models.imagenet import ResNet18
        >>> model = ResNet18(weights=None)
        >>> model(nn.Variable((1, 3, 224, 224)), use_up_to="pool", training=True).shape
        (1, 512, 1, 1)
    """

    @fitted
    def __init__(self, num_layers: int = 18, weights: Weights = PRETRAINED) -> None:
        self.num_layers = chosen_depth("ResNet", num_layers, _FORMS)
        super().__init__(weights)

    @property
    def name(self) -> str:
        """The class with the number of layers."""
        return f"ResNet{self.num_layers}"

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        h = stages(stem(self._normalized(x), layers), layers, _FORMS[self.num_layers])
        yield from self._head(h, layers, request)


class ResNet18(ResNet):
    """ResNet of 18 layers; see `ResNet`."""

    def __init__(self, weights: Weights = PRETRAINED) -> None:
        super().__init__(18, weights)


class ResNet34(ResNet):
    """ResNet of 34 layers; see `ResNet`."""

    def __init__(self, weights: Weights = PRETRAINED) -> None:
        super().__init__(34, weights)


class ResNet50(ResNet):
    """ResNet of 50 layers; see `ResNet`."""

    def __init__(self, weights: Weights = PRETRAINED) -> None:
        super().__init__(50, weights)


class ResNet101(ResNet):
    """ResNet of 101 layers; see `ResNet`."""

    def __init__(self, weights: Weights = PRETRAINED) -> None:
        super().__init__(101, weights)


class ResNet152(ResNet):
    """ResNet of 152 layers; see `ResNet`."""

    def __init__(self, weights: Weights = PRETRAINED) -> None:
        super().__init__(152, weights)
