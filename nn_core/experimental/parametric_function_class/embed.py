"""A table of rows as an object."""

import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.experimental.parametric_function_class.module import Module
from nn_core.functions.operand import Operand
from nn_core.parametric_functions.scope import Initializer
from nn_core.variable import Variable


class Embed(Module):
    """Replaces each index by a row of a trained table; see `nn_core.parametric_functions.embed`.

    Args:
        n_inputs: Number of different indices.
        n_features: Length of a row.
        w_init: Initial values of `W`: an initializer, or an array of shape (n_inputs, n_features).
        fix_parameters: Do not train the table.
    """

    W: Variable

    def __init__(
        self, n_inputs: int, n_features: int, w_init: Initializer | None = None, fix_parameters: bool = False
    ) -> None:
        settings = {
            "n_inputs": n_inputs,
            "n_features": n_features,
            "initializer": w_init,
            "fix_parameters": fix_parameters,
        }
        self._make(PF.embed, Variable((1,)), settings)

    def __call__(self, inp: Operand) -> Operand:
        """Rows of shape (*indices, n_features)."""
        return F.embed(inp, self.W)
