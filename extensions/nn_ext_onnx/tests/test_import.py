"""Models as graphs: names, dynamic axes, settings that models get, control flow, functions, training."""

import time
import tracemalloc

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from extensions.nn_ext_onnx.tests.exported import sample_model
from extensions.nn_ext_onnx.tests.test_export_functions import REFUSED, SOMETIMES
from nn_core.ext import ArgumentError, FileFormatError, find_extension, function_spec
from nn_ext_onnx import export, export_model, load
from nn_ext_onnx.backend import prepare, run_model, supports_device
from nn_ext_onnx.table import ONE_WAY as ONE_WAY_FUNCTIONS
from tests.calls import n_calls
from tools.nnabla.nnabla_samples import SAMPLES

#: Functions that are written with operators that cannot be read yet, and those that cannot be written.
ONE_WAY = {function_spec(name).api for name in ONE_WAY_FUNCTIONS} | REFUSED | SOMETIMES
BOTH_WAYS = sorted(set(SAMPLES) - ONE_WAY)


def text_model(text, opset=17):
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {text}')


def computed(network, arrays):
    for name, values in arrays.items():
        network.inputs[name].d = values
    outputs = [output for output in network.outputs.values() if output.parent is not None]
    for output in outputs:
        output.persistent = True
    if outputs:
        (outputs[0] if len(outputs) == 1 else F.sink(*outputs)).forward()
    return [np.asarray(output.d) for output in network.outputs.values()]


def round_trip(api, repetition, opset):
    exported = sample_model(api, repetition, opset)
    return exported.differences(computed(load(exported.model), exported.arrays))


@pytest.mark.parametrize("api", BOTH_WAYS[::3])
def test_what_was_written_is_read(api):
    assert round_trip(api, 0, 21) == []


@pytest.mark.slow
@pytest.mark.parametrize("opset", [16, 21])
@pytest.mark.parametrize("api", sorted(set(BOTH_WAYS) - {"deformable_convolution", "fft", "ifft"}))
def test_everything_that_was_written_is_read(api, opset):
    assert round_trip(api, 1, opset) == []


def test_axes_get_their_lengths_when_a_model_is_loaded(tmp_path):
    x = nn.Variable((2, 3))
    export(tmp_path / "net.onnx", {"y": F.tanh(x)}, {"x": x}, dynamic_batch="N")
    values = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    for network in (load(tmp_path / "net.onnx", dimensions={"N": 5}), load(tmp_path / "net.onnx", shapes={"x": (5, 3)})):
        np.testing.assert_allclose(computed(network, {"x": values})[0], np.tanh(values), rtol=0, atol=1e-6)
    with pytest.raises(ArgumentError, match="must give the length of axis 'N' of input 'x'"):
        load(tmp_path / "net.onnx")


def test_shapes_are_computed_when_a_model_is_loaded():
    model = text_model(
        """(float[N, 3, 4] x) => (float[N, 12] y) {
            shape = Shape(x)  zero = Constant<value = int64[1] {0}>()  batch = Gather(shape, zero)
            rest = Constant<value = int64[1] {-1}>()  target = Concat<axis = 0>(batch, rest)  y = Reshape(x, target) }"""
    )
    network = load(model, dimensions={"N": 2})
    assert [function.name for function in nn_functions(network)] == ["Reshape"]
    assert network.outputs["y"].shape == (2, 12)


def nn_functions(network):
    from nn_core.graph_rewriting import functions_of

    return functions_of(network.outputs.values())


def test_inputs_that_are_settings_are_given_as_values():
    model = text_model("(float[2, 6] x, int64[2] shape) => (float[A, B] y) { y = Reshape(x, shape) }")
    with pytest.raises(ArgumentError, match=r"'shape', which depends on the inputs \['shape'\]"):
        load(model)
    network = load(model, values={"shape": np.array([3, -1])})
    assert (network.outputs["y"].shape, list(network.inputs), list(network.bound)) == ((3, 4), ["x"], ["shape"])


def test_whole_numbers_are_exact():
    model = text_model("(int64[2] a, int64[2] b) => (int64[2] y, bool[2] z) { y = Mul(a, b)  z = Less(a, b) }")
    a, b = np.array([2**40 + 1, -7]), np.array([3, 2**53 + 1])
    y, z = run_model(model, [a, b])
    assert (y.tolist(), z.tolist()) == ([3 * (2**40 + 1), -7 * (2**53 + 1)], [False, True])
    assert (y.dtype, z.dtype) == (np.int64, np.bool_)


