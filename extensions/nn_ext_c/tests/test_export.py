"""Pairs of files as a whole: names, constants, memory, errors, and whole networks."""

import ctypes
import dataclasses
import platform
import subprocess

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from extensions.nn_ext_c.tests.compiled import FLAGS, Library, Network, compile_files, compiler, difference
from nn_core.ext import ArgumentError, find_extension
from nn_ext_c import export, export_source


def small_net(batch=1):
    x = nn.Variable((batch, 3, 8, 8), name="image")
    h = F.relu(PF.batch_normalization(PF.convolution(x, 4, (3, 3), pad=(1, 1), name="c"), batch_stat=False, name="b"))
    return x, F.softmax(PF.affine(F.max_pooling(h, (2, 2)), 5, name="a"))


def test_files_appear_and_the_same_graph_gives_the_same_bytes(tmp_path):
    x, y = small_net()
    made = export(tmp_path, {"y": y}, {"x": x}, name="small")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.c", "small.h"]
    assert (tmp_path / "small.c").read_text() == made.code
    again = export(tmp_path / "small.c", {"y": y}, {"x": x})
    assert again == made
    compile_files(tmp_path, [tmp_path / "small.c"], "small.o", "-c")


def test_normalizations_are_folded_and_scopes_stay_as_they_are(tmp_path):
    x, y = small_net()
    before = set(nn.get_parameters(grad_only=False))
    made = export_source({"y": y}, {"x": x})
    assert set(nn.get_parameters(grad_only=False)) == before
    assert "batch_normalization" not in made.code
    assert "static const float network_c_conv_W[108]" in made.code
    assert made.constant_bytes == 4 * (4 * 27 + 4 + 64 * 5 + 5)


@pytest.mark.parametrize("options", [{}, {"dtype": "int8", "calibration": np.ones((2, 3, 4, 4))}])
def test_a_graph_for_training_is_refused(options):
    """One sample that is normalized by its own statistics is beta, whatever it is."""
    x = nn.Variable((1, 3, 4, 4))
    y = F.mean(PF.batch_normalization(F.relu(x)))
    with pytest.raises(ArgumentError, match=r"running statistics, got batch_stat=True in BatchNormalization\n.*for inference"):
        export_source({"y": y}, {"x": x}, **options)
    assert "batch_normalization" in export_source({"y": y}, {"x": x}, batch_statistics=True).code


@pytest.mark.parametrize("jump", [lambda h: F.sign(F.relu(h), 0.0), F.binary_tanh, lambda h: F.greater_scalar(h, 0.0)])
def test_no_normalization_is_folded_before_a_jump(tmp_path, jump):
    """It is exactly beta where the convolution gives the mean, and a sign shows the difference."""
    rng = np.random.default_rng(0)
    x = nn.Variable.from_numpy_array(rng.integers(-1, 2, (1, 3, 5, 5)).astype(np.float32))
    w = nn.Variable.from_numpy_array(rng.integers(-1, 2, (8, 3, 1, 1)).astype(np.float32))
    mean, variance = (nn.Variable((1, 8, 1, 1)) for _ in range(2))
    mean.d, variance.d = rng.integers(-1, 2, (1, 8, 1, 1)), rng.uniform(0.1, 2, (1, 8, 1, 1))
    y = jump(F.batch_normalization(F.convolution(x, w), None, None, mean, variance, batch_stat=False))
    y.forward()
    np.testing.assert_array_equal(Network(tmp_path, {"y": y}, {"x": x})(x.d, shapes=[y.shape])[0], y.d)
    made = export_source({"y": y}, {"x": x})
    assert "batch_normalization" in made.code


def test_names_are_those_of_c(tmp_path):
    x, z = nn.Variable((2,), name="float"), nn.Variable((2,), name="Float")
    made = export_source({"1 y": x + z, "context": x * z}, {"float": x, "Float": z, "é": nn.Variable((3,))})
    (tmp_path / "network.h").write_text(made.header)
    (tmp_path / "network.c").write_text(made.code)
    compile_files(tmp_path, [tmp_path / "network.c"], "network.o", "-c")
    assert "NETWORK_OUTPUT_N_1_Y_SIZE 2" in made.header


