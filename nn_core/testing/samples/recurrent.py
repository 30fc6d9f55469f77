"""Samples of recurrent networks and of packed sequences."""

from nn_core.errors import ArgumentError, ShapeError
from nn_core.testing.drawing import Draw, integers, normal, values
from nn_core.testing.samples.registry import error, sample
from nn_core.typing import Shape

_STEPS, _BATCH, _FEATURES = 3, 2, 3


def _network(
    n_states: int, gates: Shape, bias_gates: Shape, layers: int, directions: int, *, bias: bool, hidden: int = 4
) -> list[Draw | None]:
    """Return inputs of a recurrent network."""
    scale = hidden**-0.5
    states = [normal(layers, directions, _BATCH, hidden, scale=scale)] * n_states
    first = normal(directions, *gates, hidden, _FEATURES + hidden, scale=scale)
    later = normal(layers - 1, directions, *gates, hidden, (directions + 1) * hidden, scale=scale)
    added = normal(layers, directions, *bias_gates, hidden, scale=scale)
    return [
        normal(_STEPS, _BATCH, _FEATURES), *states, first, later if layers > 1 else None, added if bias else None
    ]  # fmt: skip


for _name, _n_states, _gates, _bias_gates in (("RNN", 1, (), ()), ("LSTM", 2, (4,), (4,)), ("GRU", 1, (3,), (4,))):
    _form = (_n_states, _gates, _bias_gates)
    sample(_name, "plain", *_network(*_form, 1, 1, bias=False), loose=4)
    sample(_name, "bias", *_network(*_form, 1, 1, bias=True), loose=4)
    sample(_name, "layers", *_network(*_form, 2, 1, bias=True), num_layers=2, loose=4)
    sample(_name, "both_ways", *_network(*_form, 2, 2, bias=True), num_layers=2, bidirectional=True, loose=4)
    sample(_name, "dropout", *_network(*_form, 2, 1, bias=True), num_layers=2, dropout=0.4, loose=4)
    sample(
        _name,
        "large",
        *_network(*_form, 2, 2, bias=True, hidden=48),
        num_layers=2,
        bidirectional=True,
        loose=8,
        smooth=False,
    )
    sample(_name, "inference", *_network(*_form, 2, 1, bias=True), num_layers=2, dropout=0.4, training=False, loose=4)
    error(_name, "state", ShapeError, "h must have shape", *_network(*_form, 1, 1, bias=False), bidirectional=True)
    error(_name, "layers", ShapeError, "h must have shape", *_network(*_form, 1, 1, bias=False), num_layers=2)
sample("RNN", "relu", *_network(1, (), (), 1, 1, bias=True), nonlinearity="relu", loose=4)
error(
    "RNN",
    "nonlinearity",
    ArgumentError,
    "nonlinearity must be one of",
    *_network(1, (), (), 1, 1, bias=False),
    nonlinearity="elu",
)

sample("PackPaddedSequence", "steps_first", normal(4, 3, 2), values([4, 2, 1]))
sample("PackPaddedSequence", "batch_first", normal(3, 4, 2), values([4, 4, 2]), batch_first=True)
sample("PackPaddedSequence", "numbers", normal(3, 2), values([3, 2]))
error("PackPaddedSequence", "empty", ArgumentError, "lengths must be from 1 to", normal(4, 3, 2), values([4, 2, 0]))
error("PackPaddedSequence", "order", ArgumentError, "lengths must not increase", normal(4, 3, 2), values([1, 2, 4]))
error(
    "PackPaddedSequence",
    "lengths",
    ShapeError,
    "lengths must have one value for each sequence",
    normal(4, 3, 2),
    integers(2, high=3),
)

_PACKED = (normal(7, 2), values([3, 2, 1, 1]))
sample("PadPackedSequence", "steps_first", *_PACKED)
sample("PadPackedSequence", "batch_first", *_PACKED, batch_first=True, padding_value=-1.0)
sample("PadPackedSequence", "longer", *_PACKED, total_length=6)
error("PadPackedSequence", "length", ArgumentError, "total_length must be at least", *_PACKED, total_length=3)
