"""The layers of `nn_core.experimental.parametric_function_class` under NNabla's name for the package of its first ones."""

from nn_core.experimental.parametric_function_class.affine import Affine as Affine
from nn_core.experimental.parametric_function_class.batch_normalization import BatchNormalization as BatchNormalization
from nn_core.experimental.parametric_function_class.convolution import Convolution as Convolution
from nn_core.experimental.parametric_function_class.deconvolution import Deconvolution as Deconvolution
from nn_core.experimental.parametric_function_class.embed import Embed as Embed
from nn_core.experimental.parametric_function_class.module import Module as Module

__all__ = ["Affine", "BatchNormalization", "Convolution", "Deconvolution", "Embed", "Module"]
