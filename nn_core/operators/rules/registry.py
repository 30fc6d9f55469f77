"""The two tables that the topic modules of this package fill: shape rules and gradient rules, by function name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.runtime.registrations import registering
from nn_core.errors import ArgumentError
from nn_core.operators.spec.model import ArgValue, FunctionSpec
from nn_core.typing import Shape

#: ``rule(*input shapes, **args) -> shapes of all outputs``; an input that is not given is None, and so is an output
#: that the settings leave out.
ShapeRule: TypeAlias = Callable[..., tuple[Shape | None, ...]]
#: ``rule(F, g) -> gradient of each input`` (one value if there is one input; None where there is no gradient).
GradientRule: TypeAlias = Callable[[Any, "GradientCall"], Any]

SHAPE_RULES: dict[str, ShapeRule] = {}
GRADIENTS: dict[str, GradientRule] = {}


@fitted
def shape_rule(*names: str) -> Callable[[ShapeRule], ShapeRule]:
    """Register the decorated function as the shape rule of each function in `names`.

    Raises:
        PluginError: when one of them has a shape rule.

    Example:
        >>> from nn_core.ext import shape_rule
        >>> @shape_rule("demo.Pairs")
        ... def pairs_shape(x):
        ...     n, d = x
        ...     return ((n, n, d),)
        >>> pairs_shape((5, 3))
        ((5, 5, 3),)
    """
    return registering(SHAPE_RULES, "shape rule", names)


#: Rules that compute in half precision where their function does.
ROUND_ONCE: Final[set[str]] = set()


@fitted
def gradient(*names: str, rounds_once: bool = False) -> Callable[[GradientRule], GradientRule]:
    """Register the decorated function as the gradient rule of each function in `names`.

    Args:
        names: Names of functions.
        rounds_once: Each gradient is the result of one function, such as a matrix product. In half precision such a rule
            computes in half precision, as fast as its function; all other rules compute in float32 there.

    Raises:
        PluginError: when one of them has a gradient rule.

    Example:
        >>> from nn_core.ext import gradient
        >>> @gradient("demo.Cube")
        ... def cube_gradient(F, g):
        ...     return g.grad * 3 * g.x * g.x
    """
    if rounds_once:
        ROUND_ONCE.update(names)
    return registering(GRADIENTS, "gradient rule", names)


class GradientCall:
    """The values that a gradient rule reads, under the names of the specification.

    ``g.x`` is the input x, ``g.y`` the output y (aux outputs too), ``g.axis`` an argument; a variadic input is a tuple.
    ``g.grad`` is the gradient of the first output and ``g.grads`` of all visible ones. All are raw arrays when
    ``backward()`` runs and Variables when ``nn.grad`` builds a graph: a rule uses arithmetic operators, ``.shape`` and
    the functions of F only, so that it serves both.

    Values that the forward pass has kept are those of its inputs at that time. A rule that computes one of them anew, so that
    ``nn.grad`` can differentiate it again, must ask for it with `kept` first: the inputs may have been replaced since.

    Raises:
        ArgumentError: when a rule reads a name that the specification does not have.

    Example:
        >>> from nn_core.ext import gradient
        >>> @gradient("demo.Scaled")
        ... def scaled_gradient(F, g):  # y = a * x * s: inputs x and s, argument a
        ...     return g.grad * g.a * g.s, F.sum(g.grad * g.a * g.x) if g.wants("s") else None
    """

    grad: Any
    grads: tuple[Any, ...]

    def __init__(
        self,
        spec: FunctionSpec,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        grads: Sequence[Any],
        args: Mapping[str, ArgValue],
        wanted: Sequence[bool],
        *,
        keeps: bool = False,
    ) -> None:
        fields = self.__dict__
        fields.update(args)
        _name_values(fields, spec.inputs, inputs)
        _name_values(fields, spec.outputs, outputs)
        self.grads = tuple(grads)
        self.grad = grads[0] if grads else None
        self._spec = spec
        self._wanted = tuple(wanted)
        self._keeps = keeps

    def __getattr__(self, name: str) -> Any:
        raise ArgumentError(f"{self._spec.name}: a gradient rule reads inputs, outputs and args of the spec, got {name!r}")

    def kept(self, *names: str) -> tuple[Any, ...] | None:
        """Return the outputs called `names` as the forward pass left them, for ``backward()``; None where a rule has to
        compute them.

        That is in ``nn.grad``, which builds what is differentiated again, through everything that follows from the inputs,
        and where a backend keeps them in 16 bits.
        """
        return tuple([getattr(self, name) for name in names]) if self._keeps else None

    def wants(self, name: str) -> bool:
        """Return whether the gradient of the input called `name` is needed (of any, if it is variadic)."""
        for position, entry in enumerate(self._spec.inputs):
            if entry.name == name:
                return any(self._wanted[position:]) if entry.variadic else self._wanted[position]
        raise ArgumentError(f"{self._spec.name}: wants() takes the name of an input, got {name!r}")


def _name_values(fields: dict[str, Any], entries: Sequence[Any], values: Sequence[Any]) -> None:
    for position, entry in enumerate(entries):
        if entry.variadic:
            fields[entry.name] = tuple(values[position:])
        else:
            fields[entry.name] = values[position] if position < len(values) else None
