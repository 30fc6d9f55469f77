"""The functions of nn_core; users write ``import nn_core.functions as F``.

A function of Variables extends the graph; a function of NdArrays computes at once.

Every function accepts ``outputs``, NdArrays that the results are written into, one for each result. ``n_outputs`` is
accepted for programs written for NNabla; the number of results follows from the other arguments. Functions of plugins
are found here by their API name.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

# ruff: noqa: A004

from typing import TYPE_CHECKING

from nn_core.engine.dispatch.attributes import hide_submodules
from nn_core.functions.activation import celu as celu
from nn_core.functions.activation import crelu as crelu
from nn_core.functions.activation import elu as elu
from nn_core.functions.activation import gelu as gelu
from nn_core.functions.activation import hard_sigmoid as hard_sigmoid
from nn_core.functions.activation import hard_tanh as hard_tanh
from nn_core.functions.activation import leaky_relu as leaky_relu
from nn_core.functions.activation import log_sigmoid as log_sigmoid
from nn_core.functions.activation import log_softmax as log_softmax
from nn_core.functions.activation import mish as mish
from nn_core.functions.activation import prelu as prelu
from nn_core.functions.activation import relu as relu
from nn_core.functions.activation import relu6 as relu6
from nn_core.functions.activation import selu as selu
from nn_core.functions.activation import sigmoid as sigmoid
from nn_core.functions.activation import sinc as sinc
from nn_core.functions.activation import softmax as softmax
from nn_core.functions.activation import softplus as softplus
from nn_core.functions.activation import softsign as softsign
from nn_core.functions.activation import swish as swish
from nn_core.functions.activation import tanh as tanh
from nn_core.functions.activation import tanh_shrink as tanh_shrink
from nn_core.functions.arithmetic import abs as abs
from nn_core.functions.arithmetic import acos as acos
from nn_core.functions.arithmetic import acosh as acosh
from nn_core.functions.arithmetic import add2 as add2
from nn_core.functions.arithmetic import add_n as add_n
from nn_core.functions.arithmetic import add_scalar as add_scalar
from nn_core.functions.arithmetic import asin as asin
from nn_core.functions.arithmetic import asinh as asinh
from nn_core.functions.arithmetic import atan as atan
from nn_core.functions.arithmetic import atan2 as atan2
from nn_core.functions.arithmetic import atanh as atanh
from nn_core.functions.arithmetic import bc_add2 as bc_add2
from nn_core.functions.arithmetic import bit_shift as bit_shift
from nn_core.functions.arithmetic import ceil as ceil
from nn_core.functions.arithmetic import clip_grad_by_norm as clip_grad_by_norm
from nn_core.functions.arithmetic import clip_grad_by_value as clip_grad_by_value
from nn_core.functions.arithmetic import cos as cos
from nn_core.functions.arithmetic import cosh as cosh
from nn_core.functions.arithmetic import div2 as div2
from nn_core.functions.arithmetic import equal as equal
from nn_core.functions.arithmetic import equal_scalar as equal_scalar
from nn_core.functions.arithmetic import erf as erf
from nn_core.functions.arithmetic import exp as exp
from nn_core.functions.arithmetic import floor as floor
from nn_core.functions.arithmetic import greater as greater
from nn_core.functions.arithmetic import greater_equal as greater_equal
from nn_core.functions.arithmetic import greater_equal_scalar as greater_equal_scalar
from nn_core.functions.arithmetic import greater_scalar as greater_scalar
from nn_core.functions.arithmetic import isinf as isinf
from nn_core.functions.arithmetic import isnan as isnan
from nn_core.functions.arithmetic import less as less
from nn_core.functions.arithmetic import less_equal as less_equal
from nn_core.functions.arithmetic import less_equal_scalar as less_equal_scalar
from nn_core.functions.arithmetic import less_scalar as less_scalar
from nn_core.functions.arithmetic import log as log
from nn_core.functions.arithmetic import logical_and as logical_and
from nn_core.functions.arithmetic import logical_and_scalar as logical_and_scalar
from nn_core.functions.arithmetic import logical_not as logical_not
from nn_core.functions.arithmetic import logical_or as logical_or
from nn_core.functions.arithmetic import logical_or_scalar as logical_or_scalar
from nn_core.functions.arithmetic import logical_xor as logical_xor
from nn_core.functions.arithmetic import logical_xor_scalar as logical_xor_scalar
from nn_core.functions.arithmetic import maximum2 as maximum2
from nn_core.functions.arithmetic import maximum_scalar as maximum_scalar
from nn_core.functions.arithmetic import minimum2 as minimum2
from nn_core.functions.arithmetic import minimum_scalar as minimum_scalar
from nn_core.functions.arithmetic import mod2 as mod2
from nn_core.functions.arithmetic import mul2 as mul2
from nn_core.functions.arithmetic import mul_n as mul_n
from nn_core.functions.arithmetic import mul_scalar as mul_scalar
from nn_core.functions.arithmetic import not_equal as not_equal
from nn_core.functions.arithmetic import not_equal_scalar as not_equal_scalar
from nn_core.functions.arithmetic import pow2 as pow2
from nn_core.functions.arithmetic import pow_scalar as pow_scalar
from nn_core.functions.arithmetic import r_div_scalar as r_div_scalar
from nn_core.functions.arithmetic import r_pow_scalar as r_pow_scalar
from nn_core.functions.arithmetic import r_sub_scalar as r_sub_scalar
from nn_core.functions.arithmetic import reset_inf as reset_inf
from nn_core.functions.arithmetic import reset_nan as reset_nan
from nn_core.functions.arithmetic import round as round
from nn_core.functions.arithmetic import sign as sign
from nn_core.functions.arithmetic import sin as sin
from nn_core.functions.arithmetic import sinh as sinh
from nn_core.functions.arithmetic import sub2 as sub2
from nn_core.functions.arithmetic import tan as tan
from nn_core.functions.arithmetic import where as where
from nn_core.functions.attention import cached_attention as cached_attention
from nn_core.functions.compatibility import function_api as function_api
from nn_core.functions.compatibility import get_auto_forward as get_auto_forward
from nn_core.functions.compatibility import get_current_context as get_current_context
from nn_core.functions.composite.arithmetic import clip as clip
from nn_core.functions.composite.arithmetic import clip_by_norm as clip_by_norm
from nn_core.functions.composite.arithmetic import clip_by_value as clip_by_value
from nn_core.functions.composite.arithmetic import rsqrt as rsqrt
from nn_core.functions.composite.arithmetic import sqrt as sqrt
from nn_core.functions.composite.arithmetic import square as square
from nn_core.functions.composite.attention import dropout_attention as dropout_attention
from nn_core.functions.composite.attention import multi_head_attention as multi_head_attention
from nn_core.functions.composite.attention import scaled_dot_product_attention as scaled_dot_product_attention
from nn_core.functions.composite.image import interpolate as interpolate
from nn_core.functions.composite.image import patch_correlation as patch_correlation
from nn_core.functions.composite.indexing import gather_nd as gather_nd
from nn_core.functions.composite.indexing import scatter_nd as scatter_nd
from nn_core.functions.composite.indexing import sort as sort
from nn_core.functions.composite.linear import dot as dot
from nn_core.functions.composite.linear import matmul as matmul
from nn_core.functions.composite.normalization import batch_normalization as batch_normalization
from nn_core.functions.composite.normalization import fused_batch_normalization as fused_batch_normalization
from nn_core.functions.composite.normalization import group_normalization as group_normalization
from nn_core.functions.composite.normalization import instance_normalization as instance_normalization
from nn_core.functions.composite.normalization import layer_normalization as layer_normalization
from nn_core.functions.composite.normalization import mean_subtraction as mean_subtraction
from nn_core.functions.composite.normalization import tensor_normalization as tensor_normalization
from nn_core.functions.composite.quantization import fixed_point_quantize as fixed_point_quantize
from nn_core.functions.composite.quantization import min_max_quantize as min_max_quantize
from nn_core.functions.composite.quantization import pow2_quantize as pow2_quantize
from nn_core.functions.composite.quantization import quantize_linear as quantize_linear
from nn_core.functions.composite.reduction import argmax as argmax
from nn_core.functions.composite.reduction import argmin as argmin
from nn_core.functions.composite.reduction import logsumexp as logsumexp
from nn_core.functions.composite.reduction import max as max
from nn_core.functions.composite.reduction import mean as mean
from nn_core.functions.composite.reduction import min as min
from nn_core.functions.composite.reduction import norm as norm
from nn_core.functions.composite.reduction import prod as prod
from nn_core.functions.composite.reduction import reduce as reduce
from nn_core.functions.composite.reduction import std as std
from nn_core.functions.composite.reduction import sum as sum
from nn_core.functions.composite.reduction import var as var
from nn_core.functions.composite.shape import expand_dims as expand_dims
from nn_core.functions.composite.shape import flatten as flatten
from nn_core.functions.composite.shape import slice as slice
from nn_core.functions.composite.shape import squeeze as squeeze
from nn_core.functions.composite.shape import tile as tile
from nn_core.functions.composite.synchronized import sync_batch_normalization as sync_batch_normalization
from nn_core.functions.composite.weights import norm_normalization as norm_normalization
from nn_core.functions.composite.weights import spectral_norm as spectral_norm
from nn_core.functions.composite.weights import weight_standardization as weight_standardization
from nn_core.functions.convolution import adaptive_separable_convolution as adaptive_separable_convolution
from nn_core.functions.convolution import convolution as convolution
from nn_core.functions.convolution import deconvolution as deconvolution
from nn_core.functions.convolution import deformable_convolution as deformable_convolution
from nn_core.functions.convolution import depthwise_convolution as depthwise_convolution
from nn_core.functions.convolution import depthwise_deconvolution as depthwise_deconvolution
from nn_core.functions.convolution import fused_convolution as fused_convolution
from nn_core.functions.image import affine_grid as affine_grid
from nn_core.functions.image import fft as fft
from nn_core.functions.image import ifft as ifft
from nn_core.functions.image import interpolate_backward as interpolate_backward
from nn_core.functions.image import istft as istft
from nn_core.functions.image import onnx_resize as onnx_resize
from nn_core.functions.image import onnx_resize_backward as onnx_resize_backward
from nn_core.functions.image import patch_correlation_backward as patch_correlation_backward
from nn_core.functions.image import stft as stft
from nn_core.functions.image import warp_by_flow as warp_by_flow
from nn_core.functions.image import warp_by_grid as warp_by_grid
from nn_core.functions.indexing import bool_fill as bool_fill
from nn_core.functions.indexing import bool_gather as bool_gather
from nn_core.functions.indexing import bool_scatter as bool_scatter
from nn_core.functions.indexing import embed as embed
from nn_core.functions.indexing import gather as gather
from nn_core.functions.indexing import gather_axes as gather_axes
from nn_core.functions.indexing import nms_detection2d as nms_detection2d
from nn_core.functions.indexing import nonzero as nonzero
from nn_core.functions.indexing import one_hot as one_hot
from nn_core.functions.indexing import onnx_non_max_suppression as onnx_non_max_suppression
from nn_core.functions.indexing import scatter_add as scatter_add
from nn_core.functions.indexing import scatter_axes as scatter_axes
from nn_core.functions.indexing import searchsorted as searchsorted
from nn_core.functions.indexing import top_k_data as top_k_data
from nn_core.functions.indexing import top_k_grad as top_k_grad
from nn_core.functions.indexing import unique as unique
from nn_core.functions.linear import affine as affine
from nn_core.functions.linear import batch_cholesky as batch_cholesky
from nn_core.functions.linear import batch_det as batch_det
from nn_core.functions.linear import batch_inv as batch_inv
from nn_core.functions.linear import batch_logdet as batch_logdet
from nn_core.functions.linear import batch_matmul as batch_matmul
from nn_core.functions.linear import einsum as einsum
from nn_core.functions.loss import absolute_error as absolute_error
from nn_core.functions.loss import binary_cross_entropy as binary_cross_entropy
from nn_core.functions.loss import binary_error as binary_error
from nn_core.functions.loss import categorical_cross_entropy as categorical_cross_entropy
from nn_core.functions.loss import class_mask as class_mask
from nn_core.functions.loss import confusion_matrix as confusion_matrix
from nn_core.functions.loss import epsilon_insensitive_loss as epsilon_insensitive_loss
from nn_core.functions.loss import huber_loss as huber_loss
from nn_core.functions.loss import kl_multinomial as kl_multinomial
from nn_core.functions.loss import sigmoid_cross_entropy as sigmoid_cross_entropy
from nn_core.functions.loss import softmax_cross_entropy as softmax_cross_entropy
from nn_core.functions.loss import squared_error as squared_error
from nn_core.functions.loss import top_n_error as top_n_error
from nn_core.functions.normalization import weight_normalization as weight_normalization
from nn_core.functions.pooling import average_pooling as average_pooling
from nn_core.functions.pooling import global_average_pooling as global_average_pooling
from nn_core.functions.pooling import max_pooling as max_pooling
from nn_core.functions.pooling import max_pooling_backward as max_pooling_backward
from nn_core.functions.pooling import max_pooling_gather as max_pooling_gather
from nn_core.functions.pooling import roi_align as roi_align
from nn_core.functions.pooling import roi_align_backward as roi_align_backward
from nn_core.functions.pooling import sum_pooling as sum_pooling
from nn_core.functions.pooling import unpooling as unpooling
from nn_core.functions.quantization import binary_connect_affine as binary_connect_affine
from nn_core.functions.quantization import binary_connect_convolution as binary_connect_convolution
from nn_core.functions.quantization import binary_sigmoid as binary_sigmoid
from nn_core.functions.quantization import binary_tanh as binary_tanh
from nn_core.functions.quantization import binary_weight_affine as binary_weight_affine
from nn_core.functions.quantization import binary_weight_convolution as binary_weight_convolution
from nn_core.functions.quantization import conv_integer as conv_integer
from nn_core.functions.quantization import dequantize_linear as dequantize_linear
from nn_core.functions.quantization import inq_affine as inq_affine
from nn_core.functions.quantization import inq_convolution as inq_convolution
from nn_core.functions.quantization import matmul_integer as matmul_integer
from nn_core.functions.quantization import prune as prune
from nn_core.functions.quantization import quantize_integer as quantize_integer
from nn_core.functions.random import dropout as dropout
from nn_core.functions.random import dropout_mask as dropout_mask
from nn_core.functions.random import image_augmentation as image_augmentation
from nn_core.functions.random import rand as rand
from nn_core.functions.random import rand_beta as rand_beta
from nn_core.functions.random import rand_binomial as rand_binomial
from nn_core.functions.random import rand_gamma as rand_gamma
from nn_core.functions.random import randint as randint
from nn_core.functions.random import randn as randn
from nn_core.functions.random import random_choice as random_choice
from nn_core.functions.random import random_crop as random_crop
from nn_core.functions.random import random_erase as random_erase
from nn_core.functions.random import random_flip as random_flip
from nn_core.functions.random import random_shift as random_shift
from nn_core.functions.random import vat_noise as vat_noise
from nn_core.functions.recurrent import gru as gru
from nn_core.functions.recurrent import lstm as lstm
from nn_core.functions.recurrent import pack_padded_sequence as pack_padded_sequence
from nn_core.functions.recurrent import pad_packed_sequence as pad_packed_sequence
from nn_core.functions.recurrent import rnn as rnn
from nn_core.functions.reduction import cumprod as cumprod
from nn_core.functions.reduction import cumsum as cumsum
from nn_core.functions.reduction import reduce_mean as reduce_mean
from nn_core.functions.reduction import reduce_sum as reduce_sum
from nn_core.functions.shape import arange as arange
from nn_core.functions.shape import assign as assign
from nn_core.functions.shape import broadcast as broadcast
from nn_core.functions.shape import broadcast_to as broadcast_to
from nn_core.functions.shape import concatenate as concatenate
from nn_core.functions.shape import constant as constant
from nn_core.functions.shape import eye_like as eye_like
from nn_core.functions.shape import flip as flip
from nn_core.functions.shape import identity as identity
from nn_core.functions.shape import linspace as linspace
from nn_core.functions.shape import matrix_diag as matrix_diag
from nn_core.functions.shape import matrix_diag_part as matrix_diag_part
from nn_core.functions.shape import meshgrid as meshgrid
from nn_core.functions.shape import pad as pad
from nn_core.functions.shape import pad_backward as pad_backward
from nn_core.functions.shape import reshape as reshape
from nn_core.functions.shape import shape as shape
from nn_core.functions.shape import shift as shift
from nn_core.functions.shape import shift_backward as shift_backward
from nn_core.functions.shape import sink as sink
from nn_core.functions.shape import split as split
from nn_core.functions.shape import stack as stack
from nn_core.functions.shape import transpose as transpose
from nn_core.functions.shape import trilu as trilu
from nn_core.functions.shape import unlink as unlink

if not TYPE_CHECKING:  # so that checkers report names that do not exist; `nn-core stubs` declares those of plugins
    from nn_core.functions.plugin_functions import __dir__ as __dir__
    from nn_core.functions.plugin_functions import __getattr__ as __getattr__

    hide_submodules(__name__)

__all__ = [
    "abs",
    "absolute_error",
    "acos",
    "acosh",
    "adaptive_separable_convolution",
    "add2",
    "add_n",
    "add_scalar",
    "affine",
    "affine_grid",
    "arange",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "assign",
    "atan",
    "atan2",
    "atanh",
    "average_pooling",
    "batch_cholesky",
    "batch_det",
    "batch_inv",
    "batch_logdet",
    "batch_matmul",
    "batch_normalization",
    "bc_add2",
    "binary_connect_affine",
    "binary_connect_convolution",
    "binary_cross_entropy",
    "binary_error",
    "binary_sigmoid",
    "binary_tanh",
    "binary_weight_affine",
    "binary_weight_convolution",
    "bit_shift",
    "bool_fill",
    "bool_gather",
    "bool_scatter",
    "broadcast",
    "broadcast_to",
    "cached_attention",
    "categorical_cross_entropy",
    "ceil",
    "celu",
    "class_mask",
    "clip",
    "clip_by_norm",
    "clip_by_value",
    "clip_grad_by_norm",
    "clip_grad_by_value",
    "concatenate",
    "confusion_matrix",
    "constant",
    "conv_integer",
    "convolution",
    "cos",
    "cosh",
    "crelu",
    "cumprod",
    "cumsum",
    "deconvolution",
    "deformable_convolution",
    "depthwise_convolution",
    "depthwise_deconvolution",
    "dequantize_linear",
    "div2",
    "dot",
    "dropout",
    "dropout_attention",
    "dropout_mask",
    "einsum",
    "elu",
    "embed",
    "epsilon_insensitive_loss",
    "equal",
    "equal_scalar",
    "erf",
    "exp",
    "expand_dims",
    "eye_like",
    "fft",
    "fixed_point_quantize",
    "flatten",
    "flip",
    "floor",
    "function_api",
    "fused_batch_normalization",
    "fused_convolution",
    "gather",
    "gather_axes",
    "gather_nd",
    "gelu",
    "get_auto_forward",
    "get_current_context",
    "global_average_pooling",
    "greater",
    "greater_equal",
    "greater_equal_scalar",
    "greater_scalar",
    "group_normalization",
    "gru",
    "hard_sigmoid",
    "hard_tanh",
    "huber_loss",
    "identity",
    "ifft",
    "image_augmentation",
    "inq_affine",
    "inq_convolution",
    "instance_normalization",
    "interpolate",
    "interpolate_backward",
    "isinf",
    "isnan",
    "istft",
    "kl_multinomial",
    "layer_normalization",
    "leaky_relu",
    "less",
    "less_equal",
    "less_equal_scalar",
    "less_scalar",
    "linspace",
    "log",
    "log_sigmoid",
    "log_softmax",
    "logical_and",
    "logical_and_scalar",
    "logical_not",
    "logical_or",
    "logical_or_scalar",
    "logical_xor",
    "logical_xor_scalar",
    "logsumexp",
    "lstm",
    "matmul",
    "matmul_integer",
    "matrix_diag",
    "matrix_diag_part",
    "max",
    "max_pooling",
    "max_pooling_backward",
    "max_pooling_gather",
    "maximum2",
    "maximum_scalar",
    "mean",
    "mean_subtraction",
    "meshgrid",
    "min",
    "min_max_quantize",
    "minimum2",
    "minimum_scalar",
    "mish",
    "mod2",
    "mul2",
    "mul_n",
    "mul_scalar",
    "multi_head_attention",
    "nms_detection2d",
    "nonzero",
    "norm",
    "norm_normalization",
    "not_equal",
    "not_equal_scalar",
    "one_hot",
    "onnx_non_max_suppression",
    "onnx_resize",
    "onnx_resize_backward",
    "pack_padded_sequence",
    "pad",
    "pad_backward",
    "pad_packed_sequence",
    "patch_correlation",
    "patch_correlation_backward",
    "pow2",
    "pow2_quantize",
    "pow_scalar",
    "prelu",
    "prod",
    "prune",
    "quantize_integer",
    "quantize_linear",
    "r_div_scalar",
    "r_pow_scalar",
    "r_sub_scalar",
    "rand",
    "rand_beta",
    "rand_binomial",
    "rand_gamma",
    "randint",
    "randn",
    "random_choice",
    "random_crop",
    "random_erase",
    "random_flip",
    "random_shift",
    "reduce",
    "reduce_mean",
    "reduce_sum",
    "relu",
    "relu6",
    "reset_inf",
    "reset_nan",
    "reshape",
    "rnn",
    "roi_align",
    "roi_align_backward",
    "round",
    "rsqrt",
    "scaled_dot_product_attention",
    "scatter_add",
    "scatter_axes",
    "scatter_nd",
    "searchsorted",
    "selu",
    "shape",
    "shift",
    "shift_backward",
    "sigmoid",
    "sigmoid_cross_entropy",
    "sign",
    "sin",
    "sinc",
    "sinh",
    "sink",
    "slice",
    "softmax",
    "softmax_cross_entropy",
    "softplus",
    "softsign",
    "sort",
    "spectral_norm",
    "split",
    "sqrt",
    "square",
    "squared_error",
    "squeeze",
    "stack",
    "std",
    "stft",
    "sub2",
    "sum",
    "sum_pooling",
    "swish",
    "sync_batch_normalization",
    "tan",
    "tanh",
    "tanh_shrink",
    "tensor_normalization",
    "tile",
    "top_k_data",
    "top_k_grad",
    "top_n_error",
    "transpose",
    "trilu",
    "unique",
    "unlink",
    "unpooling",
    "var",
    "vat_noise",
    "warp_by_flow",
    "warp_by_grid",
    "weight_normalization",
    "weight_standardization",
    "where",
]
