"""Functions of the topic recurrent.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
from nn_core.operators.spec.builtin.recurrent import GRU, LSTM, PACK_PADDED_SEQUENCE, PAD_PACKED_SEQUENCE, RNN, SPECS


def rnn(
    x=None,
    h=None,
    weight_l0=None,
    weight=None,
    bias=None,
    num_layers=1,
    nonlinearity="tanh",
    dropout=None,
    bidirectional=False,
    training=True,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Run an Elman network over sequences, in any number of layers and in one or both directions of time.

    h_t = f(W x_t + U h_(t-1) + b), y_t = h_t

    Args:
        x: Sequences, T steps of B samples. Shape (T, B, I).
        h: States before the first step, for L layers and D directions. Shape (L, D, B, H).
        weight_l0: Weights of the first layer; the columns belong to x, then to h. Shape (D, H, I + H).
        weight: Weights of the further layers; given if and only if there are some. Shape (L - 1, D, H, D H + H).
            Optional.
        bias: Biases. Shape (L, D, H). Optional.
        num_layers: Number L of layers.
        nonlinearity: The function f. One of 'tanh', 'relu'.
        dropout: Chance of an output to be dropped on its way to the next layer, while training. Default: 0.0.
        bidirectional: Run in both directions of time (D = 2) and join the outputs.
        training: Whether dropout takes place; if not, backward may have to compute all steps again.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Outputs of the last layer. Shape (T, B, D H).
        h_n: States after the last step of each direction. Shape (L, D, B, H).

    Notes:
        The second direction starts at the last step. NNabla leaves the dropout out.

    Example:
        x, h = nn.Variable((5, 8, 3)), nn.Variable((1, 1, 8, 4))
        y, h_n = F.rnn(x, h, nn.Variable((1, 4, 3 + 4)))
        y.shape  # (5, 8, 4)

    References:
        Elman (1990), Finding structure in time; Schuster and Paliwal (1997), Bidirectional recurrent neural networks.

    Spec: function_spec.yaml, entry RNN
    """
    if surplus or unknown:
        refuse(RNN, surplus, unknown)
    return apply(
        RNN,
        (x, h, weight_l0, weight, bias),
        {
            "num_layers": num_layers,
            "nonlinearity": nonlinearity,
            "dropout": dropout,
            "bidirectional": bidirectional,
            "training": training,
        },
        outputs,
    )


