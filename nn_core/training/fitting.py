"""Train on arrays in one call."""

import inspect
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core import functions as F
from nn_core.core.module import Module
from nn_core.data.iterators import data_iterator_simple
from nn_core.errors import ArgumentError, ShapeError
from nn_core.parametric_functions.scope import get_parameters
from nn_core.solvers import Adam
from nn_core.solvers.base import Solver
from nn_core.training.extensions import Checkpoint, Evaluator, Log, Progress
from nn_core.training.extensions.evaluator import Output
from nn_core.training.metrics import Accuracy, Confusion, RegressionErrors
from nn_core.training.trainer import Extension, Trainer
from nn_core.training.triggers import every
from nn_core.training.updater import Updater
from nn_core.variable import Variable

#: Inputs and targets, with an axis of samples in front of both.
Arrays: TypeAlias = tuple[Any, Any]
#: ``network(x)`` or ``network(x, test=False)`` gives scores of classes or predictions.
Network: TypeAlias = Callable[..., Variable]

_TASKS: Final = ("classification", "regression")


class Fit:
    """A trained network.

    Attributes:
        history: The means of each epoch: "loss", and "validation/..." where there are validation data.
        parameters: The parameters by name.

    Example:
        >>> from nn_core.training import fit
        >>> x, t = np.eye(4, dtype=np.float32), np.arange(4)
        >>> result = fit(lambda x: PF.affine(x, 4), (x, t), epochs=50, solver=S.Adam(0.1), progress=False)
        >>> result.predict(x).argmax(axis=1).tolist()
        [0, 1, 2, 3]
        >>> result.history[0]["loss"] > result.history[-1]["loss"]
        True
    """

    def __init__(
        self, network: Network, task: str, x: Variable, history: list[dict[str, Any]], parameters: Mapping[str, Variable]
    ) -> None:
        self.history = history
        self.parameters = dict(parameters)
        self._task = task
        self._x = x
        self._y = _called(network, x, test=True)

    def evaluate(self, data: Arrays, batch_size: int = 256) -> dict[str, float]:
        """Loss and metrics on other data."""
        x, t = _checked("evaluate", self._task, data)
        target = Variable((self._x.shape[0], *t.shape[1:]))
        return Evaluator((x, t), [self._x, target], _outputs(self._task, self._y, target), batch_size=batch_size).evaluate()

    def predict(self, x: Any, batch_size: int = 256) -> np.ndarray[Any, Any]:
        """Probabilities of classes, or predictions; an axis of samples in front."""
        x = np.asarray(x)
        y = F.softmax(self._y) if self._task == "classification" else self._y
        results = []
        for start in range(0, len(x), batch_size):
            batch = x[start : start + batch_size]
            self._x.reset_shape(batch.shape, True)
            self._x.d = batch
            y.forward(clear_buffer=True)
            results.append(y.d.copy())
        return np.concatenate(results) if results else np.zeros((0, *y.shape[1:]), np.float32)


