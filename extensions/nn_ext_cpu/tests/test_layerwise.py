"""Lars and Lamb, whose steps depend on norms: large parameters that threads share, empty ones, NaN and infinity."""

from collections.abc import Callable

import numpy as np
import pytest

import nn_core as nn
import nn_core.solvers as S
from nn_core.ext_utils import get_extension_context

#: One above the size from which on a parameter is shared between threads, two around the length of a block.
SHAPES = [(3,), (1200, 1000), (64, 64), (4096,), (4097,), (1,), (0,)]
MAKERS: list[Callable[[], S.Solver]] = [
    lambda: S.Lars(0.1),
    lambda: S.Lamb(0.01),
    lambda: S.Lamb(0.01, bias_correction=True, gamma_l=0.1, gamma_u=2.0),
]


def trained(context: nn.Context, make: Callable[[], S.Solver], threads: int, decay: float) -> list[np.ndarray]:
    """Return the parameters after three updates."""
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape).astype(np.float32) for shape in SHAPES]
    values[4][3], values[2][0, 0] = np.nan, np.inf
    nn.set_num_threads(threads)
    with nn.context_scope(context):
        parameters = {str(i): nn.Variable.from_numpy_array(array, need_grad=True) for i, array in enumerate(values)}
        solver = make()
        solver.set_parameters(parameters)
        for _ in range(3):
            for parameter in parameters.values():
                parameter.g = rng.normal(size=parameter.shape)
            if decay:
                solver.weight_decay(decay)
            solver.update()
        return [parameter.d.copy() for parameter in parameters.values()]


@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("make", MAKERS)
def test_steps_that_depend_on_norms(make: Callable[[], S.Solver], decay: float, two_threads: None) -> None:
    found = trained(get_extension_context("cpu"), make, 2, decay)
    alone = trained(get_extension_context("cpu"), make, 1, decay)
    true = trained(nn.Context(["reference:float"]), make, 1, decay)
    for array, same, expected in zip(found, alone, true, strict=True):
        np.testing.assert_array_equal(array, same)
        np.testing.assert_allclose(array, expected, rtol=2e-6, atol=1e-8)
