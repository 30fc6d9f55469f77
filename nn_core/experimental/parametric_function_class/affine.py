"""A fully connected layer as an object."""

from collections.abc import Sequence

import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.experimental.parametric_function_class.module import Module
from nn_core.functions.operand import Operand
from nn_core.initializer import Rng
from nn_core.parametric_functions.scope import Initializer
from nn_core.variable import Variable


class Affine(Module):
    """A fully connected layer; see `nn_core.parametric_functions.affine`.

    Args:
        n_inmaps: Number of features of an input, D.
        n_outmaps: Number of features of an output, K, or several lengths.
        base_axis: First axis of the features.
        w_init: Initial values of `W`: an initializer, or an array of shape (D, K).
        b_init: Initial values of `b`, shape (K).
        fix_parameters: Do not train the parameters.
        rng: Generator of the usual initial values.
        with_bias: Add a bias.
    """

    W: Variable
    b: Variable | None = None

    def __init__(
        self,
        n_inmaps: int,
        n_outmaps: int | Sequence[int],
        base_axis: int = 1,
        w_init: Initializer | None = None,
        b_init: Initializer | None = None,
        fix_parameters: bool = False,
        rng: Rng | None = None,
        with_bias: bool = True,
    ) -> None:
        self.base_axis = base_axis
        settings = {
            "n_outmaps": n_outmaps,
            "base_axis": base_axis,
            "w_init": w_init,
            "b_init": b_init,
            "fix_parameters": fix_parameters,
            "rng": rng,
            "with_bias": with_bias,
        }
        self._make(PF.affine, Variable((1,) * base_axis + (n_inmaps,)), settings)

    def __call__(self, inp: Operand) -> Operand:
        """y = x W + b; shape (N, D) to (N, K)."""
        return F.affine(inp, self.W, self.b, self.base_axis)


Linear = Affine