def lstm(
    x=None,
    h=None,
    c=None,
    weight_l0=None,
    weight=None,
    bias=None,
    num_layers=1,
    dropout=None,
    bidirectional=False,
    training=True,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Run a long short-term memory over sequences, in any number of layers and in one or both directions of time.

    i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of W x_t + U h_(t-1) + b; c_t = f c_(t-1) + i g; h_t = o tanh(c_t),
    y_t = h_t

    Args:
        x: Sequences, T steps of B samples. Shape (T, B, I).
        h: States before the first step, for L layers and D directions. Shape (L, D, B, H).
        c: Cell states before the first step. Shape (L, D, B, H).
        weight_l0: Weights of the first layer, one matrix for each gate; the columns belong to x, then to h. Shape (D,
            4, H, I + H).
        weight: Weights of the further layers; given if and only if there are some. Shape (L - 1, D, 4, H, D H + H).
            Optional.
        bias: Biases. Shape (L, D, 4, H). Optional.
        num_layers: Number L of layers.
        dropout: Chance of an output to be dropped on its way to the next layer, while training. Default: 0.0.
        bidirectional: Run in both directions of time (D = 2) and join the outputs.
        training: Whether dropout takes place; if not, backward may have to compute all steps again.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Outputs of the last layer. Shape (T, B, D H).
        h_n: States after the last step of each direction. Shape (L, D, B, H).
        c_n: Cell states after the last step of each direction. Shape (L, D, B, H).

    Notes:
        The second direction starts at the last step. The gates are stacked in the order i, f, g, o. NNabla leaves the
        dropout out.

    Example:
        x, h, c = nn.Variable((5, 8, 3)), nn.Variable((1, 1, 8, 4)), nn.Variable((1, 1, 8, 4))
        y, h_n, c_n = F.lstm(x, h, c, nn.Variable((1, 4, 4, 3 + 4)))
        y.shape  # (5, 8, 4)

    References:
        Hochreiter and Schmidhuber (1997), Long short-term memory; Gers, Schmidhuber and Cummins (2000), Learning to
        forget.

    Spec: function_spec.yaml, entry LSTM
    """
    if surplus or unknown:
        refuse(LSTM, surplus, unknown)
    return apply(
        LSTM,
        (x, h, c, weight_l0, weight, bias),
        {"num_layers": num_layers, "dropout": dropout, "bidirectional": bidirectional, "training": training},
        outputs,
    )


def gru(
    x=None,
    h=None,
    weight_l0=None,
    weight=None,
    bias=None,
    num_layers=1,
    dropout=None,
    bidirectional=False,
    training=True,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Run a gated recurrent unit over sequences, in any number of layers and in one or both directions of time.

    r, z = sigmoid of W x_t + U h_(t-1) + b; n = tanh(W_n x_t + b_n + r (U_n h_(t-1) + b'_n)); h_t = (1 - z) n + z
    h_(t-1), y_t = h_t

    Args:
        x: Sequences, T steps of B samples. Shape (T, B, I).
        h: States before the first step, for L layers and D directions. Shape (L, D, B, H).
        weight_l0: Weights of the first layer, one matrix for each gate; the columns belong to x, then to h. Shape (D,
            3, H, I + H).
        weight: Weights of the further layers; given if and only if there are some. Shape (L - 1, D, 3, H, D H + H).
            Optional.
        bias: Biases; the fourth of each belongs to U_n h. Shape (L, D, 4, H). Optional.
        num_layers: Number L of layers.
        dropout: Chance of an output to be dropped on its way to the next layer, while training. Default: 0.0.
        bidirectional: Run in both directions of time (D = 2) and join the outputs.
        training: Whether dropout takes place; if not, backward may have to compute all steps again.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Outputs of the last layer. Shape (T, B, D H).
        h_n: States after the last step of each direction. Shape (L, D, B, H).

    Notes:
        The second direction starts at the last step. The gates are stacked in the order r, z, n. NNabla leaves the
        dropout out.

    Example:
        x, h = nn.Variable((5, 8, 3)), nn.Variable((1, 1, 8, 4))
        y, h_n = F.gru(x, h, nn.Variable((1, 3, 4, 3 + 4)))
        y.shape  # (5, 8, 4)

    References:
        Cho et al. (2014), Learning phrase representations using RNN encoder-decoder, section 2.3.

    Spec: function_spec.yaml, entry GRU
    """
    if surplus or unknown:
        refuse(GRU, surplus, unknown)
    return apply(
        GRU,
        (x, h, weight_l0, weight, bias),
        {"num_layers": num_layers, "dropout": dropout, "bidirectional": bidirectional, "training": training},
        outputs,
    )


def pack_padded_sequence(
    padded_sequence=None,
    lengths=None,
    batch_first=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Leave the padding out of sequences of different lengths, and concatenate them step by step.

    Args:
        padded_sequence: Sequences next to each other, longest first; (B, T, D_1, ..., D_n) if `batch_first`. Shape (T,
            B, D_1, ..., D_n).
        lengths: Length of each sequence, in descending order, at most T. Shape (B).
        batch_first: The first axis of padded_sequence is that of the sequences.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        pack_sequence: The first elements of all sequences, then the second ones, and so on. Shape (sum of lengths, D_1,
            ..., D_n).
        batch_sizes: How many sequences have each step. Shape (T).

    Notes:
        Lengths that increase, or that lie outside of 0 to T, are refused when the function runs.

    Example:
        padded = nn.NdArray.from_numpy_array([[1, 4], [2, 5], [3, 0]])  # two sequences, one per column
        packed, batch_sizes = F.pack_padded_sequence(padded, nn.NdArray.from_numpy_array([3, 2]))
        packed  # [1, 4, 2, 5, 3]
        batch_sizes  # [2, 2, 1]

    Spec: function_spec.yaml, entry PackPaddedSequence
    """
    if surplus or unknown:
        refuse(PACK_PADDED_SEQUENCE, surplus, unknown)
    return apply(PACK_PADDED_SEQUENCE, (padded_sequence, lengths), {"batch_first": batch_first}, outputs)


def pad_packed_sequence(
    packed_sequence=None,
    batch_sizes=None,
    batch_first=False,
    padding_value=None,
    total_length=None,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Put packed sequences next to each other and fill them up to one length; undoes `pack_padded_sequence`.

    Args:
        packed_sequence: Elements of all sequences, step by step. Shape (sum of batch sizes, D_1, ..., D_n).
        batch_sizes: How many sequences have each step, not increasing. Shape (T).
        batch_first: Make the sequences the first axis of the result.
        padding_value: Value to fill up with. Default: 0.0.
        total_length: Length to fill up to, at least T; -1 stands for T. Default: -1.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        padded_sequence: Sequences, (B, T, D_1, ..., D_n) if `batch_first`, with B the largest batch size. Shape (T, B,
            D_1, ..., D_n).
        lengths: Length of each sequence. Shape (B).

    Notes:
        NNabla fills up with 0 whatever `padding_value` is, and ignores a `total_length` that is too short, which is
        refused here.

    Example:
        packed = nn.NdArray.from_numpy_array([1, 4, 2, 5, 3])
        padded, lengths = F.pad_packed_sequence(packed, nn.NdArray.from_numpy_array([2, 2, 1]))
        padded  # [[1, 4], [2, 5], [3, 0]]
        lengths  # [3, 2]

    Spec: function_spec.yaml, entry PadPackedSequence
    """
    if surplus or unknown:
        refuse(PAD_PACKED_SEQUENCE, surplus, unknown)
    return apply(
        PAD_PACKED_SEQUENCE,
        (packed_sequence, batch_sizes),
        {"batch_first": batch_first, "padding_value": padding_value, "total_length": total_length},
        outputs,
    )


show_signatures(globals(), SPECS)
