"""Module: a part of a network that owns its parameters, and the modules inside it.

The modules inside a module are its attributes that are modules, and those in attributes that are lists, tuples or
dictionaries. Their parameters get the name of the attribute with an ``@`` in front, so that ``self.block = Block()`` in
a network gives ``@block/conv/W``, and ``self.layers = [Block()]`` gives ``@layers/@0/conv/W``.
"""

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from nn_core.core.copies import copied
from nn_core.core.evaluating import warn_of_training
from nn_core.core.loading import Member, load_members
from nn_core.core.members import SUBMODULE_MARK as SUBMODULE_MARK
from nn_core.core.members import Path, found_in, is_computed, place_of, require_no_set, take_over
from nn_core.core.memo import ParamMemo as ParamMemo
from nn_core.core.memo import insert_parent_name as insert_parent_name
from nn_core.core.names_elsewhere import NamesElsewhere
from nn_core.core.tree import html_tree, shown, tree
from nn_core.engine.error_messages.refusal import checked_flag, door, fitted_methods, require_call
from nn_core.engine.graph.node import Storage
from nn_core.engine.runtime.holders import HOLDERS
from nn_core.errors import ArgumentError
from nn_core.files import PathOrFile
from nn_core.io.parameters import LoadReport, read_parameters, save_parameters
from nn_core.io.renaming import Rename
from nn_core.parametric_functions.freezing import FROZEN, freeze
from nn_core.parametric_functions.scope import (
    OfModule,
    Scope,
    get_current_parameter_scope,
    get_parameters,
    parameter_scope,
    set_parameter,
)
from nn_core.variable import Variable

if TYPE_CHECKING:
    from typing_extensions import Self

#: Attributes of a module's own, besides those of the program.
_OWN: Final = frozenset({"_called", "_evaluates", "_frozen", "_grows", "_name", "_parent", "_scope", "_trained", "_training"})


