"""Specifications of the topic recurrent.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

RNN = FunctionSpec(
    name="RNN",
    api="rnn",
    topic="recurrent",
    doc="Run an Elman network over sequences, in any number of layers and in one or both directions of time.",
    inputs=(
        InputSpec(name="x", doc="Sequences, T steps of B samples.", shape="(T, B, I)"),
        InputSpec(
            name="h",
            doc="States before the first step, for L layers and D directions.",
            shape="(L, D, B, H)",
        ),
        InputSpec(
            name="weight_l0",
            doc="Weights of the first layer; the columns belong to x, then to h.",
            shape="(D, H, I + H)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="weight",
            doc="Weights of the further layers; given if and only if there are some.",
            shape="(L - 1, D, H, D H + H)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
        InputSpec(
            name="bias",
            doc="Biases.",
            shape="(L, D, H)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(
        OutputSpec(name="y", doc="Outputs of the last layer.", shape="(T, B, D H)"),
        OutputSpec(name="h_n", doc="States after the last step of each direction.", shape="(L, D, B, H)"),
        OutputSpec(
            name="trace",
            doc="Results of each step, such as h, for the backward pass; empty unless training.",
            shape="(L, D, T, B, H)",
            aux=True,
            private=True,
        ),
        OutputSpec(
            name="mask",
            doc="0 or 1 / (1 - dropout) for each output of a layer but the last; empty without dropout.",
            shape="(L - 1, T, B, D H)",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(name="num_layers", type="int", doc="Number L of layers.", default=1, minimum=1),
        ArgSpec(
            name="nonlinearity",
            type="str",
            doc="The function f.",
            default="tanh",
            choices=("tanh", "relu"),
        ),
        ArgSpec(
            name="dropout",
            type="float",
            doc="Chance of an output to be dropped on its way to the next layer, while training.",
            default=0.0,
            minimum=0.0,
            maximum=0.999,
            shown_as_none=True,
        ),
        ArgSpec(
            name="bidirectional",
            type="bool",
            doc="Run in both directions of time (D = 2) and join the outputs.",
            default=False,
        ),
        ArgSpec(
            name="training",
            type="bool",
            doc="Whether dropout takes place; if not, backward may have to compute all steps again.",
            default=True,
        ),
    ),
    backward=BackwardSpec(needs=("x", "h", "weight_l0", "weight", "bias", "trace", "mask")),
    tags=("seeded",),
    formula="h_t = f(W x_t + U h_(t-1) + b), y_t = h_t",
    notes="The second direction starts at the last step. NNabla leaves the dropout out.",
    references=(
        "Elman (1990), Finding structure in time; Schuster and Paliwal (1997), Bidirectional "
        "recurrent neural networks."
    ),
    example=(
        "x, h = nn.Variable((5, 8, 3)), nn.Variable((1, 1, 8, 4))\ny, h_n = F.rnn(x, h, nn.Variable((1, "
        "4, 3 + 4)))\ny.shape  # (5, 8, 4)"
    ),
)

LSTM = FunctionSpec(
    name="LSTM",
    api="lstm",
    topic="recurrent",
    doc="Run a long short-term memory over sequences, in any number of layers and in one or both directions of time.",
    inputs=(
        InputSpec(name="x", doc="Sequences, T steps of B samples.", shape="(T, B, I)"),
        InputSpec(
            name="h",
            doc="States before the first step, for L layers and D directions.",
            shape="(L, D, B, H)",
        ),
        InputSpec(name="c", doc="Cell states before the first step.", shape="(L, D, B, H)"),
        InputSpec(
            name="weight_l0",
            doc="Weights of the first layer, one matrix for each gate; the columns belong to x, then to h.",
            shape="(D, 4, H, I + H)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="weight",
            doc="Weights of the further layers; given if and only if there are some.",
            shape="(L - 1, D, 4, H, D H + H)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
        InputSpec(
            name="bias",
            doc="Biases.",
            shape="(L, D, 4, H)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(
        OutputSpec(name="y", doc="Outputs of the last layer.", shape="(T, B, D H)"),
        OutputSpec(name="h_n", doc="States after the last step of each direction.", shape="(L, D, B, H)"),
        OutputSpec(
            name="c_n",
            doc="Cell states after the last step of each direction.",
            shape="(L, D, B, H)",
        ),
        OutputSpec(
            name="trace",
            doc=(
                "Results of each step, such as i, f, g, o, c and h, for the backward pass; empty "
                "unless training."
            ),
            shape="(L, D, T, B, 6 H)",
            aux=True,
            private=True,
        ),
        OutputSpec(
            name="mask",
            doc="0 or 1 / (1 - dropout) for each output of a layer but the last; empty without dropout.",
            shape="(L - 1, T, B, D H)",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(name="num_layers", type="int", doc="Number L of layers.", default=1, minimum=1),
        ArgSpec(
            name="dropout",
            type="float",
            doc="Chance of an output to be dropped on its way to the next layer, while training.",
            default=0.0,
            minimum=0.0,
            maximum=0.999,
            shown_as_none=True,
        ),
        ArgSpec(
            name="bidirectional",
            type="bool",
            doc="Run in both directions of time (D = 2) and join the outputs.",
            default=False,
        ),
        ArgSpec(
            name="training",
            type="bool",
            doc="Whether dropout takes place; if not, backward may have to compute all steps again.",
            default=True,
        ),
    ),
    backward=BackwardSpec(needs=("x", "h", "c", "weight_l0", "weight", "bias", "trace", "mask")),
    tags=("seeded",),
    formula=(
        "i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of W x_t + U h_(t-1) + b; c_t = f c_(t-1) + i g; "
        "h_t = o tanh(c_t), y_t = h_t"
    ),
    notes=(
        "The second direction starts at the last step. The gates are stacked in the order i, f, g, o. "
        "NNabla leaves the dropout out."
    ),
    references=(
        "Hochreiter and Schmidhuber (1997), Long short-term memory; Gers, Schmidhuber and Cummins "
        "(2000), Learning to forget."
    ),
    example=(
        "x, h, c = nn.Variable((5, 8, 3)), nn.Variable((1, 1, 8, 4)), nn.Variable((1, 1, 8, 4))\ny, h_n, "
        "c_n = F.lstm(x, h, c, nn.Variable((1, 4, 4, 3 + 4)))\ny.shape  # (5, 8, 4)"
    ),
)

GRU = FunctionSpec(
    name="GRU",
    api="gru",
    topic="recurrent",
    doc="Run a gated recurrent unit over sequences, in any number of layers and in one or both directions of time.",
    inputs=(
        InputSpec(name="x", doc="Sequences, T steps of B samples.", shape="(T, B, I)"),
        InputSpec(
            name="h",
            doc="States before the first step, for L layers and D directions.",
            shape="(L, D, B, H)",
        ),
        InputSpec(
            name="weight_l0",
            doc="Weights of the first layer, one matrix for each gate; the columns belong to x, then to h.",
            shape="(D, 3, H, I + H)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="weight",
            doc="Weights of the further layers; given if and only if there are some.",
            shape="(L - 1, D, 3, H, D H + H)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
        InputSpec(
            name="bias",
            doc="Biases; the fourth of each belongs to U_n h.",
            shape="(L, D, 4, H)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(
        OutputSpec(name="y", doc="Outputs of the last layer.", shape="(T, B, D H)"),
        OutputSpec(name="h_n", doc="States after the last step of each direction.", shape="(L, D, B, H)"),
        OutputSpec(
            name="trace",
            doc=(
                "Results of each step, such as r, z, n, U_n h and h, for the backward pass; empty "
                "unless training."
            ),
            shape="(L, D, T, B, 5 H)",
            aux=True,
            private=True,
        ),
        OutputSpec(
            name="mask",
            doc="0 or 1 / (1 - dropout) for each output of a layer but the last; empty without dropout.",
            shape="(L - 1, T, B, D H)",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(name="num_layers", type="int", doc="Number L of layers.", default=1, minimum=1),
        ArgSpec(
            name="dropout",
            type="float",
            doc="Chance of an output to be dropped on its way to the next layer, while training.",
            default=0.0,
            minimum=0.0,
            maximum=0.999,
            shown_as_none=True,
        ),
        ArgSpec(
            name="bidirectional",
            type="bool",
            doc="Run in both directions of time (D = 2) and join the outputs.",
            default=False,
        ),
        ArgSpec(
            name="training",
            type="bool",
            doc="Whether dropout takes place; if not, backward may have to compute all steps again.",
            default=True,
        ),
    ),
    backward=BackwardSpec(needs=("x", "h", "weight_l0", "weight", "bias", "trace", "mask")),
    tags=("seeded",),
    formula=(
        "r, z = sigmoid of W x_t + U h_(t-1) + b; n = tanh(W_n x_t + b_n + r (U_n h_(t-1) + b'_n)); h_t "
        "= (1 - z) n + z h_(t-1), y_t = h_t"
    ),
    notes=(
        "The second direction starts at the last step. The gates are stacked in the order r, z, n. NNabla "
        "leaves the dropout out."
    ),
    references="Cho et al. (2014), Learning phrase representations using RNN encoder-decoder, section 2.3.",
    example=(
        "x, h = nn.Variable((5, 8, 3)), nn.Variable((1, 1, 8, 4))\ny, h_n = F.gru(x, h, nn.Variable((1, "
        "3, 4, 3 + 4)))\ny.shape  # (5, 8, 4)"
    ),
)

PACK_PADDED_SEQUENCE = FunctionSpec(
    name="PackPaddedSequence",
    api="pack_padded_sequence",
    topic="recurrent",
    doc="Leave the padding out of sequences of different lengths, and concatenate them step by step.",
    inputs=(
        InputSpec(
            name="padded_sequence",
            doc="Sequences next to each other, longest first; (B, T, D_1, ..., D_n) if `batch_first`.",
            shape="(T, B, D_1, ..., D_n)",
        ),
        InputSpec(
            name="lengths",
            doc="Length of each sequence, in descending order, at most T.",
            shape="(B)",
            dtype="index",
        ),
    ),
    outputs=(
        OutputSpec(
            name="pack_sequence",
            doc="The first elements of all sequences, then the second ones, and so on.",
            shape="(sum of lengths, D_1, ..., D_n)",
        ),
        OutputSpec(name="batch_sizes", doc="How many sequences have each step.", shape="(T)", dtype="index"),
    ),
    args=(
        ArgSpec(
            name="batch_first",
            type="bool",
            doc="The first axis of padded_sequence is that of the sequences.",
            default=False,
        ),
    ),
    backward=BackwardSpec(needs=("lengths",)),
    tags=("dynamic_shape",),
    notes="Lengths that increase, or that lie outside of 0 to T, are refused when the function runs.",
    example=(
        "padded = nn.NdArray.from_numpy_array([[1, 4], [2, 5], [3, 0]])  # two sequences, one per column\n"
        "packed, batch_sizes = F.pack_padded_sequence(padded, nn.NdArray.from_numpy_array([3, 2]))\n"
        "packed  # [1, 4, 2, 5, 3]\nbatch_sizes  # [2, 2, 1]"
    ),
)

PAD_PACKED_SEQUENCE = FunctionSpec(
    name="PadPackedSequence",
    api="pad_packed_sequence",
    topic="recurrent",
    doc="Put packed sequences next to each other and fill them up to one length; undoes `pack_padded_sequence`.",
    inputs=(
        InputSpec(
            name="packed_sequence",
            doc="Elements of all sequences, step by step.",
            shape="(sum of batch sizes, D_1, ..., D_n)",
        ),
        InputSpec(
            name="batch_sizes",
            doc="How many sequences have each step, not increasing.",
            shape="(T)",
            dtype="index",
        ),
    ),
    outputs=(
        OutputSpec(
            name="padded_sequence",
            doc="Sequences, (B, T, D_1, ..., D_n) if `batch_first`, with B the largest batch size.",
            shape="(T, B, D_1, ..., D_n)",
        ),
        OutputSpec(name="lengths", doc="Length of each sequence.", shape="(B)", dtype="index"),
    ),
    args=(
        ArgSpec(
            name="batch_first",
            type="bool",
            doc="Make the sequences the first axis of the result.",
            default=False,
        ),
        ArgSpec(
            name="padding_value",
            type="float",
            doc="Value to fill up with.",
            default=0.0,
            shown_as_none=True,
        ),
        ArgSpec(
            name="total_length",
            type="int",
            doc="Length to fill up to, at least T; -1 stands for T.",
            default=-1,
            shown_as_none=True,
        ),
    ),
    backward=BackwardSpec(needs=("lengths",)),
    tags=("dynamic_shape",),
    notes=(
        "NNabla fills up with 0 whatever `padding_value` is, and ignores a `total_length` that is too "
        "short, which is refused here."
    ),
    example=(
        "packed = nn.NdArray.from_numpy_array([1, 4, 2, 5, 3])\npadded, lengths = "
        "F.pad_packed_sequence(packed, nn.NdArray.from_numpy_array([2, 2, 1]))\npadded  # [[1, 4], [2, "
        "5], [3, 0]]\nlengths  # [3, 2]"
    ),
)

SPECS: tuple[FunctionSpec, ...] = (RNN, LSTM, GRU, PACK_PADDED_SEQUENCE, PAD_PACKED_SEQUENCE)
