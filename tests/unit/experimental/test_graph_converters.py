"""Converted graphs against the originals, on random nets."""

from functools import partial

import numpy as np
import pytest

import nn_core as nn
import nn_core.experimental.graph_converters as GC
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, ShapeError
from nn_core.graph_rewriting import functions_of

SEEDS = range(6)


@pytest.fixture(autouse=True)
def _scope():
    nn.clear_parameters()
    with nn.parameter_scope("", {}):
        yield


def shake(rng):
    """Give every parameter values that no test may pass by accident."""
    for name, parameter in nn.get_parameters(grad_only=False).items():
        low, high = (0.5, 2.0) if name.rpartition("/")[2] in ("var", "gamma") else (-1.0, 1.0)
        values = rng.uniform(low, high, parameter.shape) * (0.4 if parameter.ndim > 3 else 1)
        parameter.d = values.astype(np.float32)


def convolution(rng, h, name, **settings):
    group = int(rng.choice([1, 2]))
    return PF.convolution(
        h, 4 * group, (3, 3), pad=(1, 1), stride=(int(rng.integers(1, 3)),) * 2, group=group,
        with_bias=bool(rng.integers(2)), name=name, **settings,
    )  # fmt: skip


def net(seed, batch_stat=False, dropout=False):
    """A random net with every kind of neighbour that a normalization may have."""
    rng = np.random.default_rng(seed)
    x = nn.Variable.from_numpy_array(rng.normal(size=(2, 4, 9, 9)))
    settings = {"batch_stat": batch_stat}
    h = PF.batch_normalization(convolution(rng, x, "c0"), name="b0", **settings)
    h = F.relu(h) if rng.integers(2) else h
    shortcut = PF.batch_normalization(convolution(rng, h, "c1"), name="b1", **settings)
    h = F.relu(shortcut + F.tanh(shortcut) if rng.integers(2) else F.tanh(shortcut) + shortcut)
    h = F.dropout(h, 0.5) if dropout else h
    if rng.integers(2):
        h = PF.deconvolution(h, h.shape[1], (2, 2), stride=(2, 2), group=2, name="d", with_bias=bool(rng.integers(2)))
        h = PF.batch_normalization(h, name="bd", no_scale=bool(rng.integers(2)), **settings)
    h = F.max_pooling(h, (2, 2), ignore_border=False)
    h = PF.batch_normalization(PF.affine(h, (3, 5) if rng.integers(2) else 5, name="a0"), name="ba", **settings)
    y = PF.affine(F.sigmoid(h), 3, name="a1", with_bias=bool(rng.integers(2)))
    shake(rng)
    return x, y


def names_of(*outputs):
    return [function.name for function in functions_of(outputs)]


def require_equal(converted, original):
    original.forward()
    expected = original.d.copy()
    converted.forward()
    assert converted.shape == original.shape
    np.testing.assert_allclose(converted.d, expected, rtol=0, atol=1e-5 * max(1.0, np.abs(expected).max()))


CONVERTERS = {
    "identity": lambda x: GC.IdentityModifier(),
    "no grad": lambda x: GC.NoGradModifier(),
    "test mode": lambda x: GC.TestModeModifier(["Dropout"]),
    "folding": lambda x: GC.BatchNormalizationFoldingModifier(),
    "self folding": lambda x: GC.BatchNormalizationSelfFoldingModifier(),
    "add bias": lambda x: GC.AddBiasModifier(),
    "fused": lambda x: GC.FusedBatchNormalizationModifier(),
    "fused and unfused": lambda x: [GC.FusedBatchNormalizationModifier(), GC.UnfusedBatchNormalizationModifier()],
    "pruning of nothing": lambda x: GC.PruningModifier(0.0),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CONVERTERS)
def test_converted_graphs_compute_what_the_original_does(name, seed):
    x, y = net(seed)
    before = {key: p.d.copy() for key, p in nn.get_parameters(grad_only=False).items()}
    require_equal(GC.GraphConverter([CONVERTERS[name](x)]).convert(y), y)
    for key, values in before.items():
        assert np.array_equal(nn.parameter.get_parameter(key).d, values), f"{key} of the original has changed"


@pytest.mark.parametrize("seed", SEEDS)
def test_folding_leaves_no_batch_normalization(seed):
    _, y = net(seed)
    folded = GC.GraphConverter([GC.BatchNormalizationFoldingModifier()]).convert(y)
    assert "BatchNormalization" not in names_of(folded)
    assert {"c0/conv/w-folded", "c0/conv/b-folded", "a0/affine/w-folded"} <= set(nn.get_parameters())