@fitted_methods()
class Module(NamesElsewhere):
    """Base class of modules: a subclass makes its submodules in ``__init__`` and computes in ``call``.

    Parametric functions that methods of a module use keep their parameters in the module, whatever scope the method is
    called in. Variables that are attributes are parameters as well, if they are leaves and need a gradient when they are
    assigned or found; they stay parameters when ``need_grad`` is set to False. Modules and such variables may be kept in
    lists, tuples and dictionaries, also nested, which may be changed later.

    A module can be pickled and copied (``copy.deepcopy``) by value; a submodule is copied without its parent.

    Example:
        >>> import nn_core as nn
        >>> import nn_core.functions as F
        >>> import nn_core.parametric_functions as PF
        >>> class Block(Module):
        ...     def __init__(self, maps):
        ...         self.maps = maps
        ...     def call(self, x):
        ...         return F.relu(PF.convolution(x, self.maps, (3, 3), pad=(1, 1)))
        >>> class Net(Module):
        ...     def __init__(self):
        ...         self.first, self.rest = Block(4), [Block(8)]
        ...         self.scale = nn.Variable((1, 1, 1, 1), need_grad=True)
        ...     def call(self, x):
        ...         h = self.first(x)
        ...         for block in self.rest:
        ...             h = block(h)
        ...         return h * self.scale
        >>> net = Net()
        >>> net(nn.Variable((1, 3, 8, 8))).shape
        (1, 8, 8, 8)
        >>> list(net.get_parameters())
        ['@first/conv/W', '@first/conv/b', '@rest/@0/conv/W', '@rest/@0/conv/b', 'scale']
    """

    # Subclasses need not call __init__ of this class: the attributes are made when they are first used.
    _scope: Scope
    _kind_of_scope: ClassVar[type[Scope]] = OfModule
    _parent: "Module | None"
    _name: str
    _training: bool
    #: The storages of variables that were found to be parameters, so that frozen ones stay parameters.
    _trained: set[Storage]
    _called: bool
    #: Whether an attribute is a container to which modules may be added without notice.
    _grows: bool

    def __init_subclass__(cls, **options: Any) -> None:
        """Let the methods of a subclass keep parameters in the module, as NNabla does."""
        super().__init_subclass__(**options)
        for name, member in list(vars(cls).items()):
            if inspect.isfunction(member) and (not name.startswith("__") or name == "__init__"):
                setattr(cls, name, _in_own_scope(member))

    def __setattr__(self, name: str, value: Any) -> None:
        if is_computed(self, Module, name, value):
            return
        require_no_set(name, value, (Module, Variable))
        old = self.__dict__.get(name)
        object.__setattr__(self, name, value)
        self._release(old)
        members = list(found_in(value, (Module, Variable), (name,)))
        for path, found in members:
            self._take(path, found)
        if isinstance(value, (list, tuple, dict)) and (members or not value):
            self.__dict__["_grows"] = True

    def __delattr__(self, name: str) -> None:
        old = self.__dict__.get(name)
        object.__delattr__(self, name)
        self._release(old)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.__dict__["_called"] = True
        if "_grows" in self.__dict__:
            _ = self.submodules  # those that were added answer for this module from now on
        with parameter_scope("", scope=self.parameter_scope):
            try:
                result = self.call(*args, **kwargs)
            except TypeError:
                require_call(self, args, kwargs)
                raise
        if self.__dict__.pop("_evaluates", False):  # the first call shows it, and walking through a graph takes time
            warn_of_training(self, (args, kwargs), result)
        return result

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; a subclass defines it."""
        forward = inspect.getattr_static(type(self), "forward", None)
        hint = "\n  hint: rename forward() to call()" if inspect.isfunction(forward) else ""
        raise NotImplementedError(f"{type(self).__name__}: call() must be defined{hint}")

    # -- the tree of modules ---------------------------------------------------------------------------------------

    @property
    def parameter_scope(self) -> Scope:
        """The parameters of this module that its methods have made, without those of its submodules."""
        if "_scope" not in self.__dict__:
            object.__setattr__(self, "_scope", self._kind_of_scope())
            HOLDERS[id(self)] = self
        return self._scope

    @property
    def parent(self) -> "Module | None":
        """The module that has this one as an attribute."""
        return self.__dict__.get("_parent")

    @property
    def name(self) -> str:
        """Name of the attribute under which the parent has this module, such as "block" or "layers/@0"; "" for a root."""
        if self.parent is not None:
            _ = self.parent.submodules  # names its members: a list may have been changed
        return str(self.__dict__.get("_name", ""))

    @property
    def submodules(self) -> "OrderedDict[str, Module]":
        """The modules in the attributes of this one, by name; those in lists are called "layers/@0" and so on."""
        children: OrderedDict[str, Module] = OrderedDict()
        for path, value in self._held():
            if isinstance(value, Module) and not self._is_within(value):
                name = _name_of(path)
                if name in children:
                    raise ArgumentError(f"Module: submodules must have different names, got {name!r} twice")
                children[name] = value
                if value.parent is None or value.parent is self:
                    self._take(path, value)
        return children

    def children(self) -> "list[Module]":
        """Return the modules in the attributes of this one, in order."""
        return list(self.submodules.values())

    @property
    def training(self) -> bool:
        """Whether the network trains; setting it sets it for all submodules too. A submodule answers for its root.

        Layers of ``nn_core.layers`` follow it. Functions do not: F.dropout drops, and one warning says so.
        """
        if "_training" in self.__dict__:
            return self._training
        return True if self.parent is None else self.parent.training

    @training.setter
    def training(self, training: bool) -> None:
        training = checked_flag("training", training)
        self.__dict__.pop("_evaluates", None)
        for _, module in self.walk():
            object.__setattr__(module, "_training", training)
        if not training:
            self.__dict__["_evaluates"] = True

    def train(self, training: bool = True) -> "Self":
        """Let the network train, or not; return this module.

        Graphs that were built before stay as they are: build the graph of each mode by a call.

        Args:
            training: Whether it trains; see ``training``.

        Example:
            >>> net = nn.Sequential(nn.layers.Affine(3), nn.layers.Dropout(0.1))
            >>> net.train(False).training, net.train().training
            (False, True)
        """
        self.training = training
        return self

    def eval(self) -> "Self":
        """Let the network not train: dropout does nothing, and batches are normalized by moving statistics.

        Returns:
            This module.

        Example:
            >>> net = nn.Sequential(nn.layers.Affine(3), nn.layers.Dropout(0.1)).eval()
            >>> net(nn.Variable((8, 4))).parent.name
            'Affine'
        """
        return self.train(False)

    def is_root(self) -> bool:
        """Return whether no module has this one as an attribute."""
        return self.parent is None

    def get_scope_name(self) -> str:
        """Name of the scope of this module's parameters in its parent."""
        name = self.name
        return SUBMODULE_MARK + name if name else ""

    def get_path_name(self) -> str:
        """Names of the scopes from the root to this module, joined by '/'."""
        if self.parent is None:
            return self.get_scope_name()
        return "/".join(part for part in (self.parent.get_path_name(), self.get_scope_name()) if part)

    def walk(self, path: str = "") -> "Iterator[tuple[str, Module]]":
        """Iterate over this module and all modules inside it, each with the path that precedes the names of its parameters.

        A module that is there under several names comes once for each.
        """
        yield from self._walk(path, ())

    def _walk(self, path: str, above: "tuple[Module, ...]") -> "Iterator[tuple[str, Module]]":
        yield path, self
        for name, module in self.submodules.items():
            if not any(module is other for other in above):
                yield from module._walk(f"{path}{SUBMODULE_MARK}{name}/", (*above, self))

    def _held(self) -> Iterator[tuple[Path, Any]]:
        """Yield the modules and variables in the attributes, each with its path."""
        for name, value in list(self.__dict__.items()):
            if name not in _OWN:
                yield from found_in(value, (Module, Variable), (name,))

    def _take(self, path: Path, found: Any) -> None:
        """Note what is under an attribute now."""
        if isinstance(found, Variable):
            if found.is_leaf and found.need_grad:
                self.__dict__.setdefault("_trained", set()).add(found.storage)
        elif not self._is_within(found):
            object.__setattr__(found, "_parent", self)
            object.__setattr__(found, "_name", _name_of(path))

    def _release(self, old: Any) -> None:
        """Let modules that were under an attribute be roots, unless this module has them elsewhere."""
        released = [module for _, module in found_in(old, (Module,), ("",)) if module.parent is self]
        for module in released:
            object.__setattr__(module, "_parent", None)
            object.__setattr__(module, "_name", "")
        if released:
            _ = self.submodules  # takes back those that are held elsewhere

    def _is_within(self, other: "Module") -> bool:
        """Return whether this module is `other`, or inside it."""
        module: Module | None = self
        while module is not None:
            if module is other:
                return True
            module = module.parent
        return False

    # -- parameters ------------------------------------------------------------------------------------------------

    @door
    def get_parameters(
        self, recursive: bool = True, grad_only: bool = False, memo: "ParamMemo | set[Variable] | None" = None
    ) -> "OrderedDict[str, Variable]":
        """Parameters by name, those of submodules first; one that is there under several names is listed once.

        Args:
            recursive: with the submodules.
            grad_only: only parameters that need a gradient.
            memo: parameters that are left out; those found are added to it.

        Raises:
            ArgumentError: when an attribute and a parametric function claim the same name.
        """
        known = memo if isinstance(memo, ParamMemo) else ParamMemo(memo)
        found: OrderedDict[str, Variable] = OrderedDict()
        if not known.enter(self):
            return found
        for name, module in self.submodules.items() if recursive else ():
            found.update(insert_parent_name(name, module.get_parameters(True, grad_only, known)))
        found.update(known.filter_and_update(self._own_parameters(grad_only)))
        known.leave()
        return found

    def _own_parameters(self, grad_only: bool) -> dict[str, Variable]:
        """Return the parameters that methods have made, then the variables that are attributes."""
        with parameter_scope("", scope=self.parameter_scope):
            own = get_parameters(grad_only=False)
        scopes = {key[:end] for key in own for end, letter in enumerate(key) if letter == "/"}
        for name, variable in self._attribute_parameters().items():
            if name in scopes or own.get(name, variable) != variable:
                raise ArgumentError(
                    f"Module: an attribute must not have the name of a parameter that parametric functions have made, "
                    f"got {name!r} for both in {type(self).__name__}"
                )
            own[name] = variable
        return {name: variable for name, variable in own.items() if variable.need_grad or not grad_only}

    def _attribute_parameters(self) -> dict[str, Variable]:
        known = self.__dict__.get("_trained", set())
        found = {
            "/".join(path): value
            for path, value in self._held()
            if isinstance(value, Variable) and value.is_leaf and (value.need_grad or value.storage in known)
        }
        self.__dict__["_trained"] = {variable.storage for variable in found.values()}
        return found

    @door
    def set_parameter(self, key: str, param: Variable, raise_if_missing: bool = False) -> None:
        """Put a parameter under its name; one that is there already keeps its place and takes over the values.

        Raises:
            ArgumentError: when there is no such submodule, or with `raise_if_missing` no such parameter.
            ShapeError: when the parameter that is there has another shape.
        """
        self.set_parameters({key: param}, raise_if_missing)

    @door
    def set_parameters(self, params: Mapping[str, Variable], raise_if_missing: bool = False) -> None:
        """Put parameters under their names; see ``set_parameter``."""
        modules = dict(self.walk())
        for key, param in params.items():
            path, name = place_of(key)
            module = modules.get(path)
            present = None if module is None else module._own_parameters(False).get(name)
            if present is not None:
                take_over(key, present, param)
            elif raise_if_missing:
                what = "a submodule for" if module is None else "the parameter"
                raise ArgumentError(f"set_parameter: the module must have {what} {key!r}, got none")
            elif module is not None:
                with parameter_scope("", scope=module.parameter_scope):
                    set_parameter(name, param)

    def update_parameter(self) -> None:
        """Nothing to do: a module and the graphs built by it share their parameters."""

    def clear_parameters(self) -> None:
        """Forget the parameters that layers have made, which the next call makes anew; Variables as attributes stay."""
        for _, module in self.walk():
            module.parameter_scope.clear()
            module.__dict__.pop("_called", None)

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to zero."""
        for parameter in self.get_parameters(grad_only=True).values():
            parameter.grad.zero()

    def disable_update(self) -> None:
        """Freeze all parameters until `enable_update`; see ``nn_core.freeze_parameters``."""
        self.__dict__["_frozen"] = self.__dict__.get("_frozen", frozenset()) | self.get_parameters(grad_only=True).keys()
        freeze(self.get_parameters().values())

    def enable_update(self) -> None:
        """Let the parameters that `disable_update` has stopped need gradients again."""
        trained = self.__dict__.pop("_frozen", frozenset())
        for name, parameter in self.get_parameters().items():
            FROZEN.pop(parameter, None)
            if name in trained:
                parameter.need_grad = True

    # -- files -----------------------------------------------------------------------------------------------------

    @door
    def save_parameters(self, path: PathOrFile, extension: str | None = None) -> None:
        """Write all parameters to a file.

        Args:
            path: Path whose extension is that of a format, such as .h5, .npz or .safetensors; or a file open for writing.
            extension: Format of an open file, or of a path without an extension.

        Raises:
            ArgumentError: when the extension is that of no format, or contradicts the path.
        """
        save_parameters(path, self.get_parameters(), extension=extension)

    @door
    def load_parameters(
        self,
        path: PathOrFile,
        extension: str | None = None,
        raise_if_missing: bool = True,
        strict: bool | None = None,
        rename: Rename | None = None,
    ) -> LoadReport:
        """Read parameters from a file that ``save_parameters`` wrote.

        A module (or submodule) that has not been called yet has no parameters; it takes all from the file. One that has
        gets no others from it.

        Args:
            path: Path of the file, or a file open for reading.
            extension: Format of an open file; a path tells it by itself.
            raise_if_missing: Refuse a file with parameters that the module does not have; `strict` goes before it.
            strict: True: the names and shapes in the file and in the module must be the same. False: what fits is
                taken, and the report says what does not. None: parameters that the file does not have keep their values
                with a warning in the log, and what does not fit into the module is an error.
            rename: As for ``nn_core.load_parameters``.

        Returns:
            Which parameters were loaded, created, missing in the file, unexpected in the module, and of other shapes.

        Raises:
            FileFormatError: when the file cannot be read.
            ArgumentError: when it does not fit; see `strict`. Nothing is changed in any of these cases.
            ShapeError: likewise, when only shapes do not fit.
        """
        source = read_parameters("load_parameters", path, extension, rename)
        members = {place: module._as_member() for place, module in self.walk()}
        return load_members(source, members, self.get_parameters(), strict, raise_if_missing)

    def _as_member(self) -> Member:
        """Return the parameters of this module alone; one whose methods have made theirs gets no others from files."""
        has_been_used = bool(self.parameter_scope) or "_called" in self.__dict__
        return Member(self._own_parameters(False), None if has_been_used else self.parameter_scope)

    # -- Python ----------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, without the place in a parent."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_parent", "_name")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.pop("_parent", None)  # a submodule that refers to this module may have taken it for one of its own
        self.__dict__.update(state)
        HOLDERS[id(self)] = self
        _ = self.submodules  # tells them who their parent is

    def copy(self, mode: str = "share") -> Any:
        """Another module like this one, without a parent.

        Args:
            mode: "share": its parameters have the values of those of this one, and gradients of their own. "copy": all is
                copied. "init": what parametric functions have made is initialized again at its first call.

        Raises:
            ArgumentError: when `mode` is something else.
        """
        return copied(self, mode)

    def __repr__(self) -> str:
        return shown(self)

    def _repr_html_(self) -> str:
        return html_tree(self)

    def __str__(self) -> str:
        """Return the modules inside this one as a tree, with the numbers of their parameters."""
        return tree(self)


def _in_own_scope(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def inside(self: Module, *args: Any, **kwargs: Any) -> Any:
        scope = self.parameter_scope
        if get_current_parameter_scope() is scope:
            return method(self, *args, **kwargs)
        with parameter_scope("", scope=scope):
            return method(self, *args, **kwargs)

    return inside


def _name_of(path: Path) -> str:
    return f"/{SUBMODULE_MARK}".join(path)
