"""The functions of nn_core; users write ``import nn_core.functions as F``.

A function of Variables extends the graph; a function of NdArrays computes at once.

Every function accepts ``outputs``, NdArrays that the results are written into, one for each result. ``n_outputs`` is
accepted for programs written for NNabla; the number of results follows from the other arguments. Functions of plugins
are found here by their API name.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

# ruff: noqa: A004, I001

from typing import TYPE_CHECKING

from nn_core.engine.dispatch.attributes import hide_submodules
from nn_core.functions.activation import (
    celu, crelu, elu, gelu, hard_sigmoid, hard_tanh, leaky_relu, log_sigmoid, log_softmax, mish, prelu, relu, relu6,
    selu, sigmoid, sinc, softmax, softplus, softsign, swish, tanh, tanh_shrink,
)
from nn_core.functions.arithmetic import (
    abs, acos, acosh, add2, add_n, add_scalar, asin, asinh, atan, atan2, atanh, bc_add2, bit_shift, ceil,
    clip_grad_by_norm, clip_grad_by_value, cos, cosh, div2, equal, equal_scalar, erf, exp, floor, greater,
    greater_equal, greater_equal_scalar, greater_scalar, isinf, isnan, less, less_equal, less_equal_scalar, less_scalar,
    log, logical_and, logical_and_scalar, logical_not, logical_or, logical_or_scalar, logical_xor, logical_xor_scalar,
    maximum2, maximum_scalar, minimum2, minimum_scalar, mod2, mul2, mul_n, mul_scalar, not_equal, not_equal_scalar,
    pow2, pow_scalar, r_div_scalar, r_pow_scalar, r_sub_scalar, reset_inf, reset_nan, round, sign, sin, sinh, sub2, tan,
    where,
)
from nn_core.functions.attention import cached_attention
from nn_core.functions.compatibility import function_api, get_auto_forward, get_current_context
from nn_core.functions.composite.arithmetic import clip, clip_by_norm, clip_by_value, rsqrt, sqrt, square
from nn_core.functions.composite.attention import dropout_attention, multi_head_attention, scaled_dot_product_attention
from nn_core.functions.composite.image import interpolate, patch_correlation
from nn_core.functions.composite.indexing import gather_nd, scatter_nd, sort
from nn_core.functions.composite.linear import dot, matmul
from nn_core.functions.composite.normalization import (
    batch_normalization, fused_batch_normalization, group_normalization, instance_normalization, layer_normalization,
    mean_subtraction, tensor_normalization,
)
from nn_core.functions.composite.quantization import (
    fixed_point_quantize, min_max_quantize, pow2_quantize, quantize_linear,
)
from nn_core.functions.composite.reduction import (
    argmax, argmin, logsumexp, max, mean, min, norm, prod, reduce, std, sum, var,
)
from nn_core.functions.composite.shape import expand_dims, flatten, slice, squeeze, tile
from nn_core.functions.composite.synchronized import sync_batch_normalization
from nn_core.functions.composite.weights import norm_normalization, spectral_norm, weight_standardization
from nn_core.functions.convolution import (
    adaptive_separable_convolution, convolution, deconvolution, deformable_convolution, depthwise_convolution,
    depthwise_deconvolution, fused_convolution,
)
from nn_core.functions.image import (
    affine_grid, fft, ifft, interpolate_backward, istft, onnx_resize, onnx_resize_backward, patch_correlation_backward,
    stft, warp_by_flow, warp_by_grid,
)
from nn_core.functions.indexing import (
    bool_fill, bool_gather, bool_scatter, embed, gather, gather_axes, nms_detection2d, nonzero, one_hot,
    onnx_non_max_suppression, scatter_add, scatter_axes, searchsorted, top_k_data, top_k_grad, unique,
)
from nn_core.functions.linear import affine, batch_cholesky, batch_det, batch_inv, batch_logdet, batch_matmul, einsum
from nn_core.functions.loss import (
    absolute_error, binary_cross_entropy, binary_error, categorical_cross_entropy, class_mask, confusion_matrix,
    epsilon_insensitive_loss, huber_loss, kl_multinomial, sigmoid_cross_entropy, softmax_cross_entropy, squared_error,
    top_n_error,
)
from nn_core.functions.normalization import weight_normalization
from nn_core.functions.pooling import (
    average_pooling, global_average_pooling, max_pooling, max_pooling_backward, max_pooling_gather, roi_align,
    roi_align_backward, sum_pooling, unpooling,
)
from nn_core.functions.quantization import (
    binary_connect_affine, binary_connect_convolution, binary_sigmoid, binary_tanh, binary_weight_affine,
    binary_weight_convolution, conv_integer, dequantize_linear, inq_affine, inq_convolution, matmul_integer, prune,
    qlinear_conv, qlinear_matmul, quantize_integer,
)
from nn_core.functions.random import (
    dropout, dropout_mask, image_augmentation, rand, rand_beta, rand_binomial, rand_gamma, randint, randn,
    random_choice, random_crop, random_erase, random_flip, random_shift, vat_noise,
)
from nn_core.functions.recurrent import gru, lstm, pack_padded_sequence, pad_packed_sequence, rnn
from nn_core.functions.reduction import cumprod, cumsum, reduce_mean, reduce_sum
from nn_core.functions.shape import (
    arange, assign, broadcast, broadcast_to, concatenate, constant, eye_like, flip, identity, linspace, matrix_diag,
    matrix_diag_part, meshgrid, pad, pad_backward, reshape, shape, shift, shift_backward, sink, split, stack, transpose,
    trilu, unlink,
)

if not TYPE_CHECKING:  # so that checkers report names that do not exist; `nn-core stubs` declares those of plugins
    from nn_core.functions.plugin_functions import __dir__ as __dir__
    from nn_core.functions.plugin_functions import __getattr__ as __getattr__

    hide_submodules(__name__)

__all__ = [
    "abs", "absolute_error", "acos", "acosh", "adaptive_separable_convolution", "add2", "add_n", "add_scalar", "affine",
    "affine_grid", "arange", "argmax", "argmin", "asin", "asinh", "assign", "atan", "atan2", "atanh", "average_pooling",
    "batch_cholesky", "batch_det", "batch_inv", "batch_logdet", "batch_matmul", "batch_normalization", "bc_add2",
    "binary_connect_affine", "binary_connect_convolution", "binary_cross_entropy", "binary_error", "binary_sigmoid",
    "binary_tanh", "binary_weight_affine", "binary_weight_convolution", "bit_shift", "bool_fill", "bool_gather",
    "bool_scatter", "broadcast", "broadcast_to",
    "cached_attention", "categorical_cross_entropy", "ceil", "celu", "class_mask", "clip", "clip_by_norm",
    "clip_by_value", "clip_grad_by_norm", "clip_grad_by_value", "concatenate", "confusion_matrix", "constant",
    "conv_integer", "convolution", "cos", "cosh", "crelu", "cumprod", "cumsum",
    "deconvolution", "deformable_convolution", "depthwise_convolution", "depthwise_deconvolution", "dequantize_linear",
    "div2", "dot", "dropout", "dropout_attention", "dropout_mask",
    "einsum", "elu", "embed", "epsilon_insensitive_loss", "equal", "equal_scalar", "erf", "exp", "expand_dims",
    "eye_like",
    "fft", "fixed_point_quantize", "flatten", "flip", "floor", "function_api", "fused_batch_normalization",
    "fused_convolution",
    "gather", "gather_axes", "gather_nd", "gelu", "get_auto_forward", "get_current_context", "global_average_pooling",
    "greater", "greater_equal", "greater_equal_scalar", "greater_scalar", "group_normalization", "gru",
    "hard_sigmoid", "hard_tanh", "huber_loss",
    "identity", "ifft", "image_augmentation", "inq_affine", "inq_convolution", "instance_normalization", "interpolate",
    "interpolate_backward", "isinf", "isnan", "istft",
    "kl_multinomial",
    "layer_normalization", "leaky_relu", "less", "less_equal", "less_equal_scalar", "less_scalar", "linspace", "log",
    "log_sigmoid", "log_softmax", "logical_and", "logical_and_scalar", "logical_not", "logical_or", "logical_or_scalar",
    "logical_xor", "logical_xor_scalar", "logsumexp", "lstm",
    "matmul", "matmul_integer", "matrix_diag", "matrix_diag_part", "max", "max_pooling", "max_pooling_backward",
    "max_pooling_gather", "maximum2", "maximum_scalar", "mean", "mean_subtraction", "meshgrid", "min",
    "min_max_quantize", "minimum2", "minimum_scalar", "mish", "mod2", "mul2", "mul_n", "mul_scalar",
    "multi_head_attention",
    "nms_detection2d", "nonzero", "norm", "norm_normalization", "not_equal", "not_equal_scalar",
    "one_hot", "onnx_non_max_suppression", "onnx_resize", "onnx_resize_backward",
    "pack_padded_sequence", "pad", "pad_backward", "pad_packed_sequence", "patch_correlation",
    "patch_correlation_backward", "pow2", "pow2_quantize", "pow_scalar", "prelu", "prod", "prune",
    "qlinear_conv", "qlinear_matmul", "quantize_integer", "quantize_linear",
    "r_div_scalar", "r_pow_scalar", "r_sub_scalar", "rand", "rand_beta", "rand_binomial", "rand_gamma", "randint",
    "randn", "random_choice", "random_crop", "random_erase", "random_flip", "random_shift", "reduce", "reduce_mean",
    "reduce_sum", "relu", "relu6", "reset_inf", "reset_nan", "reshape", "rnn", "roi_align", "roi_align_backward",
    "round", "rsqrt",
    "scaled_dot_product_attention", "scatter_add", "scatter_axes", "scatter_nd", "searchsorted", "selu", "shape",
    "shift", "shift_backward", "sigmoid", "sigmoid_cross_entropy", "sign", "sin", "sinc", "sinh", "sink", "slice",
    "softmax", "softmax_cross_entropy", "softplus", "softsign", "sort", "spectral_norm", "split", "sqrt", "square",
    "squared_error", "squeeze", "stack", "std", "stft", "sub2", "sum", "sum_pooling", "swish",
    "sync_batch_normalization",
    "tan", "tanh", "tanh_shrink", "tensor_normalization", "tile", "top_k_data", "top_k_grad", "top_n_error",
    "transpose", "trilu",
    "unique", "unlink", "unpooling",
    "var", "vat_noise",
    "warp_by_flow", "warp_by_grid", "weight_normalization", "weight_standardization", "where",
]
