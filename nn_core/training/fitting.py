"""Train on arrays in one call."""

import functools
import inspect
import operator
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from nn_core import functions as F
from nn_core import solvers
from nn_core.core.module import Module
from nn_core.data.source import DataSource
from nn_core.engine.error_messages.foreign_values import values_of
from nn_core.engine.error_messages.refusal import described, fitted, fitted_methods
from nn_core.engine.error_messages.synonyms import suggestion
from nn_core.engine.graph.node import Storage
from nn_core.engine.runtime.holders import where_parameters_are
from nn_core.engine.runtime.html import curves, table
from nn_core.errors import ArgumentError, ShapeError, SignatureError
from nn_core.graph_rewriting import functions_of
from nn_core.logger import logger
from nn_core.parametric_functions.scope import get_parameters, pop_parameter
from nn_core.random import seed as set_seed
from nn_core.solvers import Adam
from nn_core.solvers.base import Solver
from nn_core.solvers.parameter_groups import ParameterGroups
from nn_core.solvers.schedule_free import Averaging
from nn_core.training.batches import IterableBatches, batches_of_arrays, gathered, is_batches
from nn_core.training.callbacks import Callback, Callbacks
from nn_core.training.entry import Extension
from nn_core.training.extensions import Checkpoint, Evaluator, Log, Progress, ReduceOnPlateau, Schedule
from nn_core.training.fit_arguments import require_arguments, require_variables, told_as_fit
from nn_core.training.fit_data import LossWatch, warn_of_images, warn_of_training
from nn_core.training.named_metrics import MetricLike
from nn_core.training.network_calls import Network, alike, called
from nn_core.training.objective import Arrays, Loss, Objective, sample_weights
from nn_core.training.predicting import checked_inputs, computed
from nn_core.training.samples import Samples, batches_of, packed, parts
from nn_core.training.shares import class_weights, is_share, split
from nn_core.training.trainer import Trainer
from nn_core.training.triggers import Trigger, every
from nn_core.training.updater import Updater
from nn_core.training.watched_values import early_stop
from nn_core.utils.learning_rate_scheduler import BaseLearningRateScheduler
from nn_core.variable import Variable

#: Seed of the orders of samples where none is given.
_SEED: Final = 313
#: Parameters that `fit` has trained, and how often they had been written by then.
_TRAINED: Final[weakref.WeakKeyDictionary[Variable, int]] = weakref.WeakKeyDictionary()
#: Arguments of `Updater` that `fit` takes and passes on.
_SETTINGS: Final = frozenset(inspect.signature(Updater).parameters) - {"data", "inputs", "loss", "solver", "model"}
#: Hints for arguments of other frameworks.
_HINTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("lr", "learning_rate"), "solver=S.Adam(0.001) has the rate"),
    "optimizer": "solver=S.Adam(0.001)",
    "callback": "callbacks=[function], called with the epoch and its values",
    "scheduler": "schedule=CosineScheduler(0.1, max_iter=1000)",
    "early_stopping": "patience=5, or extensions=[early_stop(...)]",
    "until": "epochs=, patience= or extensions=[early_stop(...)] end training; Trainer takes any trigger",
    "validation_data": "validation=(x, t)",
    "validation_split": "validation=0.2",
    **dict.fromkeys(("device", "gpu", "gpus"), "nn.set_default_context(...) says where to run"),
    "verbose": "progress=False shows no bar",
}


