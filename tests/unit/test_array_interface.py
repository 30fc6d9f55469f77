"""Variables and NdArrays behave like arrays: operators, methods, NumPy's protocols, and how they look."""

import ast
import copy
import sys
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.arrays import bound_operators, numpy_protocol, pictures
from nn_core.errors import ArgumentError, GraphError, PluginError, ShapeError

KINDS = ("static", "dynamic", "array")


def operand(kind, values):
    values = np.asarray(values)
    return nn.NdArray.from_numpy_array(values) if kind == "array" else nn.Variable.from_numpy_array(values, need_grad=True)


def computed(kind, function, *arrays):
    """Return the results of `function` on Variables of a static graph, of a dynamic one, or on NdArrays, as NumPy arrays."""
    operands = [operand(kind, values) for values in arrays]
    with nn.auto_forward(kind == "dynamic"):
        y = function(*operands)
    results = y if isinstance(y, tuple) else (y,)
    for result in results:
        assert isinstance(result, nn.NdArray if kind == "array" else nn.Variable)
    if kind == "static":
        nn.forward_all(results)
    values = tuple([result.numpy() for result in results])
    return values if isinstance(y, tuple) else values[0]


def samples():
    rng = np.random.default_rng(8)
    a = rng.uniform(-9, 9, (4, 5)).astype(np.float32)
    b = rng.uniform(0.5, 3, (4, 5)).astype(np.float32) * rng.choice([-1, 1], (4, 5)).astype(np.float32)
    return a, b


BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "truediv": lambda a, b: a / b,
    "mod": lambda a, b: a % b,
    "floordiv": lambda a, b: a // b,
    "divmod": divmod,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BINARY)
def test_operators_agree_with_numpy(kind, name):
    function = BINARY[name]
    a, b = samples()
    b[0] = a[0]  # comparisons of equal values
    for arrays, call in (
        ((a, b), function),
        ((a, b[:1]), function),
        ((a,), lambda x: function(x, 2.5)),
        ((b,), lambda x: function(-7, x)),
        ((a,), lambda x: function(np.float32(1.5), x)),
        ((b,), lambda x: function(x, np.int64(3))),
    ):
        expected = call(*arrays)
        got = computed(kind, call, *arrays)
        np.testing.assert_allclose(np.asarray(got, np.float32), np.asarray(expected, np.float32), rtol=1e-5, atol=1e-5)


METHODS = {
    "abs": abs,
    "neg": lambda x: -x,
    "T": lambda x: x.T,
    "transpose": lambda x: x.transpose(),
    "transpose(axes)": lambda x: x.transpose((1, 0, 2)),
    "transpose(*axes)": lambda x: x.transpose(2, 0, 1),
    "reshape(shape)": lambda x: x.reshape((6, -1)),
    "reshape(*shape)": lambda x: x.reshape(4, 6),
    "reshape(-1)": lambda x: x.reshape(-1),
    "sum": lambda x: x.sum(),
    "sum(axis)": lambda x: x.sum(1),
    "sum(axes)": lambda x: x.sum(axis=(0, -1), keepdims=True),
    "mean": lambda x: x.mean(axis=-1),
    "max": lambda x: x.max(0),
    "min": lambda x: x.min(axis=1, keepdims=True),
    "mask": lambda x: x[x > 0.5],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS)
def test_methods_agree_with_numpy(kind, name):
    x = np.random.default_rng(3).standard_normal((2, 3, 4)).astype(np.float32)
    got = computed(kind, METHODS[name], x)
    expected = METHODS[name](x)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_remainders_have_gradients():
    x = nn.Variable.from_numpy_array([-5.5, 5.5, 7.0], need_grad=True)
    y = nn.Variable.from_numpy_array([2.0, -2.0, 4.0], need_grad=True)
    x.grad.zero()
    y.grad.zero()
    z = x % y
    z.forward()
    z.backward()
    assert x.g.tolist() == [1, 1, 1]
    np.testing.assert_allclose(y.g, -np.floor(x.d / y.d))


def test_remainders_follow_new_shapes():
    x = nn.Variable((2, 3))
    y = 7 % (x + 4) + x // 2
    x.reset_shape((4, 3), True)
    x.d = 1
    y.forward()
    assert y.shape == (4, 3)
    assert y.d.tolist() == np.full((4, 3), 2).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_one_value_as_a_number(kind):
    with nn.auto_forward(kind == "dynamic"):
        x = operand(kind, [[1.5]])
        assert x.item() == float(x) == 1.5
        assert int(x) == 1
        assert f"{x:.3f} {x:>6}" == "1.500    1.5"
        assert f"{x}" == str(x)
        assert divmod(x, 1)[1].shape == (1, 1)
    many = operand(kind, [1.0, 2.0])
    with pytest.raises(ShapeError, match=r"^format: an array must have one element .* got shape \(2,\)"):
        f"{many:.2f}"
    with pytest.raises(ShapeError, match=r"^item: an array must have one element"):
        many.item()


