"""GoogLeNet."""

from collections.abc import Iterator
from typing import Final

from nn_core.functions import relu
from nn_core.models.base import Request
from nn_core.models.imagenet.base import N_CLASSES, ImageNetBase
from nn_core.models.imagenet.branches import Conv, convolved
from nn_core.models.layers import Layers, average_pool, concatenated, max_pool
from nn_core.variable import Variable

#: By module: channels of 1 x 1; before and of the second branch; before and of the third; of the branch with the pooling.
_MODULES: Final = {
    "inception3a": (64, 96, 128, 16, 32, 32),
    "inception3b": (128, 128, 192, 32, 96, 64),
    "inception4a": (192, 96, 208, 16, 48, 64),
    "inception4b": (160, 112, 224, 24, 64, 64),
    "inception4c": (128, 128, 256, 24, 64, 64),
    "inception4d": (112, 144, 288, 32, 64, 64),
    "inception4e": (256, 160, 320, 32, 128, 128),
    "inception5a": (256, 160, 320, 32, 128, 128),
    "inception5b": (384, 192, 384, 48, 128, 128),
}
#: The modules with a classifier behind them, and its name; those with a pooling before them, and its kernel.
_TOWERS: Final = {"inception4a": "aux1", "inception4d": "aux2"}
_POOLED: Final = {"inception3a": 3, "inception4a": 3, "inception5a": 2}


class GoogLeNet(ImageNetBase):
    """GoogLeNet with batch normalization, whose third branches have kernels of 3 x 3, as PyTorch's has.

    Args:
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        Szegedy et al. (2015), Going deeper with convolutions.

    Example:
        >>> from nn_core.models.imagenet import GoogLeNet
        >>> model = GoogLeNet(weights=None)
        >>> [y.shape for y in model(nn.Variable((1, 3, 224, 224)), training=True, with_aux_tower=True)]
        [(1, 1000), (1, 1000), (1, 1000)]
    """

    keys = ("prepool", "pool", "classifier")
    eps = 1e-3
    means = (127.5, 127.5, 127.5)
    deviations = (127.5, 127.5, 127.5)
    n_aux_towers = 2

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        h = convolved(self._normalized(x), layers, "", [Conv("conv1", 64, 7, 2)])
        h = convolved(max_pool(h, 3, 2, ceil=True), layers, "", [Conv("conv2", 64), Conv("conv3", 192, 3)])
        for name, maps in _MODULES.items():
            h = max_pool(h, _POOLED[name], 2, ceil=True) if name in _POOLED else h
            h = _module(h, layers, name, maps)
            if request.with_aux_tower and name in _TOWERS:
                request.further.append(_tower(h, layers, _TOWERS[name]))
        yield "prepool", h
        h = self._pooled(h, request)
        yield "pool", h
        yield "classifier", layers.affine(layers.dropout(h, 0.2), "fc", N_CLASSES)


def _module(h: Variable, layers: Layers, name: str, maps: tuple[int, int, int, int, int, int]) -> Variable:
    first, before_second, second, before_third, third, pooled = maps
    return concatenated(
        convolved(h, layers, name, [Conv("branch1", first)]),
        convolved(h, layers, name, [Conv("branch2/0", before_second), Conv("branch2/1", second, 3)]),
        convolved(h, layers, name, [Conv("branch3/0", before_third), Conv("branch3/1", third, 3)]),
        convolved(max_pool(h, 3, 1, pad=1), layers, name, [Conv("branch4/1", pooled)]),
    )


def _tower(h: Variable, layers: Layers, name: str) -> Variable:
    h = convolved(average_pool(h, 5, 3), layers, name, [Conv("conv", 128)])
    h = layers.dropout(relu(layers.affine(h, f"{name}/fc1", 1024)), 0.7)
    return layers.affine(h, f"{name}/fc2", N_CLASSES)
