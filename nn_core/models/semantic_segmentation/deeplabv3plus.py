"""DeepLab v3+."""

from collections.abc import Iterator, Sequence
from typing import Final

from nn_core.engine.error_messages.refusal import fitted
from nn_core.functions import global_average_pooling, interpolate, relu
from nn_core.models.base import Request
from nn_core.models.imagenet.depth import chosen_depth
from nn_core.models.layers import Layers, concatenated
from nn_core.models.semantic_segmentation.base import SemanticSegmentation
from nn_core.models.weights import PRETRAINED, Weights
from nn_core.variable import Variable

#: Data sets of the published weights; both tell the categories of PASCAL VOC.
_DATASETS: Final = ("voc", "voc-coco")
#: By output stride: the stride of the last block of the entry, the dilations of the middle, of the two blocks of the exit, and
#: of the pyramid.
_STRIDES: Final = {16: (2, 1, (1, 2), (6, 12, 18)), 8: (1, 2, (2, 4), (12, 24, 36))}
_MIDDLE_BLOCKS: Final = 16
_PYRAMID_MAPS: Final = 256
_FINE_MAPS: Final = 48


class DeepLabV3plus(SemanticSegmentation):
    """DeepLab v3+: dilated convolutions see an image at several scales, and finer maps sharpen the edges.

    The backbone is the Xception of 65 layers whose poolings are convolutions.

    Args:
        dataset: "voc", or "voc-coco", which was trained on COCO before.
        output_stride: Pixels of the image for one of the backbone's result, 16 or 8: smaller is finer and takes more time.
        weights: "pretrained", a path, or None; see `nn_core.models.base.PretrainedModel`.

    References:
        Chen et al. (2018), Encoder-decoder with atrous separable convolution for semantic image segmentation.

    Example:
        >>> from nn_core.models.semantic_segmentation import DeepLabV3plus
        >>> DeepLabV3plus("voc", weights=None)(nn.Variable((1, 3, 65, 97))).shape
        (1, 21, 65, 97)
    """

    eps = 1e-3
    categories = (
        "background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable",
        "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
    )  # fmt: skip

    @fitted
    def __init__(self, dataset: str = "voc", output_stride: int = 16, weights: Weights = PRETRAINED) -> None:
        self.dataset = chosen_depth("DeepLabV3plus", dataset, _DATASETS, "dataset")
        self.output_stride = chosen_depth("DeepLabV3plus", output_stride, _STRIDES, "output_stride")
        super().__init__(weights)

    @property
    def name(self) -> str:
        """The class with the data set and the output stride."""
        return f"DeepLabV3plus_{self.dataset}_{self.output_stride}"

    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        coarse, fine = _backbone(x, layers, self.output_stride)
        h = layers.dropout(_pyramid(coarse, layers, _STRIDES[self.output_stride][-1]), 0.1)
        fine = relu(layers.conv_norm(fine, ("decoder/fine", "decoder/fine_bn"), _FINE_MAPS, 1))
        h = concatenated(_resized(h, fine.shape[2:]), fine)
        h = relu(_separable(h, layers, "decoder/conv1", _PYRAMID_MAPS))
        h = _separable(h, layers, "decoder/conv2", _PYRAMID_MAPS)
        yield "lastconv", h
        h = relu(h)
        yield "lastconv+relu", h
        yield "segmentation", _resized(layers.conv(h, "scores", len(self.categories), 1), x.shape[2:])


def _backbone(x: Variable, layers: Layers, output_stride: int) -> tuple[Variable, Variable]:
    """Return the result of Xception, and maps of a quarter of the size of the image."""
    stride, middle, exits, _ = _STRIDES[output_stride]
    h = relu(layers.conv_norm(x, ("conv1", "bn1"), 32, 3, 2))
    h = relu(layers.conv_norm(h, ("conv2", "bn2"), 64, 3))
    h, _ = _block(h, layers, "entry1", (128, 128, 128), stride=2)
    h, fine = _block(h, layers, "entry2", (256, 256, 256), stride=2)
    h, _ = _block(h, layers, "entry3", (728, 728, 728), stride=stride)
    for number in range(1, _MIDDLE_BLOCKS + 1):
        h, _ = _block(h, layers, f"middle{number}", (728, 728, 728), dilation=middle)
    h, _ = _block(h, layers, "exit1", (728, 1024, 1024), dilation=exits[0])
    for number, maps in enumerate((1536, 1536, 2048), 1):
        h = relu(_separable(h, layers, f"exit2/sep{number}", maps, dilation=exits[1]))
    return h, fine


def _block(
    x: Variable, layers: Layers, name: str, maps: Sequence[int], stride: int = 1, dilation: int = 1
) -> tuple[Variable, Variable]:
    """Return a residual block of three convolutions, of which the last has the stride, and the result of the second."""
    h = _separable(relu(x), layers, f"{name}/sep1", maps[0], dilation=dilation)
    second = _separable(relu(h), layers, f"{name}/sep2", maps[1], dilation=dilation)
    h = _separable(relu(second), layers, f"{name}/sep3", maps[2], stride, dilation)
    if stride > 1 or x.shape[1] != maps[2]:
        x = layers.conv_norm(x, (f"{name}/skip", f"{name}/skip_bn"), maps[2], 1, stride)
    added: Variable = h + x
    return added, second


def _separable(h: Variable, layers: Layers, name: str, maps: int, stride: int = 1, dilation: int = 1) -> Variable:
    """Return a convolution of 3 x 3 within channels and one of 1 x 1 across them, both with batch normalization."""
    options = {"group": h.shape[1], "dilation": dilation}
    h = layers.conv_norm(h, (f"{name}/depthwise", f"{name}/depthwise_bn"), h.shape[1], 3, stride, **options)
    return layers.conv_norm(relu(h), (f"{name}/pointwise", f"{name}/pointwise_bn"), maps, 1)


def _pyramid(h: Variable, layers: Layers, dilations: Sequence[int]) -> Variable:
    """Return the maps at several scales, and those of the whole image."""
    whole = relu(layers.conv_norm(global_average_pooling(h), ("pyramid/whole", "pyramid/whole_bn"), _PYRAMID_MAPS, 1))
    branches = [_resized(whole, h.shape[2:]), relu(layers.conv_norm(h, ("pyramid/conv", "pyramid/bn"), _PYRAMID_MAPS, 1))]
    for dilation in dilations:
        branches.append(relu(_separable(h, layers, f"pyramid/dilated{len(branches) - 1}", _PYRAMID_MAPS, dilation=dilation)))
    return relu(layers.conv_norm(concatenated(*branches), ("pyramid/joined", "pyramid/joined_bn"), _PYRAMID_MAPS, 1))


def _resized(h: Variable, size: Sequence[int]) -> Variable:
    return interpolate(h, output_size=tuple(size), mode="linear", align_corners=True)
