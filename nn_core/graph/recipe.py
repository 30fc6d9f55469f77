"""What follows from the settings and the input shapes of a call alone, worked out once and looked up afterwards."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from nn_core.caches import KeyedCache
from nn_core.context import Context
from nn_core.dispatch.plugins import PLUGINS
from nn_core.dispatch.report import is_strict
from nn_core.graph.execute import Prepared, forget_prepared, prepare
from nn_core.graph.infer import CACHE_LIMIT, infer, made_outputs
from nn_core.rules.arguments import resolve_args
from nn_core.settings import WHEN_SWITCHED
from nn_core.spec.model import ArgValue, FunctionSpec
from nn_core.typing import Shape

_RECIPES: KeyedCache[Any, "Recipe"] = KeyedCache("checked calls", entry_bytes=4096, max_entries=CACHE_LIMIT)
#: Called when recipes are forgotten; who keeps some drops them.
WHEN_FORGOTTEN: Final[list[Callable[[], object]]] = []


class Recipe:
    """A checked call: arguments with their defaults, shapes of the outputs, and the kernel for the last context.

    Attributes:
        given: The arguments as the caller gave them: what is missing, None or counted from the end follows the shapes.
        shapes: The shapes of the inputs.
    """

    __slots__ = (
        "_latest",
        "args",
        "given",
        "n_visible",
        "output_shapes",
        "plain",
        "shapes",
        "single",
        "spec",
        "takes_same",
        "view",
    )

    def __init__(self, spec: FunctionSpec, given: Mapping[str, Any], shapes: tuple[Shape | None, ...]) -> None:
        self.args: Mapping[str, ArgValue] = resolve_args(spec, given, shapes)
        made = made_outputs(spec, infer(spec, self.args, shapes))
        self.spec = spec
        self.given = given
        self.shapes = shapes
        self.output_shapes = tuple([shape for _, shape in made])
        self.n_visible = sum(not entry.aux for entry, _ in made)
        self.single = self.n_visible == 1 and not spec.outputs[0].variadic
        self.view = spec.has("view") and bool(self.args.get("inplace", True))
        self.takes_same = any(entry.dtype == "same" for entry in spec.inputs)
        #: one result in memory of its own, whose shape is known; nothing is rewritten
        self.plain = self.single and len(made) == 1 and not (self.view or self.takes_same or spec.updates)
        self.plain = self.plain and not spec.has("dynamic_shape")
        self._latest: tuple[Context, Prepared] | None = None  # one value, because other threads replace it

    def prepared(self, context: Context, same_dtypes: tuple[str | None, ...]) -> Prepared:
        """The kernel for `context`."""
        if self.takes_same:
            return prepare(self.spec, self.args, self.shapes, same_dtypes, context)
        latest = self._latest
        if latest is None or latest[0] is not context or (latest[1].refusals and is_strict()):
            prepared = prepare(self.spec, self.args, self.shapes, (None,) * len(self.shapes), context)
            self._latest = context, prepared
            return prepared
        return latest[1]


def recipe_of(spec: FunctionSpec, given: Mapping[str, Any], shapes: Sequence[Shape | None]) -> Recipe:
    """The recipe for a function with the settings as the caller gave them."""
    known = tuple(shapes)
    key = (spec, tuple(given.items()), known)
    try:
        recipe = _RECIPES.get(key)
    except TypeError:  # a setting that is a list or an array
        return Recipe(spec, given, known)
    if recipe is None:
        recipe = Recipe(spec, given, known)
        _RECIPES.store(key, recipe)
    return recipe


def forget_recipes() -> None:
    """Drop what was worked out: rules or kernels may have changed."""
    _RECIPES.clear()
    for callback in WHEN_FORGOTTEN:
        callback()
    forget_prepared()


PLUGINS.when_refreshed.append(forget_recipes)
WHEN_SWITCHED.append(forget_recipes)
