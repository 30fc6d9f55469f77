"""The functions of nn_core; users write ``import nn_core.functions as F``.

A function of Variables extends the graph; a function of NdArrays computes at once.

Every function accepts ``outputs``, NdArrays that the results are written into, one for each result. ``n_outputs`` is
accepted for programs written for NNabla; the number of results follows from the other arguments. Functions of plugins
are found here by their API name.

Generated from function_spec.yaml by `python -m nn_core.spec`; edits are lost.
"""

# ruff: noqa: A004

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
from nn_core.functions.composite.arithmetic import clip_by_norm as clip_by_norm
from nn_core.functions.composite.arithmetic import clip_by_value as clip_by_value
from nn_core.functions.composite.attention import multi_head_attention as multi_head_attention
from nn_core.functions.composite.image import interpolate as interpolate
from nn_core.functions.composite.image import patch_correlation as patch_correlation
from nn_core.functions.composite.indexing import gather_nd as gather_nd
from nn_core.functions.composite.indexing import scatter_nd as scatter_nd
from nn_core.functions.composite.linear import dot as dot
from nn_core.functions.composite.quantization import fixed_point_quantize as fixed_point_quantize
from nn_core.functions.composite.quantization import min_max_quantize as min_max_quantize
from nn_core.functions.composite.quantization import pow2_quantize as pow2_quantize
from nn_core.functions.composite.quantization import quantize_linear as quantize_linear
from nn_core.functions.composite.reduction import max as max
from nn_core.functions.composite.reduction import mean as mean
from nn_core.functions.composite.reduction import min as min
from nn_core.functions.composite.reduction import norm as norm
from nn_core.functions.composite.reduction import prod as prod
from nn_core.functions.composite.reduction import reduce as reduce
from nn_core.functions.composite.reduction import sum as sum
from nn_core.functions.composite.shape import slice as slice
from nn_core.functions.composite.shape import tile as tile
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
from nn_core.functions.plugin_functions import __dir__ as __dir__
from nn_core.functions.plugin_functions import __getattr__ as __getattr__
from nn_core.functions.plugin_functions import register_plugin_function as register_plugin_function
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

__all__ = [
    "abs",
    "absolute_error",
    "acos",
    "acosh",
    "add2",
    "add_n",
    "add_scalar",
    "affine",
    "arange",
    "asin",
    "asinh",
    "assign",
    "atan",
    "atan2",
    "atanh",
    "batch_cholesky",
    "batch_det",
    "batch_inv",
    "batch_logdet",
    "batch_matmul",
    "bc_add2",
    "binary_cross_entropy",
    "binary_error",
    "bit_shift",
    "broadcast",
    "broadcast_to",
    "categorical_cross_entropy",
    "ceil",
    "celu",
    "class_mask",
    "clip_by_norm",
    "clip_by_value",
    "clip_grad_by_norm",
    "clip_grad_by_value",
    "concatenate",
    "confusion_matrix",
    "constant",
    "cos",
    "cosh",
    "crelu",
    "cumprod",
    "cumsum",
    "div2",
    "dot",
    "einsum",
    "elu",
    "epsilon_insensitive_loss",
    "equal",
    "equal_scalar",
    "erf",
    "exp",
    "eye_like",
    "fixed_point_quantize",
    "flip",
    "floor",
    "gather_nd",
    "gelu",
    "greater",
    "greater_equal",
    "greater_equal_scalar",
    "greater_scalar",
    "hard_sigmoid",
    "hard_tanh",
    "huber_loss",
    "identity",
    "interpolate",
    "isinf",
    "isnan",
    "kl_multinomial",
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
    "matrix_diag",
    "matrix_diag_part",
    "max",
    "maximum2",
    "maximum_scalar",
    "mean",
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
    "norm",
    "not_equal",
    "not_equal_scalar",
    "pad",
    "pad_backward",
    "patch_correlation",
    "pow2",
    "pow2_quantize",
    "pow_scalar",
    "prelu",
    "prod",
    "quantize_linear",
    "r_div_scalar",
    "r_pow_scalar",
    "r_sub_scalar",
    "reduce",
    "reduce_mean",
    "reduce_sum",
    "register_plugin_function",
    "relu",
    "relu6",
    "reset_inf",
    "reset_nan",
    "reshape",
    "round",
    "scatter_nd",
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
    "split",
    "squared_error",
    "stack",
    "sub2",
    "sum",
    "swish",
    "tan",
    "tanh",
    "tanh_shrink",
    "tile",
    "top_n_error",
    "transpose",
    "trilu",
    "unlink",
    "where",
]
