"""VGG with 11, 13 and 16 layers."""

from collections.abc import Iterator
from typing import Final

from nn_core.engine.error_messages.refusal import fitted
from nn_core.functions import relu
from nn_core.models.base import Request
from nn_core.models.imagenet.depth import chosen_depth
from nn_core.models.imagenet.plain import PlainNet
from nn_core.models.layers import Layers, max_pool
from nn_core.models.weights import PRETRAINED, Weights
from nn_core.variable import Variable

#: Number of convolutions before each pooling, by number of layers; and their channels.
_REPEATS: Final = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3)}
_MAPS: Final = (64, 128, 256, 512, 512)


class VGG(PlainNet):
    """Convolutions of 3 x 3 and three affine layers.

    Args:
        num_layers: 11, 13 or 16.
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        Simonyan and Zisserman (2014), Very deep convolutional networks for large-scale image recognition.

    Example:
        >>> from nn_core.models.imagenet import VGG11
        >>> VGG11(weights=None)(nn.Variable((1, 3, 224, 224)), use_up_to="pool").shape
        (1, 512, 7, 7)
    """

    affine_names = ("classifier/0", "classifier/3", "classifier/6")

    @fitted
    def __init__(self, num_layers: int = 11, weights: Weights = PRETRAINED) -> None:
        self.num_layers = chosen_depth("VGG", num_layers, _REPEATS)
        super().__init__(weights)

    @property
    def name(self) -> str:
        """The class with the number of layers."""
        return f"VGG{self.num_layers}"

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        h = self._normalized(x)
        position = 0  # in the file of PyTorch activations and poolings count as well
        for stage, (n_convolutions, maps) in enumerate(zip(_REPEATS[self.num_layers], _MAPS, strict=True)):
            if stage:
                h = max_pool(relu(h), 2, 2)
                position += 1
            for number in range(n_convolutions):
                h = layers.conv(relu(h) if number else h, f"features/{position}", maps, 3)
                position += 2
        yield from self._tail(h, layers, request, kernel=2)


class VGG11(VGG):
    """VGG of 11 layers; see `VGG`."""

    def __init__(self, weights: Weights = PRETRAINED) -> None:
        super().__init__(11, weights)


class VGG13(VGG):
    """VGG of 13 layers; see `VGG`."""

    def __init__(self, weights: Weights = PRETRAINED) -> None:
        super().__init__(13, weights)


class VGG16(VGG):
    """VGG of 16 layers; see `VGG`."""

    def __init__(self, weights: Weights = PRETRAINED) -> None:
        super().__init__(16, weights)
