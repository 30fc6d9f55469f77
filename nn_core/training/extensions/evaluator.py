"""Evaluation on data that are not trained on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from nn_core.errors import ArgumentError
from nn_core.training.metrics import Metric
from nn_core.training.reporting import report
from nn_core.training.summary import Summaries
from nn_core.training.trainer import Trainer
from nn_core.variable import Variable, forward_all

#: A Variable of one element, whose mean over the samples is taken, or a metric.
Output: TypeAlias = Variable | Metric


class Evaluator:
    """Compute means and metrics over all samples of a data set, each epoch or as the trigger says.

    Each evaluation takes every sample once, in the same order; the last batch has as many samples as are left. It may also
    be called without a trainer, by `evaluate`.

    Args:
        data: A `DataIterator`, which nobody else reads from; or arrays, with `batch_size`.
        inputs: The Variables that a batch is written to. Build the graph for evaluation: batch normalization with
            ``batch_stat=False``, no dropout.
        outputs: What to compute, by name: Variables of one element that are means over the batch, or metrics.
        name: Put in front of the names: "validation/error".
        batch_size: Number of samples in a batch, for arrays.

    Raises:
        ArgumentError: when arrays have different lengths or no batch size is given.
    """

    phase = "measure"

    def __init__(
        self,
        data: Any,
        inputs: Sequence[Variable],
        outputs: Mapping[str, Output],
        name: str = "validation",
        batch_size: int | None = None,
    ) -> None:
        self.name = name
        self._inputs = list(inputs)
        self._outputs = dict(outputs)
        self._batches = _batches_of(data, batch_size)
        read = {id(v): v for output in self._outputs.values() for v in _read_by(output)}
        self._read = list(read.values())

    def __call__(self, trainer: Trainer) -> None:
        report({f"{self.name}/{key}": value for key, value in self.evaluate().items()})

    def evaluate(self) -> dict[str, float]:
        """The values by name, without the name of the evaluator."""
        summaries = Summaries()
        metrics = {name: output for name, output in self._outputs.items() if isinstance(output, Metric)}
        for metric in metrics.values():
            metric.reset()
        shapes = [variable.shape for variable in self._inputs]
        for batch in self._batches():
            self._feed(batch)
            forward_all(self._read, clear_buffer=True)
            for name, output in self._outputs.items():
                if isinstance(output, Metric):
                    output.update()
                else:
                    summaries.add(name, float(output.d), len(batch[0]))
        for variable, shape in zip(self._inputs, shapes, strict=True):
            if variable.shape != shape:
                variable.reset_shape(shape, True)
        values = summaries.means()
        for name, metric in metrics.items():
            values.update({name + key: value for key, value in metric.results().items()})
        return values

    def _feed(self, batch: Sequence[Any]) -> None:
        if len(batch) != len(self._inputs):
            raise ArgumentError(f"Evaluator: a batch must have {len(self._inputs)} arrays, one an input, got {len(batch)}")
        for variable, values in zip(self._inputs, batch, strict=True):
            shape = (len(values), *variable.shape[1:])
            if variable.shape != shape:
                variable.reset_shape(shape, True)
            variable.d = np.reshape(values, shape)


def _read_by(output: Output) -> Sequence[Variable]:
    return output.variables if isinstance(output, Metric) else (output,)


def _batches_of(data: Any, batch_size: int | None) -> Callable[[], Iterator[Sequence[Any]]]:
    if hasattr(data, "next"):
        start = data.get_state()
        return lambda: _of_iterator(data, start)
    arrays = [np.asarray(array) for array in data]
    if batch_size is None or batch_size < 1 or len({len(array) for array in arrays}) != 1:
        lengths = [len(array) for array in arrays]
        raise ArgumentError(
            f"Evaluator: arrays must have one length, and a batch size of at least 1, got {lengths} and {batch_size}"
        )
    return lambda: ([array[start : start + batch_size] for array in arrays] for start in range(0, len(arrays[0]), batch_size))


def _of_iterator(data: Any, start: Any) -> Iterator[Sequence[Any]]:
    """One epoch, always the same: a state needs no replay, so going back to it costs nothing."""
    data.set_state(start)
    left = data.size
    while left > 0:
        batch = data.next()
        rows = min(left, len(batch[0]))
        yield [values[:rows] for values in batch]
        left -= rows
