"""Contexts of extensions by NNabla's first name for them."""

from nn_core.context import Context
from nn_core.ext_utils import get_extension_context

__all__ = ["extension_context"]


def extension_context(extension_name: str = "cpu", **kw: object) -> Context:
    """Ask an extension for the context that it recommends; see `nn_core.ext_utils.get_extension_context`.

    Raises:
        ArgumentError: for a keyword that the extension does not take.
        BackendNotFoundError: when it is not installed.
    """
    return get_extension_context(extension_name, **kw)
