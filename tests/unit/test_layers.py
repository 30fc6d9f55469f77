"""Layers as modules: what they compute, the names of their parameters, and the mode that governs them."""

import copy
import pickle
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import layers as L
from nn_core.errors import ArgumentError, NNCoreError, ShapeError, SignatureError, UnknownAttributeError
from nn_core.training import fit

IMAGES, ROWS, SEQUENCE = (2, 6, 8, 8), (4, 5), (3, 2, 8)


def zeros(layers: int, directions: int) -> nn.Variable:
    return F.constant(0, (layers, directions, SEQUENCE[1], 4))


def batch_first(x: nn.Variable) -> nn.Variable:
    return F.transpose(PF.gru(F.transpose(x, (1, 0, 2)), F.constant(0, (1, 2, 3, 4)), bidirectional=True)[0], (1, 0, 2))


#: A layer, what it must compute, and the shape of its input.
CASES: Mapping[str, tuple[nn.Module, Callable[[Any], Any], tuple[int, ...]]] = {
    "affine": (L.Affine(3, base_axis=2), lambda x: PF.affine(x, 3, base_axis=2), SEQUENCE),
    "linear": (L.Linear((2, 3), with_bias=False), lambda x: PF.affine(x, (2, 3), with_bias=False), IMAGES),
    "embed": (L.Embed(6, 4), lambda x: PF.embed(x, 6, 4), (0,)),
    "conv": (
        L.Conv(4, 3, pad=1, stride=2, group=2),
        lambda x: PF.convolution(x, 4, (3, 3), (1, 1), (2, 2), group=2),
        IMAGES,
    ),
    "conv over one axis": (L.Conv(4, 2, dilation=2), lambda x: PF.convolution(x, 4, (2,), dilation=(2,)), SEQUENCE),
    "deconv": (L.Deconv(4, (2, 2), stride=(2, 2)), lambda x: PF.deconvolution(x, 4, (2, 2), stride=(2, 2)), IMAGES),
    "depthwise conv": (L.DepthwiseConv(3, multiplier=2), lambda x: PF.depthwise_convolution(x, 3, multiplier=2), IMAGES),
    "max pool": (L.MaxPool(3, 2, pad=1), lambda x: F.max_pooling(x, (3, 3), (2, 2), pad=(1, 1)), IMAGES),
    "average pool": (
        L.AveragePool(2, pad=1, including_pad=False),
        lambda x: F.average_pooling(x, (2, 2), pad=(1, 1), including_pad=False),
        IMAGES,
    ),
    "sum pool": (L.SumPool(2, 1), lambda x: F.sum_pooling(x, (2, 2), (1, 1)), IMAGES),
    "global average pool": (L.GlobalAveragePool(), F.global_average_pooling, IMAGES),
    "global max pool": (L.GlobalMaxPool(), lambda x: F.max(x, (2, 3), keepdims=True), IMAGES),
    "batch norm": (L.BatchNorm(eps=0.1), lambda x: PF.batch_normalization(x, eps=0.1), IMAGES),
    "layer norm": (L.LayerNorm(batch_axis=(0, 1)), lambda x: PF.layer_normalization(x, (0, 1)), SEQUENCE),
    "instance norm": (L.InstanceNorm(no_bias=True), lambda x: PF.instance_normalization(x, no_bias=True), IMAGES),
    "group norm": (L.GroupNorm(3), lambda x: PF.group_normalization(x, 3), IMAGES),
    "rnn": (L.RNN(4, nonlinearity="relu"), lambda x: PF.rnn(x, zeros(1, 1), nonlinearity="relu")[0], SEQUENCE),
    "gru": (L.GRU(4, bidirectional=True, batch_first=True), batch_first, SEQUENCE),
    "lstm": (L.LSTM(4, num_layers=2), lambda x: PF.lstm(x, zeros(2, 1), zeros(2, 1), num_layers=2)[0], SEQUENCE),
    "attention": (L.MultiHeadAttention(2), lambda x: PF.multi_head_attention(x, x, x, 2)[0], SEQUENCE),
    "dropout": (L.Dropout(0.4, seed=3), lambda x: F.dropout(x, 0.4, seed=3), ROWS),
    "flatten": (L.Flatten(), lambda x: F.reshape(x, (2, -1)), IMAGES),
    "reshape": (L.Reshape((6, -1)), lambda x: F.reshape(x, (2, 6, 64)), IMAGES),
    "prelu": (L.PReLU(shared=False), lambda x: PF.prelu(x, shared=False), IMAGES),
    "leaky relu": (L.LeakyReLU(0.3), lambda x: F.leaky_relu(x, 0.3), ROWS),
    "elu": (L.ELU(0.3), lambda x: F.elu(x, 0.3), ROWS),
    "softplus": (L.Softplus(2), lambda x: F.softplus(x, 2), ROWS),
    "softmax": (L.Softmax(0), lambda x: F.softmax(x, 0), ROWS),
    "log softmax": (L.LogSoftmax(), F.log_softmax, ROWS),
    "relu": (L.ReLU(), F.relu, ROWS),
    "selu": (L.SELU(), F.selu, ROWS),
    "gelu": (L.GELU(), F.gelu, ROWS),
    "swish": (L.Swish(), F.swish, ROWS),
    "mish": (L.Mish(), F.mish, ROWS),
    "sigmoid": (L.Sigmoid(), F.sigmoid, ROWS),
    "tanh": (L.Tanh(), F.tanh, ROWS),
    "lambda": (L.Lambda(partial(PF.affine, n_outmaps=3)), lambda x: PF.affine(x, 3), ROWS),
}


