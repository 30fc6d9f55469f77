"""Layers as modules, for `nn_core.Sequential` and modules of your own: parametric functions and functions as objects.

Parameters are made when a layer is first called, and have the names that the parametric function gives them. Dropout and batch
normalization follow ``Module.training``, which ``train()`` and ``eval()`` set for a whole network.

Example:
    >>> import nn_core as nn
    >>> import nn_core.functions as F
    >>> from nn_core import layers
    >>> net = nn.Sequential(layers.Conv(16, 3, pad=1), layers.BatchNorm(), F.relu, layers.MaxPool(2), layers.Affine(10))
    >>> net(nn.Variable((8, 3, 32, 32))).shape
    (8, 10)
"""

import sys
from typing import TYPE_CHECKING

from nn_core.core.sequential import Lambda as Lambda
from nn_core.engine.dispatch.attributes import hide_submodules
from nn_core.engine.error_messages.elsewhere import attribute_suggestion
from nn_core.errors import UnknownAttributeError
from nn_core.layers.activation import ELU as ELU
from nn_core.layers.activation import GELU as GELU
from nn_core.layers.activation import SELU as SELU
from nn_core.layers.activation import LeakyReLU as LeakyReLU
from nn_core.layers.activation import LogSoftmax as LogSoftmax
from nn_core.layers.activation import Mish as Mish
from nn_core.layers.activation import PReLU as PReLU
from nn_core.layers.activation import ReLU as ReLU
from nn_core.layers.activation import Sigmoid as Sigmoid
from nn_core.layers.activation import Softmax as Softmax
from nn_core.layers.activation import Softplus as Softplus
from nn_core.layers.activation import Swish as Swish
from nn_core.layers.activation import Tanh as Tanh
from nn_core.layers.attention import MultiHeadAttention as MultiHeadAttention
from nn_core.layers.convolution import Conv as Conv
from nn_core.layers.convolution import Deconv as Deconv
from nn_core.layers.convolution import DepthwiseConv as DepthwiseConv
from nn_core.layers.layer import Layer as Layer
from nn_core.layers.linear import Affine as Affine
from nn_core.layers.linear import Embed as Embed
from nn_core.layers.linear import Linear as Linear
from nn_core.layers.normalization import BatchNorm as BatchNorm
from nn_core.layers.normalization import GroupNorm as GroupNorm
from nn_core.layers.normalization import InstanceNorm as InstanceNorm
from nn_core.layers.normalization import LayerNorm as LayerNorm
from nn_core.layers.pooling import AveragePool as AveragePool
from nn_core.layers.pooling import GlobalAveragePool as GlobalAveragePool
from nn_core.layers.pooling import GlobalMaxPool as GlobalMaxPool
from nn_core.layers.pooling import MaxPool as MaxPool
from nn_core.layers.pooling import SumPool as SumPool
from nn_core.layers.random import Dropout as Dropout
from nn_core.layers.recurrent import GRU as GRU
from nn_core.layers.recurrent import LSTM as LSTM
from nn_core.layers.recurrent import RNN as RNN
from nn_core.layers.shape import Flatten as Flatten
from nn_core.layers.shape import Reshape as Reshape

__all__ = [
    "ELU",
    "GELU",
    "GRU",
    "LSTM",
    "RNN",
    "SELU",
    "Affine",
    "AveragePool",
    "BatchNorm",
    "Conv",
    "Deconv",
    "DepthwiseConv",
    "Dropout",
    "Embed",
    "Flatten",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "GroupNorm",
    "InstanceNorm",
    "Lambda",
    "Layer",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MaxPool",
    "Mish",
    "MultiHeadAttention",
    "PReLU",
    "ReLU",
    "Reshape",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Swish",
    "Tanh",
]

if not TYPE_CHECKING:  # so that checkers report names that do not exist
    hide_submodules(__name__)

    def __getattr__(name: str) -> object:
        """Raise an error that names what another library calls so."""
        text = f"module 'nn_core.layers' has no attribute {name!r}{attribute_suggestion(__name__, name, __all__)}"
        raise UnknownAttributeError(text, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted(__all__)
