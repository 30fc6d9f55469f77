"""The largest permitted error of a result, by dtype and by the number of terms that were added up for it."""

import math
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from nn_core.typing import Shape

#: Relative tolerance of one operation: 16 units in the last place of float32, four of the short dtypes.
UNIT: Final = {"float64": 1e-12, "float32": 2e-6, "float16": 4e-3, "bfloat16": 3e-2}
#: Numbers of terms, and what they multiply the tolerance of float32 and float64 with; the short dtypes add up in
#: float32 and round once.
GROWTH: Final = ((32, 1.0), (512, 2.0), (8192, 4.0))
#: The factor for more terms than that.
MOST_GROWTH: Final = 8.0
#: A gradient rule is a chain of operations, each of which rounds.
CHAIN: Final = 4.0


def terms(sources: Iterable[Shape], target: Shape) -> int:
    """About how many products or numbers are added up for one element of `target`.

    For a matrix product of (n, k) and (k, m) this is the square root of nk km / nm, which is k.
    """
    sizes = sorted((math.prod(shape) for shape in sources), reverse=True)
    size = max(math.prod(target), 1)
    alone = sizes[0] / size if sizes else 1.0
    together = math.sqrt(sizes[0] * sizes[1] / size) if len(sizes) > 1 else 1.0
    return max(1, round(alone), round(together))


def tolerance(dtype: str, n_terms: int, truth: Any, *, pointwise: bool = False) -> tuple[float, float]:
    """Relative and absolute tolerance for results in `dtype`.

    The absolute one is relative to the largest true value unless the function is `pointwise`: where numbers are added
    up, small results are differences of larger ones.
    """
    growth = next((factor for limit, factor in GROWTH if n_terms <= limit), MOST_GROWTH)
    relative = UNIT[dtype] * (growth if dtype in ("float32", "float64") else 1.0)
    finite = np.abs(truth[np.isfinite(truth)]) if np.size(truth) else np.zeros(0)
    scale = 1.0 if pointwise or not finite.size else max(1.0, float(finite.max()))
    return relative, relative * scale / 4