@fitted_methods()
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

    @fitted
    def __init__(
        self,
        network: Network,
        objective: Objective,
        x: Sequence[Variable],
        history: list[dict[str, Any]],
        parameters: Mapping[str, Variable],
    ) -> None:
        self.history = history
        self.parameters = dict(parameters)
        self._objective = objective
        self._x = list(x)
        self._y = called(network, x, test=True)
        if not isinstance(network, Module):
            warn_of_training(self._x, self._y)

    def __repr__(self) -> str:
        """Return the values of the last epoch."""
        last = self.history[-1] if self.history else {}
        shown = [name for name in last if name not in ("iteration", "epoch", "elapsed_time")]
        values = ", ".join(f"{name} {last[name]:.4g}" for name in shown)
        return f"<Fit of {len(self.parameters)} parameters after {len(self.history)} epochs: {values}>"

    def _repr_html_(self) -> str:
        """Return a curve of the losses, and the values of the last epoch."""
        if not self.history:
            return "<div>Fit without epochs</div>"
        last = self.history[-1]
        shown: tuple[str, ...] = ("loss", "validation/loss")
        losses = {name: [float(entry[name]) for entry in self.history] for name in shown if name in last}
        rows = [(name, f"{value:.4g}") for name, value in last.items()]
        return curves(losses) + table(("last epoch", "value"), rows, f"{len(self.parameters)} parameters")

    def evaluate(self, data: Arrays, batch_size: int = 256) -> dict[str, float]:
        """Loss and metrics on other data."""
        samples = self._objective.data("evaluate", "data", gathered("evaluate", "data", data))
        targets = [Variable((self._x[0].shape[0], *t.shape[1:])) for t in samples.targets]
        outputs = self._objective.outputs(self._y, packed(targets))
        return Evaluator(samples.arrays, [*self._x, *targets], outputs, batch_size=batch_size).evaluate()

    def predict(self, x: Any, batch_size: int = 256) -> Any:
        """Probabilities of classes, or predictions; an axis of samples in front.

        Args:
            x: Inputs, a tuple of arrays where there are several.
            batch_size: Samples that are computed at a time.

        Returns:
            An array; a tuple of arrays, as the network gives them, where it has several outputs.

        Raises:
            ArgumentError: when `x` has not as many arrays as the network has inputs.
            ShapeError: when one has another number of axes than the inputs of training.
        """
        several = isinstance(self._y, tuple)
        outputs = list(self._y) if isinstance(self._y, tuple) else [self._y]
        if self._objective.task == "classification" and not several:
            outputs = [F.softmax(outputs[0])]
        return packed(computed(self._x, outputs, checked_inputs(self._x, x), batch_size))


