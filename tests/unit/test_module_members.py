"""Everything trainable that can be reached from a module is named, saved, loaded, and counted once when it is shared."""

import copy
import io
import zipfile

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nn_core as nn
import nn_core.functions as F
import nn_core.parameter
import nn_core.parametric_functions as PF
from nn_core.core.module import ParamMemo, insert_parent_name
from nn_core.errors import ArgumentError, GraphError, UnknownNameError


class Block(nn.Module):
    def __init__(self, maps=3):
        self.maps = maps

    def call(self, x):
        return PF.affine(x, self.maps)


def trained(*shape):
    return nn.Variable(shape, need_grad=True)


class Net(nn.Module):
    """One of everything that can hold a module or a parameter."""

    def __init__(self):
        self.first = Block()
        self.layers = [Block(), Block()]
        self.pair = (Block(), [Block()])
        self.heads = {"a": Block(), 7: {"deep": Block()}}
        self.listed = nn.ModuleList([Block()])
        self.named = nn.ModuleDict({"b": Block()})
        self.chain = nn.Sequential(Block(), last=Block())
        self.scale = trained(3)
        self.weights = [trained(1), {"w": trained(2)}]
        self.again = self.first
        self.also = [self.first, self.scale]
        self.kernel, self.label, self.nothing = (3, 3), {"x": 1}, None
        self.input = nn.Variable((2, 3))

    def blocks(self):
        yield from (self.first, *self.layers, self.pair[0], self.pair[1][0], self.heads["a"], self.heads[7]["deep"])
        yield from (self.listed[0], self.named["b"], *self.chain.submodules.values())

    def call(self, x):
        for block in self.blocks():
            x = block(x)
        return PF.affine(x * self.scale + F.sum(self.weights[0]) + F.sum(self.weights[1]["w"]), 3, name="own")


MODULES = [
    "@first",
    "@layers/@0",
    "@layers/@1",
    "@pair/@0",
    "@pair/@1/@0",
    "@heads/@a",
    "@heads/@7/@deep",
    "@listed/@0",
    "@named/@b",
    "@chain/@block_0",
    "@chain/@last",
]
NAMES = [
    *[f"{module}/affine/{name}" for module in MODULES for name in "Wb"],
    *["own/affine/W", "own/affine/b", "scale", "weights/0", "weights/1/w"],
]


def built(seed=0):
    net = Net()
    net(nn.Variable((2, 3)))
    rng = np.random.default_rng(seed)
    for parameter in net.get_parameters().values():
        parameter.d = rng.normal(size=parameter.shape)
    return net


def test_everything_is_named_once():
    assert list(built().get_parameters()) == NAMES
    assert not nn.get_parameters()


def test_all_that_a_graph_needs_a_gradient_for_is_among_the_parameters():
    net = Net()
    y = net(nn.Variable((2, 3)))
    storages = set()
    y.visit(lambda f: storages.update(v.storage for v in f.inputs if v is not None and v.is_leaf and v.need_grad))
    assert storages == {parameter.storage for parameter in net.get_parameters(grad_only=True).values()}


@pytest.mark.parametrize("extension", [".h5", ".npz", ".safetensors"])
def test_everything_is_saved_and_loaded(tmp_path, extension):
    path = tmp_path / f"net{extension}"
    net = built(1)
    net.save_parameters(path)
    for other in (built(2), Net()):
        report = other.load_parameters(path)
        assert sorted((*report.loaded, *report.created)) == sorted(NAMES) and not report.missing
        x = nn.Variable.from_numpy_array(np.float32(np.random.default_rng(3).normal(size=(2, 3))))
        y, z = net(x), other(x)
        nn.forward_all([y, z])
        np.testing.assert_array_equal(y.d, z.d)
        assert list(other.get_parameters()) == NAMES


