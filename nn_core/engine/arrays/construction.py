"""How values are constructed: once, by ``__new__`` or by ``__init__``, as a subclass of the program prefers it."""

from collections.abc import Callable
from inspect import signature
from typing import Any, ClassVar, Final

from nn_core.engine.error_messages.refusal import FOREIGN, door, raise_refusal, require_fit

_new: Final = object.__new__


class Constructed:
    """A base of classes that programs derive from as NNabla's users do, by ``super().__new__(cls, ...)``, or by ``__init__``.

    A class that defines `_construct` gets both methods, which take its arguments; whichever the subclass calls does the work.
    What it raises beyond nn_core's exceptions becomes one of them, as from a function with `door`.
    """

    __slots__ = ()

    #: Fills an object that has no attributes yet.
    _construct: ClassVar[Callable[..., None]]
    #: The methods that were made of it.
    _ways: ClassVar[tuple[Any, Any]]
    #: Whether ``__new__`` constructs: everywhere but in subclasses whose ``__init__`` calls ours.
    _is_made_by_new: ClassVar[bool]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_construct" in vars(cls):
            cls._ways = new, init = _ways_of(cls._construct, cls.__name__)
            # by name: checkers would take an assignment for the signature of the class
            for name, way in (("__new__", staticmethod(new)), ("__init__", init)):
                setattr(cls, name, way)
        given = [getattr(cls, name) for name in ("__new__", "__init__")]
        cls._is_made_by_new = given[0] is not cls._ways[0] or given[1] is cls._ways[1]


def _ways_of(construct: Callable[..., None], name: str) -> tuple[Callable[..., Any], Callable[..., None]]:
    """Return ``__new__`` and ``__init__`` of the class called `name`."""
    construct.__qualname__ = name  # in its errors
    guarded = door(construct)

    def new(cls: type[Constructed], *args: Any, **kwargs: Any) -> Any:
        """Make an object; subclasses may call ``super().__new__(cls, ...)``."""
        made = _new(cls)
        if cls._is_made_by_new:
            try:
                construct(made, *args, **kwargs)
            except FOREIGN as error:
                raise_refusal(construct, (made, *args), kwargs, error)
            except TypeError:
                require_fit(construct, (made, *args), kwargs)
                raise
        return made

    def init(self: Constructed, *args: Any, **kwargs: Any) -> None:
        """Do nothing where ``__new__`` has constructed the object: the arguments are those of a subclass."""
        if not self._is_made_by_new:
            guarded(self, *args, **kwargs)

    new.__signature__ = init.__signature__ = signature(construct)  # type: ignore[attr-defined]  # functions take attributes
    for way, own in ((new, "__new__"), (init, "__init__")):  # tools take them for methods of the class by these
        way.__name__, way.__qualname__, way.__module__ = own, f"{name}.{own}", construct.__module__
    return new, init
