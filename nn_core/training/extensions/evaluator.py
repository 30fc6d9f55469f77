"""Evaluation on data that are not trained on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from nn_core.communicators import Communicator
from nn_core.engine.error_messages.foreign_values import values_of
from nn_core.engine.error_messages.refusal import fitted, fitted_methods
from nn_core.engine.graph.node import forward_order
from nn_core.errors import ArgumentError
from nn_core.solvers.schedule_free import Averaging
from nn_core.training.batches import epoch_of
from nn_core.training.metrics import Metric
from nn_core.training.ranks import gather_arrays
from nn_core.training.reporting import report
from nn_core.training.summary import Summaries
from nn_core.training.trainer import Trainer
from nn_core.typing import Array
from nn_core.variable import Variable, forward_all

#: A Variable of one element, whose mean over the samples is taken, or a metric.
Output: TypeAlias = Variable | Metric


@fitted_methods()
class Evaluator:
    """Compute means and metrics over all samples of a data set, each epoch or as the trigger says.

    Each evaluation takes every sample once, in the same order; the last batch has as many samples as are left. It may also
    be called without a trainer, by `evaluate`. A trainer's evaluations use the averages of schedule-free solvers.

    Args:
        data: A `DataIterator`, which nobody else reads from; or arrays, with `batch_size`.
        inputs: The Variables that a batch is written to. Build the graph for evaluation: batch normalization with
            ``batch_stat=False``, no dropout.
        outputs: Values to compute, by name: Variables of one element that are means over the batch, or metrics.
        name: Put in front of the names: "validation/error".
        batch_size: Number of samples in a batch, for arrays.
        comm: A communicator, whose ranks compute the batches in turn. All of them have the same data, and get the same values,
            to the bit those of one rank.

    Raises:
        ArgumentError: when arrays have different lengths or no batch size is given; with `comm`, when the graph draws random
            numbers or changes running statistics, which would differ between the ranks.

    Example:
        >>> from nn_core.training import Accuracy, Evaluator
        >>> x, t = nn.Variable((4, 2)), nn.Variable((4, 1))
        >>> samples = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]]), np.array([[0], [1], [1]])
        >>> evaluator = Evaluator(samples, [x, t], {"accuracy": Accuracy(x, t)}, batch_size=4)
        >>> {name: round(value, 3) for name, value in evaluator.evaluate().items()}
        {'accuracy': 0.667}
    """

    phase = "measure"

    @fitted
    def __init__(
        self,
        data: Any,
        inputs: Sequence[Variable],
        outputs: Mapping[str, Output],
        name: str = "validation",
        batch_size: int | None = None,
        comm: Communicator | None = None,
    ) -> None:
        self.name = name
        self._inputs = list(inputs)
        self._outputs = dict(outputs)
        self._batches = _batches_of(data, batch_size)
        self._comm = None if comm is None or comm.size == 1 else comm
        read = {id(v): v for output in self._outputs.values() for v in _read_by(output)}
        self._read = list(read.values())
        if self._comm is not None:
            _require_pure(self._read)

    def __call__(self, trainer: Trainer) -> None:
        with ExitStack() as stack:
            for solver in trainer.updater.solvers.values():
                if isinstance(solver, Averaging):
                    stack.enter_context(solver.averaged_parameters())
            values = self.evaluate()
        report({f"{self.name}/{key}": value for key, value in values.items()})

    def evaluate(self) -> dict[str, float]:
        """Return the values by name, without the name of the evaluator."""
        summaries = Summaries()
        metrics = {name: output for name, output in self._outputs.items() if isinstance(output, Metric)}
        for metric in metrics.values():
            metric.reset()
        shapes = [variable.shape for variable in self._inputs]
        for n_samples, arrays in self._computed():
            self._take(dict(zip(map(id, self._read), arrays, strict=True)), n_samples, summaries)
        for variable, shape in zip(self._inputs, shapes, strict=True):
            if variable.shape != shape:
                variable.reset_shape(shape, True)
        values = summaries.means()
        for name, metric in metrics.items():
            values.update({name + key: value for key, value in metric.results().items()})
        return values

    def _take(self, found: Mapping[int, Array], n_samples: int, summaries: Summaries) -> None:
        """Let metrics and means take in the arrays of a batch, by the identities of their Variables."""
        for name, output in self._outputs.items():
            if isinstance(output, Metric):
                output.take(*[found[id(variable)] for variable in output.variables])
            else:
                summaries.add(name, float(found[id(output)]), n_samples)

    def _computed(self) -> Iterator[tuple[int, Sequence[Array]]]:
        """Return the number of samples of one batch after the other, and the arrays of the outputs."""
        if self._comm is None:
            return ((_length(batch), self._values(batch)) for batch in self._batches())
        return self._computed_in_turn(self._comm)

    def _computed_in_turn(self, comm: Communicator) -> Iterator[tuple[int, Sequence[Array]]]:
        batches = self._batches()
        while turn := list(islice(batches, comm.size)):
            yield from zip(map(_length, turn), comm.repeated(partial(self._of_turn, comm, turn)), strict=False)

    def _of_turn(self, comm: Communicator, turn: Sequence[Any]) -> list[list[Array]]:
        """Return the values of some batches, as many at a time as there are ranks."""
        found = []
        for start in range(0, len(turn), comm.size):
            batches = turn[start : start + comm.size]
            own = self._values(batches[comm.rank]) if comm.rank < len(batches) else []
            found += gather_arrays(comm, "evaluate", own, len(self._read))
        return found

    def _values(self, batch: Sequence[Any]) -> list[Array]:
        """Compute the values of a batch from which the outputs are computed."""
        self._feed(batch)
        forward_all(self._read, clear_buffer=True)
        return [variable.d for variable in self._read]

    def _feed(self, batch: Sequence[Any]) -> None:
        if len(batch) != len(self._inputs):
            raise ArgumentError(f"Evaluator: a batch must have {len(self._inputs)} arrays, one an input, got {len(batch)}")
        for variable, values in zip(self._inputs, batch, strict=True):
            shape = (len(values), *variable.shape[1:])
            if variable.shape != shape:
                variable.reset_shape(shape, True)
            variable.d = np.reshape(values, shape)


def _length(batch: Sequence[Any]) -> int:
    return len(batch[0])


def _read_by(output: Output) -> Sequence[Variable]:
    return output.variables if isinstance(output, Metric) else (output,)


def _require_pure(outputs: Sequence[Variable]) -> None:
    """Refuse functions whose results depend on how often they have run."""
    for node in forward_order(outputs):
        changes = bool(node.rewritten())
        if changes or (node.python is None and node.spec.has("seeded")):
            raise ArgumentError(
                f"Evaluator: with comm, each batch must give the same values on any rank, got {node.spec.name}, which "
                f"{'changes running statistics' if changes else 'draws random numbers'}\n"
                "  hint: build a graph for evaluation: batch_normalization(..., batch_stat=False), no dropout"
            )


def _batches_of(data: Any, batch_size: int | None) -> Callable[[], Iterator[Sequence[Any]]]:
    if hasattr(data, "next"):
        start = data.get_state()
        return lambda: _of_iterator(data, start)
    arrays = [values_of(array) for array in data]
    if batch_size is None or batch_size < 1 or len({len(array) for array in arrays}) != 1:
        lengths = [len(array) for array in arrays]
        raise ArgumentError(
            f"Evaluator: arrays must have one length, and a batch size of at least 1, got {lengths} and {batch_size}"
        )
    return lambda: ([array[start : start + batch_size] for array in arrays] for start in range(0, len(arrays[0]), batch_size))


def _of_iterator(data: Any, start: Any) -> Iterator[Sequence[Any]]:
    """Yield one epoch, always the same: a state needs no replay, so going back to it costs nothing."""
    data.set_state(start)
    yield from epoch_of(data)
