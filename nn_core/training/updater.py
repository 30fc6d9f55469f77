"""Updaters: one iteration of training, from a batch to changed parameters."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, NoReturn, Protocol, TypeAlias

import numpy as np

from nn_core import random
from nn_core.auto_forward import auto_forward
from nn_core.communicators import Communicator
from nn_core.core.module import Module
from nn_core.engine.error_messages.foreign_values import values_of
from nn_core.engine.error_messages.refusal import checked_count, fitted, fitted_methods
from nn_core.engine.graph.parameter_sources import parameters_of
from nn_core.engine.runtime.holders import where_parameters_are
from nn_core.engine.runtime.schemas import checked_state
from nn_core.errors import ArgumentError, ShapeError
from nn_core.solvers.base import Solver
from nn_core.solvers.minimizing import follows_finiteness, rescaled
from nn_core.training.checkpoint import RANDOM
from nn_core.training.demands import require_clipping, require_division, require_parts
from nn_core.training.hooks import GradientHook
from nn_core.training.loss_scale import LossScale, constant
from nn_core.training.passes import step_in_passes, takes_passes
from nn_core.training.ranks import Progress, Ranks, divided_states
from nn_core.training.reporting import report, report_value
from nn_core.training.solver_parameters import parameters_of_solvers
from nn_core.training.states import Stateful, set_state_of, state_of
from nn_core.variable import Variable, forward_all

#: A Variable of a static graph, or a function that builds the graph from the Variables of a batch.
Loss: TypeAlias = Variable | Callable[..., Variable]
#: A module, parameters by name, or the name of a scope; or several of the former by name.
Model: TypeAlias = Module | Mapping[str, Any] | str
#: ``with phase("forward"):`` tells in which phase of an iteration the updater is.
Phase: TypeAlias = Callable[[str], AbstractContextManager[object]]
#: Methods that a subclass may define anew.
_PARTS_OF_A_STEP: Final = ("step", "next_batch", "gradients", "apply_gradients")


class Data(Protocol):
    """A source of batches: a `DataIterator`, or anything with ``next()``.

    For epochs it has `epoch`, `position` and `size`; for exact checkpoints, ``get_state()`` and ``set_state()``.
    """

    def next(self) -> Sequence[Any]: ...


@fitted_methods("apply_gradients", "gradients", "next_batch", "step", "update")
class Updater:
    """Takes a batch, computes the loss and its gradients, and changes the parameters.

    The order is fixed: the gradients are set to zero; forward and backward of each of `accumulate` batches, the loss
    scaled; the communicator sums up the gradients; they are unscaled and checked; clipped; decayed; changed by hooks; then
    the solvers update. So clipping and decay mean the same with and without loss scaling and accumulation.

    A subclass may define ``step()`` for another kind of iteration, such as that of two adversaries, from
    `next_batch`, `gradients` and `apply_gradients`.

    Args:
        data: The source of batches.
        inputs: The Variables that a batch is written to, for a static graph.
        loss: The loss, a Variable of one element; or a function of Variables that returns it, called for each batch.
        solver: The solver, or several by name, whose parameters differ.
        accumulate: Number of batches of one update; the gradient is that of the mean of their losses.
        clip_norm: Largest Euclidean norm of all gradients together.
        error_if_nonfinite: Raise a GraphError when that norm is not finite, before anything is updated; needs `clip_norm`.
        weight_decay: Rate for ``solver.weight_decay()``.
        hooks: Further changes of the gradients, called with each solver and the iteration after clipping and decay, such as
            `clip_values`, `lasso` and `gradient_noise`.
        loss_scale: A `LossScale`, for half precision; a number stands for a constant one.
        comm: The communicator of the ranks that train together, initialized; see nn_core.communicators. Every rank has the
            same data in the same order and computes its parts of each batch, and the loss is a mean over a batch.
            The parameters of rank 0 are given to all before the first step; what a step reports is the mean over all ranks.
        shards: The number of parts that each batch is cut into, a multiple of the number of ranks; the same number gives the
            same bits on any number of ranks, see `nn_core.communicators.Shards`. None: one a rank. 0: batches are not cut;
            each rank has data of its own, such as ``data.slice(rng, comm.size, comm.rank)``, which may differ in length; then
            epochs are those of rank 0, and running statistics of normalizations are means over the ranks.
        sharded_states: Divide the states of the solvers among the ranks, see `nn_core.communicators.shard_states`; checkpoints
            hold all of them.
        sharded_gradients: Divide the gradients as well: during the backward pass each rank gives up those of which others
            have the part. Gradients of parameters are zero after a step.
        metrics: Variables of one element that are computed and reported together with the loss, for a static graph.
        model: Content of a checkpoint besides the solvers: parameters, trained or not. Default: those of the present
            parameter scope.

    Attributes:
        iteration: Number of updates so far.

    Raises:
        ArgumentError: when the arguments do not fit together, or `solver` is none.
        ShapeError: when `loss` has more than one element.

    Example:
        >>> from nn_core.training import Updater
        >>> from nn_core.data import data_iterator_simple
        >>> x = nn.Variable((2, 3))
        >>> loss = F.mean(PF.affine(x, 1) ** 2)
        >>> solver = S.Adam()
        >>> solver.set_parameters(nn.get_parameters())
        >>> with data_iterator_simple(lambda i: np.ones(3), 8, 2) as data:
        ...     updater = Updater(data, [x], loss, solver, accumulate=2, clip_norm=1.0)
        ...     updater.update()
        >>> updater.iteration
        1
    """

    @fitted
    def __init__(
        self,
        data: Data,
        inputs: Sequence[Variable] | None,
        loss: Loss,
        solver: Solver | Mapping[str, Solver],
        *,
        accumulate: int = 1,
        clip_norm: float | None = None,
        error_if_nonfinite: bool = False,
        weight_decay: float | None = None,
        hooks: Sequence[GradientHook] = (),
        loss_scale: LossScale | float | None = None,
        comm: Communicator | None = None,
        shards: int | None = None,
        sharded_states: bool = False,
        sharded_gradients: bool = False,
        metrics: Mapping[str, Variable] | None = None,
        model: Model | None = None,
    ) -> None:
        require_parts(data, loss, solver)
        accumulate = checked_count("Updater: accumulate", accumulate)
        require_clipping(clip_norm, error_if_nonfinite, loss_scale)
        if isinstance(loss, Variable) and inputs is None:
            raise ArgumentError("Updater: inputs must be given together with a Variable as loss, got None")
        if metrics and not isinstance(loss, Variable):
            raise ArgumentError("Updater: metrics must be reported by the function that computes the loss, got both")
        self.iteration = 0
        self.data = data
        self.solvers: dict[str, Solver] = {"main": solver} if isinstance(solver, Solver) else dict(solver)
        self.loss_scale = constant(loss_scale) if isinstance(loss_scale, (int, float)) else loss_scale
        self._inputs = None if inputs is None else list(inputs)
        self._loss = loss
        self._metrics = dict(metrics or {})
        self._accumulate = accumulate
        self._clip_norm = clip_norm
        self._error_if_nonfinite = bool(error_if_nonfinite)
        self._weight_decay = weight_decay
        self._hooks = tuple(hooks)
        self._model = model
        self._takes_passes = takes_passes(
            self.solvers.values(),
            loss_scale=self.loss_scale,
            hooks=self._hooks,
            comm=None if comm is None or comm.size == 1 else comm,
        )
        self._trains = False
        require_division(type(self).step is Updater.step, sharded_gradients, hooks)
        self.state_shards = divided_states(comm, self.solvers.values(), sharded_states, sharded_gradients)
        self._ranks = self._ranks_of(comm, shards)
        self._is_cut = self._ranks is not None and self._ranks.n_parts > 0
        self.phase: Phase = nullcontext
        self._plain_graph = self._graph_without_extras()

    def measure(self, phase: Phase | None) -> None:
        """Tell `phase` in which phase of an iteration this is: data, forward, backward, sum, update; None: nobody."""
        self.phase = nullcontext if phase is None else phase
        self._plain_graph = self._graph_without_extras() if phase is None else None

    # -- progress --------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """Number of epochs that have ended; where each rank has data of its own, those of rank 0."""
        shared = self._shared_progress()
        return getattr(self.data, "epoch", 0) if shared is None else int(shared.epoch)

    @property
    def epoch_size(self) -> int:
        """Samples of an epoch; 1 when the data have no epochs."""
        shared = self._shared_progress()
        return getattr(self.data, "size", 1) if shared is None else int(shared.size)

    @property
    def samples(self) -> int:
        """Samples that were given so far; iterations when the data have no epochs."""
        shared = self._shared_progress()
        position = getattr(self.data, "position", -1) if shared is None else int(shared.position)
        return self.iteration if position < 0 else self.epoch * self.epoch_size + position

    @property
    def samples_of_a_step(self) -> int | None:
        """Number of samples that each iteration takes; None when that is not known beforehand."""
        a_step = (self._shared_progress() or self._own_progress()).a_step
        return None if a_step < 0 else int(a_step)

    def _shared_progress(self) -> Progress | None:
        return None if self._ranks is None else self._ranks.progress

    def _own_progress(self) -> Progress:
        data = self.data
        position = getattr(data, "position", None)
        batch_size = getattr(data, "batch_size", None)
        is_known = type(self).step is Updater.step and position is not None
        return Progress(
            getattr(data, "epoch", 0),
            getattr(data, "size", 1),
            -1 if position is None else position,
            batch_size * self._accumulate if is_known and batch_size is not None else -1,
        )

    # -- one iteration ---------------------------------------------------------------------------------------------

    def update(self) -> None:
        """Run one iteration.

        Raises:
            ArgumentError: when no solver has parameters.
        """
        if not self._trains and isinstance(self._loss, Variable):
            self._require_parameters()
        if self._plain_graph is None or self.loss_scale is not None:
            self._update_by_parts()
        else:
            inputs, loss = self._plain_graph
            self._step_plainly(inputs, loss)
        if not self._trains:  # a function may have made the parameters in this iteration
            self._require_parameters()
        self.iteration += 1

    def _require_parameters(self) -> None:
        self._trains = any(solver.get_parameters() for solver in self.solvers.values())
        if not self._trains:
            raise ArgumentError(
                f"Updater: solver must have parameters to train, got none: call its set_parameters(){where_parameters_are()}"
            )

    def _update_by_parts(self) -> None:
        """Run `step`, on all ranks where there are several."""
        self.make_alike()
        ranks = self._ranks
        if ranks is None or self._is_cut:
            self.step()
        else:
            with ranks.reporting(self._own_progress):
                self.step()

    def make_alike(self) -> None:
        """Give the parameters of rank 0 to all ranks, where there are several, before the first step."""
        ranks = self._ranks
        if ranks is not None and not ranks.are_alike:
            ranks.make_alike(self._parameters(), self._loss if isinstance(self._loss, Variable) else None, self.data)
            self.share_progress()

    def share_progress(self) -> None:
        """Let all ranks with data of their own count the epochs of rank 0, before the first step and after `set_state`."""
        if self._ranks is not None and not self._is_cut:
            self._ranks.share_progress(self._own_progress())

    def step(self) -> None:
        """Run one iteration; subclasses may define another."""
        if self._takes_passes:
            batches = [self._batch() for _ in range(self._accumulate)]
            step_in_passes(next(iter(self.solvers.values())), batches, self.gradients, self._clip_norm, self._weight_decay)
            return
        for solver in self.solvers.values():
            solver.zero_grad()
        if self._ranks is not None and self._is_cut:
            with self.phase("sum"):
                self._ranks.step(self.iteration, self._batch, self.gradients)
        else:
            for _ in range(self._accumulate) if self._ranks is None else self._ranks.passes():
                self.gradients(self._batch())
        with self.phase("update"):
            self.apply_gradients(*self.solvers.values())

    def _batch(self) -> Sequence[Any]:
        with self.phase("data"):
            return self.next_batch()

    def _step_plainly(self, inputs: Sequence[Variable], loss: Variable) -> None:
        """Do what `step` does for a graph without extras, in one function.

        The calls of `step`, `gradients` and the others take a tenth of the time of an iteration of a small network.
        """
        solvers = self.solvers.values()
        for solver in solvers:
            solver.zero_grad()
        batch = self.data.next()
        if len(batch) != len(inputs):
            self._refuse_batch(batch)
        for variable, values in zip(inputs, batch):  # noqa: B905  # they are as many, and this is called each step
            variable.d = values
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        report_value("loss", loss, _rows(batch))
        for solver in solvers:
            solver.update()

    def next_batch(self) -> Sequence[Any]:
        """Return the arrays of the next batch."""
        return self.data.next()

    def gradients(self, batch: Sequence[Any]) -> None:
        """Add the gradients of the loss of a batch, and report the loss."""
        with self.phase("forward"):
            loss = self._forward(batch)
        with self.phase("backward"):
            self._backward(loss)
        values: dict[str, Any] = {"loss": loss, **self._metrics} if self._metrics else {"loss": loss}
        if self._accumulate > 1 or self._is_cut:  # the next batch writes over them
            values = {name: float(variable.d) for name, variable in values.items()}
        report(values, weight=_rows(batch))

    def _backward(self, loss: Variable) -> None:
        n_added = 1 if self._is_cut else self._accumulate  # gradients of parts are averaged, not added
        sums = None if self._ranks is None else self._ranks.sums
        if self.loss_scale is None and n_added == 1:  # from 1, which takes a microsecond less than from a number that is given
            loss.backward(clear_buffer=True, communicator_callbacks=sums)
        else:
            scale = 1 if self.loss_scale is None else self.loss_scale.scale
            loss.backward(scale / n_added, clear_buffer=True, communicator_callbacks=sums)

    def apply_gradients(self, *solvers: Solver) -> bool:
        """Change the parameters of `solvers` by their gradients, in the order that the class describes.

        Returns:
            False when the gradients were not finite and the step was skipped, which needs a loss scale.
        """
        if self._ranks is not None and not self._is_cut:
            gradients = [v.grad for solver in solvers for v in solver.get_parameters().values()]
            with self.phase("sum"):
                self._ranks.average(gradients, self.iteration)
        if self._is_left_to_the_solver(solvers):
            return self._update_if_finite(solvers[0])
        if (self.loss_scale is not None or self._clip_norm is not None) and not self._rescale(solvers):
            report({"skipped": 1.0})
            return False
        for solver in solvers:
            if self._weight_decay is not None:
                solver.weight_decay(self._weight_decay)
            for hook in self._hooks:
                hook(solver, self.iteration)
            solver.update()
        return True

    def _forward(self, batch: Sequence[Any]) -> Variable:
        if not isinstance(self._loss, Variable):
            with auto_forward():
                return self._loss(*[Variable.from_numpy_array(values_of(values)) for values in batch])
        assert self._inputs is not None
        if len(batch) != len(self._inputs):
            self._refuse_batch(batch)
        if self._is_cut:
            self._require_parts(batch)
        for variable, values in zip(self._inputs, batch):  # noqa: B905  # they are as many, and this is called each step
            variable.d = values
        if self._metrics:
            forward_all([self._loss, *self._metrics.values()], clear_no_need_grad=True)
        else:
            self._loss.forward(clear_no_need_grad=True)
        return self._loss

    def _refuse_batch(self, batch: Sequence[Any]) -> NoReturn:
        raise ArgumentError(f"Updater: a batch must have {len(self._inputs or ())} arrays, one an input, got {len(batch)}")

    def _graph_without_extras(self) -> tuple[Sequence[Variable], Variable] | None:
        """Return inputs and loss, if an iteration is one batch of a static graph with nothing between gradients and update."""
        asked = self._accumulate > 1 or self._metrics or self._clip_norm is not None or self._weight_decay is not None
        if (
            asked
            or self._takes_passes
            or self._hooks
            or self._ranks is not None
            or self._inputs is None
            or not isinstance(self._loss, Variable)
        ):
            return None
        are_ours = all(getattr(type(self), name) is getattr(Updater, name) for name in _PARTS_OF_A_STEP)
        return (self._inputs, self._loss) if are_ours else None

    def _require_parts(self, batch: Sequence[Any]) -> None:
        for variable, values in zip(self._inputs or (), batch, strict=True):
            if np.shape(values) != variable.shape:  # a part of one sample fits any number
                raise ShapeError(
                    f"Updater: the inputs must have the shape of a part of a batch, {np.shape(values)}, got {variable.shape}"
                )

    @property
    def comm(self) -> Communicator | None:
        """The communicator of the ranks that train together; None when there is one."""
        return None if self._ranks is None else self._ranks.comm

    def _ranks_of(self, comm: Communicator | None, shards: int | None) -> Ranks | None:
        if comm is None or (comm.size == 1 and not shards):
            return None
        if type(self).step is not Updater.step and shards != 0:
            raise ArgumentError(
                f"Updater: shards must be 0 for {type(self).__name__}, whose step() takes batches in a way of its own, "
                f"got {shards}\n  hint: give each rank data of its own: data.slice(rng, comm.size, comm.rank)"
            )
        return Ranks(comm, comm.size if shards is None else shards, self._accumulate, self.state_shards)

    def _parameters(self) -> dict[str, Variable]:
        """All parameters, by names that are the same on every rank."""
        return {f"{name}/{key}": variable for (name, key), variable in self.placed_parameters().items()}

    def placed_parameters(self) -> dict[tuple[str, str], Variable]:
        """Return all parameters by the name of their model and their own, which is empty for a model of one Variable."""
        found: dict[tuple[str, str], Variable] = {}
        for name, model in self._models().items():
            items = {"": model} if isinstance(model, Variable) else parameters_of("Updater", model, argument="model")
            found.update({(name, key): variable for key, variable in items.items()})
        return found

    def _is_left_to_the_solver(self, solvers: Sequence[Solver]) -> bool:
        """Return whether nothing but the norm of the gradients of one solver decides about the update."""
        return len(solvers) == 1 and not self._hooks and follows_finiteness(self.loss_scale)

    def _update_if_finite(self, solver: Solver) -> bool:
        """Unscale, check, clip and update, which a device may do before the host knows whether the step is taken."""
        assert self.loss_scale is not None
        norm = solver.update_if_finite(1.0 / self.loss_scale.scale, self._clip_norm, self._weight_decay)
        is_taken = self.loss_scale.step(math.isfinite(norm))
        report({"grad_norm": norm} if is_taken else {"skipped": 1.0})
        return is_taken

    def _rescale(self, solvers: Sequence[Solver]) -> bool:
        """Unscale, check and clip in one change of the gradients; False when the step is to be skipped."""
        norm = rescaled(solvers, self._clip_norm, self.loss_scale, self._error_if_nonfinite)
        if norm is None:
            return False
        report({"grad_norm": norm})
        return True

    # -- state -----------------------------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        """Return iteration, model, solvers, data, loss scale, counters of random functions."""
        state: dict[str, Any] = {"iteration": self.iteration}
        state.update({name: state_of(item) for name, item in self._parts().items()})
        return state

    @checked_state
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave.

        Raises:
            ArgumentError: when it is the state of an updater with other parts.
        """
        parts = self._parts()
        if set(state) != {"iteration", *parts}:
            given = ", ".join(sorted(set(state) - {"iteration"}))
            raise ArgumentError(f"Updater: the state must have {', '.join(sorted(parts))}, got {given}")
        for name, item in parts.items():
            set_state_of(f"Updater: {name}", item, state[name])
        self.iteration = int(state["iteration"])

    def rank_state(self) -> dict[str, Any]:
        """Return what differs between ranks with data of their own: the data, and what random functions depend on."""
        parts = self._parts()
        state: dict[str, Any] = {name: state_of(parts[name]) for name in ("data", "graph") if name in parts}
        return {**state, RANDOM: random.get_state()}

    @property
    def ranks_with_own_data(self) -> Ranks | None:
        """The ranks, where each of them has data of its own."""
        return None if self._is_cut else self._ranks

    def _parts(self) -> dict[str, Any]:
        parts: dict[str, Any] = {f"model/{name}": item for name, item in self._models().items()}
        parts.update({f"solver/{name}": solver for name, solver in self.solvers.items()})
        if isinstance(self.data, Stateful):
            parts["data"] = self.data
        if self.loss_scale is not None:
            parts["loss_scale"] = self.loss_scale
        if isinstance(self._loss, Variable):
            parts["graph"] = self._loss
        return parts

    def _models(self) -> dict[str, Any]:
        model = self._model
        if model is None:
            model = parameters_of_solvers(self.solvers.values())
        if isinstance(model, str) or (isinstance(model, Mapping) and any(isinstance(v, Variable) for v in model.values())):
            model = parameters_of("Updater", model, argument="model")
        if isinstance(model, Mapping) and not all(isinstance(value, Variable) for value in model.values()):
            return dict(model)
        return {"main": model} if not isinstance(model, Mapping) or model else {}


def _rows(batch: Sequence[Any]) -> float:
    try:
        return len(batch[0])
    except (IndexError, TypeError):  # no arrays, or one number
        return 1.0
