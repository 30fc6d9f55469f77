"""An import hook that finds nn_core under NNabla's names."""

import logging
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module, util
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType, TracebackType

import nn_core
from nn_core.compat.substitutes import ATTRIBUTES, RENAMED, SUBSTITUTES, substitute
from nn_core.errors import BackendNotFoundError, NNCoreError
from nn_core.ext_utils import import_extension_module

#: As logger of nn_core, which a program may replace or silence by its own name.
_logger = logging.getLogger("nn_core")

_CORE = "nnabla"
_EXTENSIONS = "nnabla_ext"


def install() -> None:
    """Let this process import nn_core as ``nnabla`` and its extensions as ``nnabla_ext``; a second call does nothing.

    The names win over an installed NNabla. An exception that nobody catches is followed by advice when it is about a
    name of NNabla that nn_core does not have.

    Raises:
        ImportError: when NNabla itself is already imported; two packages cannot share the name.
    """
    if any(isinstance(finder, _Aliases) for finder in sys.meta_path):
        return
    _refuse_a_second_nnabla()
    sys.meta_path.insert(0, _Aliases())
    for name in ATTRIBUTES:
        setattr(nn_core, name, _core_module(f"{_CORE}.{name}"))
    sys.excepthook = _with_advice(sys.excepthook)


def advice(error: BaseException) -> str | None:
    """Return the line about what nn_core has instead of the name of NNabla that `error` missed; None for other errors."""
    name = _missed(error)
    return None if name is None else _hint(name)


class _Aliases(MetaPathFinder):
    """Finds ``nnabla.x`` as ``nn_core.x`` and ``nnabla_ext.x`` as the package of the extension x.

    A name that there is not is an error here and not left to the finders that follow: theirs would say less, or find
    the submodules of an installed NNabla.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that is there under another name; None for modules of other packages.

        Raises:
            ModuleNotFoundError: for a name of NNabla that nn_core does not have; the message says what to use instead.
        """
        package = fullname.partition(".")[0]
        if package == _CORE:
            module = _core_module(fullname)
            _share_loaded_modules(fullname)
        elif package == _EXTENSIONS:
            module = _extension_module(fullname)
        else:
            return None
        return ModuleSpec(fullname, _Existing(module), is_package=hasattr(module, "__path__"))


class _Existing(Loader):
    """Gives a module that is imported already, and leaves it as it was."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module under its own name."""
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Put back the spec, which the import system has replaced by that of the alias; the code ran long ago."""
        module.__spec__ = self._spec


def _refuse_a_second_nnabla() -> None:
    imported = sys.modules.get(_CORE)
    if imported is not None:
        where = getattr(imported, "__file__", None)
        raise ImportError(
            f"nn_core.compat.nnabla: must be imported before nnabla, got a process that has imported {where}"
            "\n  hint: make `import nn_core.compat.nnabla` the first import of the program, or use `nn-core run`",
            name=_CORE,
        )
    installed = PathFinder.find_spec(_CORE)
    if installed is not None:
        _logger.debug("nn_core.compat.nnabla: nn_core is imported as nnabla in place of %s", installed.origin)


def _core_module(fullname: str) -> ModuleType:
    real = RENAMED.get(fullname, nn_core.__name__ + fullname.removeprefix(_CORE))
    if util.find_spec(real) is None:
        message = f"import: nn_core must have the module, got {fullname!r}\n  {_hint(fullname)}"
        raise ModuleNotFoundError(message, name=fullname)
    return import_module(real)


def _extension_module(fullname: str) -> ModuleType:
    _, _, name = fullname.partition(".")
    if not name:
        return _extensions()
    extension, _, submodule = name.partition(".")
    try:
        module = import_extension_module(extension)
        return import_module(f"{module.__name__}.{submodule}") if submodule else module
    except BackendNotFoundError as error:
        raise ModuleNotFoundError(str(error), name=fullname) from error
    except NNCoreError as error:
        raise ImportError(str(error), name=fullname) from error


def _extensions() -> ModuleType:
    """Return the package ``nnabla_ext``, which holds what is imported from it and has no folder of its own."""
    module = ModuleType(_EXTENSIONS, "The extensions of nn_core under NNabla's names.")
    module.__path__ = []
    return module


def _share_loaded_modules(being_imported: str) -> None:
    """Give the modules that are loaded their second name at once.

    The import system binds a module that it loads to its name in the parent. For ``nnabla.grad`` this would put the
    module in the place of the function ``nn_core.grad``; what is in ``sys.modules`` is not bound again. The module that
    is being imported is left out: where the import system finds it there, it loads it once more by its own spec.
    """
    prefix = nn_core.__name__ + "."
    for name, module in list(sys.modules.items()):
        alias = _CORE + name.removeprefix(nn_core.__name__)
        if name.startswith(prefix) and alias != being_imported:
            sys.modules.setdefault(alias, module)


def _with_advice(
    show: Callable[[type[BaseException], BaseException, TracebackType | None], object],
) -> Callable[[type[BaseException], BaseException, TracebackType | None], None]:
    def show_with_advice(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        show(kind, error, traceback)
        line = advice(error)
        if line is not None and line not in str(error):
            sys.stderr.write(line + "\n")

    return show_with_advice


def _missed(error: BaseException) -> str | None:
    """Return the dotted name of NNabla that `error` says there is not."""
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        return _as_nnabla(error.obj.__name__, error.name)
    if isinstance(error, AttributeError):
        return _missed_member(error)
    if isinstance(error, ModuleNotFoundError):
        return _as_nnabla(error.name or "", None)
    # the name of `from module import name` is an attribute of the exception from Python 3.12 on only
    quoted = re.match(r"cannot import name '(\w+)'", str(error)) if isinstance(error, ImportError) else None
    return _as_nnabla(error.name or "", quoted[1]) if isinstance(error, ImportError) and quoted else None


def _missed_member(error: AttributeError) -> str | None:
    """Return the dotted name of a member that a class of NNabla has, and that of nn_core has not."""
    owner = error.obj if isinstance(error.obj, type) else type(error.obj)
    ours = [cls.__name__ for cls in owner.__mro__ if cls.__module__.startswith((f"{nn_core.__name__}.", "nn_ext_"))]
    members = tuple(f".{name}.{error.name}" for name in ours)
    return next((name for name in SUBSTITUTES if name.endswith(members)), None) if members else None


def _as_nnabla(module: str, name: str | None) -> str | None:
    package, dot, rest = module.partition(".")
    if package not in (nn_core.__name__, _CORE):
        return None
    return _CORE + dot + rest + (f".{name}" if name else "")


def _hint(name: str) -> str:
    instead = substitute(name) or f"nn_core has no {name.removeprefix(_CORE + '.')}; docs/from_nnabla.md lists what there is"
    return f"hint: {name}: {instead}"