def filled(shape: tuple[int, ...]) -> nn.Variable:
    values = np.random.RandomState(0).randn(*shape).astype(np.float32) if shape != (0,) else np.arange(6)
    return nn.Variable.from_numpy_array(values)


def test_every_layer_is_compared() -> None:
    classes = {getattr(L, name) for name in L.__all__} - {L.Layer}
    assert classes == {type(layer) for layer, _, _ in CASES.values()}


@pytest.mark.parametrize("case", CASES)
def test_a_layer_computes_what_its_function_computes_with_the_same_parameters(case: str) -> None:
    layer, function, shape = CASES[case]
    layer, x = layer.copy(), filled(shape)
    scope: dict[str, Any] = {}
    nn.seed(7)
    y = layer(x)
    nn.seed(7)
    with nn.parameter_scope("", scope=scope):
        expected = function(x)
        names = list(nn.get_parameters(grad_only=False))
    assert list(layer.get_parameters()) == names
    nn.forward_all([y, expected])
    assert y.d.tolist() == expected.d.tolist()


def network() -> nn.Sequential:
    return nn.Sequential(L.Affine(8), nn.Sequential(L.BatchNorm(), ("drop", L.Dropout(0.5))), F.relu, out=L.Affine(3))


def test_the_mode_of_the_network_governs_layers_at_any_depth() -> None:
    net, x = network(), filled(ROWS)
    trained = net(x)
    tested = net.eval()(x)
    assert [layer.training for layer in net.flatten()] == [False] * 5
    mean = net.get_parameters()["@sequential_1/@batchnorm_0/bn/mean"]
    tested.forward()
    first = tested.d.copy()
    assert not mean.d.any()  # nothing has followed the batch
    tested.forward()
    assert tested.d.tolist() == first.tolist()  # nothing is drawn
    trained.forward()
    assert mean.d.any()
    assert net.train().training


def test_dropout_and_recurrent_layers_drop_only_while_they_train() -> None:
    x = filled(SEQUENCE)
    for layer in (L.LSTM(4, num_layers=2, dropout=0.5), L.MultiHeadAttention(2, dropout=0.5), L.Dropout(0.5)):
        y, z = layer(x), layer.eval()(x)
        results = []
        for variable in (y, z):
            variable.forward()
            first = variable.d.copy()
            variable.forward()
            results.append(bool((first == variable.d).all()))
        assert results == [False, True], layer


def test_recurrent_layers_return_states_on_request_and_take_initial_ones() -> None:
    x, h, c = filled(SEQUENCE), filled((1, 1, 2, 4)), filled((1, 1, 2, 4))
    layer = L.LSTM(4, output_state=True)
    y, h_n, c_n = layer(x, h, c)
    y.forward(), h_n.forward(), c_n.forward()
    assert y.d[-1].tolist() == h_n.d[0, 0].tolist() and c_n.shape == (1, 1, 2, 4)
    assert not np.allclose(_computed(layer(x)[0]), y.d)


