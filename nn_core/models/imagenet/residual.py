"""Residual networks: the form that ResNet, ResNeXt and SENet share."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from nn_core.functions import global_average_pooling, relu, sigmoid
from nn_core.models.layers import Layers, max_pool
from nn_core.variable import Variable

#: Channels of the four stages, before the expansion.
STAGE_MAPS: Final = (64, 128, 256, 512)


@dataclass(frozen=True)
class Residual:
    """The form of the blocks.

    Attributes:
        blocks: Number of blocks of each stage.
        bottleneck: Three convolutions, the result with four times the channels; if not, two.
        group: Groups of the middle convolution.
        group_width: Channels of a group in the first stage.
        squeeze: Factor by which the channels of a gate are fewer; None: no gates.
        wide_first: Channels of the first convolution of a bottleneck, as a part of those of the middle one.
        skip_kernel: Kernel of the convolution beside a block with a stride.
    """

    blocks: tuple[int, int, int, int]
    bottleneck: bool = True
    group: int = 1
    group_width: int = 64
    squeeze: int | None = None
    wide_first: float = 1.0
    skip_kernel: int = 1


def stages(h: Variable, layers: Layers, form: Residual, first: int = 1) -> Variable:
    """Return the four stages on the result of the stem; the last activation is left to the caller."""
    for number, (maps, n_blocks) in enumerate(zip(STAGE_MAPS, form.blocks, strict=True)):
        for position in range(n_blocks):
            stride = 2 if number and not position else 1
            name = f"layer{number + first}/{position}"
            h = relu(h) if number or position else h
            h = _block(h, layers, form, name, maps, stride)
    return h


def stem(x: Variable, layers: Layers) -> Variable:
    """Return a convolution of 7 x 7 with stride 2, and a pooling."""
    return max_pool(relu(layers.conv_norm(x, ("conv1", "bn1"), 64, 7, 2)), 3, 2, pad=1)


def _block(x: Variable, layers: Layers, form: Residual, name: str, maps: int, stride: int) -> Variable:
    h = x
    chain = list(_convolutions(form, maps, stride))
    for number, (outmaps, kernel, options) in enumerate(chain, 1):
        h = relu(h) if number > 1 else h
        h = layers.conv_norm(h, (f"{name}/conv{number}", f"{name}/bn{number}"), outmaps, kernel, **options)
    if form.squeeze:
        h = h * _gate(h, layers, f"{name}/se_module", form.squeeze)
    if h.shape != x.shape:
        kernel = form.skip_kernel if stride > 1 else 1
        x = layers.conv_norm(x, (f"{name}/downsample/0", f"{name}/downsample/1"), h.shape[1], kernel, stride)
    added: Variable = h + x
    return added


def _convolutions(form: Residual, maps: int, stride: int) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Channels, kernel and further arguments of the convolutions of a block."""
    if not form.bottleneck:
        yield maps, 3, {"stride": stride}
        yield maps, 3, {}
        return
    width = form.group * (maps * form.group_width // 64)
    yield int(width * form.wide_first), 1, {}
    yield width, 3, {"stride": stride, "group": form.group}
    yield 4 * maps, 1, {}


def _gate(h: Variable, layers: Layers, name: str, squeeze: int) -> Variable:
    maps = h.shape[1]
    pooled: Any = global_average_pooling(h)
    gate = relu(layers.conv(pooled, f"{name}/fc1", maps // squeeze, 1))
    return sigmoid(layers.conv(gate, f"{name}/fc2", maps, 1))
