"""Names that other frameworks use, for hints in errors about unknown names."""

from collections.abc import Collection, Iterable
from typing import Final

# fmt: off
#: Names here, in the order of preference, by the lower-case name elsewhere without underscores and ends as in ``conv2d``.
_SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    # functions and layers
    **dict.fromkeys(("linear", "dense", "fc", "fullyconnected", "innerproduct"), ("affine", "PF.affine")),
    **dict.fromkeys(("conv", "convolve"), ("convolution", "PF.convolution")),
    **dict.fromkeys(("convtranspose", "transposedconv", "upconv"), ("deconvolution", "PF.deconvolution")),
    **dict.fromkeys(("depthwiseconv", "separableconv"), ("depthwise_convolution", "PF.depthwise_convolution")),
    **dict.fromkeys(("batchnorm", "bn"), ("batch_normalization", "PF.batch_normalization")),
    **dict.fromkeys(("layernorm", "ln"), ("layer_normalization", "PF.layer_normalization")),
    **dict.fromkeys(("groupnorm", "gn"), ("group_normalization", "PF.group_normalization")),
    **dict.fromkeys(("instancenorm", "in"), ("instance_normalization", "PF.instance_normalization")),
    **dict.fromkeys(("maxpool", "maxpooling"), ("max_pooling", "F.max_pooling")),
    **dict.fromkeys(("avgpool", "averagepool", "avgpooling", "meanpool"), ("average_pooling", "F.average_pooling")),
    **dict.fromkeys(("globalavgpool", "adaptiveavgpool"), ("global_average_pooling", "F.global_average_pooling")),
    **dict.fromkeys(("embedding", "lookup"), ("embed", "PF.embed")),
    **dict.fromkeys(("upsample", "resize", "interpolation"), ("interpolate",)),
    **dict.fromkeys(("multiheadattention", "mha", "attention"), ("multi_head_attention", "PF.multi_head_attention")),
    # losses
    **dict.fromkeys(("mse", "mseloss", "meansquarederror", "l2loss"), ("squared_error", "F.squared_error")),
    **dict.fromkeys(("mae", "l1loss", "meanabsoluteerror"), ("absolute_error", "F.absolute_error")),
    **dict.fromkeys(
        ("crossentropy", "crossentropyloss", "softmaxwithloss"), ("softmax_cross_entropy", "F.softmax_cross_entropy")
    ),
    **dict.fromkeys(("nll", "nllloss"), ("categorical_cross_entropy",)),
    **dict.fromkeys(("bce", "bceloss"), ("binary_cross_entropy",)),
    **dict.fromkeys(("bcewithlogits", "bcewithlogitsloss"), ("sigmoid_cross_entropy",)),
    **dict.fromkeys(("kldiv", "kldivloss"), ("kl_multinomial",)),
    **dict.fromkeys(("huber", "smoothl1loss"), ("huber_loss",)),
    # arithmetic and shapes
    **{name: (f"{name}2",) for name in ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "mod")},
    "subtract": ("sub2",), "multiply": ("mul2",), "divide": ("div2",), "power": ("pow2",), "fmod": ("mod2",),
    "cat": ("concatenate",), "concat": ("concatenate",), "permute": ("transpose",), "view": ("reshape",),
    "unsqueeze": ("expand_dims",), "bmm": ("batch_matmul",), "mm": ("matmul",), "clamp": ("clip",),
    "ravel": ("flatten",), "repeat": ("tile",), "roll": ("shift",), "detach": ("unlink",), "topk": ("top_k_data",),
    "zeros": ("constant", "ConstantInitializer"), "ones": ("constant", "ConstantInitializer"), "full": ("constant",),
    "normal": ("randn",), "uniform": ("rand",),
    "absolute": ("abs",), "negative": ("mul_scalar",), "silu": ("swish",), "hardswish": ("swish",), "eye": ("eye_like",),
    "hardtanh": ("hard_tanh",), "hardsigmoid": ("hard_sigmoid",), "logsigmoid": ("log_sigmoid",),
    "leakyrelu": ("leaky_relu",), "logsoftmax": ("log_softmax",), "inverse": ("batch_inv",), "det": ("batch_det",),
    # solvers
    "rmspropoptimizer": ("RMSprop",), "sgdmomentum": ("Momentum",), "amsgradoptimizer": ("AMSGRAD",),
    "optim": ("solvers",), "optimizer": ("solvers",), "optimizers": ("solvers",),
    # the package and its backends
    "gpu": ("cuda", "cudnn"), "nvidia": ("cuda",), "numpy": ("reference",), "host": ("cpu",),
    **dict.fromkeys(("tensor", "array", "parameter", "placeholder"), ("Variable",)),
    "ndarray": ("NdArray",), "device": ("Context",), "manualseed": ("seed",), "nograd": ("no_grad",),
    "save": ("save_parameters",), "load": ("load_parameters",), "model": ("Module",), "layer": ("Module",),
    # arguments
    **dict.fromkeys(("lr", "learningrate", "stepsize", "eta", "alpha"), ("lr", "alpha", "eta", "init_lr")),
    "rate": ("lr", "alpha", "eta", "init_lr", "p"),
    "bias": ("with_bias",), "usebias": ("with_bias",), "padding": ("pad",), "strides": ("stride",),
    "kernelsize": ("kernel",), "ksize": ("kernel",), "filters": ("outmaps",), "outchannels": ("outmaps",),
    "outfeatures": ("n_outmaps",), "units": ("n_outmaps",), "groups": ("group",), "dim": ("axis", "axes"),
    "keepdim": ("keepdims", "keep_dims"), "keepdims": ("keep_dims",), "axis": ("axes",), "epsilon": ("eps",),
    "momentum": ("decay_rate",), "training": ("batch_stat",), "train": ("batch_stat",), "dropout": ("p",),
    "weightdecay": ("wd",), "requiresgrad": ("need_grad",), "numembeddings": ("n_inputs",), "slope": ("alpha",),
    "betas": ("beta1",), "inputs": ("inp", "x"), "input": ("inp", "x"), "weightinit": ("w_init",), "dilations": ("dilation",),
}
# fmt: on
#: Modules of ``nn_core.layers``, likewise.
_LAYERS: Final[dict[str, str]] = {
    **dict.fromkeys(("dense", "fc", "fullyconnected", "innerproduct"), "Affine"),
    **dict.fromkeys(("convolution", "convolve"), "Conv"),
    **dict.fromkeys(("deconvolution", "convtranspose", "transposedconv", "upconv"), "Deconv"),
    **dict.fromkeys(("depthwiseconvolution", "separableconv"), "DepthwiseConv"),
    **dict.fromkeys(("batchnormalization", "bn"), "BatchNorm"),
    **dict.fromkeys(("layernormalization", "ln"), "LayerNorm"),
    **dict.fromkeys(("groupnormalization", "gn"), "GroupNorm"),
    **dict.fromkeys(("instancenormalization", "in"), "InstanceNorm"),
    "maxpooling": "MaxPool",
    **dict.fromkeys(("avgpool", "averagepooling", "avgpooling", "meanpool"), "AveragePool"),
    **dict.fromkeys(("globalavgpool", "adaptiveavgpool", "globalaveragepooling"), "GlobalAveragePool"),
    **dict.fromkeys(("globalmaxpooling", "adaptivemaxpool"), "GlobalMaxPool"),
    "embedding": "Embed",
    **dict.fromkeys(("mha", "attention"), "MultiHeadAttention"),
    "silu": "Swish",
}
_ENDS: Final = ("1d", "2d", "3d")
#: The module to name for functions that were looked for in the package itself.
_PLACES: Final = {"PF": "nn_core.parametric_functions", "F": "nn_core.functions"}


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about a name that does not exist: what the field's other word for it is here, or the
    closest. Names of Python's protocols, which tools ask any object for, have no other word.
    """
    if name.startswith("__") and name.endswith("__"):
        return ""
    from difflib import get_close_matches  # only where a name is wrong

    names = [other for other in known if other != name]  # it may be known, and out of order
    close = [*meant(name, names), *get_close_matches(name, names, 1)]
    return f"; did you mean {close[0]!r}?" if close else ""


def meant(name: str, known: Collection[str]) -> list[str]:
    """Return the names in `known` that correspond to a name of another framework, best match first."""
    plain = plain_name(name)
    candidates = (*_SYNONYMS.get(plain, ()), _LAYERS.get(plain, ""), *_same_letters(plain, known))
    found = [own for own in candidates if own in known]
    if found or "Variable" not in known:
        return found
    parts = [own.split(".") for own in _SYNONYMS.get(plain, ()) if "." in own]
    return [f"{_PLACES[module]}.{function}" for module, function in parts]


def plain_name(name: str) -> str:
    """Return a name in lower case, without underscores and ends as in ``conv2d``."""
    plain = name.lower().replace("_", "")
    for end in _ENDS:
        plain = plain.removesuffix(end)
    return plain


def _same_letters(name: str, known: Collection[str]) -> list[str]:
    """Names that differ only in capitals and underscores, or in the namespace in front."""
    plain = name.lower().replace("_", "")
    return [own for own in known if own.rpartition(".")[2].lower().replace("_", "") == plain]