def test_names_of_inputs_do_not_hide_constants_and_functions(tmp_path):
    x, z = nn.Variable((1, 2)), nn.Variable((1, 2))
    with nn.parameter_scope("a"):
        y = F.tanh(PF.affine(x, 2)) + F.exp(z)
    names = ["net_a_affine_W", "NAN"]
    net = Network(tmp_path, {"net_tanh": y, "*/": y * 2}, dict(zip(names, (x, z), strict=True)))
    x.d, z.d = [[0.5, -1]], [[2, 0.25]]
    y.forward()
    np.testing.assert_allclose(net(x.d, z.d, shapes=[(1, 2), (1, 2)])[0], y.d, rtol=1e-6)
    samples = {name: np.ones((3, 2)) for name in names}
    Network(tmp_path, {"*/": y}, dict(zip(names, (x, z), strict=True)), dtype="int8", calibration=samples)


def test_inputs_that_are_computed_or_given_twice_are_refused():
    x = nn.Variable((2,))
    h = F.tanh(x)
    with pytest.raises(ArgumentError, match="inputs must be Variables that no function computes, got"):
        export_source({"y": F.exp(h)}, {"h": h})
    with pytest.raises(ArgumentError, match="inputs must be given once each"):
        export_source({"y": F.exp(h)}, [x, x])


def test_graphs_that_compute_at_once_are_exported(tmp_path):
    x = nn.Variable.from_numpy_array(np.ones((1, 3)))
    with nn.auto_forward():
        y = F.tanh(PF.affine(x, 2))
        net = Network(tmp_path, {"y": y}, {"x": x})
        integers = Network(tmp_path, {"y": y}, {"x": x}, dtype="int8", calibration=np.ones((4, 3)))
    np.testing.assert_allclose(net(x.d, shapes=[(1, 2)])[0], y.d, rtol=1e-6)
    np.testing.assert_allclose(integers(x.d, shapes=[(1, 2)])[0], y.d, atol=0.02)


@pytest.mark.parametrize("name", ["", "1net", "a b", "a-b", "../net"])
def test_wrong_names_are_refused(name):
    x = nn.Variable((2,))
    with pytest.raises(ArgumentError, match="name must be letters, digits and underscores"):
        export_source({"y": F.tanh(x)}, {"x": x}, name=name)


def test_all_functions_that_cannot_be_exported_are_listed():
    x = nn.Variable((2, 3))
    y = F.tanh(x) + F.rand(shape=(2, 3)) * F.sort(x)
    with pytest.raises(ArgumentError) as caught:
        export_source({"y": F.sort(y)}, {"x": x})
    text = str(caught.value)
    assert text.count("there is no way to write it") == 3
    assert "Rand (function" in text
    assert "Sort (function" in text


def test_other_outputs_and_empty_arrays_are_refused():
    with pytest.raises(ArgumentError, match="outputs must be Variables, got"):
        export_source({"y": 3})
    with pytest.raises(ArgumentError, match="arrays must not be empty"):
        export_source({"y": F.tanh(nn.Variable((0, 3)))})


def test_indices_outside_are_an_error_in_c(tmp_path):
    i, table = nn.Variable((3,)), nn.Variable.from_numpy_array(np.arange(12.0).reshape(4, 3))
    net = Network(tmp_path, {"y": F.embed(i, table)}, {"i": i})
    (found,) = net([3, 0, -4], shapes=[(3, 3)])
    np.testing.assert_array_equal(found, table.d[[3, 0, 0]])
    for wrong in (4, -5, np.nan, np.inf, 1e30):
        with pytest.raises(IndexError):
            net([0, wrong, 0], shapes=[(3, 3)])


@pytest.mark.parametrize("wrong", [4, -5, np.nan, np.inf, 1e30])
def test_elements_are_put_nowhere_else(tmp_path, wrong):
    rows, table = nn.Variable((1, 3)), nn.Variable((4, 2))
    data = nn.Variable.from_numpy_array(np.ones((3, 2)))
    along = nn.Variable((3, 2))
    outputs = {
        "picked": F.gather_nd(table, rows),
        "put": F.scatter_nd(data, rows, shape=(4, 2)),
        "added": F.scatter_add(table, along, data, axis=0),
    }
    for name, y in outputs.items():
        indices = along if name == "added" else rows
        inputs = {"i": indices, **({} if name == "put" else {"t": table})}
        net = Network(tmp_path, {name: y}, inputs)
        places = np.zeros(indices.shape)
        values = [places] if name == "put" else [places, np.zeros((4, 2))]
        (found,) = net(*values, shapes=[y.shape])
        assert found.sum() == {"picked": 0, "put": 2, "added": 6}[name]
        places.flat[2] = wrong
        with pytest.raises(IndexError):
            net(*values, shapes=[y.shape])