def test_integer_division_goes_towards_zero():
    model = text_model("(int32[3] a, int32[3] b) => (int32[3] y) { y = Div(a, b) }")
    (y,) = run_model(model, [np.array([-7, 7, 8], np.int32), np.array([2, -2, 3], np.int32)])
    assert y.tolist() == [-3, -3, 2]


def test_all_operators_that_are_missing_are_listed():
    model = text_model(
        """(float[3] x) => (float[3] y) {
            a = Tanh(x)  b, c = Unique(a)  d = NonZero(a)  e = Cast<to = 1>(c)  y = Add(a, e) }"""
    )
    with pytest.raises(ArgumentError) as caught:
        load(model)
    assert "Unique (operator set 17), node: a result whose shape depends on what the model gets" in str(caught.value)
    assert "NonZero (operator set 17)" in str(caught.value)


@pytest.mark.parametrize(("condition", "expected"), [(True, 3.0), (False, -1.0)])
def test_a_condition_that_is_known_chooses_a_branch(condition, expected):
    model = text_model(
        """(float[1] x, bool c) => (float[1] y) {
            one = Constant<value = float[1] {1.0}>()
            y = If(c) <then_branch = a () => (float[1] p) { p = Add(x, one) },
                       else_branch = b () => (float[1] q) { q = Sub(one, x) }> }"""
    )
    assert run_model(model, [np.array([2.0], np.float32), np.array(condition)])[0].tolist() == [expected]


def test_a_loop_with_a_known_number_of_steps_is_written_out():
    model = text_model(
        """(float[2] x) => (float[2] y, float[3, 2] all) {
            n = Constant<value = int64 {3}>()  go = Constant<value = bool {1}>()
            y, all = Loop(n, go, x) <body = b (int64 i, bool c, float[2] s) => (bool k, float[2] t, float[2] u) {
                k = Identity(c)  t = Add(s, s)  u = Identity(t) }> }"""
    )
    y, everything = run_model(model, [np.array([1.0, 2.0], np.float32)])
    assert y.tolist() == [8.0, 16.0]
    assert everything.tolist() == [[2.0, 4.0], [4.0, 8.0], [8.0, 16.0]]


def test_bodies_of_impossible_types_are_refused():
    model = text_model(
        """(float[2] x) => (float[2] y, float[3, 2] all) {
            n = Constant<value = int64 {3}>()  go = Constant<value = bool {1}>()
            y, all = Loop(n, go, x) <body = b (int64 i, bool c, float[2] s) => (bool k, float[2] t, float8e4m3fn[2] u) {
                k = Identity(c)  t = Add(s, s)  u = Identity(t) }> }"""
    )
    with pytest.raises(ArgumentError, match=r"Loop \(operator set 17.*unsupported type"):
        load(model)


