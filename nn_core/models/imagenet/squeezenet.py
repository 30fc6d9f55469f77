"""SqueezeNet in its versions 1.0 and 1.1."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from nn_core.engine.error_messages.refusal import fitted
from nn_core.functions import relu
from nn_core.models.base import Request
from nn_core.models.imagenet.base import N_CLASSES, ImageNetBase
from nn_core.models.imagenet.depth import chosen_depth
from nn_core.models.layers import Layers, concatenated, max_pool
from nn_core.models.weights import PRETRAINED, Weights
from nn_core.variable import Variable


class _Version(NamedTuple):
    """Channels and kernel of the first convolution, squeezed channels of each fire (None: a pooling), the last size."""

    maps: int
    kernel: int
    fires: tuple[int | None, ...]
    final_size: int


_VERSIONS: Final = {
    "v1.0": _Version(96, 7, (None, 16, 16, 32, None, 32, 48, 48, 64, None, 64), 13),
    "v1.1": _Version(64, 3, (None, 16, 16, None, 32, 32, None, 48, 48, 64, 64), 14),
}


class SqueezeNet(ImageNetBase):
    """SqueezeNet: few channels before each convolution of 3 x 3, and no affine layers.

    Args:
        version: "v1.0" or "v1.1".
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        Iandola et al. (2016), SqueezeNet: AlexNet-level accuracy with 50x fewer parameters.

    Example:
        >>> from nn_core.models.imagenet import SqueezeNetV11
        >>> SqueezeNetV11(weights=None)(nn.Variable((1, 3, 227, 227))).shape
        (1, 1000)
    """

    image_size = 227

    @fitted
    def __init__(self, version: str = "v1.1", weights: Weights = PRETRAINED) -> None:
        self.version = chosen_depth("SqueezeNet", version, _VERSIONS, "version")
        self.final_size = _VERSIONS[version].final_size  # type: ignore[misc]
        super().__init__(weights)

    @property
    def name(self) -> str:
        """The class with the version."""
        return "SqueezeNet" + self.version.upper().replace(".", "")

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        version = _VERSIONS[self.version]
        h = relu(layers.conv(self._normalized(x), "features/0", version.maps, version.kernel, 2, pad=0))
        for position, squeezed in enumerate(version.fires, 2):
            h = _fire(h, layers, f"features/{position}", squeezed) if squeezed else max_pool(h, 3, 2, ceil=True)
        h = layers.conv(layers.dropout(h), "classifier/1", N_CLASSES, 1)
        yield from self._convolved_classes(h, request)


def _fire(h: Variable, layers: Layers, name: str, squeezed: int) -> Variable:
    h = relu(layers.conv(h, f"{name}/squeeze", squeezed, 1))
    wide = [relu(layers.conv(h, f"{name}/expand{k}x{k}", 4 * squeezed, k)) for k in (1, 3)]
    return concatenated(*wide)


class SqueezeNetV10(SqueezeNet):
    """SqueezeNet 1.0; see `SqueezeNet`."""

    def __init__(self, weights: Weights = PRETRAINED) -> None:
        super().__init__("v1.0", weights)


class SqueezeNetV11(SqueezeNet):
    """SqueezeNet 1.1; see `SqueezeNet`."""

    def __init__(self, weights: Weights = PRETRAINED) -> None:
        super().__init__("v1.1", weights)
