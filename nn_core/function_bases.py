"""The operators as the specification has them, before ``nn_core.functions`` makes some of them more convenient.

``function_bases.sum(x, axes, keep_dims)`` is the operator of which ``F.sum(x, axis, keepdims)`` is the friendly form.
Each takes Variables or NdArrays, then its settings, ``n_outputs`` (ignored, as it follows from the settings) and
``outputs``, Variables or NdArrays that receive the results.
"""

from collections.abc import Callable, Sequence
from functools import cache
from inspect import Parameter, Signature
from typing import Any

from nn_core.engine.dispatch.registry import REGISTRY
from nn_core.engine.graph.apply import apply
from nn_core.engine.graph.array_functions import bound_arguments
from nn_core.functions.compatibility import function_api as function_api
from nn_core.functions.shape import transpose
from nn_core.operators.spec.builtin import BY_API
from nn_core.operators.spec.model import FunctionSpec


def __getattr__(api: str) -> Callable[..., Any]:
    """Return the operator called `api` (PEP 562)."""
    spec = None if api.startswith("_") else REGISTRY.spec_of_api(api)
    if spec is None:
        raise AttributeError(f"module 'nn_core.function_bases' has no operator {api!r}")
    return _operator(spec)


def __dir__() -> list[str]:
    return sorted({"function_api", *BY_API})


def patch_correlation(
    x1: Any,
    x2: Any,
    patch: Sequence[int] = (1, 1),
    shift: Sequence[int] = (0, 0),
    patch_step: Sequence[int] = (1, 1),
    shift_step: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0, 0, 0),
    *,
    n_outputs: int = -1,
    outputs: Any = None,
) -> Any:
    """Compare patches of two images whose channels are last: what ``F.patch_correlation`` does with channels first.

    Args:
        x1: Images, shape (N, H, W, C).
        x2: Images of the same shape.
        patch: Height and width of a patch.
        shift: Largest shifts between the two patches.
        patch_step: Distance of patches.
        shift_step: Distance of shifts.
        padding: Zeros at the top, the bottom, the left and the right.
        n_outputs: Ignored.
        outputs: A list of the Variable or NdArray that receives the result.

    Returns:
        An array of shape (N, H', W', number of vertical shifts, number of horizontal shifts).
    """
    first = [transpose(x, axes=(0, 3, 1, 2)) for x in (x1, x2)]
    y = _operator(BY_API["patch_correlation"])(
        *first, patch=patch, shift=shift, patch_step=patch_step, shift_step=shift_step, padding=padding
    )
    return transpose(y, axes=(0, 3, 4, 1, 2), outputs=outputs)


@cache
def _operator(spec: FunctionSpec) -> Callable[..., Any]:
    def operator(*positional: Any, n_outputs: int = -1, outputs: Any = None, **keywords: Any) -> Any:
        inputs, args = bound_arguments(spec, positional, keywords)
        return apply(spec, inputs, args, outputs)

    operator.__name__ = operator.__qualname__ = spec.api
    operator.__doc__ = f"{spec.doc}\n\nSee `nn_core.functions.{spec.api}` for inputs and settings."
    operator.__signature__ = _signature(spec)  # type: ignore[attr-defined]  # read by inspect
    return operator


def _signature(spec: FunctionSpec) -> Signature:
    kind = Parameter.KEYWORD_ONLY if spec.variadic else Parameter.POSITIONAL_OR_KEYWORD
    parameters: list[Parameter] = []
    optional = False
    for entry in spec.inputs:
        optional = optional or entry.optional  # what follows an optional one must have a default as well
        if entry.variadic:
            parameters.append(Parameter(entry.name, Parameter.VAR_POSITIONAL))
        else:
            default = None if optional else Parameter.empty
            parameters.append(Parameter(entry.name, Parameter.POSITIONAL_OR_KEYWORD, default=default))
    parameters += [Parameter(arg.name, kind, default=None) for arg in spec.args]
    parameters.append(Parameter("n_outputs", Parameter.KEYWORD_ONLY, default=-1))
    parameters.append(Parameter("outputs", Parameter.KEYWORD_ONLY, default=None))
    return Signature(parameters)
