"""Networks that give each pixel of an image a category."""

from nn_core.models.semantic_segmentation.deeplabv3plus import DeepLabV3plus as DeepLabV3plus
from nn_core.models.semantic_segmentation.utils import ProcessImage as ProcessImage
