"""Inception v3."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nn_core.functions import global_average_pooling
from nn_core.models.base import Request
from nn_core.models.imagenet.base import N_CLASSES, ImageNetBase
from nn_core.models.imagenet.branches import Conv, convolved
from nn_core.models.layers import Layers, average_pool, concatenated, max_pool
from nn_core.variable import Variable

#: A branch: convolutions one after another; the last entry may be several that see the same input.
_Branch = Sequence[Conv | Sequence[Conv]]
_ROW, _COLUMN = (1, 7), (7, 1)


def _a(pooled: int) -> Sequence[_Branch]:
    return (
        [Conv("branch1x1", 64)],
        [Conv("branch5x5_1", 48), Conv("branch5x5_2", 64, 5)],
        [Conv("branch3x3dbl_1", 64), Conv("branch3x3dbl_2", 96, 3), Conv("branch3x3dbl_3", 96, 3)],
        [Conv("branch_pool", pooled)],
    )


def _c(maps: int) -> Sequence[_Branch]:
    return (
        [Conv("branch1x1", 192)],
        [Conv("branch7x7_1", maps), Conv("branch7x7_2", maps, _ROW), Conv("branch7x7_3", 192, _COLUMN)],
        [
            Conv("branch7x7dbl_1", maps),
            Conv("branch7x7dbl_2", maps, _COLUMN),
            Conv("branch7x7dbl_3", maps, _ROW),
            Conv("branch7x7dbl_4", maps, _COLUMN),
            Conv("branch7x7dbl_5", 192, _ROW),
        ],
        [Conv("branch_pool", 192)],
    )


_B: Final[Sequence[_Branch]] = (
    [Conv("branch3x3", 384, 3, 2, 0)],
    [Conv("branch3x3dbl_1", 64), Conv("branch3x3dbl_2", 96, 3), Conv("branch3x3dbl_3", 96, 3, 2, 0)],
)
_D: Final[Sequence[_Branch]] = (
    [Conv("branch3x3_1", 192), Conv("branch3x3_2", 320, 3, 2, 0)],
    [
        Conv("branch7x7x3_1", 192),
        Conv("branch7x7x3_2", 192, _ROW),
        Conv("branch7x7x3_3", 192, _COLUMN),
        Conv("branch7x7x3_4", 192, 3, 2, 0),
    ],
)
_E: Final[Sequence[_Branch]] = (
    [Conv("branch1x1", 320)],
    [Conv("branch3x3_1", 384), [Conv("branch3x3_2a", 384, (1, 3)), Conv("branch3x3_2b", 384, (3, 1))]],
    [
        Conv("branch3x3dbl_1", 448),
        Conv("branch3x3dbl_2", 384, 3),
        [Conv("branch3x3dbl_3a", 384, (1, 3)), Conv("branch3x3dbl_3b", 384, (3, 1))],
    ],
    [Conv("branch_pool", 192)],
)
#: Branches by module. The last branch sees the means of 3 x 3, or a maximum of 3 x 3 is put beside the branches.
_MODULES: Final[Mapping[str, Sequence[_Branch]]] = {
    "Mixed_5b": _a(32), "Mixed_5c": _a(64), "Mixed_5d": _a(64), "Mixed_6a": _B, "Mixed_6b": _c(128), "Mixed_6c": _c(160),
    "Mixed_6d": _c(160), "Mixed_6e": _c(192), "Mixed_7a": _D, "Mixed_7b": _E, "Mixed_7c": _E,
}  # fmt: skip
_STEM: Final = (
    [Conv("Conv2d_1a_3x3", 32, 3, 2, 0), Conv("Conv2d_2a_3x3", 32, 3, 1, 0), Conv("Conv2d_2b_3x3", 64, 3)],
    [Conv("Conv2d_3b_1x1", 80), Conv("Conv2d_4a_3x3", 192, 3, 1, 0)],
)


class InceptionV3(ImageNetBase):
    """Inception v3: modules of branches, with convolutions of 7 x 7 as pairs of 1 x 7 and 7 x 1.

    Args:
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        Szegedy et al. (2016), Rethinking the Inception architecture for computer vision.

    Example:
        >>> from nn_core.models.imagenet import InceptionV3
        >>> InceptionV3(weights=None)(nn.Variable((1, 3, 299, 299)), use_up_to="prepool").shape
        (1, 2048, 8, 8)
    """

    keys = ("prepool", "pool", "classifier")
    image_size = 299
    final_size = 8
    eps = 1e-3
    means = (127.5, 127.5, 127.5)
    deviations = (127.5, 127.5, 127.5)
    n_aux_towers = 1

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        h = self._normalized(x)
        for convolutions in _STEM:
            h = max_pool(convolved(h, layers, "", convolutions), 3, 2)
        for name, branches in _MODULES.items():
            h = _module(h, layers, name, branches)
            if name == "Mixed_6e" and request.with_aux_tower:
                request.further.append(_tower(h, layers))
        yield "prepool", h
        h = self._pooled(h, request)
        yield "pool", h
        yield "classifier", layers.affine(layers.dropout(h), "fc", N_CLASSES)


def _module(h: Variable, layers: Layers, name: str, branches: Sequence[_Branch]) -> Variable:
    halves = branches in (_B, _D)
    results = []
    for branch in branches:
        is_pool = getattr(branch[-1], "name", "") == "branch_pool"
        results += _branch(average_pool(h, 3, 1, pad=1) if is_pool else h, layers, name, branch)
    return concatenated(*results, *([max_pool(h, 3, 2)] if halves else []))


def _branch(h: Variable, layers: Layers, name: str, branch: _Branch) -> list[Variable]:
    chain = [conv for conv in branch if isinstance(conv, Conv)]
    h = convolved(h, layers, name, chain)
    last = branch[-1]
    return [h] if isinstance(last, Conv) else [convolved(h, layers, name, [conv]) for conv in last]


def _tower(h: Variable, layers: Layers) -> Variable:
    h = convolved(average_pool(h, 5, 3), layers, "AuxLogits", [Conv("conv0", 128), Conv("conv1", 768, 5, 1, 0)])
    return layers.affine(global_average_pooling(h), "AuxLogits/fc", N_CLASSES)
