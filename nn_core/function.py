"""Functions as objects: an operator together with a context and settings, called on Variables or NdArrays.

Each operator, also of a plugin, is found here by the name it has in files: ``function.Affine(ctx, base_axis)(x, w)``.
``nn_core.functions`` is the usual way to call them.
"""

from collections.abc import Callable, Sequence
from functools import cache
from inspect import Parameter, Signature
from typing import Any

from nn_core.context import Context, context_scope
from nn_core.dispatch.plugins import PLUGINS
from nn_core.graph.apply import apply
from nn_core.graph.modes import auto_forward as auto_forward_scope
from nn_core.graph.modes import get_auto_forward
from nn_core.graph.node import Node
from nn_core.graph.python_function import PythonFunction as PythonFunction
from nn_core.spec.builtin import BY_NAME
from nn_core.spec.model import FunctionSpec
from nn_core.variable import Variable


class Function:
    """An operator with a context and settings.

    Args:
        spec: Which operator.
        ctx: Where it runs.
        args: Settings by name; what is missing has its default.

    Example:
        >>> y = Affine(ctx, base_axis=1)(x, weight)
        >>> y.parent.name
        'Affine'
    """

    def __init__(self, spec: FunctionSpec, ctx: Context, args: dict[str, Any]) -> None:
        self.spec = spec
        self.context = ctx
        self._args = args
        self._node: Node | None = None

    def __call__(
        self,
        *inputs: Any,
        n_outputs: int = -1,
        auto_forward: bool | None = None,
        outputs: Sequence[Any] | None = None,
    ) -> Any:
        """Apply the function; `n_outputs` follows from the settings and is ignored."""
        given = (*inputs, *[None] * (len(self.spec.inputs) - len(inputs)))
        forward_now = get_auto_forward() if auto_forward is None else auto_forward
        with context_scope(self.context), auto_forward_scope(forward_now):
            results = apply(self.spec, given, self._args, outputs)
        first = _listed(results)[0]
        self._node = first.parent if isinstance(first, Variable) else None
        return results

    @property
    def name(self) -> str:
        """Name of the operator in files."""
        return self.spec.name

    @property
    def arguments(self) -> dict[str, Any]:
        """The settings; defaults that depend on the inputs are known once the function has been applied."""
        return dict(self._args) if self._node is None else dict(self._node.args)

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags of the specification."""
        return self.spec.tags

    @property
    def node(self) -> Node | None:
        """The place in a graph that the last call made."""
        return self._node

    def min_outputs(self) -> int:
        """Number of outputs that are always there."""
        return sum(not (entry.aux or entry.optional) for entry in self.spec.outputs)

    def setup(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        """Check the inputs and give the outputs their shapes."""
        results = self(*[variable.get_unlinked_variable() for variable in inputs], auto_forward=False)
        for variable, result in zip(outputs, _listed(results), strict=False):
            variable.reset_shape(result.shape, True)

    def forward(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        """Compute the data of `outputs` from that of `inputs` at once."""
        self(*[variable.data for variable in inputs], outputs=[variable.data for variable in outputs])

    def backward(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], accum: Sequence[bool] | None = None
    ) -> None:
        """Compute the gradients of those `inputs` that need one from the gradients of `outputs`.

        Where `accum` is true they are added to what is there.
        """
        leaves = [variable.get_unlinked_variable(need_grad=variable.need_grad) for variable in inputs]
        for leaf, adds in zip(leaves, accum or [False] * len(leaves), strict=True):
            if leaf.need_grad and not adds:
                leaf.grad.zero()
        results = _listed(self(*leaves, auto_forward=True))
        for result, output in zip(results, outputs, strict=False):
            result.backward(output.grad)

    def __repr__(self) -> str:
        return f"<{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})>"


def __getattr__(name: str) -> Callable[..., Function]:
    """What makes the Function of the operator `name` (PEP 562)."""
    spec = None if name.startswith("_") else PLUGINS.function_named(name)
    if spec is None:
        raise AttributeError(f"module 'nn_core.function' has no function {name!r}, of its own or of a plugin")
    return _maker(spec)


def __dir__() -> list[str]:
    return sorted({*globals(), *BY_NAME})


@cache
def _maker(spec: FunctionSpec) -> Callable[..., Function]:
    kind = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [Parameter("ctx", kind, annotation="Context")]
    parameters += [Parameter(arg.name, kind, default=None) for arg in spec.args]
    signature = Signature(parameters, return_annotation="Function")

    def make(*positional: Any, **keywords: Any) -> Function:
        settings = signature.bind(*positional, **keywords).arguments
        return Function(spec, settings.pop("ctx"), settings)

    make.__name__ = make.__qualname__ = spec.name
    make.__doc__ = f"{spec.doc}\n\nReturns a `Function`; see `nn_core.functions.{spec.api}` for the settings."
    make.__signature__ = signature  # type: ignore[attr-defined]  # read by inspect
    return make


def _listed(results: Any) -> list[Any]:
    return results if isinstance(results, list) else [results]