def test_outputs_that_are_inputs_constants_and_each_other(tmp_path):
    x = nn.Variable.from_numpy_array(np.arange(6.0).reshape(2, 3))
    y = F.tanh(x)
    net = Network(tmp_path, {"a": y, "b": y, "c": x, "d": F.transpose(y, (1, 0)), "e": F.constant(2, (2,)) + 1}, {"x": x})
    found = net(x.d, shapes=[(2, 3), (2, 3), (2, 3), (3, 2), (2,)])
    t = np.tanh(x.d)
    for values, expected in zip(found, (t, t, x.d, t.T, np.full(2, 3)), strict=True):
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-6)


def test_memory_is_shared_by_what_is_needed_at_different_times():
    x = nn.Variable((100,))
    y = x
    for _ in range(20):
        y = F.tanh(F.relu(y) + 1)
    assert export_source({"y": y}, {"x": x}).arena_bytes == 400
    h = F.concatenate(*(F.tanh(x) * k for k in range(3)), axis=0)
    assert export_source({"y": F.sum(h)}, {"x": x}).arena_bytes == 4 * 600


def test_inference_keeps_what_dropout_drops(tmp_path):
    x = nn.Variable.from_numpy_array(np.ones((2, 3)))
    net = Network(tmp_path, {"y": F.dropout(x, 0.5) * 2}, {"x": x})
    np.testing.assert_array_equal(net(x.d, shapes=[(2, 3)])[0], np.full((2, 3), 2.0))


def test_the_door_finds_the_format(tmp_path):
    x, y = small_net()
    find_extension("file_formats", ".c", "write_network")(tmp_path / "net.c", {"y": y}, {"x": x})
    assert "net_run(net_context *context, const float *x, float *y);" in (tmp_path / "net.h").read_text()


def lenet(x):
    h = F.relu(F.max_pooling(PF.convolution(x, 6, (3, 3), name="c1"), (2, 2)))
    h = F.relu(F.max_pooling(PF.convolution(h, 8, (2, 2), name="c2"), (2, 2), ignore_border=False))
    return F.softmax(PF.affine(F.relu(PF.affine(h, 16, name="a1")), 10, name="a2"))


def mlp(x):
    return PF.affine(F.tanh(PF.affine(F.sigmoid(PF.affine(x, 20, name="a")), 12, name="b")), 3, name="c")


def separable(x):
    h = F.relu6(PF.batch_normalization(PF.convolution(x, 8, (3, 3), stride=(2, 2), pad=(1, 1)), batch_stat=False))
    for n in range(2):
        with nn.parameter_scope(f"block{n}"):
            h = PF.depthwise_convolution(h, (3, 3), pad=(1, 1))
            h = F.relu6(PF.batch_normalization(h, batch_stat=False, name="d"))
            h = F.relu6(PF.batch_normalization(PF.convolution(h, 12, (1, 1)), batch_stat=False, name="p"))
    return PF.affine(F.global_average_pooling(h), 4)


def residual(x):
    h = PF.convolution(x, 6, (3, 3), pad=(1, 1))
    for n in range(2):
        with nn.parameter_scope(f"block{n}"):
            r = F.relu(PF.batch_normalization(PF.convolution(h, 6, (3, 3), pad=(1, 1), name="a"), batch_stat=False, name="a"))
            r = PF.batch_normalization(PF.convolution(r, 6, (3, 3), pad=(1, 1), name="b"), batch_stat=False, name="b")
            h = F.relu(h + r)
    return F.log_softmax(PF.affine(F.average_pooling(h, (4, 4)), 5))


def line(x):
    h = F.elu(PF.convolution(x, 8, (5,), stride=(2,), pad=(2,), name="c1"))
    h = F.leaky_relu(PF.convolution(h, 8, (3,), dilation=(2,), group=2, name="c2"))
    return F.mean(F.max_pooling(h, (2,)), axis=2)


def lstm(x):
    h = c = F.constant(0, (1, 1, x.shape[1], 7))
    _, h, c = PF.lstm(x, h, c)
    return F.softmax(PF.affine(h, 3))


