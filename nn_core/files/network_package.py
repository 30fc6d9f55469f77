"""The door to files of networks: who reads them is a package of its own, and what is missing without it."""

from importlib import import_module
from typing import Any, Final

from nn_core.errors import BackendNotFoundError

#: The package that reads networks, and what installs it.
PACKAGE: Final = "nn_ext_nnp"
HINT: Final = "hint: pip install nn-ext-nnp"


def network_part(module: str, name: str) -> Any:
    """Return the object `name` of a module of the package that reads networks.

    Raises:
        BackendNotFoundError: when it is not installed.
    """
    try:
        found = import_module(f"{PACKAGE}.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in (PACKAGE, "google"):
            raise
        raise BackendNotFoundError(
            f"files of networks: must be read and written by the package nn-ext-nnp, got no module {error.name}\n  {HINT}"
        ) from error
    return getattr(found, name)
