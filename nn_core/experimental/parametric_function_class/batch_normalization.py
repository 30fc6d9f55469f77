"""Batch normalization as an object, for any number of axes."""

from collections.abc import Mapping, Sequence
from typing import Any

import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError
from nn_core.experimental.parametric_function_class.module import Module
from nn_core.functions.operand import Operand
from nn_core.parametric_functions.scope import Initializer
from nn_core.variable import Variable


class BatchNormalization(Module):
    """Batch normalization; see `nn_core.parametric_functions.batch_normalization`.

    Args:
        n_features: Number of channels.
        n_dims: Number of axes of an input, that of the samples included.
        axes: The axis of the channels.
        decay_rate: Part of the moving mean and variance that is kept at each step.
        eps: Added to the variance.
        batch_stat: Use the statistics of the batch where `test` is not set.
        output_stat: Also return mean and variance of the batch.
        fix_parameters: Do not train `beta` and `gamma`.
        param_init: Initial values by name: beta, gamma, mean, var.

    Raises:
        ArgumentError: when there is not one axis within `n_dims`.
    """

    beta: Variable
    gamma: Variable
    mean: Variable
    var: Variable

    def __init__(
        self,
        n_features: int,
        n_dims: int,
        axes: Sequence[int] = (1,),
        decay_rate: float = 0.9,
        eps: float = 1e-05,
        batch_stat: bool = True,
        output_stat: bool = False,
        fix_parameters: bool = False,
        param_init: Mapping[str, Initializer] | None = None,
    ) -> None:
        if len(axes) != 1 or not 0 <= axes[0] < n_dims:
            raise ArgumentError(f"BatchNormalization: axes must be one axis of {n_dims}, got {list(axes)}")
        self.axes, self.decay_rate, self.eps = list(axes), decay_rate, eps
        self.batch_stat, self.output_stat = batch_stat, output_stat
        shape = [2] * n_dims
        shape[axes[0]] = n_features
        settings = {"axes": self.axes, "fix_parameters": fix_parameters, "param_init": param_init}
        self._make(PF.batch_normalization, Variable(shape), settings)

    def __call__(self, inp: Operand, test: bool = False) -> Any:
        """Return the normalized input; with `test` by the moving statistics, and without output of statistics."""
        statistics = (self.beta, self.gamma, self.mean, self.var)
        batch_stat = self.batch_stat and not test
        return F.batch_normalization(
            inp, *statistics, self.axes, self.decay_rate, self.eps, batch_stat, self.output_stat and batch_stat
        )


def _of(n_dims: int, name: str) -> type[BatchNormalization]:
    """Return a class with the number of axes of an input filled in."""

    def initialize(
        self: BatchNormalization,
        n_features: int,
        axes: Sequence[int] = (1,),
        decay_rate: float = 0.9,
        eps: float = 1e-05,
        batch_stat: bool = True,
        output_stat: bool = False,
        fix_parameters: bool = False,
        param_init: Mapping[str, Initializer] | None = None,
    ) -> None:
        BatchNormalization.__init__(
            self, n_features, n_dims, axes, decay_rate, eps, batch_stat, output_stat, fix_parameters, param_init
        )

    doc = f"Batch normalization of inputs with {n_dims} axes; the arguments are those of `BatchNormalization`."
    return type(name, (BatchNormalization,), {"__init__": initialize, "__doc__": doc, "__module__": __name__})


BatchNorm1d = _of(3, "BatchNorm1d")
BatchNorm2d = _of(4, "BatchNorm2d")
BatchNorm3d = _of(5, "BatchNorm3d")