def gru(x):
    y, _ = PF.gru(x, F.constant(0, (2, 2, x.shape[1], 5)), num_layers=2, bidirectional=True)
    return PF.affine(y, 4, base_axis=2)


def attention(x):
    h = PF.layer_normalization(x, batch_axis=(0, 1))
    q, k, v = (PF.affine(h, 8, base_axis=2, name=name) for name in "qkv")
    weights = F.softmax(F.batch_matmul(q, k, transpose_b=True) / np.sqrt(8), axis=2)
    h = x + PF.affine(F.batch_matmul(weights, v), x.shape[2], base_axis=2, name="o")
    return F.gelu(PF.layer_normalization(h, batch_axis=(0, 1), name="n"))


def autoencoder(x):
    h = F.swish(PF.convolution(x, 6, (3, 3), stride=(2, 2), pad=(1, 1)))
    h = F.selu(PF.group_normalization(h, 2))
    h = PF.deconvolution(h, 3, (4, 4), stride=(2, 2), pad=(1, 1))
    return F.sigmoid(PF.instance_normalization(h))


def unet(x):
    a = F.relu(PF.convolution(x, 4, (3, 3), pad=(1, 1), name="a"))
    b = F.relu(PF.convolution(F.max_pooling(a, (2, 2)), 8, (3, 3), pad=(1, 1), name="b"))
    up = F.unpooling(b, (2, 2))
    return PF.convolution(F.concatenate(a, up, axis=1), 2, (1, 1), name="c")


NETS = {
    lenet: (2, 1, 10, 10), mlp: (3, 9), separable: (1, 3, 12, 12), residual: (2, 3, 8, 8), line: (2, 4, 30), lstm: (6, 2, 5),
    gru: (4, 2, 3), attention: (2, 5, 8), autoencoder: (1, 3, 8, 8), unet: (2, 3, 8, 8),
}  # fmt: skip


@pytest.mark.parametrize("build", NETS, ids=lambda build: build.__name__)
def test_whole_networks_compute_the_same(build, tmp_path):
    rng = np.random.default_rng(3)
    x = nn.Variable.from_numpy_array(rng.normal(size=NETS[build]))
    y = build(x)
    for name, parameter in nn.get_parameters(grad_only=False).items():
        parameter.d = parameter.d + rng.normal(0, 0.2, parameter.shape) ** (2 if name.endswith(("var", "gamma")) else 1)
    net = Network(tmp_path, {"y": y}, {"x": x}, optimize="-O2")
    for _ in range(3):
        x.d = rng.normal(size=x.shape)
        y.forward()
        assert difference(net(x.d, shapes=[y.shape])[0], y.d) < 1e-5


#: Macros that C compilers predefine, and functions that sources call.
HOSTILE_NAMES = [
    *("linux", "unix", "i386", "typeof", "near", "vector", "I", "NULL", "EOF", "INFINITY", "NAN", "M_PI", "HUGE_VALF"),
    *("expf", "tanhf", "fabsf", "isnan", "sqrtf", "main", "context", "double", "co_await", "requires", "size_t", "y0"),
]


