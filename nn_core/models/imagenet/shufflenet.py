"""ShuffleNet with half, once and twice the channels."""

from collections.abc import Iterator
from typing import Final

from nn_core.engine.error_messages.refusal import fitted
from nn_core.functions import relu, reshape, transpose
from nn_core.models.base import Request
from nn_core.models.imagenet.base import ImageNetBase
from nn_core.models.imagenet.depth import chosen_depth
from nn_core.models.layers import Layers, average_pool, concatenated, max_pool
from nn_core.models.weights import PRETRAINED, Weights
from nn_core.variable import Variable

_SCALES: Final = {5: 0.5, 10: 1.0, 20: 2.0}
_GROUPS: Final = 3
#: Channels at scale 1 and units of each stage.
_STAGES: Final = ((240, 4), (480, 8), (960, 4))


class ShuffleNet(ImageNetBase):
    """ShuffleNet of three groups: convolutions of 1 x 1 in groups, with a shuffle of the channels between.

    Args:
        scaling_factor: Ten times the factor of the channels: 5, 10 or 20.
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        Zhang et al. (2018), ShuffleNet: an extremely efficient convolutional neural network for mobile devices.

    Example:
        >>> from nn_core.models.imagenet import ShuffleNet10
        >>> ShuffleNet10(weights=None)(nn.Variable((1, 3, 224, 224)), use_up_to="lastconv").shape
        (1, 960, 7, 7)
    """

    @fitted
    def __init__(self, scaling_factor: int = 10, weights: Weights = PRETRAINED) -> None:
        self.scaling_factor = chosen_depth("ShuffleNet", scaling_factor, _SCALES, "scaling_factor")
        super().__init__(weights)

    @property
    def name(self) -> str:
        """The class with the scaling factor in two digits."""
        return f"ShuffleNet{self.scaling_factor:02d}"

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        h = max_pool(relu(layers.conv_norm(self._normalized(x), ("conv1", "bn1"), 24, 3, 2)), 3, 2, pad=1)
        for stage, (maps, n_units) in enumerate(_STAGES, 2):
            for number in range(n_units):
                h = h if (stage, number) == (2, 0) else relu(h)
                name, wide = f"stage{stage}/{number}", int(maps * _SCALES[self.scaling_factor])
                h = _unit(h, layers, name, wide, down=number == 0, first_groups=1 if (stage, number) == (2, 0) else _GROUPS)
        yield from self._head(h, layers, request)


def _unit(x: Variable, layers: Layers, name: str, maps: int, down: bool, first_groups: int) -> Variable:
    """Return a unit without its last activation; with `down` half the size, and the input beside the result."""
    h = layers.conv_norm(x, (f"{name}/conv1", f"{name}/bn1"), maps // 4, 1, group=first_groups)
    h = _shuffled(relu(h), first_groups)
    h = layers.conv_norm(h, (f"{name}/conv2", f"{name}/bn2"), maps // 4, 3, 2 if down else 1, group=maps // 4)
    h = layers.conv_norm(h, (f"{name}/conv3", f"{name}/bn3"), maps - x.shape[1] if down else maps, 1, group=_GROUPS)
    if down:
        return concatenated(average_pool(x, 3, 2, pad=1), h)
    added: Variable = h + x
    return added


def _shuffled(h: Variable, groups: int) -> Variable:
    """Channels in an order in which those of all groups take turns."""
    maps, height, width = h.shape[1:]
    split = transpose(reshape(h, (-1, groups, maps // groups, height, width)), (0, 2, 1, 3, 4))
    return reshape(split, (-1, maps, height, width))


class ShuffleNet05(ShuffleNet):
    """ShuffleNet with half of the channels; see `ShuffleNet`."""

    def __init__(self, weights: Weights = PRETRAINED) -> None:
        super().__init__(5, weights)


class ShuffleNet10(ShuffleNet):
    """ShuffleNet with its channels once; see `ShuffleNet`."""

    def __init__(self, weights: Weights = PRETRAINED) -> None:
        super().__init__(10, weights)


class ShuffleNet20(ShuffleNet):
    """ShuffleNet with twice the channels; see `ShuffleNet`."""

    def __init__(self, weights: Weights = PRETRAINED) -> None:
        super().__init__(20, weights)