def test_the_extension_decides_the_format(tmp_path):
    net = built()
    for name in ("m.h5", "m.npz", "m.safetensors"):
        net.save_parameters(tmp_path / name)
    assert h5py.is_hdf5(tmp_path / "m.h5")
    assert zipfile.is_zipfile(tmp_path / "m.npz")
    assert (tmp_path / "m.safetensors").read_bytes()[8:9] == b"{"
    for call in (net.save_parameters, net.load_parameters):
        with pytest.raises(ArgumentError, match=r"_parameters: the extension must be one of .h5, .npz, .*, got '.abc'"):
            call(tmp_path / "m.abc")
    with pytest.raises(ArgumentError, match=r"must be one in which parameters are written, got '\.pt', which is only read"):
        net.save_parameters(tmp_path / "m.pt")
    assert not (tmp_path / "m.pt").exists()


def test_a_plain_list_and_a_module_list_give_the_same_names():
    names = []
    for kind in (list, nn.ModuleList, tuple):

        class Stack(nn.Module):
            def __init__(self, kind):
                self.layers = kind([Block(), Block()])

            def call(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x

        stack = Stack(kind)
        stack(nn.Variable((1, 2)))
        names.append(list(stack.get_parameters()))
    assert names[0] == names[1] == names[2]
    assert names[0][0] == "@layers/@0/affine/W"


def test_a_list_that_is_changed_later_is_seen():
    net, layers = nn.Sequential(), [Block()]
    net.layers = layers
    layers.append(Block())
    assert list(net.submodules) == ["layers/@0", "layers/@1"]
    assert layers[1].parent is net
    layers.insert(0, Block())
    assert list(net.submodules) == ["layers/@0", "layers/@1", "layers/@2"]
    assert [layer.name for layer in layers] == ["layers/@0", "layers/@1", "layers/@2"]
    assert layers[2].get_path_name() == "@layers/@2"
    net.training = False
    assert not any(layer.training for layer in layers)
    del layers[:]
    assert not net.submodules


def test_a_module_that_is_added_later_follows_the_mode_of_the_network():
    class Stack(nn.Module):
        def __init__(self):
            self.layers = []

        def call(self):
            return [layer.training for layer in self.layers]

    stack = Stack()
    stack.training = False
    stack.layers.append(Block())
    assert stack() == [False]


def test_training_reaches_everything():
    net = built()
    net.training = False
    assert not any(module.training for _, module in net.walk())
    net.training = True
    assert all(module.training for _, module in net.walk())


def test_a_frozen_attribute_stays_a_parameter():
    net = built()
    net.scale.need_grad = False
    net.weights[0].need_grad = False
    assert list(net.get_parameters()) == NAMES
    assert [name for name in NAMES if name not in net.get_parameters(grad_only=True)] == ["scale", "weights/0"]


def test_variables_that_are_no_parameters_are_left_out():
    class Static(nn.Module):
        def __init__(self):
            self.x = nn.Variable((2, 3))
            self.w = trained(3)
            self.y = F.sum(self.x * self.w)

    assert list(Static().get_parameters()) == ["w"]


def test_an_attribute_that_is_replaced_or_deleted_leaves():
    net = Net()
    first, second = net.layers
    net.layers = [second]
    assert first.parent is None and second.parent is net and second.name == "layers/@0"
    del net.layers
    assert second.parent is None and second.is_root() and second.name == ""
    other, net.first = net.first, None
    assert other.parent is net and other.name == "also/@0"  # it is there under other names still
    assert "first" not in net.submodules


def test_circles_end():
    class Child(nn.Module):
        pass

    class Root(nn.Module):
        def __init__(self):
            self.child = Child()
            self.child.root = self
            self.child.siblings = [self.child]
            self.loop = [Block()]
            self.loop.append(self.loop)

    root = Root()
    assert root.parent is None and root.training
    assert [path for path, _ in root.walk()] == ["", "@child/", "@loop/@0/"]
    assert not root.get_parameters()


def test_methods_keep_their_parameters_in_the_module():
    class Auto(nn.Module):
        def __init__(self):
            PF.affine(nn.Variable((1, 2)), 1, name="initial")

        def encode(self, x):
            with nn.parameter_scope("ignored"):
                return self._inner(x)

        def _inner(self, x):
            return PF.affine(x, 2, name="inner")

    with nn.parameter_scope("elsewhere"):
        auto = Auto()
        auto.encode(nn.Variable((1, 3)))
    assert list(auto.get_parameters()) == ["initial/affine/W", "initial/affine/b", "inner/affine/W", "inner/affine/b"]
    assert not nn.get_parameters()


def test_a_name_for_two_parameters_is_refused():
    class Clash(nn.Module):
        def call(self, x):
            return PF.affine(x, 2)

    for clash in ("affine", "two"):
        net = Clash()
        net(nn.Variable((1, 2)))
        setattr(net, clash, {"W": trained(2)} if clash == "affine" else trained(2))
        if clash == "two":
            assert list(net.get_parameters()) == ["affine/W", "affine/b", "two"]
            continue
        with pytest.raises(ArgumentError, match=r"Module: an attribute must not have the name of a parameter .* 'affine/W'"):
            net.get_parameters()
    net = Clash()
    net(nn.Variable((1, 2)))
    net.affine = trained(2)
    with pytest.raises(ArgumentError, match="got 'affine' for both in Clash"):
        net.get_parameters()


@pytest.mark.parametrize("key", ["", "a/b", "@a", 1.5, None])
def test_keys_that_cannot_be_names_are_refused(key):
    net = nn.Sequential()
    with pytest.raises(ArgumentError, match="Module: a key under which a module or a parameter is kept must be"):
        net.heads = {key: Block()}
    with pytest.raises(ArgumentError, match="a key under which"):
        nn.ModuleDict({key: Block()})
    net.table = {key: 3}


def test_keys_that_give_one_name_are_refused():
    net = nn.Sequential()
    net.heads = {1: Block(), "1": Block()}
    with pytest.raises(ArgumentError, match="submodules must have different names, got 'heads/@1' twice"):
        net.get_parameters()


def test_sets_are_refused():
    with pytest.raises(ArgumentError, match=r"must be kept in lists, tuples or dictionaries, .* got a set in layers"):
        nn.Sequential().layers = {Block()}


def test_module_list():
    blocks = [Block() for _ in range(4)]
    layers = nn.ModuleList(blocks[:2])
    layers.append(blocks[2])
    layers.insert(0, blocks[3])
    assert list(layers) == [blocks[3], *blocks[:3]] and len(layers) == 4
    assert layers[-1] is blocks[2] and layers[1:3] == blocks[:2]
    assert [layer.name for layer in layers] == ["0", "1", "2", "3"]
    layers[0] = Block()
    assert blocks[3].parent is None
    del layers[1]
    assert blocks[0].parent is None and len(layers) == 3
    with pytest.raises(ArgumentError, match="ModuleList: every element must be a Module, got int"):
        layers.append(3)
    with pytest.raises(NotImplementedError, match=r"ModuleList: call\(\) must be defined"):
        layers(1)


def test_module_dict():
    heads = nn.ModuleDict({"a": Block()})
    heads.update({"b": Block()})
    a = heads["a"]
    assert list(heads) == list(heads.keys()) == ["a", "b"] and "a" in heads and len(heads) == 2
    assert dict(heads.items()) == {"a": a, "b": heads["b"]} and next(iter(heads.values())) is a
    assert heads.pop("a") is a and a.parent is None
    with pytest.raises(ArgumentError, match="ModuleDict: every element must be a Module, got str"):
        heads["c"] = "x"


def test_a_memo_lists_what_is_new():
    net = built()
    memo = ParamMemo()
    assert list(net.get_parameters(memo=memo)) == NAMES
    assert not net.get_parameters(memo=memo)
    seen = {net.scale}
    assert "scale" not in net.get_parameters(memo=seen)
    assert len(seen) == len(NAMES)
    assert list(insert_parent_name("a", {"w": net.scale})) == ["@a/w"]


class Leaf(nn.Module):
    """A module with one parameter made by a function, and one attribute."""

    def __init__(self):
        self.bias = trained(1)

    def call(self):
        return nn.parameter.get_parameter_or_create("w", (2,))


SHARED = {"a shared module": Leaf, "a shared parameter": lambda: trained(3)}
MAKERS = {
    "a module": Leaf,
    "a parameter": lambda: trained(2, 2),
    "an input": lambda: nn.Variable((2,)),
    "an output": lambda: F.exp(trained(2)),
    "a number": lambda: 3,
    "nothing": lambda: None,
}
KEYS = st.sampled_from(["x", "y", 0, 1, "z w", "1_"])
STRUCTURES = st.recursive(
    st.sampled_from([*MAKERS, *SHARED]),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3), st.tuples(inner, inner)),
    max_leaves=12,
)


