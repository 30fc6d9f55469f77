"""Parametric functions: what they compute with their parameters, and the parameters."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, ShapeError

C = F.contrib
CL = PF.contrib

RNG = np.random.default_rng
V = nn.Variable


def variable(*shape, seed=0):
    return V.from_numpy_array(RNG(seed).normal(size=shape))


def whole(high, *shape):
    return V.from_numpy_array(RNG(1).integers(0, high, shape))


def randomize(scale=0.5):
    """Give all parameters random values, and return them by name."""
    found = nn.get_parameters(grad_only=False)
    for n, (name, p) in enumerate(found.items()):
        p.d = RNG(50 + n).normal(size=p.shape) * scale + (2 if name.endswith("var") else 0)
    return found


def results(given):
    return [part for item in given for part in results(item)] if isinstance(given, (list, tuple)) else [given]


def same(ours, theirs):
    """Both computed after one another by the same parameters."""
    ours, theirs = results(ours), results(theirs)
    nn.forward_all([*ours, *theirs])
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.d, other.d, rtol=1e-5, atol=1e-6)


def test_sums_and_products_with_trained_arrays():
    x = variable(2, 3, 4)
    sums, scaled = CL.trained_bias(x), CL.trained_scale(x, axis=1, shape=(3, 4), with_bias=True)
    p = nn.get_parameters()
    assert not p["trained_bias/b"].d.any() and (p["trained_scale/W"].d == 1).all() and not p["trained_scale/b"].d.any()
    randomize()
    same(sums, C.bias(x, p["trained_bias/b"]))
    same(scaled, C.bias(C.scale(x, p["trained_scale/W"]), p["trained_scale/b"]))


@pytest.mark.parametrize("with_bias", [True, False])
def test_bilinear(with_bias):
    e1, e2 = variable(2, 3), variable(2, 2, 2, seed=1)
    y = CL.bilinear(e1, e2, 5, with_bias=with_bias)
    p = randomize()
    assert list(p) == [f"bilinear/{name}" for name in ("W", "V1", "V2", "b")[: 4 if with_bias else 1]]
    same(y, C.bilinear(e1, e2, *p.values()))


@pytest.mark.parametrize("with_bias", [True, False])
def test_maxout(with_bias):
    x = variable(2, 3)
    y = CL.maxout(x, 4, 2, with_bias=with_bias)
    same(y, C.maxout(F.affine(x, *randomize().values()), 2))


def test_simplified_dropconnect():
    x, mask = variable(2, 3), whole(2, 2, 4, 3)
    y, plain = CL.simplified_dropconnect(x, 4, mask=mask), CL.simplified_dropconnect(x, 4, train=False)
    p = randomize()
    assert list(p) == ["simplified_dropconnect/W", "simplified_dropconnect/b"]
    same([y, plain], [C.simplified_dropconnect(x, *p.values(), mask=mask), F.affine(x, F.transpose(p[next(iter(p))], (1, 0)), p["simplified_dropconnect/b"])])  # fmt: skip  # noqa: E501


def test_highway():
    x = variable(2, 3)
    y = CL.highway(x, F.tanh)
    p = nn.get_parameters()
    assert (p["highway/transform/affine/b"].d == -1).all()
    w, b, gate_w, gate_b = (value.d for value in randomize().values())
    gate = 1 / (1 + np.exp(-(x.d @ gate_w + gate_b)))
    y.forward()
    np.testing.assert_allclose(y.d, gate * np.tanh(x.d @ w + b) + (1 - gate) * x.d, rtol=1e-5)


def test_crf_and_its_best_paths_share_their_parameter():
    x, target, length = variable(4, 2, 3), whole(3, 4, 2), V.from_numpy_array(np.array([4, 2]))
    loss, (score, path) = CL.crf1d(x, target, length, name="tags"), CL.argmax_crf1d(x, length, name="tags")
    (cost,) = nn.get_parameters().values()
    assert not cost.d.any()
    randomize()
    same([loss, score, path], [C.crf1d(cost, x, target, length), *C.argmax_crf1d(cost, x, length)])


@pytest.mark.parametrize(("layer", "function"), [(CL.negative_sampling, C.negative_sampling), (CL.black_out, C.black_out)])
def test_losses_over_sampled_words(layer, function):
    x, t = variable(3, 2), whole(4, 3)
    loss = layer(x, t, [0, 0, 5, 0], 6)  # one word is all that can be drawn
    (w,) = randomize().values()
    assert w.shape == (4, 2)
    same(loss, function(x, t, w, V.from_numpy_array(np.full((3, 6), 2))))


def test_hierarchical_softmax():
    x, t, tree = variable(3, 2), whole(3, 3), ((1, 2), 0)
    loss = CL.hierarchical_softmax(x, t, tree)
    (w,) = nn.get_parameters().values()
    assert w.shape == (2, 2) and abs(w.d).max() < 1
    same(loss, C.hierarchical_softmax(x, t, w, tree))


def test_networks_in_networks():
    x = variable(2, 3, 6, 6)
    y = CL.mlp_convolution_2d(x, (4, 5), 3, pad=1, stride=2, activation=F.tanh)
    w0, b0, w1, b1 = randomize().values()
    assert y.shape == (2, 5, 3, 3)
    same(y, F.convolution(F.tanh(F.convolution(x, w0, b0, pad=(1, 1), stride=(2, 2))), w1, b1))


def test_inception():
    x = variable(2, 3, 5, 5)
    y = CL.inception(x, 2, 3, 4, 2, 3, 5)
    p = {name.split("/")[1] + name[-1]: value for name, value in randomize().items()}

    def conv(h, name, pad=0):
        return F.relu(F.convolution(h, p[f"{name}W"], p[f"{name}b"], pad=(pad, pad)))

    branches = [conv(x, "conv1"), conv(conv(x, "proj3"), "conv3", 1), conv(conv(x, "proj5"), "conv5", 2)]
    same(y, F.concatenate(*branches, conv(F.max_pooling(x, (3, 3), (1, 1), pad=(1, 1)), "projp"), axis=1))


@pytest.mark.parametrize(("out1", "stride", "pooltype", "proj"), [(2, 1, "avg", 3), (0, 2, "max", None)])
def test_inception_with_batch_normalization(out1, stride, pooltype, proj):
    x = variable(2, 3, 5, 5)
    y = CL.inception_bn(x, out1, 2, 4, 3, 5, pooltype, proj, stride, batch_stat=False)
    p = randomize()

    def conv(h, name, pad=0, step=1):
        path = f"inception_bn/{name}"
        y = F.convolution(h, p[f"{path}/conv/W"], None, pad=(pad, pad), stride=(step, step))
        return F.relu(F.batch_normalization(y, *(p[f"{path}/bn/{n}"] for n in ("beta", "gamma", "mean", "var")), batch_stat=False))  # fmt: skip  # noqa: E501

    pooled = (F.average_pooling if pooltype == "avg" else F.max_pooling)(x, (3, 3), (stride, stride), pad=(1, 1))
    branches = [
        *([conv(x, "conv1", 0, stride)] if out1 else []),
        conv(conv(x, "proj3"), "conv3", 1, stride),
        conv(conv(conv(x, "proj33"), "conv33a", 1), "conv33b", 1, stride),
        conv(pooled, "poolp") if proj else pooled,
    ]
    same(y, F.concatenate(*branches, axis=1))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_a_step_of_an_lstm():
    x, c, h = variable(2, 3), variable(3, 4, seed=1), variable(3, 4, seed=2)
    new_c, new_h = CL.stateless_lstm(c, h, x, 4)
    w, b, u = (value.d for value in randomize().values())
    nn.forward_all([new_c, new_h])
    a, i, f, o = np.moveaxis((x.d @ w + b + h.d[:2] @ u).reshape(2, 4, 4), 2, 0)
    cells = np.tanh(a) * sigmoid(i) + c.d[:2] * sigmoid(f)
    np.testing.assert_allclose(new_c.d, np.concatenate([cells, c.d[2:]]), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(new_h.d, np.tanh(cells) * sigmoid(o), rtol=1e-5, atol=1e-6)


def test_a_step_of_an_lstm_whose_gates_see_the_cells():
    x, c, h = variable(2, 3), variable(2, 4, seed=1), variable(2, 4, seed=2)
    new_c, new_h = CL.peephole_lstm(c, h, x, 4)
    p = {name.split("/")[1] + name[-1]: value.d for name, value in randomize().items()}
    nn.forward_all([new_c, new_h])
    a, i, f, o = np.moveaxis((x.d @ p["upwardW"] + p["upwardb"] + h.d @ p["lateralW"]).reshape(2, 4, 4), 2, 0)
    cells = np.tanh(a) * sigmoid(i + c.d @ p["peep_iW"]) + c.d * sigmoid(f + c.d @ p["peep_fW"])
    np.testing.assert_allclose(new_c.d, cells, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(new_h.d, np.tanh(cells) * sigmoid(o + cells @ p["peep_oW"]), rtol=1e-5, atol=1e-6)


def test_a_step_of_gated_units():
    x, h = variable(2, 3), variable(2, 4, seed=1)
    y = CL.stateless_gru(h, x, 4)
    p = {name.split("/")[1] + name[-1]: value.d for name, value in randomize().items()}
    y.forward()

    def sums(inp, name):
        return inp @ p[f"{name}W"] + p[f"{name}b"]

    r, z = (sigmoid(sums(x.d, f"W_{g}") + sums(h.d, f"U_{g}")) for g in "rz")
    n = np.tanh(sums(x.d, "W") + sums(r * h.d, "U"))
    np.testing.assert_allclose(y.d, (1 - z) * h.d + z * n, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("step", [CL.stateless_lstm, CL.peephole_lstm])
def test_no_state_is_a_state_of_zeros(step):
    x, zeros = variable(2, 3), V.from_numpy_array(np.zeros((2, 4)))
    same(step(None, None, x, 4), step(zeros, zeros, x, 4))


def test_no_state_of_gated_units_is_a_state_of_zeros():
    x = variable(2, 3)
    same(CL.stateless_gru(None, x, 4), CL.stateless_gru(V.from_numpy_array(np.zeros((2, 4))), x, 4))


def n_step(kind, states, xs, **settings):
    given = states if kind == "lstm" else states[:1]
    return getattr(PF.contrib, f"n_step_{kind}")(*given, xs, 2, 4, **settings)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_sequences_are_taken_in_any_order_and_alone_give_the_same(kind, bidirectional):
    lengths, rows = (2, 4, 1, 4), 4 if bidirectional else 2
    xs = [variable(length, 3, seed=n) for n, length in enumerate(lengths)]
    states = [variable(rows, 4, 4, seed=10 + n) for n in range(2)]
    *ends, ys = n_step(kind, states, xs, bidirectional=bidirectional)
    randomize()
    assert [y.shape for y in ys] == [(length, 4 * (1 + bidirectional)) for length in lengths]
    for n, x in enumerate(xs):
        own = [F.slice(state, start=(0, n, 0), stop=(rows, n + 1, 4), step=(1, 1, 1)) for state in states]
        *own_ends, own_ys = n_step(kind, own, [x], bidirectional=bidirectional)
        parts = [F.slice(end, start=(0, n, 0), stop=(rows, n + 1, 4), step=(1, 1, 1)) for end in ends]
        same([*parts, ys[n]], [*own_ends, own_ys])


def test_layers_over_sequences_train():
    nn.seed(2)
    xs = [variable(length, 3, seed=n) for n, length in enumerate((3, 1, 2))]
    _, ys = CL.n_step_gru(None, xs, 2, 4, bidirectional=True)
    loss = sum(F.mean((y - 0.5) ** 2) for y in ys)
    solver = nn.solvers.Adam(0.05)
    solver.set_parameters(nn.get_parameters())
    found = []
    for _ in range(15):
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.update()
        found.append(float(loss.d))
    assert found[-1] < 0.2 * found[0]


def test_fixed_parameters_get_no_gradient():
    x = variable(2, 3)
    assert not CL.maxout(x, 2, 2, fix_parameters=True).need_grad
    assert CL.maxout(x, 2, 2, name="other").need_grad


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: CL.highway(V((2, 3, 1))), ShapeError, r"x must have shape \(N, D\)"),
        (lambda: CL.mlp_convolution_2d(V((2, 3, 4, 4)), (), 3), ArgumentError, "outmaps must have a number for each"),
        (lambda: CL.inception_bn(V((2, 3, 4, 4)), 1, 1, 1, 1, 1, "mean"), ArgumentError, "pooltype must be 'max' or 'avg'"),
        (lambda: CL.stateless_lstm(V((1, 4)), None, V((2, 3)), 4), ShapeError, "no fewer rows than x"),
        (lambda: CL.peephole_lstm(V((3, 4)), V((3, 4)), V((2, 3)), 4), ShapeError, "c must have a row for each of x"),
        (lambda: CL.stateless_gru(V((3, 4)), V((2, 3)), 4), ShapeError, r"h must have shape \(2, 4\)"),
        (lambda: CL.n_step_gru(None, [], 1, 2), ShapeError, "xs must be sequences of shape"),
        (lambda: CL.n_step_gru(None, [V((2, 3)), V((2, 4))], 1, 2), ShapeError, "xs must be sequences of shape"),
        (lambda: CL.crf1d(V((2, 3)), V((2,))), ShapeError, r"x must have shape \(T, B, K\)"),
        (lambda: CL.negative_sampling(V((2, 3, 1)), V((2,)), [1, 2], 2), ShapeError, r"x must have shape \(N, D\)"),
    ],
)
def test_wrong_calls_are_refused_and_leave_no_parameters(call, error, message):
    with pytest.raises(error, match=message):
        call()
    assert not nn.get_parameters(grad_only=False)
