"""The gradient of GELU as part of the product whose result it multiplies, in the steps of a plan.

In the 16-bit types only, whose rounding is coarser than the approximations that a library may make of tanh; nobody says how
exact cublasLt is in float32.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from nn_core.ext import Array
from nn_ext_cuda.gemm.cublaslt import (
    Epilogue,
    Fusion,
    LightProduct,
    LightStep,
    Prepared,
    is_all_of,
    library,
    may_be_further,
    overlap,
)
from nn_ext_cuda.gemm.product import Product, ProductStep
from nn_ext_cuda.launch.program import ChainStep, arrays_of

#: So many steps before the gradient of GELU the product may be: gradients of its weight are converted in between.
_REACH: Final = 6


def take_slope(steps: list[Any], step: Any) -> bool:
    """Let a product of `steps` come last and take over the gradient of GELU, `step`, where that is possible."""
    x, y, dy, dx = step.arrays
    if y is not None or 2 not in step.ends or library() is None:
        return False
    found = _product_of(steps, dy)
    fused = None if found is None else _sloped(found, x, dy, dx)
    if found is None or fused is None:
        return False
    steps[found.number : found.number + 1] = [ChainStep(found.others)] if found.others else []
    steps.append(fused)
    return True


@dataclass(frozen=True, slots=True)
class _Found:
    """A product among steps.

    Attributes:
        step: The product.
        number: The number of the step that it is, or is part of.
        others: The other parts of that step.
        arrays: The arrays of these.
        between: The arrays of all steps after that.
    """

    step: ProductStep
    number: int
    others: Sequence[Any]
    arrays: Sequence[Array]
    between: Sequence[Array]


def _product_of(steps: Sequence[Any], result: Array) -> _Found | None:
    """Return the product that computes `result`, if it is not too far back, and if all steps since say what they read and
    write.
    """
    between: list[Array] = []
    for number in range(len(steps) - 1, max(len(steps) - 1 - _REACH, -1), -1):
        parts = steps[number].steps if isinstance(steps[number], ChainStep) else (steps[number],)
        products = [part for part in parts if isinstance(part, ProductStep) and is_all_of(result, part.arrays[2])]
        others = [part for part in parts if part not in products]
        arrays = arrays_of(others)
        if arrays is None:
            return None
        if products:
            return _Found(products[0], number, others, arrays, between)
        between += arrays
    return None


def _sloped(found: _Found, x: Array, dy: Array, dx: Array) -> LightStep | None:
    """Return the product of whose result dy the gradient dx is computed; None where it cannot come later, or in one launch."""
    product, arrays = found.step.product, found.step.arrays
    if not _is_plain(product) or not may_be_further(x, product.c.lead, dx):
        return None
    # what others read of its result in the meantime would not be there
    if any(overlap(array, dy) for array in (*found.arrays, *found.between)):
        return None
    if any(overlap(array, other) for array in arrays[:2] for other in (dx, *found.between)) or overlap(x, dx):
        return None
    a, b, c = (replace(matrix, place=place) for place, matrix in enumerate((product.a, product.b, product.c)))
    light = LightProduct(a, b, c, product.sizes, product.dtype, Epilogue.GELU_GRADIENT, None, None)
    prepared = Prepared(library(), light, arrays, Fusion(Epilogue.GELU_GRADIENT, dx, x))
    return LightStep(prepared) if prepared.algorithm is not None else None


def _is_plain(product: Product) -> bool:
    """Return whether it is one product in 16 bits that is not added to anything."""
    is_short = product.dtype in ("float16", "bfloat16")
    return is_short and product.count == 1 and not product.accumulate and 0 not in product.sizes