@pytest.mark.parametrize("kind", ("dynamic", "array"))
def test_sequences(kind):
    with nn.auto_forward(True):
        x = operand(kind, np.arange(6.0).reshape(3, 2))
        assert len(x) == 3
        assert [row.numpy().tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
        with pytest.raises(ArgumentError, match=r"^in: an array must not be searched .*`2 in array`.*\n  hint: .*numpy\(\)"):
            assert 2 in x
        scalar = operand(kind, 1.0)
        with pytest.raises(ShapeError, match="iteration: an array must have at least one axis"):
            list(scalar)


def test_numpy_gives_a_copy_and_d_shares():
    x = nn.Variable.from_numpy_array([1.0, 2.0])
    copied = x.numpy()
    copied[0] = 9
    assert x.d.tolist() == [1, 2]
    shared = np.asarray(x)
    shared[0] = 9
    assert x.d.tolist() == [9, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_asarray(kind):
    x = operand(kind, np.float32([1.5, 2]))
    assert np.asarray(x).dtype == np.float32
    assert np.asarray(x, np.float64).dtype == np.float64
    assert np.asarray(x, copy=False) is not None
    copied = np.array(x, copy=True)
    copied[0] = 7
    assert np.asarray(x)[0] == 1.5
    with pytest.raises(ValueError, match="copy must not be False where the dtype changes"):
        np.asarray(x, np.float64, copy=False)
    assert np.from_dlpack(x).tolist() == [1.5, 2]
    assert x.dtype == np.float32


def test_values_that_are_not_there_are_refused():
    y = nn.Variable((2,)) * 2
    for read in (np.asarray, lambda v: v.numpy(), lambda v: f"{v.sum():.2f}"):
        with pytest.raises(GraphError):
            read(y)


def test_numpy_functions_of_variables_are_refused_with_what_to_use():
    x = nn.Variable.from_numpy_array([1.0, 2.0])
    for call, name, ours in (
        (lambda: np.mean(x), "mean", "mean"),
        (lambda: np.sum(x), "sum", "sum"),
        (lambda: np.exp(x), "exp", "exp"),
        (lambda: np.maximum(x, 1), "maximum", "maximum2"),
        (lambda: np.concatenate([x, x]), "concatenate", "concatenate"),
        (lambda: np.add.reduce(x), "add.reduce", None),
        (lambda: np.linalg.norm(x), "linalg.norm", "norm"),
        (lambda: np.median(x), "median", None),
    ):
        with pytest.raises(ArgumentError) as caught:
            call()
        text = str(caught.value)
        assert text.startswith(f"numpy.{name}: operands must be NumPy arrays or NdArrays, got a Variable\n  hint: ")
        assert (f"nn_core.functions.{ours}," in text) == (ours is not None)
    assert np.allclose(x, [1, 2])
    assert np.array_equal(x, x)


def test_numpy_functions_of_arrays_compute_with_the_values():
    a = nn.NdArray.from_numpy_array([1.0, 2.0])
    for result in (np.mean(a), np.exp(a), np.concatenate([a, a]), np.add.reduce(a), np.sort(a)):
        assert isinstance(result, (np.ndarray, np.generic))
    assert np.mean(a) == 1.5
    assert np.exp(a).tolist() == np.exp(a.data).tolist()
    with pytest.raises(ArgumentError, match=r"numpy\.hypot"):
        np.hypot(a, nn.Variable((2,)))


def test_functions_to_use_exist():
    missing = [name for name in {*numpy_protocol._OURS.values(), *numpy_protocol._SAME} if name not in F.__all__]
    assert missing == []


def test_comparisons_of_arrays_are_no_truth_value():
    a = nn.NdArray.from_numpy_array([1.0, 2.0])
    with pytest.raises(ArgumentError, match=r"^bool: a comparison of arrays must not be used as one truth value"):
        bool(a < 2)
    assert bool(a[:1] < 2) is True
    assert bool(a[:1] > 2) is False
    assert (a < 2).dtype == np.bool_
    assert ((a < 2) * a).data.tolist() == [1, 0]
    assert bool(a) is True


def test_a_comparison_of_one_element_is_a_truth_value_once_it_is_computed():
    a = nn.Variable.from_numpy_array([1.0, 2.0])
    with nn.auto_forward():
        assert bool(F.mean(a) < 2) is True
        assert bool(F.mean(a) > 2) is False
        assert [float(value) for value in sorted(a, key=float, reverse=True)] == [2, 1]
        assert float(max(a)) == 2
        with pytest.raises(ArgumentError, match=r"^bool: .* got the result of less_scalar of shape \(2,\)"):
            bool(a < 2)
    with pytest.raises(GraphError, match="must be computed"):
        bool(F.mean(a) < 2)
    assert bool(F.mean(a)) is True  # as a Variable always was


#: The modules that bind methods to Variable and NdArray.
BINDERS = ("nn_core.engine.arrays.operators", "nn_core.engine.arrays.indexing")


def test_stub_declares_what_is_bound():
    tree = ast.parse(Path(bound_operators.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    for kind, cls in (("Variable", nn.Variable), ("NdArray", nn.NdArray)):
        body = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == f"{kind}Operators").body
        declared = {node.name for node in body if isinstance(node, ast.FunctionDef)}
        bound = {
            name for name, member in vars(cls).items() if getattr(getattr(member, "fget", member), "__module__", "") in BINDERS
        }
        assert declared - {"__iter__"} == bound


# -- how they look -----------------------------------------------------------------------------------------------------


def test_representations():
    x = nn.Variable.from_numpy_array(np.float32([1, 2.25]), need_grad=True)
    x.name = "w"
    assert repr(x) == "<Variable((2,), float32, need_grad=True, name='w'): 1 2.25>"
    assert repr(x.data) == "<NdArray((2,), float32): 1 2.25>"
    y = F.tanh(x)
    assert repr(y) == "<Variable((2,), float32, need_grad=True, from tanh)>"
    y.forward()
    assert repr(y) == "<Variable((2,), float32, need_grad=True, from tanh): 0.7616 0.978>"
    assert repr(nn.NdArray.from_numpy_array(np.arange(30))) == "<NdArray((30,), int64): 0 1 2 ... 29>"
    assert repr(nn.NdArray((2, 0))).startswith("<NdArray((2, 0), float32)")


def test_representation_changes_nothing():
    x = nn.Variable.from_numpy_array(np.float32([1, 2]), need_grad=True)
    with nn.auto_forward():
        y = F.tanh(x)
        before = y.trace_node
        assert repr(y) == "<Variable((2,), float32, need_grad=True, from tanh): 0.7616 0.964>"
        assert y._repr_html_().count("<td>") == 2
        assert y.trace_node is before
    zeroed = nn.NdArray((3,))
    zeroed.zero()
    assert repr(zeroed) == "<NdArray((3,), float32): 0 0 0>"
    assert zeroed.zeroing
    count = x.data.modification_count
    repr(x)
    assert x.data.modification_count == count


def test_representation_of_freed_values():
    x = nn.Variable.from_numpy_array(np.float32([1, 2]), need_grad=True)
    h = F.exp(x)
    y = h + 1
    y.forward(clear_buffer=True)
    assert repr(h) == "<Variable((2,), float32, need_grad=True, from exp)>"


def test_html():
    html = nn.NdArray.from_numpy_array(np.arange(200).reshape(2, 10, 10))._repr_html_()
    assert html.count("<tr>") == 8
    assert html.count("<td>") == 64
    assert "the first 8 x 8 values" in html
    assert "&lt;" not in html
    assert nn.NdArray((0,))._repr_html_() == "<div><b>NdArray</b> (0,), float32</div>"


def test_copies_keep_the_class():
    class Own(nn.Variable):
        pass

    assert type(copy.deepcopy(Own((2,)))) is Own
    assert repr(Own((2,))).startswith("<Own((2,)")


@pytest.mark.parametrize(
    ("shape", "images"),
    [
        ((4, 5), (1, 4, 5)), ((2, 4, 5), (2, 4, 5)), ((1, 4, 5), (1, 4, 5)), ((3, 4, 5), (1, 4, 5, 3)),
        ((9, 1, 4, 5), (9, 4, 5)), ((2, 3, 4, 5), (2, 4, 5, 3)),
    ],
)  # fmt: skip
def test_images_are_written_to_a_file(tmp_path, shape, images):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    values = np.random.default_rng(0).uniform(size=shape)
    assert pictures.images_of(values).shape == images
    nn.Variable.from_numpy_array(values).show(tmp_path / "images.png")
    assert pyplot.imread(tmp_path / "images.png").std() > 0.01
    assert not pyplot.get_fignums()  # none is left open


def test_colours_of_integers_go_to_255():
    values = np.array([[[255]], [[51]], [[0]]], np.uint8)
    assert pictures.images_of(values).tolist() == [[[[1.0, 0.2, 0.0]]]]
    assert pictures.images_of(values / 204).tolist() == [[[[1.0, 0.25, 0.0]]]]


def test_images_without_a_file_are_shown(monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    shown = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(len(pyplot.gcf().axes)))
    try:
        nn.NdArray.from_numpy_array(np.eye(4)).show()
    finally:
        pyplot.close("all")
    assert shown == [2]  # the image and the bar of its greys


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        ((4,), ShapeError, r"show: images must have the shape .*, got \(4,\)"),
        ((2, 5, 4, 4), ShapeError, r"with 1 or 3 channels C, got \(2, 5, 4, 4\)"),
        ((0, 3, 4, 4), ShapeError, r"got \(0, 3, 4, 4\)"),
        ((65, 2, 2), ArgumentError, r"at most 64 images, got 65\n  hint: x\[:64\]"),
    ],
)
def test_what_is_no_image_is_not_shown(shape, error, message):
    with pytest.raises(error, match=message):
        nn.NdArray(shape).show("never.png")


def test_images_must_be_finite():
    with pytest.raises(ArgumentError, match="show: values must be finite, got NaN"):
        nn.NdArray.from_numpy_array(np.full((2, 2), np.nan)).show("never.png")


def test_showing_needs_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PluginError, match=r"show: matplotlib must be installed.*\n  hint: pip install 'nn-core\[plots\]'"):
        nn.NdArray((2, 2)).show("never.png")