def test_self_folding_names_its_parameters_as_nnabla():
    _, y = net(0)
    GC.GraphConverter([GC.BatchNormalizationSelfFoldingModifier()]).convert(y)
    assert "bn-self-folding/c0-bn-self-folding-0" in nn.get_parameters()
    assert "bn-self-folding/c1-bn-self-folding-0" in nn.get_parameters()


@pytest.mark.parametrize("make", [
    partial(PF.affine, n_outmaps=7),
    partial(PF.convolution, outmaps=6, kernel=(3, 2), group=2, stride=(2, 1)),
    partial(PF.convolution, outmaps=6, kernel=(3, 2), with_bias=False, dilation=(2, 2)),
])  # fmt: skip
def test_normalizations_before_inner_products_are_folded(make):
    rng = np.random.default_rng(3)
    x = nn.Variable.from_numpy_array(rng.normal(size=(3, 4, 7, 6)))
    y = make(PF.batch_normalization(x, batch_stat=False, name="b"), name="f")
    shake(rng)
    folded = GC.GraphConverter([GC.BatchNormalizationFoldingModifier(opposite=True)]).convert(y)
    assert "BatchNormalization" not in names_of(folded)
    require_equal(folded, y)


@pytest.mark.parametrize("make", [
    partial(PF.convolution, outmaps=6, kernel=(3, 3), pad=(1, 1)),
    partial(PF.deconvolution, outmaps=6, kernel=(3, 3)),
])  # fmt: skip
def test_shifts_are_not_moved_across_borders(make):
    x = nn.Variable((1, 2, 5, 5))
    y = make(PF.batch_normalization(x, batch_stat=False), name="f")
    nn.parameter.get_parameter("bn/beta").d = 1
    with pytest.raises(ArgumentError, match="must be affine or a convolution without padding, got <"):
        GC.GraphConverter([GC.BatchNormalizationFoldingModifier(opposite=True)]).convert(y)


def test_normalizations_by_batch_are_not_folded():
    _, y = net(0, batch_stat=True)
    with pytest.raises(ArgumentError, match="must use running statistics to be folded, got batch_stat=True\n  hint"):
        GC.GraphConverter([GC.BatchNormalizationFoldingModifier()]).convert(y)


@pytest.mark.parametrize("channel_last", [False, True])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("function", [PF.convolution, PF.deconvolution])
def test_folding_knows_groups_and_layouts(function, group, channel_last):
    rng = np.random.default_rng(5)
    x = nn.Variable.from_numpy_array(rng.normal(size=(2, 5, 5, 4) if channel_last else (2, 4, 5, 5)))
    h = function(x, 6, (3, 2), group=group, channel_last=channel_last)
    y = PF.batch_normalization(h, axes=[3 if channel_last else 1], batch_stat=False)
    shake(rng)
    with nn.context_scope(nn.Context(["reference"])):  # runs every layout
        folded = GC.GraphConverter([GC.BatchNormalizationFoldingModifier()]).convert(y)
    assert names_of(folded) == names_of(h)
    require_equal(folded, y)