def fit(
    network: Network,
    train: Arrays,
    validation: Arrays | None = None,
    task: str = "classification",
    *,
    epochs: int = 10,
    batch_size: int = 64,
    solver: Solver | None = None,
    seed: int = 313,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = True,
    extensions: Sequence[Extension] = (),
    **settings: Any,
) -> Fit:
    """Train a network on arrays.

    Classification minimizes the cross entropy of the softmax of what the network gives, and reports accuracy, mean precision,
    recall and F1; regression minimizes the mean squared error, and reports mean absolute error, root of the mean squared
    error, and R2.

    Args:
        network: A function or module; ``network(x)``, or ``network(x, test=False)`` if it tells training from testing.
        train: Inputs and targets. Shapes (N, ...) and (N,) or (N, 1) of labels, or that of the predictions.
        validation: Others, on which nothing is trained.
        task: "classification" or "regression".
        epochs: How often each sample is taken.
        batch_size: Samples of a step.
        solver: Default: Adam.
        seed: Seed of the orders of samples.
        out: Folder for the log and for checkpoints; None: neither.
        resume: Continue the newest run in `out` from its newest checkpoint.
        overwrite: Remove the files of the newest run in `out`; see ``Trainer.run``.
        progress: Show a bar.
        extensions: Further extensions of the trainer.
        **settings: Further arguments of `Updater`: accumulate, clip_norm, weight_decay, loss_scale.

    Raises:
        ArgumentError: when an argument is wrong, inputs and targets have different lengths, or `out` holds a run that has not
            come to its end.

    Example:
        >>> from nn_core.training import fit
        >>> x = np.random.RandomState(0).randn(200, 2).astype(np.float32)
        >>> t = (x[:, 0] > x[:, 1]).astype(int)
        >>> result = fit(lambda x: PF.affine(x, 2, name="fit"), (x, t), epochs=30, solver=S.Adam(0.1), progress=False)
        >>> result.evaluate((x, t))["accuracy"] > 0.95
        True
    """
    if task not in _TASKS:
        raise ArgumentError(f"fit: task must be one of {', '.join(_TASKS)}, got {task!r}")
    x_train, t_train = _checked("fit", task, train)
    batch_size = min(batch_size, len(x_train))
    x, t = Variable((batch_size, *x_train.shape[1:])), Variable((batch_size, *t_train.shape[1:]))
    loss = _loss(task, _called(network, x, test=False), t)
    parameters = network.get_parameters() if isinstance(network, Module) else get_parameters(grad_only=False)
    solver = Adam() if solver is None else solver
    solver.set_parameters({name: parameter for name, parameter in parameters.items() if parameter.need_grad})
    log = Log()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory()) if out is None else out
        data = stack.enter_context(
            data_iterator_simple(
                lambda index: (x_train[index], t_train[index]), len(x_train), batch_size, True, np.random.RandomState(seed)
            )
        )
        updater = Updater(data, [x, t], loss, solver, model=parameters, **settings)
        trainer = Trainer(updater, every(epochs, "epoch"), folder, [log, *extensions])
        if validation is not None:
            held_out = _checked("fit", task, validation)
            vx, vt = Variable(x.shape), Variable(t.shape)
            outputs = _outputs(task, _called(network, vx, test=True), vt)
            trainer.extend(Evaluator(held_out, [vx, vt], outputs, batch_size=batch_size))
        if progress:
            trainer.extend(Progress())
        if out is not None:
            trainer.extend(Checkpoint())
        trainer.run(resume=resume, overwrite=overwrite)
    return Fit(network, task, Variable(x.shape), log.entries, parameters)


def _called(network: Network, x: Variable, test: bool) -> Variable:
    function = network.call if isinstance(network, Module) else network
    if "test" in inspect.signature(function).parameters:
        return network(x, test=test)
    return network(x)


def _loss(task: str, y: Variable, t: Variable) -> Variable:
    if task == "classification":
        return F.mean(F.softmax_cross_entropy(y, t))
    if y.shape != t.shape:
        raise ShapeError(f"fit: predictions must have the shape of the targets, got {y.shape} and {t.shape}")
    return F.mean(F.squared_error(y, t))


def _outputs(task: str, y: Variable, t: Variable) -> dict[str, Output]:
    outputs: dict[str, Output] = {"loss": _loss(task, y, t)}
    if task == "classification":
        return {**outputs, "accuracy": Accuracy(y, t), "mean": Confusion(y, t)}
    return {**outputs, "error": RegressionErrors(y, t)}


def _checked(function: str, task: str, data: Arrays) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    x, t = (np.asarray(array) for array in data)
    if not x.ndim or not t.ndim or len(x) != len(t) or not len(x):
        raise ArgumentError(f"{function}: there must be as many targets as inputs, at least one, got {x.shape} and {t.shape}")
    return x, t.reshape(len(t), 1) if task == "classification" and t.ndim == 1 else t
