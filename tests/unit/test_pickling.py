"""Pickling and deepcopy keep values, flags, sharing and states, and training continues as if nothing had happened."""

import copy
import pickle

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.initializer as I
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import GraphError

COPIES = [*(lambda value, p=p: pickle.loads(pickle.dumps(value, p)) for p in range(2, 6)), copy.deepcopy]
NAMES = [*(f"protocol {p}" for p in range(2, 6)), "deepcopy"]


@pytest.fixture(params=COPIES, ids=NAMES)
def copied(request):
    return request.param


class Block(nn.Module):
    def __init__(self, maps):
        self.maps = maps

    def call(self, x):
        return F.relu(PF.batch_normalization(PF.affine(x, self.maps)))


class Net(nn.Module):
    def __init__(self):
        self.layers = [Block(5), Block(4)]
        self.heads = nn.ModuleDict({"a": Block(3)})
        self.also = self.heads["a"]
        self.scale = nn.Variable.from_numpy_array(np.ones((1, 3), np.float32), need_grad=True)

    def call(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.heads["a"](x) * self.scale


class Labelled(nn.Variable):
    def __init__(self, shape, label):
        super().__init__(shape, need_grad=True)
        self.label = label


class Slotted(Labelled):
    __slots__ = ("unit",)


def train(net, solver, n_steps, seed, auto):
    rng = np.random.default_rng(seed)
    for _ in range(n_steps):
        x = nn.Variable.from_numpy_array(np.float32(rng.normal(size=(6, 4))))
        t = nn.Variable.from_numpy_array(np.float32(rng.normal(size=(6, 3))))
        with nn.auto_forward(auto):
            loss = F.mean(F.squared_error(net(x), t))
        solver.set_parameters(net.get_parameters(grad_only=True), reset=False, retain_state=True)
        if not auto:
            loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.weight_decay(0.01)
        solver.update()


METHODS = [S.Sgd, S.Momentum, S.Adam, S.AdamW, S.AdaBelief, S.Lamb]


@pytest.mark.parametrize("auto", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_training_goes_on_bit_by_bit(copied, method, auto):
    net, solver = Net(), method()
    train(net, solver, 3, seed=1, auto=auto)
    solver.set_learning_rate(0.0125)
    next(iter(net.get_parameters(grad_only=True).values())).need_grad = False
    other_net, other_solver = copied((net, solver))
    assert other_solver.info == solver.info
    for pair in ((net, solver), (other_net, other_solver)):
        train(*pair, 3, seed=2, auto=auto)
    ours, theirs = net.get_parameters(), other_net.get_parameters()
    assert list(ours) == list(theirs)
    for name, parameter in ours.items():
        assert theirs[name] != parameter
        assert theirs[name].need_grad == parameter.need_grad
        np.testing.assert_array_equal(theirs[name].d, parameter.d)
        np.testing.assert_array_equal(theirs[name].g, parameter.g)
    states, other_states = solver.get_states(), other_solver.get_states()
    assert list(states) == list(other_states)
    for name, state in states.items():
        assert other_states[name].t == state.t
        for key, values in state.pstate.items():
            np.testing.assert_array_equal(other_states[name].pstate[key].d, values.d)


def test_the_copy_of_a_solver_changes_copies_of_the_parameters(copied):
    w = nn.Variable.from_numpy_array(np.float32([1.0]), need_grad=True)
    solver = S.Sgd(0.5)
    solver.set_parameters({"w": w})
    w.g = 1.0
    other = copied(solver)
    other.update()
    assert w.d.tolist() == [1.0]
    assert other.get_parameters()["w"].d.tolist() == [0.5]
    assert repr(other) == repr(solver)


def test_the_copy_of_a_submodule_has_no_parent(copied):
    net = Net()
    net(nn.Variable((2, 4)))
    block = copied(net.layers[0])
    assert block.parent is None and block.name == ""
    assert list(block.get_parameters()) == list(net.layers[0].get_parameters())
    other = copied(net)
    assert other.also is other.heads["a"] and other.layers[1].parent is other
    other.training = False
    assert net.training and not other.layers[0].training


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int8", "bool", "uint32"])
def test_arrays_keep_values_and_dtype(copied, dtype):
    array = nn.NdArray.from_numpy_array(np.arange(6).reshape(2, 3).astype(dtype))
    other = copied(array)
    assert other.dtype == array.dtype and other.shape == array.shape
    np.testing.assert_array_equal(other.data, array.data)
    other.data = 0
    assert array.data.any()


def test_arrays_keep_what_was_only_noted(copied):
    array = nn.NdArray((2,))
    assert copied(array).is_unwritten and not copied(array).zeroing
    array.zero()
    assert copied(array).zeroing
    array.fill(3)
    assert copied(array).data.tolist() == [3, 3]
    array.data = np.int64([1, 2])
    array.zero()
    assert copied(array).dtype == np.int64 and copied(array).zeroing and copied(array).data.tolist() == [0, 0]
    array.clear()
    assert copied(array).data.tolist() == [0, 0]
    for shape in ((), (0, 3)):
        assert copied(nn.NdArray.from_numpy_array(np.ones(shape))).shape == shape


def test_arrays_of_one_memory_share_it_in_the_copies_too(copied):
    base = nn.NdArray.from_numpy_array(np.arange(6.0))
    other, view, narrow = copied((base, base.view((2, 3)), base.narrow(0, 2, 3)))
    other.data[...] = 7
    assert view.shape == (2, 3) and (view.data == 7).all() and narrow.data.tolist() == [7, 7, 7]
    assert base.data.tolist() == [0, 1, 2, 3, 4, 5]


def test_variables_keep_flags_and_share_as_before(copied):
    v = nn.Variable.from_numpy_array([1.0, 2.0], [3.0, 4.0], need_grad=True).apply(persistent=True, name="v", info="x")
    unlinked, fixed = v.get_unlinked_variable(need_grad=False), nn.Variable((2,))
    other, alias, third, again = copied((v, unlinked, fixed, v))
    assert (other.d.tolist(), other.g.tolist()) == ([1, 2], [3, 4])
    assert (other.need_grad, other.persistent, other.recompute, other.name, other.info) == (True, True, False, "v", "x")
    assert other == alias and other is again and other != v and not alias.need_grad and third._need_grad is None
    assert copied({v: 1})  # keys are complete when they are hashed


def test_a_subclass_keeps_its_class_and_attributes(copied):
    other = copied(Labelled((2, 3), "mask"))
    assert type(other) is Labelled and other.label == "mask" and other.shape == (2, 3) and other.need_grad
    slotted = Slotted((1,), "x")
    slotted.unit = "m"
    assert (copied(slotted).label, copied(slotted).unit) == ("x", "m")


def test_the_values_of_a_graph_are_copied_and_not_the_graph(copied):
    x = nn.Variable.from_numpy_array([1.0, 4.0], need_grad=True)
    y = x * 2
    y.forward()
    with pytest.raises(GraphError, match=r"pickle: a Variable must be a leaf to be pickled or copied, got the output of <"):
        copied(y)
    assert copied(y.get_unlinked_variable()).d.tolist() == [2, 8]
    assert copied(x).d.tolist() == [1, 4]


def test_what_was_cleared_cannot_be_copied(copied):
    x = nn.Variable.from_numpy_array(np.ones(4, np.float32), need_grad=False)
    h = F.tanh(x + 1)
    y = F.sum(F.tanh(F.tanh(h) * 2))
    y.forward(clear_buffer=True)
    assert h.data.clear_called
    with pytest.raises(GraphError, match="must not be read after its memory was reused"):
        copied(h.get_unlinked_variable())


def test_copy_copy_shares_memory():
    v = nn.Variable.from_numpy_array([1.0])
    copy.copy(v).d = 5
    assert v.d.tolist() == [5]
    array = nn.NdArray.from_numpy_array([1.0])
    copy.copy(array).data = 6
    assert array.data.tolist() == [6]


@pytest.mark.parametrize(
    "value",
    [
        nn.Context(["cpu:float", "reference:half"], device_id="1"),
        I.UniformInitializer((-1, 1)),
        I.ConstantInitializer(3),
        S.Adam().info,
    ],
    ids=lambda value: type(value).__name__,
)
def test_small_objects(copied, value):
    assert repr(copied(value)) == repr(value) or type(copied(value)) is type(value)
    if isinstance(value, nn.Context):
        assert copied(value) == value


@pytest.mark.parametrize("function", [F.relu, F.convolution, PF.affine, PF.batch_normalization, S.Adam, nn.grad])
def test_functions_are_pickled_by_name(copied, function):
    assert copied(function) is function


def test_a_frozen_attribute_stays_a_parameter_in_the_copy(copied):
    net = Net()
    net(nn.Variable((2, 4)))
    net.scale.need_grad = False
    assert list(copied(net).get_parameters()) == list(net.get_parameters())


def test_a_module_that_knows_its_parent_is_copied_as_it_is(copied):
    net = Net()
    net.layers[0].root = net
    other = copied(net)
    assert other.layers[0].root is other and other.parent is None and other.layers[0].parent is other
    assert list(other.submodules) == list(net.submodules)