def _computed(y: nn.Variable) -> np.ndarray[Any, Any]:
    y.forward()
    return y.d


def test_a_built_graph_takes_other_batches() -> None:
    x = filled((3, 2, 8))
    y = L.LSTM(4)(x)
    assert _computed(y).shape == (3, 2, 4)
    x.reset_shape((5, 7, 8), force=True)
    x.d = 1
    assert _computed(y).shape == (5, 7, 4)


def test_attention_to_other_keys_with_weights() -> None:
    query, key = filled((3, 2, 8)), filled((5, 2, 8))
    y, weights = L.MultiHeadAttention(2, output_weights=True)(query, key)
    assert y.shape == (3, 2, 8) and weights.shape == (4, 3, 5)


def test_a_layer_keeps_its_parameters_between_calls_and_refuses_inputs_of_other_widths() -> None:
    layer = L.Affine(3)
    layer(filled((4, 5)))
    (w, _) = layer.get_parameters().values()
    layer(filled((2, 5)))
    assert layer.get_parameters()["affine/W"] == w
    with pytest.raises(ShapeError, match=r"parameter 'affine/W' must keep its shape \(5, 3\), got \(6, 3\)"):
        layer(filled((4, 6)))


def test_copies_and_files(tmp_path: Any) -> None:
    net, x = network(), filled(ROWS)
    net.eval()(x)
    y = _computed(net(x))
    net.save_parameters(tmp_path / "net.h5")
    other = network()
    other.load_parameters(tmp_path / "net.h5")  # before the first call
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net)), other.eval()):
        assert _computed(twin(x)).tolist() == y.tolist()


def test_text() -> None:
    net = nn.Sequential(L.Conv(4, 3, pad=1), F.relu, L.Dropout(0.25), lambda x: x)
    assert repr(net[0]) == "Conv(4, 3, pad=1)"
    assert str(net).splitlines() == [
        "Sequential, 0 parameters",
        "  conv_0: Conv(4, 3, pad=1), 0 parameters",
        "  relu_1: Lambda(relu), 0 parameters",
        "  dropout_2: Dropout(p=0.25), 0 parameters",
        "  function_3: Lambda(<lambda>), 0 parameters",
    ]


def test_fit_trains_layers_in_their_modes() -> None:
    random = np.random.RandomState(0)
    x = random.randn(120, 2).astype(np.float32)
    t = (x[:, 0] > 0).astype(int)
    net = nn.Sequential(L.Affine(16), L.BatchNorm(), L.ReLU(), L.Dropout(0.1), L.Affine(2)).eval()
    result = fit(net, (x, t), epochs=20, solver=S.Adam(0.02), seed=1, progress=False)
    assert result.evaluate((x, t))["accuracy"] > 0.95
    assert net.get_parameters()["@batchnorm_1/bn/mean"].d.any()  # trained, although the network was set to evaluate
    assert not net.training
    assert result.predict(x[:9]).tolist() == result.predict(x[:9]).tolist()


def test_an_error_of_a_layer_in_a_chain_names_the_function_and_the_layer() -> None:
    net = nn.Sequential(L.Conv(4, 3), F.relu, nn.Sequential(L.Flatten(), L.Conv(4, 3)))
    with pytest.raises(ShapeError) as refused:
        net(filled((2, 3, 8, 8)))
    text = str(refused.value)
    assert text.startswith("convolution: x must have a channel axis")
    assert text.count("in layer") == 1
    assert text.endswith("\n  in layer conv_1: Conv(4, 3), given shape (2, 144)")
    with pytest.raises(ArgumentError, match=r"^affine: base_axis .*\n  in layer affine_0: .*given shape \(3,\)\n  hint: "):
        nn.Sequential(L.Affine(2))(nn.Variable((3,)))
    with pytest.raises(ShapeError, match=r"\n  in layer lstm_0: .*LSTM\(4\).*, given shape \(.*\)(\n  hint|$)"):
        nn.Sequential(L.LSTM(4))(filled(ROWS))
    with pytest.raises(SignatureError, match=r"^Sequential: must be given an input, got none"):
        nn.Sequential()()


