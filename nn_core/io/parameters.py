"""Save parameters to files and load them: HDF5 as NNabla lays it out, NPZ, and safetensors."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.error_messages.refusal import door, fitted
from nn_core.engine.graph.parameter_sources import ParameterSource, parameters_of
from nn_core.engine.runtime.holders import modules_with_parameters, where_parameters_are
from nn_core.errors import ArgumentError, FileFormatError, ShapeError
from nn_core.files import Entry, PathOrFile, extension_of, naming_file, read_entries, write_entries, written_extension
from nn_core.files.network_package import HINT
from nn_core.io.checkpoints import parameters_among
from nn_core.io.renaming import Rename, renamed
from nn_core.logger import logger
from nn_core.parametric_functions.freezing import FROZEN
from nn_core.parametric_functions.scope import get_current_parameter_scope, get_parameters, set_parameter
from nn_core.typing import Array, Shape
from nn_core.variable import Variable

#: Formats of NNabla that hold networks, and parameters inside them.
_NETWORK_FORMATS: Final = (".nnp", ".nntxt", ".prototxt", ".protobuf", ".pb")


@door
def save_parameters(path: PathOrFile, params: ParameterSource | None = None, extension: str | None = None) -> None:
    """Write parameters to a file, which takes the place of an older one only when it is complete.

    Args:
        path: Path that ends in .h5, .npz or .safetensors, or a binary file open for writing.
        params: Variables by name, a module, or the name of a scope; None: all parameters of the current scope, trained or
            not.
        extension: Format of an open file, or of a path without an extension; None: that of the path.

    Raises:
        ArgumentError: when the format is another one, contradicts the path, or is not given for an open file; when what is
            to be saved are not Variables by name.
        MissingFileError: when the folder does not exist, also a ``FileNotFoundError``.

    Example:
        >>> y = PF.affine(nn.Variable((8, 20)), 10)
        >>> nn.save_parameters("network.h5")
        >>> nn.load_parameters("network.h5").loaded
        ('affine/W', 'affine/b')
    """
    format_name = written_extension("save_parameters", path, extension)
    chosen = parameters_of("save_parameters", params)
    if not chosen:
        where = where_parameters_are(get_current_parameter_scope())
        logger.warning("save_parameters: there must be parameters to save, got none%s", where)
    entries = {
        name: Entry(variable.data.get_data("r"), {"need_grad": bool(variable.need_grad), "index": index})
        for index, (name, variable) in enumerate(chosen.items())
    }
    write_entries(path, entries, format_name)


@runtime_checkable
class Loads(Protocol):
    """A module, which knows where its parameters from files belong."""

    def walk(self) -> Iterator[tuple[str, Any]]:
        """Iterate over the modules inside it."""
        ...

    def load_parameters(
        self, path: PathOrFile, *, extension: str | None, strict: bool | None, rename: Rename | None
    ) -> "LoadReport":
        """Read parameters from a file."""
        ...


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The outcome of loading a file, by name of the parameter.

    Attributes:
        loaded: Parameters that took over the values of the file.
        created: Parameters that were made, since there were none of these names.
        missing: Parameters that are not in the file; they keep their values.
        unexpected: Parameters of the file that were left out, since there are none of these names.
        reshaped: Parameters that were left out because of their shapes, each with its own shape and that in the file.

    Example:
        >>> y = PF.affine(nn.Variable((2, 3)), 4, name="first")
        >>> nn.save_parameters("first.npz")
        >>> y = PF.affine(nn.Variable((2, 4)), 5, name="second")
        >>> report = nn.load_parameters("first.npz", strict=False)
        >>> report.loaded, report.missing
        (('first/affine/W', 'first/affine/b'), ('second/affine/W', 'second/affine/b'))
    """

    loaded: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    reshaped: Mapping[str, tuple[Shape, Shape]] = field(default_factory=dict)

    @property
    def is_exact(self) -> bool:
        """Whether the file has exactly the parameters that there were, in their shapes."""
        return not (self.created or self.missing or self.unexpected or self.reshaped)

    def __str__(self) -> str:
        parts = [f"{len(self.loaded) + len(self.created)} loaded"]
        for what, names in (("of them new", self.created), ("missing", self.missing), ("unexpected", self.unexpected)):
            parts += [f"{len(names)} {what}: {_listed(names)}"] if names else []
        if self.reshaped:
            shapes = [f"{name} {have} (file: {got})" for name, (have, got) in self.reshaped.items()]
            parts.append(f"{len(shapes)} reshaped: {_listed(shapes)}")
        return "; ".join(parts)


