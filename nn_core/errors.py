"""The exceptions of nn_core: one tree, documented in docs/errors.md.

Every message reads ``<function>: <what must hold>, got <what was given>``, then the shapes of the inputs, then a hint
where a likely cause is known.
"""

from errno import ENOENT
from typing import Any


class NNCoreError(Exception):
    """Root of every exception that nn_core raises on purpose."""


class ShapeError(NNCoreError, ValueError):
    """The shapes of the inputs do not fit each other or the arguments."""


class DTypeError(NNCoreError, TypeError):
    """An array or a context has a dtype that the function does not take."""


class ArgumentError(NNCoreError, ValueError):
    """An argument has a value outside its range, or a name that does not exist."""


class SignatureError(NNCoreError, TypeError):
    """The arguments of a call do not fit the signature: one is missing, or has a name that does not exist."""


class UnknownAttributeError(NNCoreError, AttributeError):
    """An attribute that an object does not have was read or assigned."""


class UnknownNameError(NNCoreError, KeyError):
    """A name that a container does not have was looked up."""

    __str__ = Exception.__str__  # KeyError shows the representation of the text


class GraphError(NNCoreError, RuntimeError):
    """The computation graph cannot do what was asked: cleared data, no gradient, a cycle."""


class SpecError(NNCoreError, ValueError):
    """A function specification (YAML) is wrong; the message starts with file and line."""


class FileFormatError(NNCoreError, ValueError):
    """A file is damaged, of an unknown format, or lacks what was asked for; nothing was changed."""


class MissingFileError(NNCoreError, FileNotFoundError):
    """A file that is to be read, or the folder of one that is to be written, does not exist."""

    __str__ = Exception.__str__  # FileNotFoundError shows a number and the file beside the text

    def __init__(self, text: str, filename: str) -> None:
        super().__init__(text)
        self.errno, self.filename = ENOENT, filename

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.filename)


class PluginError(NNCoreError, RuntimeError):
    """A plugin broke a rule of registration, or failed while it was imported or loaded."""


class BackendNotFoundError(NNCoreError, LookupError):
    """No installed plugin provides the backend that was named."""


class BackendUnavailableError(NNCoreError, RuntimeError):
    """The backend is installed, and cannot run here: no device, missing library, old driver."""


class KernelNotFoundError(NNCoreError, LookupError):
    """No backend of the context runs this function; the message lists every refusal."""


class FallbackError(NNCoreError, RuntimeError):
    """Strict mode: a function would run below the first choice of the context."""


class CommunicationError(NNCoreError, RuntimeError):
    """Processes that train together lost each other: one is missing, failed, or makes another call than the rest."""


class LostRankError(CommunicationError):
    """A process that trains together with this one has died, and the rest may continue; see ``Communicator.repeated``."""
