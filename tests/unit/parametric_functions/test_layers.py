"""The arguments of layers, beyond the recorded facts."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, ShapeError
from nn_core.initializer import ConstantInitializer
from nn_core.parametric_functions.decomposition import ALS


def variable(rng, *shape):
    return nn.Variable.from_numpy_array(rng.standard_normal(shape).astype(np.float32))


def parameters():
    return nn.get_parameters(grad_only=False)


def test_arrays_and_initializers_serve_as_initial_values(rng):
    x = variable(rng, 2, 3)
    w = rng.standard_normal((3, 4)).astype(np.float32)
    y = PF.affine(x, 4, w_init=w, b_init=ConstantInitializer(2))
    y.forward()
    np.testing.assert_allclose(y.d, x.d @ w + 2, rtol=1e-5)


def test_a_generator_of_the_caller_is_used():
    x = nn.Variable((2, 3))
    PF.affine(x, 4, rng=np.random.RandomState(1), name="a")
    PF.affine(x, 4, rng=np.random.RandomState(1), name="b")
    assert np.array_equal(parameters()["a/affine/W"].d, parameters()["b/affine/W"].d)


def test_apply_w_and_apply_b(rng):
    x = variable(rng, 2, 3)
    y = PF.affine(x, 4, apply_w=lambda w: w * 2, apply_b=lambda b: b + 1)
    y.forward()
    np.testing.assert_allclose(y.d, x.d @ parameters()["affine/W"].d * 2 + 1, rtol=1e-5)


def test_weight_normalization_leaves_the_weight_as_it_is_at_first(rng):
    x = variable(rng, 2, 3)
    y = PF.affine(x, 4, apply_w=lambda w: PF.weight_normalization(w, dim=1))
    assert list(parameters()) == ["affine/W", "affine/wn/g", "affine/b"]
    y.forward()
    np.testing.assert_allclose(y.d, x.d @ parameters()["affine/W"].d, rtol=1e-4, atol=1e-6)


def test_layers_compute_at_once_on_arrays(rng):
    x = nn.NdArray.from_numpy_array(rng.standard_normal((2, 3)).astype(np.float32))
    y = PF.affine(x, 4)
    assert isinstance(y, nn.NdArray)
    np.testing.assert_allclose(y.data, x.data @ parameters()["affine/W"].d, rtol=1e-5)


def test_the_same_name_shares_parameters(rng):
    x = variable(rng, 2, 3)
    first, second = PF.affine(x, 4, name="fc"), PF.affine(x, 4, name="fc")
    nn.forward_all([first, second])
    assert np.array_equal(first.d, second.d)
    with pytest.raises(ShapeError, match=r"parameter 'fc/affine/W' must keep its shape \(3, 4\), got \(3, 5\)"):
        PF.affine(x, 5, name="fc")


def test_a_parameter_of_another_shape_is_named_by_its_whole_path(rng):
    x = variable(rng, 2, 3)
    with nn.parameter_scope("net"), nn.parameter_scope("encoder"):
        PF.affine(x, 4, name="fc")
        with pytest.raises(ShapeError, match=r"parameter 'net/encoder/fc/affine/W' must keep its shape"):
            PF.affine(x, 5, name="fc")
    with nn.parameter_scope("own", {}), pytest.raises(ShapeError, match=r"parameter 'own/affine/W' must keep its shape"):
        PF.affine(x, 4)
        PF.affine(x, 5)


def test_gradients_reach_the_parameters(rng):
    loss = F.sum(PF.affine(PF.convolution(variable(rng, 2, 3, 5, 5), 4, (3, 3)), 2) ** 2)
    for parameter in parameters().values():
        parameter.grad.zero()
    loss.forward()
    loss.backward()
    assert all(np.abs(parameter.g).sum() > 0 for parameter in parameters().values())


def test_batch_normalization_takes_initial_values_by_name(rng):
    init = {"gamma": ConstantInitializer(3), "var": np.full((1, 2, 1, 1), 4.0)}
    PF.batch_normalization(variable(rng, 2, 2, 3, 3), param_init=init)
    assert float(parameters()["bn/gamma"].d[0, 0, 0, 0]) == 3
    assert float(parameters()["bn/var"].d[0, 0, 0, 0]) == 4
    with pytest.raises(ArgumentError, match="param_init: the names must be among beta, gamma, mean, var, got 'gama'"):
        PF.batch_normalization(variable(rng, 2, 2, 3, 3), param_init={"gama": ConstantInitializer(3)}, name="other")


def test_running_means_follow_the_batches_on_several_axes(rng):
    x = variable(rng, 8, 3, 4)
    PF.batch_normalization(x, axes=(1, 2)).forward()
    np.testing.assert_allclose(parameters()["bn/mean"].d[0], 0.1 * x.d.mean(0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("function", "settings", "message"),
    [
        (
            "batch_normalization",
            {"axes": (4,)},
            r"batch_normalization: axes must be axes of an array of shape \(2, 3\)",
        ),
        ("layer_normalization", {"batch_axis": 2}, "layer_normalization: batch_axis must be axes of an array"),
        ("weight_normalization", {"dim": -3}, "weight_normalization: dim must be axes of an array"),
        ("svd_affine", {"n_outmaps": 4, "r": 4}, "svd_affine: r must be from 1 to 3, got 4"),
    ],
)
def test_wrong_settings_are_refused(function, settings, message):
    with pytest.raises(ArgumentError, match=message):
        getattr(PF, function)(nn.Variable((2, 3)), **settings)


def test_lstm_with_an_integer_is_the_cell(rng):
    x, h, c = variable(rng, 2, 3), variable(rng, 2, 4), variable(rng, 2, 4)
    cell = PF.lstm_cell(x, h, c, 4, name="net")
    old_style = PF.lstm(x, h, c, 4, name="net")
    nn.forward_all([*cell, *old_style])
    assert list(parameters()) == ["net/lstm/affine/W", "net/lstm/affine/b"]
    for a, b in zip(cell, old_style, strict=True):
        assert np.array_equal(a.d, b.d)


def test_lstm_cell_object_keeps_its_state(rng):
    cell = PF.LSTMCell(2, 4, name="net")
    x = variable(rng, 2, 3)
    first = cell(x)
    second = cell(x)
    assert cell.h is second
    nn.forward_all([first, second])
    assert not np.allclose(first.d, second.d)
    assert list(parameters()) == ["net/lstm/affine/W", "net/lstm/affine/b"]
    cell.reset_state()
    assert not cell.h.d.any()
    assert not cell.c.d.any()


def test_lstm_cell_object_refuses_a_state_of_another_shape():
    with pytest.raises(ShapeError, match=r"LSTMCell: c must have the shape \(2, 4\), got \(2, 3\)"):
        PF.LSTMCell(2, 4, c=nn.Variable((2, 3)))


def test_layer_of_lstm_agrees_with_cells(rng):
    x = variable(rng, 3, 2, 5)
    h, c = variable(rng, 1, 1, 2, 4), variable(rng, 1, 1, 2, 4)
    y, _, _ = PF.lstm(x, h, c)
    y.forward()
    w = parameters()["lstm/weight_l0"].d[0]
    i, f, g, o = (0, 1, 2, 3)

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    hs, cs = h.d[0, 0], c.d[0, 0]
    for step in range(3):
        gates = np.einsum("ghk,bk->gbh", w, np.concatenate([x.d[step], hs], axis=1))
        cs = sigmoid(gates[f]) * cs + sigmoid(gates[i]) * np.tanh(gates[g])
        hs = sigmoid(gates[o]) * np.tanh(cs)
        np.testing.assert_allclose(y.d[step], hs, rtol=1e-4, atol=1e-5)


def test_full_rank_svd_is_the_affine_layer(rng):
    x = variable(rng, 2, 5)
    w = rng.standard_normal((5, 4)).astype(np.float32)
    y = PF.svd_affine(x, 4, r=4, uv_init=w)
    y.forward()
    np.testing.assert_allclose(y.d, x.d @ w, rtol=1e-4, atol=1e-5)
    PF.svd_affine(x, 4, r=4)  # finds the parameters, draws nothing


def test_full_rank_svd_is_the_convolution(rng):
    x = variable(rng, 2, 3, 6, 6)
    w = rng.standard_normal((5, 3, 2, 2)).astype(np.float32)
    y, z = PF.svd_convolution(x, 5, (2, 2), r=4, uv_init=w), PF.convolution(x, 5, (2, 2), w_init=w)
    nn.forward_all([y, z])
    np.testing.assert_allclose(y.d, z.d, rtol=1e-3, atol=1e-4)


def test_enough_terms_of_cpd_are_the_convolution(rng):
    x = variable(rng, 2, 2, 5, 5)
    w = np.einsum("or,ir,kr->oik", *(rng.standard_normal((n, 2)) for n in (3, 2, 4))).reshape(3, 2, 2, 2)
    y = PF.cpd3_convolution(x, 3, (2, 2), r=4, oik_init=w, stopping_criterion=-1, rng=np.random.RandomState(1))
    z = PF.convolution(x, 3, (2, 2), w_init=w)
    nn.forward_all([y, z])
    np.testing.assert_allclose(y.d, z.d, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_decomposition_finds_tensors_of_low_rank(rng, rank):
    factors = [np.linalg.qr(rng.standard_normal((length, rank)))[0] for length in (4, 5, 6)]
    tensor = np.einsum("ir,jr,kr->ijk", *factors)
    found, weights = ALS().solve(tensor, rank, stopping_criterion=-1, dtype=np.float64, rng=np.random.RandomState(0))
    approximation = ALS().approximate_tensor(found, weights)
    assert np.linalg.norm(approximation - tensor) < 1e-4 * np.linalg.norm(tensor)


def test_decomposition_refuses_rank_zero():
    with pytest.raises(ArgumentError, match=r"rank must be at least 1 and X have 2 axes, got 0 and \(2, 3\)"):
        ALS().solve(np.ones((2, 3)), 0)


def test_quantized_values_stand_beside_the_exact_ones(rng):
    y = PF.fixed_point_quantized_affine(variable(rng, 2, 3), 4, n_w=3, delta_w=0.25)
    y.forward(clear_buffer=True)
    w, w_q = parameters()["fp_quantized_affine/W"].d, parameters()["fp_quantized_affine/W_q"].d
    assert np.array_equal(np.round(w_q / 0.25), w_q / 0.25)
    assert np.abs(w - w_q).max() <= 0.5


def test_gradients_pass_the_quantization(rng):
    loss = F.sum(PF.pow2_quantized_affine(variable(rng, 2, 3), 4))
    for parameter in parameters().values():
        parameter.grad.zero()
    loss.forward()
    loss.backward()
    assert np.abs(parameters()["pow2_quantized_affine/W"].g).sum() > 0


def test_attention_refuses_unknown_initial_values():
    q = nn.Variable((5, 2, 12))
    with pytest.raises(ArgumentError, match=r"param_init: the names must be among q_weight, .*, got 'w'"):
        PF.multi_head_attention(q, q, q, num_heads=3, param_init={"w": ConstantInitializer(1)})


def test_transformer_checks_its_sequences():
    with pytest.raises(ArgumentError, match=r"transformer: tgt must have the shape \(length, batch, 12\), got \(5, 2, 8\)"):
        PF.transformer(nn.Variable((5, 2, 12)), nn.Variable((5, 2, 8)), embed_dim=12, num_heads=3)


@pytest.mark.parametrize("layer", [PF.rnn, PF.gru, PF.lstm])
def test_recurrent_layers_have_as_many_layers_as_their_states(layer):
    x, h = nn.Variable((3, 2, 5)), nn.Variable((2, 2, 2, 4))
    states = (h, h) if layer is PF.lstm else (h,)
    y, *last = layer(x, *states, bidirectional=True)
    assert y.shape == (3, 2, 8) and [state.shape for state in last] == [h.shape] * len(states)
    shapes = [parameter.shape for parameter in nn.get_parameters().values()]
    assert [shape[0] for shape in shapes] == [2, 1, 2]
    with pytest.raises(ShapeError, match="num_layers must be 1 or the first length of h, got 3 and 2"):
        layer(x, *states, num_layers=3, bidirectional=True)
