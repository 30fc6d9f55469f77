"""The dtypes of values in exported models: those in which nn_core computes them, judged by onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import parser

import nn_core as nn
import nn_core.functions as F
from nn_core.ext import ArgumentError
from nn_core.function import PythonFunction
from nn_ext_onnx import export_model, load
from nn_ext_onnx.exporting.verification import run_model

pytest.importorskip("onnxruntime", reason="the judge of exported models")

DTYPES = ("int64", "int32", "int8", "uint8", "bool", "float32", "float64")
#: Numbers that float32 does not hold, equal ones, and zeros.
FIRST = np.array([[2**40 + 1, -3, 0], [7, 5, 2**24 + 1]])
SECOND = np.array([[2**40, 2, 3], [7, 0, 2**24]])

from_array = nn.Variable.from_numpy_array
#: Functions of two variables (2, 3) of any dtype.
FUNCTIONS = {
    "abs": lambda x, y: F.abs(x),
    "neg": lambda x, y: -x,
    "relu": lambda x, y: F.relu(x),
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (y + 0.5),
    "mod": F.mod2,
    "fmod": lambda x, y: F.mod2(x, y, fmod=True),
    "add_scalar": lambda x, y: x + 3,
    "maximum": F.maximum2,
    "maximum_scalar": lambda x, y: F.maximum_scalar(x, 3),
    "add_n": F.add_n,
    "equal": F.equal,
    "not_equal": F.not_equal,
    "less": F.less,
    "greater_equal": F.greater_equal,
    "less_scalar": lambda x, y: F.less_scalar(x, 2),
    "less_fraction": lambda x, y: F.less_scalar(x, 2.5),
    "equal_large": lambda x, y: F.equal_scalar(x, 2.0**40 + 1),
    "less_beyond": lambda x, y: F.less_scalar(x, 2.0**70),
    "logical_and": F.logical_and,
    "where": lambda x, y: F.where(F.less(x, y), x, y),
    "where_of_numbers": lambda x, y: F.where(x, x, y),
    "concatenate": lambda x, y: F.concatenate(x, y, axis=0),
    "stack": F.stack,
    "split": lambda x, y: F.split(x, axis=0)[1],
    "reshape": lambda x, y: F.reshape(x, (3, 2)),
    "transpose": lambda x, y: F.transpose(x, (1, 0)),
    "slice": lambda x, y: x[:, 1:],
    "flip": lambda x, y: F.flip(x, axes=(1,)),
    "tile": lambda x, y: F.tile(x, (2, 1)),
    "broadcast": lambda x, y: F.broadcast(F.reshape(x, (1, 2, 3)), (4, 2, 3)),
    "identity": lambda x, y: F.identity(x),
    "gather": lambda x, y: F.gather(x, from_array(np.array([1, 0])), axis=1),
    "gather_nd": lambda x, y: F.gather_nd(x, from_array(np.array([[0, 1], [1, 2]]))),
    "bool_gather": lambda x, y: F.bool_gather(x, F.greater(x, y)),
    "bool_fill": lambda x, y: F.bool_fill(x, y, 2.5),
    "nonzero": lambda x, y: F.nonzero(x),
    "unique": lambda x, y: F.unique(x),
    "sort": lambda x, y: F.sort(x, axis=1),
    "sum": lambda x, y: F.sum(x, axis=1),
    "mean": lambda x, y: F.mean(x, axis=1),
    "max": lambda x, y: F.max(x, axis=1),
    "max_index": lambda x, y: F.max(x, axis=1, only_index=True),
    "cumsum": lambda x, y: F.cumsum(x, axis=1),
    "pad": lambda x, y: F.pad(x, (1, 1)),
    "shape": lambda x, y: F.shape(x),
    "eye_like": lambda x, y: F.eye_like(x),
    "affine": lambda x, y: F.affine(x, F.transpose(y, (1, 0))),
}


def arrays_of(dtype):
    """Return both operands in a dtype, which keeps the lowest bits of integers."""
    return FIRST.astype(dtype), SECOND.astype(dtype)


def are_equal(values, expected):
    """Return whether floating-point numbers agree up to rounding, and others wholly."""
    tolerance = {"float32": 1e-6, "float64": 1e-14}.get(expected.dtype.name)
    if tolerance is None:
        return np.array_equal(values, expected)
    return np.allclose(values, expected, tolerance, tolerance, equal_nan=True)


def differences(outputs, inputs, opset=17):
    """Return what onnxruntime gives otherwise: the dtype, the shape, or numbers beyond the rounding of the dtype."""
    model = export_model(outputs, inputs, opset=opset)
    dtypes = {
        entry.name: onnx.helper.tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type) for entry in model.graph.input
    }
    found = run_model(model, {name: inputs[name].d.astype(dtype) for name, dtype in dtypes.items()})
    copies = [output.apply(persistent=True) for output in outputs.values()]
    F.sink(*copies).forward()
    wrong = []
    for (name, output), values in zip(outputs.items(), found, strict=True):
        expected = np.asarray(output.d)
        if (values.dtype, values.shape) != (expected.dtype, expected.shape):
            wrong.append(f"{name}: {values.dtype} {values.shape} in place of {expected.dtype} {expected.shape}")
        elif not are_equal(values, expected):
            wrong.append(f"{name}: {values} in place of {expected}")
    return wrong


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_value_has_the_dtype_in_which_it_is_computed(dtype):
    for name, function in FUNCTIONS.items():
        x, y = map(from_array, arrays_of(dtype))
        assert differences({name: function(x, y)}, {"x": x, "y": y}) == []


def test_functions_in_a_context_of_float64_are_written_in_it():
    rng = np.random.default_rng(0)
    with nn.context_scope(nn.Context(["reference:double"])):
        for name, function in FUNCTIONS.items():
            x, y = (from_array(rng.normal(size=(2, 3))) for _ in range(2))
            assert differences({name: function(x, y)}, {"x": x, "y": y}) == []


def test_a_network_in_float64_has_parameters_of_it():
    with nn.context_scope(nn.Context(["reference:double"])):
        x = nn.Variable((2, 3))
        w, b = from_array(np.arange(6.0).reshape(3, 2) / 3), from_array(np.array([1 / 3, 1e-9]))
        y = F.sigmoid(F.affine(x, w, b))
        x.d = np.random.default_rng(0).normal(size=(2, 3))
        model = export_model({"y": y}, {"x": x})
        assert {tensor.data_type for tensor in model.graph.initializer} == {onnx.TensorProto.DOUBLE}
        assert "Cast" not in {node.op_type for node in model.graph.node}
        assert differences({"y": y}, {"x": x}) == []


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x: F.tanh(F.reshape(x, (6,))), "float32"),
        (lambda x: F.reshape(x, (6,)), "float64"),
        (lambda x: F.tanh(F.where(F.reshape(x, (6,)), x.reshape((6,)), x.reshape((6,)))), "float64"),
    ],
)
def test_float64_is_an_input_where_its_digits_are_read(build, expected):
    x = from_array(np.random.default_rng(0).normal(size=(2, 3)))
    model = export_model({"y": build(x)}, {"x": x})
    assert onnx.helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type) == expected


def test_constants_that_differ_beyond_float64_are_two():
    x = from_array(np.array([2**53, 2**53 + 1]))
    low, high = (from_array(np.array(2**53 + k)) for k in (0, 1))
    y = F.mod2(x, F.concatenate(*[F.reshape(F.identity(v), (1,)) for v in (low, high)], axis=0))
    assert differences({"y": y}, {"x": x}) == []


@pytest.mark.parametrize("seed", range(6))
def test_random_chains_of_functions_on_random_dtypes(seed):
    rng = np.random.default_rng(seed)
    same_shape = [name for name, f in FUNCTIONS.items() if f(*map(from_array, arrays_of("float32"))).shape == (2, 3)]
    x, y = (from_array(rng.integers(-5, 9, (2, 3)).astype(rng.choice(DTYPES))) for _ in range(2))
    values = [x, y]
    for name in rng.choice([name for name in same_shape if name not in ("div", "eye_like")], 8):
        a, b = rng.integers(0, len(values), 2)
        values.append(FUNCTIONS[name](values[a], values[b]))
    assert differences({"y": values[-1], "z": values[-2]}, {"x": x, "y_": y}) == []


class _Named(PythonFunction):
    """A function that has the name of another one and computes something else."""

    @property
    def name(self):
        return "Sigmoid"

    def min_outputs(self):
        return 1

    def setup_impl(self, inputs, outputs):
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs, outputs):
        outputs[0].d = inputs[0].d * 5


def test_functions_in_python_are_refused_whatever_their_name():
    x = nn.Variable((2, 3))
    with pytest.raises(ArgumentError, match=r"Sigmoid \(function 0 of 1.*a function in Python cannot be written"):
        export_model(_Named()(x))


#: Models that compute with integers: their text, and the operator sets of the file.
INTEGERS = {
    "Abs": "(int64[2,3] x) => (int64[2,3] y) { y = Abs(x) }",
    "Neg": "(int32[2,3] x) => (int32[2,3] y) { y = Neg(x) }",
    "Max": "(int64[2,3] x, int64[2,3] z) => (int64[2,3] y) { y = Max(x, z) }",
    "Add": "(int64[2,3] x, int64[3] z) => (int64[2,3] y) { y = Add(x, z) }",
    "Sub": "(int32[2,3] x, int32[2,3] z) => (int32[2,3] y) { y = Sub(x, z) }",
    "Mul": "(int64[2,3] x, int64[2,3] z) => (int64[2,3] y) { y = Mul(x, z) }",
    "Div": "(int64[2,3] x, int64[2,3] z) => (int64[2,3] y) { one = Constant<value_int=7>() d = Div(x, one) y = Add(d, z) }",
    "Mod": "(int64[2,3] x) => (int64[2,3] y) { seven = Constant<value_int=7>() y = Mod(x, seven) }",
    "Concat": "(int64[2,3] x, int64[2,3] z) => (int64[4,3] y) { y = Concat<axis=0>(x, z) }",
    "Cast": "(int64[2,3] x) => (int32[2,3] y) { y = Cast<to=6>(x) }",
    "ReduceSum": "(int64[2,3] x) => (int64[2,1] y) { axes = Constant<value_ints=[1]>() y = ReduceSum(x, axes) }",
    "ReduceMax": "(int64[2,3] x) => (int64[1,3] y) { y = ReduceMax<axes=[0]>(x) }",
    "Less": "(int64[2,3] x, int64[2,3] z) => (bool[2,3] y) { y = Less(x, z) }",
    "Equal": "(int64[2,3] x, int64[2,3] z) => (bool[2,3] y) { y = Equal(x, z) }",
    "GatherElements": "(float[2,3] f, int64[2,3] x) => (float[2,3] y)"
    " { three = Constant<value_int=3>() i = Mod(x, three) y = GatherElements<axis=1>(f, i) }",
    "GatherND": "(float[2,3] f, int64[2,3] x) => (float[2] y) { two = Constant<value_ints=[2, 2, 2]>() i = Mod(x, two)"
    " j = Slice(i, zero, end, axis) y = GatherND(f, j) }",
}
_SLICES = "zero = Constant<value_ints=[0]>() end = Constant<value_ints=[2]>() axis = Constant<value_ints=[1]>() "


@pytest.mark.parametrize("kind", sorted(INTEGERS))
def test_integers_that_an_imported_model_computes_on_the_host_are_written_back(kind):
    text = INTEGERS[kind].replace("{", "{ " + _SLICES, 1)
    original = parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> g {text}')
    network = load(original)
    model = export_model(network.outputs, network.inputs, opset=17)
    given = {entry.name: entry for entry in original.graph.input}
    assert {entry.name: entry.type.tensor_type.elem_type for entry in model.graph.input} == {
        name: entry.type.tensor_type.elem_type for name, entry in given.items()
    }
    arrays = dict(zip(("x", "z"), (FIRST, SECOND), strict=True))
    arrays["f"] = np.linspace(0, 1, 6).reshape(2, 3)
    feed = {
        name: np.broadcast_to(arrays[name], (2, 3))[-1 if len(e.type.tensor_type.shape.dim) == 1 else slice(None)].astype(
            onnx.helper.tensor_dtype_to_np_dtype(e.type.tensor_type.elem_type)
        )
        for name, e in given.items()
    }
    (expected,), (found,) = run_model(original, feed), run_model(model, feed)
    np.testing.assert_array_equal(found, expected.astype(found.dtype))


def test_nodes_of_an_older_operator_set_become_those_of_the_new_one():
    text = "(int64[2,3] x) => (int64[2,1] y) { y = ReduceSum<axes=[1]>(x) }"
    network = load(parser.parse_model(f'<ir_version: 7, opset_import: ["": 11]> g {text}'))
    model = export_model(network.outputs, network.inputs, opset=17)
    np.testing.assert_array_equal(run_model(model, {"x": FIRST})[0], FIRST.sum(axis=1, keepdims=True))
