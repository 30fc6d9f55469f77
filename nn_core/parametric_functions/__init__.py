"""Parametric functions: layers that make the parameters they need, under names; users write
``import nn_core.parametric_functions as PF``.

Example:
    >>> import nn_core as nn
    >>> import nn_core.parametric_functions as PF
    >>> x = nn.Variable((8, 3, 32, 32))
    >>> y = PF.affine(PF.convolution(x, 16, (3, 3)), 10)
    >>> y.shape
    (8, 10)
"""

from typing import TYPE_CHECKING

from nn_core.engine.dispatch.attributes import hide_submodules, module_attributes
from nn_core.engine.graph.given_variables import giving_variables
from nn_core.parametric_functions.activation import prelu as prelu
from nn_core.parametric_functions.affine import affine as affine
from nn_core.parametric_functions.affine import embed as embed
from nn_core.parametric_functions.attention import multi_head_attention as multi_head_attention
from nn_core.parametric_functions.attention import transformer as transformer
from nn_core.parametric_functions.attention import transformer_decode as transformer_decode
from nn_core.parametric_functions.attention import transformer_encode as transformer_encode
from nn_core.parametric_functions.binary import binary_connect_affine as binary_connect_affine
from nn_core.parametric_functions.binary import binary_connect_convolution as binary_connect_convolution
from nn_core.parametric_functions.binary import binary_weight_affine as binary_weight_affine
from nn_core.parametric_functions.binary import binary_weight_convolution as binary_weight_convolution
from nn_core.parametric_functions.convolution import convolution as convolution
from nn_core.parametric_functions.convolution import deconvolution as deconvolution
from nn_core.parametric_functions.convolution import deformable_convolution as deformable_convolution
from nn_core.parametric_functions.convolution import depthwise_convolution as depthwise_convolution
from nn_core.parametric_functions.convolution import depthwise_deconvolution as depthwise_deconvolution
from nn_core.parametric_functions.factorized import cpd3_convolution as cpd3_convolution
from nn_core.parametric_functions.factorized import svd_affine as svd_affine
from nn_core.parametric_functions.factorized import svd_convolution as svd_convolution
from nn_core.parametric_functions.fixed_point import fixed_point_quantized_affine as fixed_point_quantized_affine
from nn_core.parametric_functions.fixed_point import (
    fixed_point_quantized_convolution as fixed_point_quantized_convolution,
)
from nn_core.parametric_functions.incremental import inq_affine as inq_affine
from nn_core.parametric_functions.incremental import inq_convolution as inq_convolution
from nn_core.parametric_functions.min_max import min_max_quantize as min_max_quantize
from nn_core.parametric_functions.min_max import min_max_quantized_affine as min_max_quantized_affine
from nn_core.parametric_functions.min_max import min_max_quantized_convolution as min_max_quantized_convolution
from nn_core.parametric_functions.normalization import batch_normalization as batch_normalization
from nn_core.parametric_functions.normalization import fused_batch_normalization as fused_batch_normalization
from nn_core.parametric_functions.normalization import group_normalization as group_normalization
from nn_core.parametric_functions.normalization import instance_normalization as instance_normalization
from nn_core.parametric_functions.normalization import layer_normalization as layer_normalization
from nn_core.parametric_functions.normalization import mean_subtraction as mean_subtraction
from nn_core.parametric_functions.normalization import sync_batch_normalization as sync_batch_normalization
from nn_core.parametric_functions.power_of_two import pow2_quantized_affine as pow2_quantized_affine
from nn_core.parametric_functions.power_of_two import pow2_quantized_convolution as pow2_quantized_convolution
from nn_core.parametric_functions.pruned import pruned_affine as pruned_affine
from nn_core.parametric_functions.pruned import pruned_convolution as pruned_convolution
from nn_core.parametric_functions.recurrent import LSTMCell as LSTMCell
from nn_core.parametric_functions.recurrent import gru as gru
from nn_core.parametric_functions.recurrent import lstm as lstm
from nn_core.parametric_functions.recurrent import lstm_cell as lstm_cell
from nn_core.parametric_functions.recurrent import rnn as rnn
from nn_core.parametric_functions.scope import get_parameter_or_create as get_parameter_or_create
from nn_core.parametric_functions.scope import parametric_function_api as parametric_function_api
from nn_core.parametric_functions.weights import spectral_norm as spectral_norm
from nn_core.parametric_functions.weights import weight_normalization as weight_normalization

__all__ = [
    "LSTMCell",
    "affine",
    "batch_normalization",
    "binary_connect_affine",
    "binary_connect_convolution",
    "binary_weight_affine",
    "binary_weight_convolution",
    "convolution",
    "cpd3_convolution",
    "deconvolution",
    "deformable_convolution",
    "depthwise_convolution",
    "depthwise_deconvolution",
    "embed",
    "fixed_point_quantized_affine",
    "fixed_point_quantized_convolution",
    "fused_batch_normalization",
    "group_normalization",
    "gru",
    "inq_affine",
    "inq_convolution",
    "instance_normalization",
    "layer_normalization",
    "lstm",
    "lstm_cell",
    "mean_subtraction",
    "min_max_quantize",
    "min_max_quantized_affine",
    "min_max_quantized_convolution",
    "multi_head_attention",
    "parametric_function_api",
    "pow2_quantized_affine",
    "pow2_quantized_convolution",
    "prelu",
    "pruned_affine",
    "pruned_convolution",
    "rnn",
    "spectral_norm",
    "svd_affine",
    "svd_convolution",
    "sync_batch_normalization",
    "transformer",
    "transformer_decode",
    "transformer_encode",
    "weight_normalization",
]

if not TYPE_CHECKING:  # so that checkers report names that do not exist
    __getattr__, __dir__ = module_attributes(__name__, "parametric_functions", shown=giving_variables)
    hide_submodules(__name__)