@door
def load_parameters(
    path: PathOrFile,
    proto: Any = None,
    needs_proto: bool = False,
    extension: str | None = ".nntxt",
    strict: bool | None = None,
    params: ParameterSource | None = None,
    rename: Rename | None = None,
) -> LoadReport:
    """Read parameters from a file into the current scope.

    Parameters that exist get the values of the file, in place; the others are made. The file says which are trained.
    When anything about the file is wrong, all parameters stay as they are.

    Args:
        path: Path of a file that ``save_parameters()`` or NNabla wrote, or a binary file open for reading.
        proto: Must be None; networks are loaded by ``nn_core.utils.load``.
        needs_proto: Must be False, likewise.
        extension: Format of an open file, for example ".h5"; a path tells it by itself.
        strict: True: the scope must have the parameters of the file, in their shapes, and no others. False: parameters
            of other shapes are left as they are. None, as NNabla: another shape is an error; when the scope lacks
            parameters of the file and the file lacks some of the scope, the log has a warning with both.
        params: What to give the values to: a module, Variables by name, or the name of a scope. Only a module that was never
            called gets parameters that it does not have. None: the current scope.
        rename: New names of scopes and parameters by those in the file: ``{"backbone": "encoder"}``; ``{"": "encoder"}``
            puts all into a scope, and ``{"encoder": ""}`` takes one away. Or a function of a name that returns the new one, or
            None to leave it out.

    Returns:
        Which parameters were loaded, created, missing in the file, and of other shapes.

    Raises:
        ArgumentError: when the format is not .h5, .npz or .safetensors, a name is that of a scope, or `strict` is True
            and the names differ; when `rename` has a name that the file does not have, or gives one name twice.
        FileFormatError: when the file is damaged, of another format, or contradicts itself.
        ShapeError: when a parameter exists with another shape, unless `strict` is False.
        MissingFileError: when there is no such file, also a ``FileNotFoundError``.

    Example:
        >>> import io
        >>> w = nn.Variable((2, 3), need_grad=True)
        >>> file = io.BytesIO()
        >>> nn.save_parameters(file, {"w": w}, extension=".npz")
        >>> print(nn.load_parameters(io.BytesIO(file.getvalue()), extension=".npz"))
        1 loaded; 1 of them new: w
    """
    if proto is not None or needs_proto:
        raise ArgumentError(
            "load_parameters: proto must be None and needs_proto False, got a request for a network\n"
            "  hint: load_parameters(path, params=module) reads the parameters of a module"
        )
    is_path = isinstance(path, (str, os.PathLike))
    given = Path(path).suffix if isinstance(path, (str, os.PathLike)) else extension or ""
    if given.lower() in _NETWORK_FORMATS and PLUGINS.offer("file_formats", given.lower()) is None:
        raise ArgumentError(f"load_parameters: nn-ext-nnp must be installed to read {given}, got none\n  {HINT}")
    extension = None if is_path else extension
    if isinstance(params, Loads):
        return params.load_parameters(path, extension=extension, strict=strict, rename=rename)
    with naming_file(path):
        source = read_parameters("load_parameters", path, extension, rename)
        if params is not None:
            chosen = parameters_of("load_parameters", params)
            return load_into("load_parameters", source, chosen, chosen.get, _never, lambda key: False, strict)
        find = partial(_present, file=source.file)
        report = load_into("load_parameters", source, get_parameters(grad_only=False), find, set_parameter, strict=strict)
        if report.created and not report.loaded:
            _warn_of_modules(source.file, report)
    return report


def _never(name: str, parameter: Variable) -> None:
    raise AssertionError(name)  # nothing may be created


