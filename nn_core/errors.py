"""The exceptions of nn_core: one tree, documented in docs/errors.md.

Every message reads ``<function>: <what must hold>, got <what was given>``, then the shapes of the inputs, then a hint
where a likely cause is known.
"""

import re
from collections.abc import Iterator
from errno import ENOENT, ENOSPC
from typing import Any, Final

#: Characters that a terminal acts on or that change the order of others; line ends and tabs are kept.
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
#: Longest message about a file: its beginning and its end, which may be a hint.
_LONGEST_START, _LONGEST_END = 1500, 500
#: Words of more characters are cut; of them the ends stay. Paths have at most 4,096.
_LONG_WORD: Final = re.compile(r"\S{4200,}")
_WORD_ENDS: Final = 200


class NNCoreError(Exception):
    """Root of every exception that nn_core raises on purpose.

    In notebooks the traceback has the frames of the program, and the one of nn_core that raised it; ``traceback.print_exc()``
    has all of them.
    """

    def __init__(self, *args: object, **attributes: Any) -> None:
        # texts of messages may come from files: names of parameters, of states, of axes
        super().__init__(*(_with_short_words(escaped(arg)) if isinstance(arg, str) else arg for arg in args), **attributes)

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows."""
        return _short_traceback(self)


class ShapeError(NNCoreError, ValueError, RuntimeError):
    """The shapes of the inputs do not fit each other or the arguments; a RuntimeError, as NNabla raises."""


class DTypeError(NNCoreError, TypeError):
    """An array or a context has a dtype that the function does not take."""


class ArgumentError(NNCoreError, ValueError, RuntimeError):
    """An argument has a value outside its range, or a name that does not exist; a RuntimeError, as NNabla raises."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument has another type than it must have, such as a text in place of a number; a TypeError, as Python raises."""


class IntegerRangeError(ArgumentTypeError, OverflowError):
    """A number that is too large for an integer of 64 bits, such as 1e30 or infinity; an OverflowError, as Python raises."""


class InputTypeError(ArgumentTypeError, AssertionError):
    """An input of a function is no Variable and no NdArray; an AssertionError, as NNabla raises."""


class SignatureError(NNCoreError, TypeError):
    """The arguments of a call do not fit the signature: one is missing, or has a name that does not exist."""


class UnknownAttributeError(NNCoreError, AttributeError):
    """An attribute that an object does not have was read or assigned."""


class UnknownNameError(NNCoreError, KeyError):
    """A name that a container does not have was looked up."""

    __str__ = Exception.__str__  # KeyError shows the representation of the text


class GraphError(NNCoreError, RuntimeError):
    """The computation graph cannot do what was asked: cleared data, no gradient, a cycle."""


class HostMemoryError(NNCoreError, MemoryError):
    """An array does not fit into the memory of the host; the graph and its values are as before."""


class SpecError(NNCoreError, ValueError):
    """A function specification (YAML) is wrong; the message starts with file and line."""


class FileFormatError(NNCoreError, ValueError):
    """A file is damaged, of an unknown format, or lacks what was asked for; nothing was changed.

    The message may repeat names of the file: control characters in it are escaped, and a long one is cut.
    """

    def __init__(self, text: object = "") -> None:
        super().__init__(cut(escaped(str(text))))


def quoted(text: object, longest: int = 60) -> str:
    """Return text from a file as it may stand in a message: between quotes, on one line, and cut.

    Example:
        >>> from nn_core.ext import quoted
        >>> quoted("a\\x1b[31m" + "b" * 100, 10)
        "'a\\\\x1b[31mbbbb...'"
    """
    plain = str(text)
    return ascii(plain) if len(plain) <= longest else f"{ascii(plain[:longest])[:-1]}...'"


def one_line(error: object) -> str:
    """Return what an exception says as it may stand in a message: on one line, unless it is one of nn_core.

    Parsers repeat lines of the file that they read, and such a line could look like a hint of ours.

    Example:
        >>> from nn_core.ext import one_line
        >>> one_line(ValueError("no number:\\n  hint: pip install it"))
        'no number: hint: pip install it'
    """
    text = str(error)
    return text if isinstance(error, NNCoreError) else " ".join(text.split())


def escaped(text: str) -> str:
    """Return `text` with escapes for characters that a terminal would act on."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def _with_short_words(text: str) -> str:
    """Return `text` with the middle left out of words that no reader could take in, such as a name of 50,000 letters."""
    return _LONG_WORD.sub(lambda found: f"{found[0][:_WORD_ENDS]}[...]{found[0][-_WORD_ENDS:]}", text)


def cut(text: str) -> str:
    """Return `text` without the middle of one that is too long to be read."""
    if len(text) <= _LONGEST_START + _LONGEST_END:
        return text
    return f"{text[:_LONGEST_START]} [...] {text[-_LONGEST_END:]}"


class MissingFileError(NNCoreError, FileNotFoundError):
    """A file that is to be read, or the folder of one that is to be written, does not exist."""

    __str__ = Exception.__str__  # FileNotFoundError shows a number and the file beside the text

    def __init__(self, text: str, filename: str) -> None:
        super().__init__(text)
        self.errno, self.filename = ENOENT, filename

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.filename)


class DiskFullError(NNCoreError, OSError):
    """There is no room for a file; what was there before is unchanged."""

    __str__ = Exception.__str__  # OSError shows a number and the file beside the text

    def __init__(self, text: str, filename: str) -> None:
        super().__init__(text)
        self.errno, self.filename = ENOSPC, filename

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.filename)


class PluginError(NNCoreError, RuntimeError):
    """A plugin broke a rule of registration, or failed while it was imported or loaded."""


class BackendNotFoundError(NNCoreError, LookupError, ImportError):
    """No installed plugin provides the backend that was named; an ImportError, as that of a missing package."""


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


def _short_traceback(error: BaseException) -> list[str]:
    """Return the lines of a traceback without frames of nn_core, except the last one, and of the notebook itself."""
    import traceback  # only where something went wrong

    frames = list(_frames_of(error))
    shown = [frame for is_ours, frame in frames[:-1] if not is_ours] + [frame for _, frame in frames[-1:]]
    text = ["Traceback (most recent call last):", *map(str.rstrip, traceback.format_list(shown))]
    text += [line.rstrip() for line in traceback.format_exception_only(error)]
    cause = error.__cause__
    if cause is not None and not [is_ours for is_ours, _ in _frames_of(cause)][-1]:  # of code of the program
        text.append(f"  caused by {traceback.format_exception_only(cause)[-1].rstrip()}")
    return text


def _frames_of(error: BaseException) -> Iterator[tuple[bool, Any]]:
    """Iterate over whether a frame is of nn_core or an extension, and the frame."""
    import traceback

    trace = error.__traceback__
    summaries = iter(traceback.extract_tb(trace))
    while trace is not None:
        package = str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        summary = next(summaries)
        if package not in ("IPython", "ipykernel"):
            yield package == "nn_core" or package.startswith("nn_ext_"), summary
        trace = trace.tb_next
