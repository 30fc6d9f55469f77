"""Specifications of the topic recurrent.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

RNN = FunctionSpec(
    name="RNN", api="rnn", topic="recurrent",
    doc="Run an Elman network over sequences, in any number of layers and in one or both directions of time.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="h"),
        InputSpec(name="weight_l0", dtype="parameter", parameter=True),
        InputSpec(name="weight", dtype="parameter", optional=True, parameter=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(
        OutputSpec(name="y"), OutputSpec(name="h_n"), OutputSpec(name="trace", aux=True, private=True),
        OutputSpec(name="mask", aux=True),
    ),
    args=(
        ArgSpec(name="num_layers", type="int", default=1, minimum=1),
        ArgSpec(name="nonlinearity", type="str", default="tanh", choices=("tanh", "relu")),
        ArgSpec(name="dropout", type="float", default=0.0, minimum=0.0, maximum=0.999, shown_as_none=True),
        ArgSpec(name="bidirectional", type="bool", default=False),
        ArgSpec(name="training", type="bool", default=True),
    ),
    backward=BackwardSpec(needs=("x", "h", "weight_l0", "weight", "bias", "trace", "mask")), tags=("seeded",),
)

LSTM = FunctionSpec(
    name="LSTM", api="lstm", topic="recurrent",
    doc="Run a long short-term memory over sequences, in any number of layers and in one or both directions of time.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="h"), InputSpec(name="c"),
        InputSpec(name="weight_l0", dtype="parameter", parameter=True),
        InputSpec(name="weight", dtype="parameter", optional=True, parameter=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(
        OutputSpec(name="y"), OutputSpec(name="h_n"), OutputSpec(name="c_n"),
        OutputSpec(name="trace", aux=True, private=True), OutputSpec(name="mask", aux=True),
    ),
    args=(
        ArgSpec(name="num_layers", type="int", default=1, minimum=1),
        ArgSpec(name="dropout", type="float", default=0.0, minimum=0.0, maximum=0.999, shown_as_none=True),
        ArgSpec(name="bidirectional", type="bool", default=False),
        ArgSpec(name="training", type="bool", default=True),
    ),
    backward=BackwardSpec(needs=("x", "h", "c", "weight_l0", "weight", "bias", "trace", "mask")), tags=("seeded",),
)

GRU = FunctionSpec(
    name="GRU", api="gru", topic="recurrent",
    doc="Run a gated recurrent unit over sequences, in any number of layers and in one or both directions of time.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="h"),
        InputSpec(name="weight_l0", dtype="parameter", parameter=True),
        InputSpec(name="weight", dtype="parameter", optional=True, parameter=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(
        OutputSpec(name="y"), OutputSpec(name="h_n"), OutputSpec(name="trace", aux=True, private=True),
        OutputSpec(name="mask", aux=True),
    ),
    args=(
        ArgSpec(name="num_layers", type="int", default=1, minimum=1),
        ArgSpec(name="dropout", type="float", default=0.0, minimum=0.0, maximum=0.999, shown_as_none=True),
        ArgSpec(name="bidirectional", type="bool", default=False),
        ArgSpec(name="training", type="bool", default=True),
    ),
    backward=BackwardSpec(needs=("x", "h", "weight_l0", "weight", "bias", "trace", "mask")), tags=("seeded",),
)

PACK_PADDED_SEQUENCE = FunctionSpec(
    name="PackPaddedSequence", api="pack_padded_sequence", topic="recurrent",
    doc="Leave the padding out of sequences of different lengths, and concatenate them step by step.",
    inputs=(InputSpec(name="padded_sequence"), InputSpec(name="lengths", dtype="index")),
    outputs=(OutputSpec(name="pack_sequence"), OutputSpec(name="batch_sizes", dtype="index")),
    args=(ArgSpec(name="batch_first", type="bool", default=False),), backward=BackwardSpec(needs=("lengths",)),
    tags=("dynamic_shape",),
)

PAD_PACKED_SEQUENCE = FunctionSpec(
    name="PadPackedSequence", api="pad_packed_sequence", topic="recurrent",
    doc="Put packed sequences next to each other and fill them up to one length; undoes `pack_padded_sequence`.",
    inputs=(InputSpec(name="packed_sequence"), InputSpec(name="batch_sizes", dtype="index")),
    outputs=(OutputSpec(name="padded_sequence"), OutputSpec(name="lengths", dtype="index")),
    args=(
        ArgSpec(name="batch_first", type="bool", default=False),
        ArgSpec(name="padding_value", type="float", default=0.0, shown_as_none=True),
        ArgSpec(name="total_length", type="int", default=-1, shown_as_none=True),
    ),
    backward=BackwardSpec(needs=("lengths",)), tags=("dynamic_shape",),
)

SPECS: tuple[FunctionSpec, ...] = (RNN, LSTM, GRU, PACK_PADDED_SEQUENCE, PAD_PACKED_SEQUENCE)