@pytest.mark.parametrize("batch_stat", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_channels_move_to_the_end_and_back(seed, batch_stat):
    x, y = net(seed, batch_stat)
    to_last = GC.ChannelLastModifier([x])
    y_last = GC.GraphConverter([to_last]).convert(y)
    convolutions = [f for f in functions_of([y_last]) if f.name in ("Convolution", "Deconvolution", "MaxPooling")]
    assert convolutions and all(f.args["channel_last"] for f in convolutions)
    assert "c0/conv/W_cl" in nn.get_parameters()
    require_equal(y_last, y)
    to_first = GC.ChannelFirstModifier(to_last.new_inputs)
    y_first = GC.GraphConverter([to_first]).convert(y_last)
    assert not any(f.args.get("channel_last") for f in functions_of([y_first]))
    require_equal(y_first, y)


def test_new_layouts_take_inputs_that_fit():
    x = nn.Variable((2, 3, 4, 5))
    with pytest.raises(ArgumentError, match=r"the new input must have the shape \(2, 4, 5, 3\), got \(2, 3, 4, 5\)"):
        GC.ChannelLastModifier([x], [x])
    with pytest.raises(ArgumentError, match="as many new inputs as inputs must be given, got 0 for 1"):
        GC.ChannelLastModifier([x], [])


def test_training_mode_trains_both_the_same():
    x = nn.Variable.from_numpy_array(np.random.default_rng(1).normal(size=(2, 4, 5, 5)))
    y = F.relu(PF.batch_normalization(x, no_bias=True, name="b0") + F.tanh(x))
    fused = GC.GraphConverter([GC.FusedBatchNormalizationModifier()]).convert(y)
    assert "FusedBatchNormalization" in names_of(fused)
    mean = nn.parameter.get_parameter("b0/bn/mean")
    start = mean.d.copy()
    F.sum(y).forward()
    first = mean.d.copy()
    mean.d = start
    F.sum(fused).forward()
    np.testing.assert_allclose(mean.d, first, atol=1e-6)


def test_normalizations_that_others_read_are_not_fused():
    x = nn.Variable((2, 3, 4, 4))
    h = PF.batch_normalization(x, batch_stat=True)
    converted = GC.GraphConverter([GC.FusedBatchNormalizationModifier()]).convert([F.relu(h), h])
    assert names_of(*converted) == ["BatchNormalization", "ReLU"]


def test_dropout_goes_in_test_mode():
    _, y = net(2, batch_stat=True, dropout=True)
    tested = GC.GraphConverter([GC.TestModeModifier(["Dropout"])]).convert(y)
    assert "Dropout" not in names_of(tested)
    assert not any(f.args.get("batch_stat") for f in functions_of([tested]))
    nn.clear_parameters()


def test_functions_that_change_shapes_stay():
    y = F.sum(nn.Variable((2, 3)), axis=1)
    with pytest.raises(ShapeError, match="can only go if its output has the shape of its first input, got <Sum"):
        GC.GraphConverter([GC.RemoveFunctionModifier(["Sum"])]).convert(y)


def test_identity_puts_other_inputs_in_every_place():
    a, b = nn.Variable.from_numpy_array([1.0, 2.0]), nn.Variable.from_numpy_array([5.0, 7.0])
    y = (b - a) * a
    new = nn.Variable((2,))
    z = GC.GraphConverter([GC.IdentityModifier({a: new}, copy_value=True)]).convert(y)
    z.forward()
    assert z.d.tolist() == [4.0, 10.0]
    new.d = [0.5, 1.0]
    z.forward()
    assert z.d.tolist() == [2.25, 6.0]
    with pytest.raises(ShapeError, match=r"inputs must keep the shape \(2,\), got \(3,\)"):
        GC.IdentityModifier({a: nn.Variable((3,))}, copy_value=True)


def test_copies_without_gradients_share_values():
    _, y = net(0)
    frozen = GC.GraphConverter([GC.NoGradModifier()]).convert(y)
    assert not any(v.need_grad for f in functions_of([frozen]) for v in f.inputs)
    assert y.need_grad and nn.parameter.get_parameter("c0/conv/W").need_grad
    weights = {v.data for f in functions_of([frozen]) for v in f.inputs}
    assert nn.parameter.get_parameter("c0/conv/W").data in weights


@pytest.mark.parametrize("function", ["affine", "convolution", "deconvolution", "depthwise_convolution"])
def test_small_channels_become_zero(function):
    rng = np.random.default_rng(0)
    x = nn.Variable.from_numpy_array(rng.normal(size=(2, 4, 5, 5)))
    settings = {"affine": {"n_outmaps": 4}, "depthwise_convolution": {"kernel": (3, 3)}}
    y = getattr(PF, function)(x, **settings.get(function, {"outmaps": 4, "kernel": (3, 3)}))
    weight, bias = y.parent.inputs[1:]
    weight.d, bias.d = 0.1, 1.0
    channels = np.moveaxis(weight.d, 0 if "olution" in function and function != "deconvolution" else 1, 0)
    channels[2] = 0.001  # a view
    pruned = GC.GraphConverter([GC.PruningModifier(0.005)]).convert(y)
    pruned.forward()
    zero = np.moveaxis(pruned.d, 1, 0)
    assert not zero[2].any() and np.abs(zero[[0, 1, 3]]).min(axis=tuple(range(1, zero.ndim))).all()
    assert weight.d.all() and any(name.endswith("/w-pruned") for name in nn.get_parameters())


def test_modifiers_of_users():
    class Twice(GC.FunctionModifier):
        def modify(self, f, inputs):
            return F.mul_scalar(inputs[0], 2) if f.info.type_name == "Tanh" else None

    y = F.exp(F.tanh(nn.Variable.from_numpy_array([1.0])))
    z = GC.GraphConverter([Twice()]).convert([y])[0]
    z.forward()
    assert z.d.tolist() == pytest.approx([np.exp(2)])
    modifier = Twice()
    y.visit(modifier)
    with pytest.raises(ArgumentError, match="o must be a Variable or a list of them, got int"):
        GC.GraphConverter([Twice()]).convert([3])
    with pytest.raises(ArgumentError, match="must be FunctionModifiers or lists of them, got int"):
        GC.GraphConverter([3])