def test_functions_of_the_model_are_built():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "own": 1]> g (float[2] x) => (float[2] y) { y = own.twice<alpha = 3.0>(x) }
        <domain: "own", opset_import: ["": 17]> twice<alpha>(a) => (b) {
            c = LeakyRelu<alpha: float = @alpha>(a)  b = Add(c, c) }"""
    )
    assert run_model(model, [np.array([-1.0, 2.0], np.float32)])[0].tolist() == [-6.0, 4.0]


def test_operators_without_a_converter_are_built_from_their_definition():
    model = text_model("(float[3] x) => (float[3] y) { y = HardSwish(x) }")
    values = np.array([-1.0, 0.5, 4.0], np.float32)
    expected = values * np.clip(values / 6 + 0.5, 0, 1)
    np.testing.assert_allclose(run_model(model, [values])[0], expected, rtol=0, atol=1e-6)


def linear_model():
    rng = np.random.default_rng(0)
    weight, bias = rng.normal(size=(2, 3)).astype(np.float32), np.zeros(2, np.float32)
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])]
    tensors = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")]
    graph = helper.make_graph([node], "linear", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), weight


def test_an_imported_model_is_trained_further():
    model, weight = linear_model()
    network = load(model, dimensions={"N": 16})
    assert {name: variable.shape for name, variable in network.parameters.items()} == {"w": (3, 2), "b": (2,)}
    assert [function.name for function in nn_functions(network)] == ["Affine"]
    x = np.random.default_rng(1).normal(size=(16, 3)).astype(np.float32)
    np.testing.assert_allclose(computed(network, {"x": x})[0], x @ weight.T, rtol=0, atol=1e-5)
    target = nn.Variable.from_numpy_array(x[:, :2] * 2)
    loss = F.mean(F.squared_error(network.outputs["y"], target))
    solver = S.Momentum(0.1)
    solver.set_parameters(network.parameters)
    for _ in range(100):
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.update()
    loss.forward()
    assert loss.d < 1e-3
    expected = computed(network, {"x": x})[0]
    again = load(export_model({"y": network.outputs["y"]}, {"x": network.inputs["x"]}))
    np.testing.assert_allclose(computed(again, {"x": x})[0], expected, rtol=0, atol=1e-5)


def test_damaged_and_too_new_files_are_refused():
    with pytest.raises(FileFormatError, match="must be a model of ONNX"):
        load(b"\xff\xff\xff")
    with pytest.raises(FileFormatError, match="must be a model of ONNX"):
        load(b"")
    with pytest.raises(FileFormatError, match="the model must be valid"):
        load(text_model("(float[2] x) => (float[2] y) { y = Tanh(z) }"))
    with pytest.raises(ArgumentError, match="the operator set must be at most"):
        load(text_model("(float[2] x) => (float[2] y) { y = Tanh(x) }", opset=999))


def test_constants_that_would_fill_the_memory_are_refused():
    model = text_model(
        """(float[1] x) => (float[A] y) {
            n = Constant<value = int64[2] {4000000, 4000000}>()  c = ConstantOfShape(n)  y = Add(x, c) }"""
    )
    with pytest.raises(ArgumentError, match="a constant of 16000000000000 elements"):
        load(model)


@pytest.mark.parametrize(("parts", "length", "settings"), [
    (1, 6, {}), (2, 6, {}), (1, 4, {}), (2, 4, {}), (2, 9, {}), (1, 6, {"onesided": 1}), (1, 5, {"onesided": 1}),
    (1, 6, {"inverse": 1}), (2, 6, {"inverse": 1}), (2, 8, {"inverse": 1}),
])  # fmt: skip
@pytest.mark.parametrize(("opset", "axis"), [(17, 1), (20, 1), (20, 2), (20, -2)])
def test_fourier_transforms_are_those_of_numpy(parts, length, settings, opset, axis):
    values = np.random.default_rng(0).normal(size=(2, 6, 6, parts)).astype(np.float32)
    given = dict(settings) if opset == 20 else {**settings, "axis": axis}
    attributes = ", ".join(f"{key} = {value}" for key, value in given.items())
    text = f"n = Constant<value = int64 {{{length}}}>()  a = Constant<value = int64 {{{axis}}}>() "
    text += f"y = DFT{f'<{attributes}>' if attributes else ''}(x, n{', a' if opset == 20 else ''})"
    (found,) = run_model(text_model(f"(float[2, 6, 6, {parts}] x) => (float[A, B, C, D] y) {{ {text} }}", opset), [values])
    signal = values[..., 0] + (1j * values[..., 1] if parts == 2 else 0)
    axis = 2 if axis == -2 else axis
    whole = (np.fft.ifft if "inverse" in settings else np.fft.fft)(signal, length, axis)
    expected = np.take(whole, range(length // 2 + 1 if "onesided" in settings else length), axis)
    np.testing.assert_allclose(found, np.stack([expected.real, expected.imag], -1), rtol=0, atol=1e-5)


@pytest.mark.parametrize("length", [None, 1, 2, 5, 6, 10, 13])
@pytest.mark.parametrize("opset", [17, 20])
def test_half_a_spectrum_gives_a_real_signal(length, opset):
    values = np.random.default_rng(0).normal(size=(2, 6, 2)).astype(np.float32)
    constants = "" if length is None else f"n = Constant<value = int64 {{{length}}}>() "
    text = f"{constants} y = DFT<inverse = 1, onesided = 1>(x{'' if length is None else ', n'})"
    (found,) = run_model(text_model(f"(float[2, 6, 2] x) => (float[A, B, C] y) {{ {text} }}", opset), [values])
    expected = np.fft.irfft(values[..., 0] + 1j * values[..., 1], length, 1)[..., None]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_places_of_known_numbers_are_known():
    model = text_model(
        """(float[3] x) => (float[A] y) {
            c = Constant<value = int64[4] {0, 1, 0, 2}>()  n = NonZero(c)  zero = Constant<value = int64[1] {0}>()
            one = Constant<value = int64 {1}>()  s = Squeeze(n, zero)  t = Sub(s, one)  y = Gather(x, t) }"""
    )
    assert run_model(model, [np.array([5, 6, 7], np.float32)])[0].tolist() == [5, 7]


@pytest.mark.parametrize("pads", ["2, 0, 0, 0", "0, 0, 0, 9"])
@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_windows_beside_the_image_are_refused(kind, pads):
    node = f"{kind}<kernel_shape = [2, 2], pads = [{pads}]>(x)"
    model = text_model(f"(float[1, 1, 4, 4] x) => (float[A, B, C, D] y) {{ y = {node} }}")
    with pytest.raises(ArgumentError, match=rf"{kind} .*: pads .* that are not smaller than the kernel \[2, 2\]"):
        load(model)


def test_types_without_functions_are_refused():
    with pytest.raises(ArgumentError, match="has numbers of type complex64"):
        load(text_model("(complex64[2] x) => (complex64[2] y) { y = Identity(x) }"))
    with pytest.raises(ArgumentError, match=r"got 'x', which depends on the inputs \['x'\]"):
        load(text_model("(seq(float[2]) x) => (int64 y) { y = SequenceLength(x) }"))


def test_the_backend_keeps_a_graph_for_each_shape():
    prepared = prepare(text_model("(float[N] x) => (float[N] y) { y = Exp(x) }"))
    for count in (2, 3, 2):
        values = np.arange(count, dtype=np.float32)
        np.testing.assert_allclose(prepared.run([values])[0], np.exp(values), rtol=1e-6)
    assert len(prepared.networks) == 2
    assert supports_device("CPU")
    assert not supports_device("TPU")


def test_a_prepared_model_is_planned_once():
    """Several outputs are no new graph in each run."""
    chain = " ".join(f"h{n + 1} = Tanh(h{n})" for n in range(40))
    text = f"(float[3] x) => (float[3] y, float[3] z) {{ h0 = Exp(x) {chain} y = Sin(h40) z = Cos(h40) }}"
    prepared, values = prepare(text_model(text)), [np.zeros(3, np.float32)]
    first, _, later = (n_calls(prepared.run, values) for _ in range(3))
    assert 3 * later < first


def test_a_prepared_model_gives_back_the_memory_between_its_outputs():
    chain = " ".join(f"h{n + 1} = Tanh(h{n})" for n in range(40))
    text = f"(float[131072] x) => (float[131072] y, float[131072] z) {{ h0 = Exp(x) {chain} y = Sin(h40) z = Cos(h40) }}"
    prepared, values = prepare(text_model(text)), [np.zeros(131072, np.float32)]
    tracemalloc.start()
    try:
        prepared.run(values)
        assert tracemalloc.get_traced_memory()[1] < 10 * values[0].nbytes
    finally:
        tracemalloc.stop()


def test_the_door_reads_networks(tmp_path):
    model, _ = linear_model()
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    network = find_extension("file_formats", ".onnx", "read_network")(tmp_path / "net.onnx", dimensions={"N": 2})
    assert network.outputs["y"].shape == (2, 2)


def test_float64_is_computed_in_float64():
    (y,) = run_model(text_model("(double[2] x) => (double[2] y) { y = Add(x, x) }"), [np.array([1e300, 1 + 2**-50])])
    assert (y.dtype, y.tolist()) == (np.float64, [2e300, 2 + 2**-49])


def test_before_version_13_softmax_takes_the_axes_from_one_on_together():
    model = text_model(
        "(float[2, 2, 2] x) => (float[2, 2, 2] y, float[2, 2, 2] z) { y = Softmax(x)  z = Softmax<axis = -1>(x) }", 11
    )
    y, z = run_model(model, [np.zeros((2, 2, 2), np.float32)])
    assert (y.tolist(), z.tolist()) == (np.full((2, 2, 2), 0.25).tolist(), np.full((2, 2, 2), 0.5).tolist())


def test_an_output_that_a_model_lists_twice_is_returned_twice():
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }')
    model.graph.output.append(model.graph.output[0])
    assert [y.tolist() for y in prepare(model).run([np.array([1, -1], np.float32)])] == [[1, 0], [1, 0]]


def test_graphs_need_no_name_and_outputs_neither_type_nor_shape():
    values = np.array([-1.0, 2.0], np.float32)
    for change in (
        lambda graph: graph.ClearField("name"),
        lambda graph: graph.output[0].ClearField("type"),
        lambda graph: graph.output[0].type.tensor_type.ClearField("shape"),
    ):
        model = text_model("(float[2] x) => (float[2] y) { y = Relu(x) }")
        change(model.graph)
        before = model.SerializeToString()
        assert run_model(model, [values])[0].tolist() == [0.0, 2.0]
        assert model.SerializeToString() == before, "the model of the caller is as it was"


def test_group_normalization_had_scales_of_groups_at_first():
    model = text_model(
        "(float[2, 4, 3] x, float[2] s, float[2] b) => (float[2, 4, 3] y) { y = GroupNormalization<num_groups = 2>(x, s, b) }",
        18,
    )
    before = model.SerializeToString()
    x, scale, bias = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32), np.array([2, 3]), np.array([-1, 0.5])
    groups = x.reshape(2, 2, 6)
    normal = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    expected = (normal * scale[:, None] + bias[:, None]).reshape(x.shape)
    (found,) = run_model(model, [x, scale.astype(np.float32), bias.astype(np.float32)])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert model.SerializeToString() == before


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize(("place", "shape"), [(1, (1, 12, 3)), (3, (1, 4)), (5, (2, 3)), (5, (2, 1, 3))])
def test_states_and_weights_of_other_shapes_than_the_operator_defines_are_refused(kind, place, shape):
    """A state without the axis of directions would be broadcast along the batch."""
    n = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    shapes = {0: (3, 2, 2), 1: (1, 3 * n, 2), 2: (1, 3 * n, 3), 3: (1, 6 * n), 5: (1, 2, 3)}
    right = np.zeros(shapes[0], np.float32)

    def run(shapes):
        names = ["x", "w", "r", "b", "", "h"]
        constants = [numpy_helper.from_array(np.zeros(shapes[k], np.float32), names[k]) for k in (1, 2, 3, 5)]
        node = helper.make_node(kind, names, ["y"], hidden_size=3, linear_before_reset=1) if kind == "GRU" else None
        node = node or helper.make_node(kind, names, ["y"], hidden_size=3)
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shapes[0])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (3, 1, 2, 3))
        graph = helper.make_graph([node], "g", [x], [y], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return prepare(model).run([right])

    assert run(shapes)[0].shape == (3, 1, 2, 3)
    with pytest.raises(ArgumentError, match=r"an input of shape \(.*\) in the place of one of shape \("):
        run({**shapes, place: shape})


def test_a_loop_that_must_run_longer_than_it_is_written_out_is_refused_at_once():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) {
        n = Constant<value = int64 {4611686018427387904}>()  go = Constant<value = bool {1}>()
        y = Loop(n, go, x) <body = b (int64 i, bool c, float[2] p) => (bool k, float[2] t) {
            k = Identity(c)  t = Add(p, p) }> }"""
    )
    start = time.process_time()
    with pytest.raises(ArgumentError, match="more than 10000 steps"):
        prepare(model).run([np.zeros(2, np.float32)])
    assert time.process_time() - start < 10  # written out, it takes more than a minute