@fitted
def fit(
    network: Network,
    train: Arrays,
    validation: Arrays | float | None = None,
    task: str = "classification",
    *,
    epochs: int = 10,
    batch_size: int = 64,
    solver: Solver | str | None = None,
    schedule: BaseLearningRateScheduler | ReduceOnPlateau | Callable[[int], float] | None = None,
    groups: ParameterGroups | None = None,
    patience: int | None = None,
    loss: Loss | None = None,
    class_weight: Sequence[float] | Mapping[int, float] | str | None = None,
    sample_weight: Any = None,
    metrics: Sequence[MetricLike] | Mapping[str, MetricLike] | None = None,
    callbacks: Sequence[Callback] = (),
    seed: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    go_on: bool = False,
    fresh: bool = False,
    progress: bool = True,
    extensions: Sequence[Extension | Trigger] = (),
    **settings: Any,
) -> Fit:
    """Train a network on arrays or batches.

    Classification minimizes the cross entropy of the softmax of what the network gives, and reports accuracy, mean precision,
    recall and F1; regression minimizes the mean squared error, and reports mean absolute error, root of the mean squared
    error, and R2.

    Args:
        network: A function or module; ``network(x)``, or ``network(x, test=False)`` if it tells training from testing. It may
            return a tuple of Variables, for a `loss` of all of them.
        train: Inputs and targets. Shapes (N, ...) and (N,) or (N, 1) of labels, or that of the predictions, where (N,) stands
            for (N, 1). A tuple of arrays in place of one stands for several: ``((a, b), t)`` calls ``network(a, b)``. Or
            batches of both, with weights of the samples as a third array if there are some: a data source or iterator, a
            list or another iterable, a function that returns one, or a generator for one epoch.
        validation: Others, on which nothing is trained; or a share of the arrays of `train`, such as 0.2: samples that are
            drawn by the seed and left out of training.
        task: "classification" or "regression".
        epochs: Number of epochs.
        batch_size: Samples of a step.
        solver: A solver, or the name of one with the numbers that it has by itself, such as "adam". Default: Adam.
        schedule: A scheduler of the learning rate, a function of the iteration, or a `ReduceOnPlateau`.
        groups: Settings of some of the parameters by pattern of their names, such as
            ``{"*/b": {"weight_decay_multiplier": 0}}``; see ``Solver.set_groups``.
        patience: End when the loss of the validation data, or that of the training data where there are none, has not become
            smaller for so many epochs; the weights are those of the last epoch. None: take all epochs.
        loss: ``loss(y, t)`` of predictions and targets in place of that of the task; several elements are averaged. `y` and
            `t` are tuples where there are several outputs or arrays of targets.
        class_weight: A weight for each class, in their order or by class in a dictionary: the loss is the weighted mean over
            the samples. "balanced": classes of arrays weigh the same together, however many samples they have.
        sample_weight: A weight for each sample of arrays, by whose mean all are divided. A loss of your own has a value for
            each sample then.
        metrics: Reported of validation data instead of those of the task: names ("accuracy", "top5", "auc", "precision",
            "recall", "f1"; "mae", "rmse", "r2") and functions ``metric(y, t)`` of all scores and targets; or some by name.
        callbacks: Functions ``callback(epoch, values)``, called after each epoch with its means; one that returns True ends
            training.
        seed: Seed of the orders of samples, of initial weights and of random functions, by ``nn_core.seed``; weights that
            are there already stay as they are. None: 313 for the orders, and random numbers go on.
        out: Folder for the log and for checkpoints; None: neither.
        resume: Continue the newest run in `out` from its newest checkpoint.
        overwrite: Remove the files of the newest run in `out`; see ``Trainer.run``.
        go_on: Train on what an earlier call has trained, which is refused without it, `resume` or `fresh`.
        fresh: Forget the parameters that the network has, and make new ones.
        progress: Show a bar.
        extensions: Further extensions of the trainer; triggers among them, such as ``early_stop(...)``, end training.
        **settings: Further arguments of `Updater`: accumulate, clip_norm, weight_decay, loss_scale.

    Raises:
        ArgumentError: when an argument is wrong, inputs and targets have different lengths, the network has no parameters
            to train, or `out` holds a run that has not come to its end; when an earlier call has trained the parameters,
            and neither `resume` nor `go_on` is given.

    Example:
        >>> from nn_core.training import fit
        >>> x = np.random.RandomState(0).randn(200, 2).astype(np.float32)
        >>> t = (x[:, 0] > x[:, 1]).astype(int)
        >>> result = fit(lambda x: PF.affine(x, 2, name="fit"), (x, t), epochs=30, solver=S.Adam(0.1), progress=False)
        >>> result.evaluate((x, t))["accuracy"] > 0.95
        True
    """
    _require_settings(settings)
    require_arguments(
        network=network, epochs=epochs, batch_size=batch_size, schedule=schedule, patience=patience, callbacks=callbacks,
        seed=seed, out=out, resume=resume, overwrite=overwrite, go_on=go_on, fresh=fresh, progress=progress,
        extensions=extensions, **settings,
    )  # fmt: skip
    goes_on = _goes_on(resume, go_on, fresh)
    objective = Objective(task, loss, class_weights(class_weight, train), metrics)
    log = Log()
    seed_of_orders = _SEED if seed is None else seed
    if is_share(validation):
        train, validation, sample_weight = split(train, validation, sample_weight, seed_of_orders)
    with told_as_fit(), ExitStack() as stack:
        source = _source(objective, train, sample_weight, batch_size, seed_of_orders, stack)
        x, targets = source.inputs, source.targets
        held_out = _held_out(objective, validation, x)
        if fresh:
            _forget(network, x)
        _seed_everything(seed)
        mean_loss = _loss_of(network, objective, x, targets, source.weights)
        for variable in x:
            warn_of_images(mean_loss, variable)
        parameters = network.get_parameters() if isinstance(network, Module) else get_parameters(grad_only=False)
        trained = _to_train(parameters, mean_loss)
        if not goes_on:
            _require_new(trained)
        solver = _solver(solver)
        solver.set_parameters(trained, groups=groups)
        ends = [*_triggers(extensions), *_early_stop(patience, has_validation=held_out is not None)]
        until = functools.reduce(operator.or_, ends, every(epochs, "epoch"))
        folder = stack.enter_context(tempfile.TemporaryDirectory()) if out is None else out
        updater = _updater(network, objective, source, mean_loss, solver, model=parameters, **settings)
        trainer = Trainer(updater, until, folder, [log, *_own(extensions)])
        if held_out is not None:
            trainer.extend(_evaluator(network, objective, held_out, alike(x), alike(targets)))
        trainer.extend(LossWatch(log, None if source.is_stream else train))
        trainer.extend(*_asked_for(schedule, callbacks, log, progress, is_saved=out is not None))
        trainer.run(resume=bool(resume), overwrite=bool(overwrite))
    if isinstance(solver, Averaging):
        solver.keep_average()
    _TRAINED.update({parameter: parameter.data.modification_count for parameter in trained.values()})
    return Fit(network, objective, alike(x), log.entries, parameters)


