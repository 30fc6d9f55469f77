"""The plugin module: the offers of this package to nn_core."""

from pathlib import Path

from nn_core.ext import CompositeInfo, FunctionPackage, hookimpl
from nn_ext_contrib import operators

PLUGIN_API = 1
REQUIRES_CORE = ">=0.1,<0.2"

#: Functions made of others, by the modules that define them.
COMPOSITES = {
    "activation": ("maxout",),
    "loss": (
        "bernoulli_nll",
        "contrastive",
        "cross_covariance",
        "gaussian_kl_divergence",
        "gaussian_nll",
        "hinge",
        "triplet",
    ),
    "shape": ("depth2space", "im2col", "permutate", "select_item", "space2depth"),
}
__all__ = ["operators"]


@hookimpl
def nn_core_functions() -> list[FunctionPackage]:
    """Operators with kernels of their own."""
    return [FunctionPackage(spec=Path(__file__).with_name("functions.yaml"), samples="nn_ext_contrib.samples")]


@hookimpl
def nn_core_composites() -> list[CompositeInfo]:
    """Functions made of operators of nn_core and of this package."""
    return [
        CompositeInfo(name=name, target=f"nn_ext_contrib.functions.{module}:{name}")
        for module, names in COMPOSITES.items()
        for name in names
    ]
