"""Chains of convolutions with affine layers at the end: the form of AlexNet and VGG."""

from collections.abc import Iterator
from typing import ClassVar

from nn_core.errors import ArgumentError
from nn_core.functions import relu
from nn_core.models.base import Request
from nn_core.models.imagenet.base import N_CLASSES, ImageNetBase
from nn_core.models.layers import Layers, max_pool
from nn_core.variable import Variable

#: Hidden units of the affine layers.
_HIDDEN = 4096


class PlainNet(ImageNetBase):
    """Base class of networks with affine layers that see every position of the last maps.

    Args:
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.
    """

    keys = ("lastconv", "lastconv+relu", "pool", "lastfeature", "classifier")
    #: Names of the three affine layers in a file of PyTorch.
    affine_names: ClassVar[tuple[str, str, str]]

    def _tail(self, h: Variable, layers: Layers, request: Request, kernel: int) -> Iterator[tuple[str, Variable]]:
        """Yield the keys; `h` is the last convolution's."""
        yield "lastconv", h
        h = relu(h)
        yield "lastconv+relu", h
        h = max_pool(h, kernel, 2)
        yield "pool", h
        if h.shape[2:] != (self.final_size, self.final_size):
            raise ArgumentError(
                f"{self.name}: images must have the size {self.input_shape[1:]} for the affine layers, got others\n"
                "  hint: use_up_to='pool' takes images of any size"
            )
        first, second, last = self.affine_names
        h = relu(layers.affine(layers.dropout(h), first, _HIDDEN))
        h = layers.affine(layers.dropout(h), second, _HIDDEN)
        yield "lastfeature", h
        yield "classifier", layers.affine(relu(h), last, N_CLASSES)