def realized(plan, shared):
    if isinstance(plan, str):
        return shared[plan] if plan in shared else MAKERS[plan]()
    if isinstance(plan, dict):
        return {key: realized(inner, shared) for key, inner in plan.items()}
    return type(plan)(realized(inner, shared) for inner in plan)


def leaves(value):
    if isinstance(value, (list, tuple, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)
    else:
        yield value


@settings(max_examples=150, deadline=None)
@given(plan=st.dictionaries(st.sampled_from(["a", "b", "c_"]), STRUCTURES, max_size=3), late=st.booleans())
def test_whatever_holds_them_parameters_are_named_once_and_survive_files_and_copies(plan, late):
    net, shared = nn.Sequential(), {name: make() for name, make in SHARED.items()}
    for name, inner in plan.items():
        value = realized(inner, shared)
        if late and isinstance(value, list):  # the list is filled after it was assigned
            setattr(net, name, [])
            getattr(net, name).extend(value)
        else:
            setattr(net, name, value)
    expected = set()
    for leaf in leaves([getattr(net, name) for name in plan]):
        if isinstance(leaf, Leaf):
            leaf()
            expected |= {leaf.bias, leaf.parameter_scope["w"]}
        elif isinstance(leaf, nn.Variable) and leaf.is_leaf and leaf.need_grad:
            expected.add(leaf)
    parameters = net.get_parameters()
    assert set(parameters.values()) == expected and len(parameters) == len(expected)
    for number, parameter in enumerate(parameters.values()):
        parameter.d = number + 1
    file = io.BytesIO()
    net.save_parameters(file, ".safetensors")
    if any(isinstance(leaf, nn.Variable) and not leaf.is_leaf for leaf in leaves(list(vars(net).values()))):
        with pytest.raises(GraphError, match="must be a leaf to be pickled or copied"):
            copy.deepcopy(net)
        other = net
    else:
        other = copy.deepcopy(net)
        assert not set(other.get_parameters().values()) & expected
    for parameter in other.get_parameters().values():
        parameter.d = 0
    file.seek(0)
    assert other.load_parameters(file, ".safetensors", strict=True).is_exact
    assert list(other.get_parameters()) == list(parameters)
    for number, parameter in enumerate(other.get_parameters().values()):
        assert (parameter.d == number + 1).all()


def test_names_that_a_module_dict_does_not_have():
    modules = nn.ModuleDict({"a": Block()})
    with pytest.raises(UnknownNameError, match=r"^ModuleDict: the name must be that of a module \(a\), got 'b'$"):
        modules["b"]
    with pytest.raises(KeyError):
        del modules["b"]


def test_a_module_that_cannot_list_its_parameters_does_not_disturb_others(tmp_path, caplog):
    class Broken(nn.Module):
        pass

    broken = Broken()
    broken.heads = {}
    broken.heads["a/b"] = nn.Variable((2,), need_grad=True)
    assert not broken.parameter_scope  # from now on messages look for its parameters
    with pytest.raises(ArgumentError, match="must be an int or a str without '/'"):
        broken.get_parameters()
    with nn.parameter_scope("nothing", {}):
        nn.save_parameters(tmp_path / "nothing.h5")
    assert "there must be parameters to save" in caplog.text
    del broken


def test_a_root_has_no_name():
    class Net(nn.Module):
        def __init__(self):
            self.a = nn.Module()

    net = Net()
    assert (net.name, net.a.name) == ("", "a")
    assert net.a.get_path_name() == "@a"


def test_a_parameter_must_be_a_variable():
    module = nn.Module()
    for name, value in (("w", 3), (3, nn.Variable((2,)))):
        with pytest.raises(ArgumentError):
            module.set_parameter(name, value)
    assert module.get_parameters() == {}