@pytest.mark.parametrize("standard", ["c99", "gnu99", "gnu17"])
def test_names_that_compilers_know(standard, tmp_path):
    sources = {}
    for number, name in enumerate(HOSTILE_NAMES):
        x = nn.Variable((2, 3))
        y = F.tanh(F.exp(x)) + F.relu(x)
        sources[f"net{number}"] = export_source({f"{name}": y}, {name: x}, name=f"net{number}")
    for name, source in sources.items():
        (tmp_path / f"{name}.h").write_text(source.header)
        (tmp_path / f"{name}.c").write_text(source.code)
    options = [f"-std={standard}", "-c", "-fsyntax-only", "-Wno-error=builtin-declaration-mismatch"]
    command = [compiler(), *FLAGS[1:], *options, *(str(tmp_path / f"{name}.c") for name in sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


class _Sigmoid(nn.PythonFunction):
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


@pytest.mark.parametrize("options", [{}, {"dtype": "int8", "calibration": np.ones((2, 2, 3))}])
def test_functions_in_python_are_refused_whatever_their_name(options):
    x = nn.Variable((1, 2, 3))
    with pytest.raises(ArgumentError, match=r"Sigmoid \(function .*a function in Python cannot be written"):
        export_source({"y": _Sigmoid()(F.relu(x))}, {"x": x}, **options)


class _Doubled(nn.PythonFunction):
    """A function in Python that says by which functions it is expressed."""

    def forward_impl(self, inputs, outputs):
        outputs[0].d = inputs[0].d * 2

    def expressed(self, inputs):
        return [inputs[0] + inputs[0]]


def test_functions_in_python_are_written_as_what_expresses_them(tmp_path):
    x = nn.Variable.from_numpy_array(np.arange(6.0).reshape(2, 3))
    y = F.tanh(_Doubled()(x) - 3.0)
    found = Network(tmp_path, {"y": y}, {"x": x})(x.d, shapes=[(2, 3)])
    y.forward()
    np.testing.assert_allclose(found[0], y.d, rtol=1e-6)
    assert y.parent.inputs[0].parent.inputs[0].parent.name == "_Doubled"


@pytest.mark.parametrize("given", ["my-net.c", "my-net.h", "my-net"])
@pytest.mark.parametrize(("name", "prefix"), [(None, "my_net"), ("other", "other")])
def test_the_files_have_the_name_that_was_asked_for(given, name, prefix, tmp_path):
    x = nn.Variable((2, 3))
    export(tmp_path / given, {"y": F.tanh(x)}, {"x": x}, name=name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my-net.c", "my-net.h"]
    assert f"int {prefix}_run(" in (tmp_path / "my-net.h").read_text()
    compile_files(tmp_path, [tmp_path / "my-net.c"], "net.o", "-c")


@pytest.mark.parametrize("given", ["net.cpp", "net.v2"])
def test_files_of_another_kind_are_refused(given, tmp_path):
    x = nn.Variable((2, 3))
    with pytest.raises(ArgumentError, match=r"a file whose suffix is .c or .h, got .*net\."):
        export(tmp_path / given, {"y": F.tanh(x)}, {"x": x})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("settings", [{}, {"dtype": "int8"}, {"dtype": "int8", "io": "int8"}], ids=str)
def test_a_sample_tests_the_network_on_its_target(settings, tmp_path):
    x, y = small_net()
    x.d = np.random.default_rng(0).normal(size=x.shape)
    if settings:
        settings = {**settings, "calibration": np.random.default_rng(1).normal(size=(9, *x.shape[1:]))}
    made = export_source({"y": y}, {"x": x}, name="net", self_test=True, **settings)
    dtype = np.int8 if "io" in settings else np.float32
    kind = {np.int8: "int8_t", np.float32: "float"}[dtype]
    start = f"static const {kind} net_expected_y[{y.size}] = {{\n    "
    for change, status in ((0, 0), (1, 2)):  # the first number that is expected is another one
        at = made.code.index(start) + len(start)
        first = made.code[at:].split(",")[0]
        other = str(int(first) + 1) if dtype is np.int8 else "0.75f"
        code = made.code[:at] + (other if change else first) + made.code[at + len(first) :]
        library = Library(tmp_path, {"net": dataclasses.replace(made, code=code)}).library
        context, result = np.zeros(made.arena_bytes, np.uint8), np.zeros(y.size, dtype)
        assert library.net_self_test(*(ctypes.c_void_p(array.ctypes.data) for array in (context, result))) == status


def test_constants_go_where_the_macro_says(tmp_path):
    x, y = small_net()
    made = export(tmp_path, {"y": y}, {"x": x}, name="net")
    option = '-DNET_CONSTANTS=__attribute__((section("flashed")))'
    compile_files(tmp_path, [tmp_path / "net.c"], "net.o", "-c", option)
    listed = subprocess.run(["size", "-A", tmp_path / "net.o"], capture_output=True, text=True, check=True).stdout
    (size,) = (int(line.split()[1]) for line in listed.splitlines() if line.startswith("flashed"))
    assert made.constant_bytes <= size < made.constant_bytes + 256


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for instructions of x86")
def test_products_and_sums_are_not_joined(tmp_path):
    x, y = small_net()
    export(tmp_path, {"y": y}, {"x": x}, name="net")
    found = []
    for options in ([], ["-DNET_CONTRACT"]):
        compile_files(tmp_path, [tmp_path / "net.c"], "net.s", "-S", "-O2", "-std=gnu99", "-mfma", *options)
        found.append("fmadd" in (tmp_path / "net.s").read_text())
    assert found == [False, True]
