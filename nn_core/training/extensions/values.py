"""Extensions that change or look at single values: learning rates, anything, parameters."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from nn_core.engine.error_messages.refusal import described, fitted, fitted_methods
from nn_core.engine.graph.parameter_sources import ParameterSource, parameters_of
from nn_core.errors import ArgumentError, GraphError
from nn_core.solvers.base import Solver
from nn_core.training.reporting import report
from nn_core.training.trainer import Trainer
from nn_core.training.triggers import every
from nn_core.utils.learning_rate_scheduler import BaseLearningRateScheduler

_STATISTICS: Final[Mapping[str, Callable[[np.ndarray[Any, Any]], Any]]] = {
    "mean": np.mean,
    "std": np.std,
    "min": np.min,
    "max": np.max,
    "zeros": lambda values: np.count_nonzero(values == 0),
}


@fitted_methods()
class Schedule:
    """Let the learning rate follow a scheduler: that of iteration i, from 0, is ``scheduler.get_learning_rate(i)``.

    Nothing but the iteration counts, so a resumed run has the same learning rates.

    Args:
        scheduler: The scheduler, or a function of the iteration.
        solver: Name of the solver, when the updater has several.

    Raises:
        ArgumentError: when `scheduler` is neither.

    Example:
        >>> from nn_core.training import Schedule, fit
        >>> from nn_core.utils.learning_rate_scheduler import CosineScheduler
        >>> solver, x, t = S.Sgd(), np.eye(4), np.arange(4)
        >>> schedule = Schedule(CosineScheduler(0.1, max_iter=20))
        >>> _ = fit(lambda x: PF.affine(x, 4), (x, t), epochs=10, solver=solver, progress=False, extensions=[schedule])
        >>> round(solver.learning_rate(), 3)
        0.05
    """

    phase = "edit"
    every = every(1)

    @fitted
    def __init__(self, scheduler: BaseLearningRateScheduler | Callable[[int], float], solver: str = "main") -> None:
        is_function = not isinstance(scheduler, BaseLearningRateScheduler)
        if is_function and not callable(scheduler):
            raise ArgumentError(
                f"Schedule: scheduler must be a scheduler or a function of the iteration, got {described(scheduler)}"
            )
        self._rate: Callable[[int], float] = scheduler if is_function else scheduler.get_learning_rate  # type: ignore[assignment,union-attr]  # callable() does not narrow
        self._solver = solver

    def start(self, trainer: Trainer) -> None:
        """Set the learning rate of the first iteration."""
        self(trainer)

    def __call__(self, trainer: Trainer) -> None:
        solver: Solver = trainer.updater.solvers[self._solver]
        solver.set_learning_rate(self._rate(trainer.iteration))


@fitted
def observe(key: str, function: Callable[[Trainer], Any]) -> Callable[[Trainer], None]:
    """Return an extension that reports ``function(trainer)`` as `key`, in each iteration in which its trigger fires.

    Example:
        >>> from nn_core.training import Log, fit, observe
        >>> log, x, t = Log("rate"), np.eye(4), np.arange(4)
        >>> rate = observe("rate", lambda trainer: 0.25)
        >>> _ = fit(lambda x: PF.affine(x, 4), (x, t), epochs=1, progress=False, extensions=[rate, log])
        >>> log.entries[0]["rate"]
        0.25
    """

    def measure(trainer: Trainer) -> None:
        report({key: function(trainer)})

    measure.phase = "measure"  # type: ignore[attr-defined]  # functions have attributes
    measure.name = key  # type: ignore[attr-defined]  # functions have attributes
    return measure


class FailOnNonFinite:
    """Raise a GraphError when a reported value is NaN or infinite.

    Args:
        *keys: Names of the values; none: all.

    Raises:
        GraphError: in training, when a value is not finite; names the value and the iteration.

    Example:
        >>> from nn_core.training import FailOnNonFinite, fit
        >>> x, t = np.full((4, 4), np.nan), np.arange(4)
        >>> _ = fit(lambda x: PF.affine(x, 4), (x, t), progress=False, extensions=[FailOnNonFinite()])
        Traceback (most recent call last):
        ...
        nn_core.errors.GraphError: ...
    """

    phase = "read"
    every = every(1)

    @fitted
    def __init__(self, *keys: str) -> None:
        self._keys = keys

    def __call__(self, trainer: Trainer) -> None:
        observation = trainer.observation
        for key in self._keys or list(observation):
            if key in observation and not math.isfinite(observation[key]):
                raise GraphError(
                    f"FailOnNonFinite: {key} must be finite, got {observation[key]} in iteration {trainer.iteration}\n"
                    "  hint: lower the learning rate, clip gradients (clip_norm), or scale the loss (loss_scale)"
                )


class Statistics:
    """Report mean, standard deviation, least and largest element, or other statistics, of parameters and their gradients.

    Args:
        parameters: The parameters by name; None: those of the solvers.
        statistics: What to report: "mean", "std", "min", "max" and "zeros", the number of zeros.
        with_grad: Also of the gradients.
        percentiles: Percentiles to report, as "p50" for the median.

    Raises:
        ArgumentError: when a statistic has another name, or a percentile is outside of 0 to 100.

    Example:
        >>> from nn_core.training import Log, Statistics, fit
        >>> log, statistics = Log(), Statistics(statistics=["max"], percentiles=[50], with_grad=False)
        >>> x, t = np.eye(4), np.arange(4)
        >>> _ = fit(lambda x: PF.affine(x, 4), (x, t), epochs=1, progress=False, extensions=[statistics, log])
        >>> [name for name in log.entries[0] if "affine/W" in name]
        ['affine/W/data/max', 'affine/W/data/p50']
    """

    phase = "measure"

    @fitted
    def __init__(
        self,
        parameters: ParameterSource | None = None,
        statistics: Sequence[str] = ("mean", "std", "min", "max"),
        with_grad: bool = True,
        percentiles: Sequence[float] = (),
    ) -> None:
        unknown = [name for name in statistics if name not in _STATISTICS]
        if unknown:
            raise ArgumentError(f"Statistics: statistics must be some of {', '.join(_STATISTICS)}, got {', '.join(unknown)}")
        beyond = [share for share in percentiles if not 0 <= share <= 100]
        if beyond:
            raise ArgumentError(f"Statistics: percentiles must be from 0 to 100, got {', '.join(map(str, beyond))}")
        self._parameters = None if parameters is None else parameters_of("Statistics", parameters, argument="parameters")
        self._functions = {name: _STATISTICS[name] for name in statistics}
        for share in percentiles:
            self._functions[f"p{share:g}"] = partial(np.percentile, q=share)
        self._with_grad = with_grad

    def __call__(self, trainer: Trainer) -> None:
        parameters = self._parameters
        if parameters is None:
            parameters = {k: v for solver in trainer.updater.solvers.values() for k, v in solver.get_parameters().items()}
        for name, variable in parameters.items():
            self._report(f"{name}/data", variable.d)
            if self._with_grad and not variable.grad.is_unwritten:
                self._report(f"{name}/grad", variable.g)

    def _report(self, name: str, values: np.ndarray[Any, Any]) -> None:
        if values.size:
            report({f"{name}/{key}": float(function(values)) for key, function in self._functions.items()})