def test_remainders_have_the_sign_of_the_divisor_without_fmod():
    model = text_model("(float[N] a, float[N] b) => (float[N] y) { y = Mod(a, b) }")
    a, b = np.array([-7.5, 7.5, -7.5, 7.5, 6, -6, 0.0], np.float32), np.array([2, -2, -2, 2, 3, 3, -3], np.float32)
    assert run_model(model, [a, b])[0].tolist() == np.mod(a, b).tolist()


def test_products_are_cumulated():
    model = text_model(
        """(float[2, 3] x) => (float[2, 3] y, float[2, 3] z) { axis = Constant<value_int = 1>()
            y = CumProd(x, axis)  z = CumProd<exclusive = 1, reverse = 1>(x, axis) }""",
        26,
    )
    y, z = run_model(model, [np.array([[1, 2, 3], [4, 5, 6]], np.float32)])
    assert y.tolist() == [[1, 2, 6], [4, 20, 120]]
    assert z.tolist() == [[6, 3, 1], [30, 6, 1]]


def test_equations_of_other_signs_are_refused_before_their_shapes_are_inferred():
    model = text_model('(float[2, 2] x, float[2, 2] y) => (float[A, B] z) { z = Einsum<equation = "ij,jk->ik">(x, y) }')
    model.graph.node[0].attribute[0].s = b"ij,j\x87->ik"
    with pytest.raises((ArgumentError, FileFormatError), match=r"Einsum .*|UTF-8|utf-8"):
        load(model)