def _goes_on(resume: bool, go_on: bool, fresh: bool) -> bool:
    """Return whether a network that was trained before is no mistake."""
    if fresh and (resume or go_on):
        raise ArgumentError("fit: fresh must be False with resume or go_on, got True")
    return resume or go_on or fresh


def _asked_for(schedule: Any, callbacks: Sequence[Callback], log: Log, progress: bool, *, is_saved: bool) -> list[Extension]:
    """Make the extensions for arguments of `fit`."""
    found: list[Extension] = [] if schedule is None else [_schedule(schedule)]
    if callbacks:
        found.append(Callbacks(log, callbacks))
    if progress:
        found.append(Progress())
    if is_saved:
        found.append(Checkpoint())
    return found


def _schedule(given: Any) -> Extension:
    return given if isinstance(given, ReduceOnPlateau) else Schedule(given)


def _seed_everything(seed: int | None) -> None:
    if seed is not None:
        set_seed(seed)


class _Source(NamedTuple):
    """The Variables of a batch, weights if there are some, and where the batches come from.

    Batches of a stream may have any number of samples.
    """

    inputs: list[Variable]
    targets: list[Variable]
    weights: list[Variable]
    data: Any
    is_stream: bool

    @classmethod
    def of(cls, shapes: Sequence[Any], counts: tuple[int, int], data: Any, *, is_stream: bool) -> "_Source":
        """Make Variables of shapes, the first of which are those of inputs, the next of targets."""
        variables = [Variable(shape) for shape in shapes]
        n_inputs, n_targets = counts
        ends = n_inputs + n_targets
        return cls(variables[:n_inputs], variables[n_inputs:ends], variables[ends:], data, is_stream)


def _source(objective: Objective, train: Arrays, weights: Any, batch_size: int, seed: int, stack: ExitStack) -> _Source:
    if is_batches(train):
        if weights is not None:
            raise ArgumentError("fit: sample_weight must go with arrays, got it with batches, whose third array are weights")
        if isinstance(train, DataSource):
            train = stack.enter_context(batches_of("fit", "train", train, batch_size, seed))
        return _stream(objective, train)
    samples = objective.data("fit", "train", train)
    n = samples.inputs[0].shape[0]
    arrays = [*samples.arrays, *([] if weights is None else [sample_weights(weights, n)])]
    size = min(batch_size, n)
    data = stack.enter_context(batches_of_arrays(arrays, size, seed))
    counts = len(samples.inputs), len(samples.targets)
    shapes = [(size, *array.shape[1:]) for array in arrays]
    return _Source.of(shapes, counts, data, is_stream=False)


def _stream(objective: Objective, train: Any) -> _Source:
    data = train if hasattr(train, "next") else IterableBatches(train)
    batch = data.first if isinstance(data, IterableBatches) else _first(data)
    if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
        raise ArgumentError(f"fit: a batch of train must have inputs, targets and maybe weights, got {described(batch)}")
    x, t, *w = ([values_of(one) for one in parts(part)] for part in batch)
    arrays = [*x, *map(objective.targets, t), *(weights for given in w for weights in given)]
    return _Source.of([array.shape for array in arrays], (len(x), len(t)), data, is_stream=True)


def _first(data: Any) -> Any:
    """Return the first batch of a data iterator, which stays where it is."""
    state = data.get_state()
    batch = data.next()
    data.set_state(state)
    return batch


def _loss_of(
    network: Network, objective: Objective, x: Sequence[Variable], t: Sequence[Variable], w: Sequence[Variable]
) -> Variable:
    return objective.loss(called(network, x, test=False), packed(t), *w)


def _updater(
    network: Network, objective: Objective, source: _Source, loss: Variable, solver: Solver, **settings: Any
) -> Updater:
    """Make an updater of a static graph, or for a stream of one that builds the graph of each batch."""
    n_inputs, n_targets = len(source.inputs), len(source.targets)
    if not source.is_stream:
        return Updater(source.data, [*source.inputs, *source.targets, *source.weights], loss, solver, **settings)

    def loss_of_batch(*batch: Variable) -> Variable:
        x, t, w = batch[:n_inputs], batch[n_inputs : n_inputs + n_targets], batch[n_inputs + n_targets :]
        is_label = objective.task == "classification"
        labels = [F.reshape(one, (one.shape[0], 1)) if is_label and one.ndim == 1 else one for one in t]
        return _loss_of(network, objective, x, labels, w)

    return Updater(source.data, None, loss_of_batch, solver, **settings)


