"""Exchange all parameters at once, between predictions of other threads and never during one."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import numpy as np

from nn_core.engine.error_messages.refusal import door, fitted
from nn_core.engine.graph.parameter_sources import HasParameters, ParameterSource, parameters_of
from nn_core.errors import ArgumentError
from nn_core.files import Entry, PathOrFile, naming_file
from nn_core.io.parameters import LoadReport, Parameters, load_into, read_parameters
from nn_core.variable import Variable


class Gate:
    """Lets many threads in at once, or one alone, which goes first when it waits."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        #: how many blocks each thread has open
        self._inside: dict[int, int] = {}
        self._alone: int | None = None
        self._waiting = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Yield a block that others may be in as well."""
        me = threading.get_ident()
        with self._changed:
            # who is inside already does not wait for a thread that waits for it
            if me not in self._inside and self._alone != me:
                self._changed.wait_for(lambda: self._alone is None and not self._waiting)
            self._inside[me] = self._inside.get(me, 0) + 1
        try:
            yield
        finally:
            with self._changed:
                self._inside[me] -= 1
                if not self._inside[me]:
                    del self._inside[me]
                self._changed.notify_all()

    @contextmanager
    def alone(self, function: str) -> Iterator[None]:
        """Yield a block that no other thread is in; waits until those that are have left."""
        me = threading.get_ident()
        with self._changed:
            if me in self._inside:
                raise ArgumentError(f"{function}: must be called outside of hold_parameters(), got a call inside of it")
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: self._alone is None and not self._inside)
                self._alone = me
            finally:
                self._waiting -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._alone = None
                self._changed.notify_all()

    def reset(self) -> None:
        """Let everybody in: a forked child has none of the other threads."""
        self.__init__()  # type: ignore[misc]  # the same object, which functions have


_GATE: Final = Gate()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_GATE.reset)


@fitted
def hold_parameters() -> AbstractContextManager[None]:
    """Keep `swap_parameters` of other threads waiting inside a ``with`` block, so that all in it sees the same parameters.

    Threads may be in such blocks at the same time, and blocks may be nested. A block costs about 10 us.

    Example:
        >>> y = PF.affine(nn.Variable((8, 20)), 10)
        >>> with nn.hold_parameters():
        ...     y.forward(clear_buffer=True)
    """
    return _GATE.shared()


@door
def swap_parameters(
    source: PathOrFile | Mapping[str, Variable] | HasParameters,
    params: ParameterSource | None = None,
    extension: str | None = None,
) -> LoadReport:
    """Give parameters the values of a file, all at once for threads that compute inside `hold_parameters`.

    The file is read and compared first, while others go on. Then it waits until nobody is in such a block, and writes the
    values in place: graphs stay as they are. Computations outside of such blocks may see parameters of both.

    Args:
        source: Path of a file of parameters, a binary file, variables by name, or a module.
        params: The parameters to change: variables by name, a module, or the name of a scope; None: all of the current scope.
        extension: Format of an open file, for example ".h5"; a path tells it by itself.

    Returns:
        Which parameters got other values: all of them.

    Raises:
        ArgumentError: when the names are not exactly those of `params`; inside of `hold_parameters` of the same thread.
        ShapeError: when a parameter has another shape.
        FileFormatError, MissingFileError: as `load_parameters`. Whatever is raised, all parameters stay as they are.

    Example:
        >>> y = PF.affine(nn.Variable((8, 20)), 10)
        >>> nn.save_parameters("network.h5")
        >>> nn.swap_parameters("network.h5").loaded
        ('affine/W', 'affine/b')
    """
    if isinstance(source, (Mapping, HasParameters)):
        given = parameters_of("swap_parameters", source, argument="source")
        new = Parameters("source", {name: Entry(np.array(value.data.get_data("r"))) for name, value in given.items()})
    else:
        is_path = isinstance(source, (str, os.PathLike))
        new = read_parameters("swap_parameters", source, None if is_path else extension)
    own = parameters_of("swap_parameters", params)
    with naming_file(source), _GATE.alone("swap_parameters"):
        return load_into("swap_parameters", new, own, own.get, _never, lambda key: False, strict=True)


def _never(name: str, parameter: Variable) -> None:
    raise AssertionError(name)  # strict loading refuses what it would have to create
