"""The choice of the library that reads and writes a kind of files."""

from collections.abc import Mapping
from importlib.util import find_spec

from nn_core.errors import ArgumentError


class LibraryChoice:
    """A choice among backends by name, of those whose library is installed.

    Args:
        modules: By name of the backend, the module that it needs.
        hint: What to do when none is installed.
    """

    def __init__(self, modules: Mapping[str, str], hint: str = "") -> None:
        self._modules = modules
        self._hint = hint
        self._name: str | None = None

    def get_available_backends(self) -> list[str]:
        """Return the names of the backends whose library is installed."""
        return [name for name, module in self._modules.items() if find_spec(module) is not None]

    @property
    def backend(self) -> str | None:
        """Name of the chosen backend; None: the usual one."""
        return self._name

    @backend.setter
    def backend(self, name: str | None) -> None:
        if name is not None and name not in self.get_available_backends():
            known = ", ".join(self.get_available_backends()) or self._hint
            raise ArgumentError(f"set_backend: backend must be one that is available ({known}), got {name!r}")
        self._name = name