def _forget(network: Network, x: Sequence[Variable]) -> None:
    """Forget the parameters that layers of a network have made, so that its next call makes new ones."""
    if isinstance(network, Module):
        network.clear_parameters()
        return
    made = require_variables(network(*x))
    functions = functions_of(made if isinstance(made, tuple) else [made])
    used = {variable.storage for function in functions for variable in function.inputs}
    for name, parameter in get_parameters(grad_only=False).items():
        if parameter.storage in used:
            pop_parameter(name)


def _evaluator(
    network: Network, objective: Objective, validation: Samples, x: Sequence[Variable], t: Sequence[Variable]
) -> Evaluator:
    outputs = objective.outputs(called(network, x, test=True), packed(t))
    return Evaluator(validation.arrays, [*x, *t], outputs, batch_size=x[0].shape[0])


def _require_settings(settings: Mapping[str, Any]) -> None:
    """Refuse what neither `fit` nor `Updater` takes."""
    for name in settings:
        if name not in _SETTINGS:
            known = [*inspect.signature(fit).parameters, *_SETTINGS]
            hint = _HINTS.get(name)
            help_text = suggestion(name, known) if hint is None else f"\n  hint: {hint}"
            raise SignatureError(f"fit: got an unexpected keyword argument {name!r}{help_text}")


def _solver(given: Solver | str | None) -> Solver:
    """Return the solver that was given, or that has the name which was given."""
    if given is None:
        return Adam()
    if isinstance(given, Solver):
        return given
    found = {name.lower(): name for name in solvers.__all__}
    if not isinstance(given, str) or given.lower() not in found:
        names = ", ".join(sorted(found))
        raise ArgumentError(f"fit: solver must be a solver, or the name of one ({names}), got {described(given)}")
    made: Solver = getattr(solvers, found[given.lower()])()
    return made


def _own(extensions: Sequence[Extension | Trigger]) -> list[Extension]:
    return [one for one in extensions if not isinstance(one, Trigger)]


def _early_stop(patience: int | None, *, has_validation: bool) -> list[Trigger]:
    return [] if patience is None else [early_stop("validation/loss" if has_validation else "loss", patience, "min")]


def _held_out(objective: Objective, validation: Arrays | None, train: Sequence[Variable]) -> Samples | None:
    if validation is None:
        return None
    samples = objective.data("fit", "validation", gathered("fit", "validation", validation))
    wanted, given = ([tuple(array.shape)[1:] for array in arrays] for arrays in (train, samples.inputs))
    if given != wanted:
        raise ShapeError(
            f"fit: samples of validation must have the shape of those of train, {packed(wanted)}, got {packed(given)}"
        )
    return samples


def _triggers(extensions: Sequence[Extension | Trigger]) -> list[Trigger]:
    return [one for one in extensions if isinstance(one, Trigger)]


def _to_train(parameters: Mapping[str, Variable], loss: Variable) -> dict[str, Variable]:
    """Return the parameters that need a gradient; refuses none, and warns of others that the loss depends on."""
    trained = {name: parameter for name, parameter in parameters.items() if parameter.need_grad}
    if not trained:
        raise ArgumentError(f"fit: network must have parameters to train, got none{where_parameters_are()}")
    others = _leaves(loss) - {parameter.storage for parameter in trained.values()}
    if others:
        shapes = ", ".join(sorted(f"one of shape {storage.data.shape}" for storage in others)[:8])
        where = where_parameters_are()
        logger.warning("fit: the network must have all parameters of the loss, got others: %s%s", shapes, where)
    return trained


def _leaves(loss: Variable) -> set[Storage]:
    """Return the leaves that a loss depends on and that need a gradient."""
    read = [variable for function in functions_of([loss]) for variable in function.inputs]
    return {variable.storage for variable in read if variable.parent is None and variable.need_grad}


def _require_new(trained: Mapping[str, Variable]) -> None:
    """Refuse parameters that are as an earlier call of `fit` has left them."""
    left = [name for name, variable in trained.items() if _TRAINED.get(variable) == variable.data.modification_count]
    if len(left) == len(trained):
        raise ArgumentError(
            f"fit: the weights must be new, or set since an earlier fit, got {left[0]} as that has left it\n"
            "  hint: a new module or nn_core.clear_parameters() starts anew, go_on=True trains on"
        )