MISTAKES: Mapping[str, tuple[Callable[[], object], type[NNCoreError], str]] = {
    "a class": (lambda: nn.Sequential(L.ReLU), ArgumentError, "^Sequential: .* the class ReLU\n  hint: ReLU"),
    "a list": (lambda: nn.Sequential([L.ReLU()]), ArgumentError, r"^Sequential: .*\n  hint: Sequential\(\*layers\)$"),
    "a number": (lambda: nn.Sequential(3), ArgumentError, "^Sequential: every layer must be a Module or a function, got 3$"),
    "no kernel": (lambda: L.Conv(16), SignatureError, "^Conv: kernel must be given, got none"),  # type: ignore[call-arg]
    "no outputs": (lambda: L.Affine(-4), ArgumentError, "^Affine: n_outmaps must be a positive integer, got -4"),
    "no units": (lambda: L.GRU(0), ArgumentError, "^GRU: n_units must be a positive integer, got 0"),
    "no rows": (lambda: L.Embed(0, 3), ArgumentError, "^Embed: n_inputs must be a positive integer, got 0"),
    "no groups": (lambda: L.GroupNorm(0), ArgumentError, "^GroupNorm: num_groups must be"),
    "a probability above 1": (lambda: L.Dropout(1.5), ArgumentError, "^Dropout: p must be at least 0 and less than 1"),
    "bias=": (lambda: L.Affine(3, bias=False), SignatureError, "^Affine: .*'bias'; did you mean 'with_bias'"),  # type: ignore[call-arg]
    "inputs of Linear": (lambda: L.Linear(64, 1), SignatureError, "^Affine: .* at most 1 .* got 2\n  hint: the first input"),  # type: ignore[call-arg]
    "inputs of Conv": (lambda: L.Conv(3, 16, 3), SignatureError, "^Conv: .* at most 2 .*\n  hint: the first input"),  # type: ignore[call-arg]
    "inputs of LSTM": (lambda: L.LSTM(8, 16), SignatureError, "^LSTM: .* at most 1 .*\n  hint: the first input"),  # type: ignore[call-arg]
    "channels of BatchNorm": (lambda: L.BatchNorm(16), SignatureError, "^BatchNorm: .* at most 0 .*\n  hint: "),  # type: ignore[call-arg]
    "Conv2d": (lambda: L.Conv2d, UnknownAttributeError, "'Conv2d'; did you mean 'Conv'"),  # type: ignore[attr-defined]
    "Dense": (lambda: L.Dense, UnknownAttributeError, "'Dense'; did you mean 'Affine'"),  # type: ignore[attr-defined]
    "a matrix for a sequence": (lambda: L.LSTM(4)(filled(ROWS)), ShapeError, "^LSTM: x must have 3 axes"),
    "parameters()": (lambda: network().parameters(), UnknownAttributeError, "hint: get_parameters()"),  # type: ignore[attr-defined]
    "state_dict()": (lambda: network().state_dict(), UnknownAttributeError, "hint: .*save_parameters"),  # type: ignore[attr-defined]
    "fit()": (lambda: network().fit, UnknownAttributeError, r"hint: nn_core\.training\.fit"),  # type: ignore[attr-defined]
    "to()": (lambda: network().to("cuda"), UnknownAttributeError, "hint: .*context_scope"),  # type: ignore[attr-defined]
    "forward(x)": (lambda: network().forward(filled(ROWS)), UnknownAttributeError, r"hint: net\(x\)"),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str) -> None:
    call, error, text = MISTAKES[mistake]
    with pytest.raises(error, match=text):
        call()


def test_a_class_with_forward_is_told_to_rename_it() -> None:
    class Net(nn.Module):
        def forward(self, x: nn.Variable) -> nn.Variable:
            return x

    with pytest.raises(NotImplementedError, match=r"Net: call\(\) must be defined\n  hint: rename forward\(\) to call\(\)"):
        Net()(filled(ROWS))
