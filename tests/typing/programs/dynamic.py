"""Dynamic."""

import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF


def step(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    x = nn.Variable.from_numpy_array(values)
    y = F.sum(PF.affine(x, 3, name="dynamic") ** 2)
    y.backward()
    return float(y)


with nn.auto_forward():
    losses = [step(np.ones((2, 4))) for _ in range(2)]
