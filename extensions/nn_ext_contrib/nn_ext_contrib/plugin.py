"""The plugin module: the offers of this package to nn_core."""

from pathlib import Path

from nn_core.ext import CompositeInfo, FunctionPackage, ParametricFunctionInfo, hookimpl
from nn_ext_contrib import operators
from nn_ext_contrib.native import KERNELS

PLUGIN_API = 2
REQUIRES_CORE = ">=0.1,<1"
#: Users write ``F.contrib.ctc_loss``: the functions have the names that Chainer gave them.
VENDOR_NAMESPACE = True

SPECIFICATION = Path(__file__).with_name("functions.yaml")
#: Functions made of others, by the modules that define them.
COMPOSITES = {
    "activation": ("maxout", "prelu"),
    "arithmetic": (
        "average", "batch_l2_norm_squared", "bias", "bilinear", "linear_interpolate", "log10", "log2", "scale",
    ),
    "evaluation": ("classification_summary", "r2_score"),
    "image": ("spatial_transformer_grid", "spatial_transformer_sampler"),
    "labels": (
        "accuracy", "binary_accuracy", "embed_id", "masked_sigmoid_cross_entropy", "weighted_softmax_cross_entropy",
    ),
    "loss": (
        "bernoulli_nll", "contrastive", "cross_covariance", "gaussian_kl_divergence", "gaussian_nll", "hinge", "triplet",
    ),
    "pooling": (
        "local_response_normalization", "normalize", "roi_average_align_2d", "roi_max_align_2d", "spatial_pyramid_pooling_2d",
        "unpooling_2d",
    ),
    "random": ("gaussian", "simplified_dropconnect"),
    "recurrent": ("n_step_gru", "n_step_lstm", "n_step_rnn", "stateless_lstm", "stateless_slstm"),
    "sampling": ("black_out", "hierarchical_softmax", "huffman_tree", "negative_sampling", "sampled_words"),
    "shape": (
        "depth2space", "dstack", "hstack", "im2col", "permutate", "rollaxis", "select_item", "space2depth", "split_axis",
        "swapaxes", "transpose_sequence", "vstack",
    ),
}  # fmt: skip
#: Parametric functions, likewise.
LAYERS = {
    "arithmetic": ("bilinear", "highway", "maxout", "simplified_dropconnect", "trained_bias", "trained_scale"),
    "image": ("inception", "inception_bn", "mlp_convolution_2d"),
    "loss": ("argmax_crf1d", "black_out", "crf1d", "hierarchical_softmax", "negative_sampling"),
    "recurrent": ("n_step_gru", "n_step_lstm", "n_step_rnn", "peephole_lstm", "stateless_gru", "stateless_lstm"),
}
__all__ = ["operators"]


@hookimpl
def nn_core_functions() -> list[FunctionPackage]:
    """Operators with kernels of their own."""
    return [FunctionPackage(spec=SPECIFICATION, samples="nn_ext_contrib.samples", kernels=KERNELS)]


@hookimpl
def nn_core_composites() -> list[CompositeInfo]:
    """Functions made of operators of nn_core and of this package."""
    return [
        CompositeInfo(name=name, target=f"nn_ext_contrib.functions.{module}:{name}")
        for module, names in COMPOSITES.items()
        for name in names
    ]


@hookimpl
def nn_core_parametric_functions() -> list[ParametricFunctionInfo]:
    """Functions with parameters of their own."""
    return [
        ParametricFunctionInfo(name=name, target=f"nn_ext_contrib.layers.{module}:{name}")
        for module, names in LAYERS.items()
        for name in names
    ]