def _warn_of_modules(file: str, report: LoadReport) -> None:
    """Log that a module has the parameters that were made in the scope, where nothing reads them."""
    own = [type(module).__name__ for module, found in modules_with_parameters() if not found.keys().isdisjoint(report.created)]
    if own:
        logger.warning(
            "load_parameters: the parameters of %s must be in the current scope to get its values, got none: they were made "
            "there, and those of module %s stay as they are\n  hint: load_parameters() is also a method of the module",
            file,
            ", ".join(own),
        )


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a file.

    Attributes:
        file: Name of the file, for messages.
        entries: Values and attributes by name, in the order in which the parameters are to be made.
    """

    file: str
    entries: Mapping[str, Entry]


def read_parameters(function: str, path: PathOrFile, extension: str | None, rename: Rename | None = None) -> Parameters:
    """Read a file of parameters, under other names if asked to, and check that their names can be those of parameters.

    Raises:
        ArgumentError: when the extension is that of no format.
        FileFormatError: when the file is damaged, of another format, or contradicts itself.
    """
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else "the file"
    entries = parameters_among(name, read_entries(path, extension_of(function, path, extension)))
    entries = renamed(function, name, entries, rename)
    if not entries:
        logger.warning("%s: %s must hold parameters, got none%s", function, name, where_parameters_are())
    for key in entries:
        _require_own_place(key, entries, name)
        _require_index(key, entries[key].attributes.get("index", 0), name)
    in_order = sorted(entries, key=lambda key: entries[key].attributes.get("index", 0))
    return Parameters(name, {key: entries[key] for key in in_order})


def load_into(
    function: str,
    source: Parameters,
    own: Mapping[str, Variable],
    find: Callable[[str], Variable | None],
    create: Callable[[str, Variable], object],
    may_create: Callable[[str], bool] | None = None,
    strict: bool | None = None,
    refuse_unexpected: bool = True,
) -> LoadReport:
    """Let parameters take over the values of a file, all of them or, when an error is raised, none.

    Args:
        function: For messages.
        source: The file or archive that was read.
        own: The parameters that there are; those that the file does not have are missing.
        find: The parameter of a name, which may have several, or None.
        create: Puts a new parameter under a name.
        may_create: Whether a parameter may be put there; None: always.
        strict: True: anything that does not fit is an error; False: nothing is; None: all but missing parameters are.
        refuse_unexpected: With None: whether parameters that may not be created are an error.
    """
    found = {key: find(key) for key in source.entries}
    report = _compared(source.entries, own, found, may_create)
    _require_fitting(function, source.file, report, strict, refuse_unexpected)
    _take_over({key: entry for key, entry in source.entries.items() if key in report.loaded}, found)
    for key in report.created:
        fresh = parameter_of(source.entries[key])
        fresh.name = key.rpartition("/")[2]
        create(key, fresh)
    if strict is None and report.missing and (report.created or report.loaded):
        _warn_of_missing(function, source.file, report, may_create is None)
    return report


@fitted
def parameter_of(entry: Entry) -> Variable:
    """Return a new parameter with the values of an array of a file; it is to be trained unless the file says otherwise.

    It has a copy of the values, or the entry's own.

    Example:
        >>> from nn_core.ext import Entry, parameter_of
        >>> parameter_of(Entry(np.ones((2, 3)), {"need_grad": False}))
        <Variable((2, 3), float64, need_grad=False): 1 1 1 1 1 1>
    """
    need_grad = entry.attributes.get("need_grad")
    parameter = Variable(entry.values.shape, True if need_grad is None else bool(need_grad))
    parameter.data = NdArray.from_dlpack(entry.values) if entry.is_own else NdArray.from_numpy_array(entry.values)
    return parameter


def _take_over(entries: Mapping[str, Entry], found: Mapping[str, Variable | None]) -> None:
    """Give parameters the values of `entries`: all of them or, when Ctrl-C or an error comes in between, none."""
    before: list[tuple[Variable, Array, bool]] = []
    try:
        for key, entry in entries.items():
            parameter = found[key]
            assert parameter is not None
            before.append((parameter, np.array(parameter.data.get_data("r")), parameter.need_grad))
            parameter.d = np.asarray(entry.values)
            need_grad = entry.attributes.get("need_grad")
            if need_grad is not None and parameter.need_grad != bool(need_grad) and parameter not in FROZEN:
                parameter.need_grad = bool(need_grad)
    except BaseException:
        for parameter, values, need_grad in before:
            parameter.d = values
            if parameter.need_grad != need_grad:
                parameter.need_grad = need_grad
        raise


def _compared(
    entries: Mapping[str, Entry],
    own: Mapping[str, Variable],
    found: Mapping[str, Variable | None],
    may_create: Callable[[str], bool] | None,
) -> LoadReport:
    loaded: list[str] = []
    created: list[str] = []
    unexpected: list[str] = []
    reshaped: dict[str, tuple[Shape, Shape]] = {}
    for key, entry in entries.items():
        parameter = found[key]
        if parameter is None:
            (created if may_create is None or may_create(key) else unexpected).append(key)
        elif parameter.shape != entry.values.shape:
            reshaped[key] = (parameter.shape, entry.values.shape)
        else:
            loaded.append(key)
    covered = {parameter for parameter in found.values() if parameter is not None}
    missing = tuple(key for key, parameter in own.items() if parameter not in covered)
    return LoadReport(tuple(loaded), tuple(created), missing, tuple(unexpected), reshaped)


def _require_fitting(function: str, file: str, report: LoadReport, strict: bool | None, refuse_unexpected: bool) -> None:
    if strict and not report.is_exact:
        only_shapes = not (report.created or report.missing or report.unexpected)
        error = ShapeError if only_shapes else ArgumentError
        raise error(
            f"{function}: {file} must have exactly the parameters that there are, in their shapes, got {report}\n"
            "  hint: strict=False takes what fits"
        )
    if strict is None and report.reshaped:
        key, (have, got) = next(iter(report.reshaped.items()))
        raise ShapeError(
            f"{function}: parameter {key!r} must keep its shape {have}, got {got} in {file}\n"
            "  hint: strict=False leaves such parameters as they are"
        )
    if strict is None and refuse_unexpected and report.unexpected:
        raise ArgumentError(
            f"{function}: there must be a parameter {report.unexpected[0]!r} to load, got none; {file} has "
            f"{len(report.unexpected)} such: {_listed(report.unexpected)}\n"
            "  hint: strict=False leaves them out, rename= gives them other names"
        )


def _warn_of_missing(function: str, file: str, report: LoadReport, is_scope: bool) -> None:
    """Log what may be a mistake: for scopes, which files may fill one after the other, only when names may be misspelt."""
    if not is_scope or report.created:
        logger.warning(
            "%s: %s must have all parameters, got none for some, which keep their values: %s (hint: strict=True makes "
            "this an error, strict=False silences it)",
            function,
            file,
            report,
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _require_index(key: str, index: object, file_name: str) -> None:
    if not isinstance(index, int):
        raise FileFormatError(f"{file_name}: attribute index of {key} must be a whole number, got {index!r}")


def _require_own_place(key: str, entries: Mapping[str, Entry], file_name: str) -> None:
    parts = key.split("/")
    if not all(parts):
        raise FileFormatError(f"{file_name}: parameters must have names, got {key!r}")
    if any("/".join(parts[:n]) in entries for n in range(1, len(parts))):
        raise FileFormatError(f"{file_name}: a parameter must not be inside another one, got {key!r}")


def _present(key: str, file: str) -> Variable | None:
    """Return the parameter called `key` in the current scope, None if there is none; refuses a name that cannot be one."""
    found: Any = get_current_parameter_scope()
    for part in key.split("/"):
        if isinstance(found, Variable):
            raise ArgumentError(f"load_parameters: {file} must not put {key!r} inside a parameter, got it there")
        found = found.get(part)
        if found is None:
            return None
    if not isinstance(found, Variable):
        raise ArgumentError(f"load_parameters: {file} must not name a scope, got {key!r}")
    return found
