"""Random networks, digits, and what sanitizers find."""

import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from extensions.nn_ext_c.tests.compiled import Library, compile_files, difference
from extensions.nn_ext_c.tests.test_export import NETS
from nn_ext_c import export_source, quantize
from nn_ext_c.integer import reference

#: Layers of random networks, from images to images: (needs float32, function).
LAYERS = (
    (False, lambda x, k: PF.convolution(x, 1 + k, (3, 3), pad=(1, 1), stride=(1 + k % 2, 1))),
    (False, lambda x, k: PF.convolution(x, x.shape[1] * 2, (1 + k % 2, 1), group=x.shape[1], with_bias=False)),
    (False, lambda x, k: PF.depthwise_convolution(x, (3, 3), pad=(k, 1), dilation=(1, 1 + (x.shape[3] > 6)), multiplier=2)),
    (False, lambda x, k: PF.batch_normalization(PF.convolution(x, 2, (1, 1)), batch_stat=False)),
    (False, lambda x, k: F.max_pooling(x, (2, 1 + k % 2), pad=(k % 2, 0))),
    (False, lambda x, k: F.average_pooling(x, (2, 2), ignore_border=True)),
    (False, lambda x, k: (F.relu, F.relu6, F.tanh, F.sigmoid)[k](x)),
    (False, lambda x, k: F.concatenate(x, F.flip(x, axes=(3,)), axis=1 + k % 3)),
    (False, lambda x, k: F.transpose(x, ((0, 1, 3, 2), (0, 3, 2, 1), (0, 2, 1, 3), (0, 2, 3, 1))[k])),
    (False, lambda x, k: F.pad(x, (k, 1), "reflect" if k == 1 and x.shape[3] > 1 < x.shape[2] else "constant")),
    (False, lambda x, k: x + F.tanh(x) * (1 + k)),
    (False, lambda x, k: x * F.sigmoid(F.flip(x, axes=(2,)))),
    (False, lambda x, k: F.reshape(x[:, :, :, :: 1 + k], (x.shape[0], x.shape[2], x.shape[1], -1))),
    (True, lambda x, k: F.unpooling(x, (1, 2))),
    (True, lambda x, k: PF.deconvolution(x, 2, (2, 2), stride=(1 + k % 2, 1))),
    (True, lambda x, k: PF.layer_normalization(x)),
    (True, lambda x, k: F.softmax(x, axis=1 + k % 3)),
    (True, lambda x, k: F.cumsum(x, axis=k)),
)


def random_network(plan, x, *, in_float):
    """A network of layers, of those that fit."""
    h = x
    for number, (layer, k) in enumerate(plan):
        needs_float, function = LAYERS[layer]
        if (needs_float and not in_float) or h.size > 3000 or min(h.shape[2:]) < 2:
            continue
        with nn.parameter_scope(f"layer{number}"):
            h = function(h, k)
    return PF.affine(h, 3) if len(plan) % 2 else h


PLANS = st.lists(st.tuples(st.integers(0, len(LAYERS) - 1), st.integers(0, 3)), min_size=1, max_size=7)


@pytest.mark.slow
@pytest.mark.parametrize("in_float", [True, False])
def test_random_networks_compute_the_same(in_float, tmp_path):
    """All examples are collected first, so that the compiler starts once."""
    plans = []

    @settings(max_examples=30, database=None, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(PLANS)
    def collect(plan):
        plans.append(plan)

    collect()
    rng = np.random.default_rng(1)
    sources, cases = {}, {}
    for number, plan in enumerate(plans):
        with nn.parameter_scope("", {}):
            x = nn.Variable((1 + number % 2, 2, 6, 5))
            y = random_network(plan, x, in_float=in_float)
            if y is x:
                continue
            samples = rng.normal(size=(4, *x.shape[1:]))
            options = {} if in_float else {"calibration": samples}
            name = f"net{number}"
            sources[name] = export_source({"y": y}, {"x": x}, name=name, **({} if in_float else {"dtype": "int8", **options}))
            cases[name] = (x, y, None if in_float else quantize({"y": y}, {"x": x}, **options), plan)
    library = Library(tmp_path, sources)
    for name, (x, y, network, plan) in cases.items():
        x.d = rng.normal(size=x.shape)
        (found,) = library.run(name, [x.d], [y.shape])
        if network is None:
            y.forward()
            assert difference(found, np.asarray(y.d)) < 1e-5, plan
        else:
            np.testing.assert_array_equal(found, reference.run(network, {"x": x.d})["y"], err_msg=str(plan))
    assert len(cases) > 15


def digits_network(x, *, is_training):
    h = x
    for number, maps in enumerate((8, 16)):
        with nn.parameter_scope(f"conv{number}"):
            h = PF.convolution(h, maps, (3, 3), pad=(1, 1), with_bias=False)
            h = F.max_pooling(F.relu(PF.batch_normalization(h, batch_stat=is_training)), (2, 2))
    return PF.affine(h, 10, name="classifier")


def trained_digits():
    """A network of 3,000 parameters after a moment of training, and images that it has not seen."""
    digits = load_digits()
    images, labels = (digits.images / 16).astype(np.float32)[:, None], digits.target[:, None]
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order], labels[order]
    x, t = nn.Variable((64, 1, 8, 8)), nn.Variable((64, 1))
    loss = F.mean(F.softmax_cross_entropy(digits_network(x, is_training=True), t))
    solver = S.Adam(alpha=5e-3)
    solver.set_parameters(nn.get_parameters())
    for step in range(110):
        rows = np.arange(64 * step, 64 * step + 64) % 1400
        x.d, t.d = images[rows], labels[rows]
        solver.zero_grad()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        solver.update()
    return images[:200], images[1400:], labels[1400:, 0]


@pytest.mark.slow
def test_digits_are_recognised_as_well_in_c(tmp_path):
    nn.seed(0)
    calibration, images, labels = trained_digits()
    x = nn.Variable((1, 1, 8, 8))
    y = F.softmax(digits_network(x, is_training=False))
    sources = {
        "floats": export_source({"y": y}, {"x": x}, name="floats"),
        "integers": export_source({"y": y}, {"x": x}, name="integers", dtype="int8", calibration=calibration),
    }
    library = Library(tmp_path, sources, "-O2")
    classes = {name: [int(library.run(name, [image], [(10,)])[0].argmax()) for image in images] for name in sources}
    expected = []
    for image in images:
        x.d = image[None]
        y.forward()
        expected.append(int(np.argmax(y.d)))
    assert classes["floats"] == expected
    right = {name: float(np.mean(np.array(found) == labels)) for name, found in classes.items()}
    print({name: (sources[name].arena_bytes, sources[name].constant_bytes, right[name]) for name in sources})
    assert right["floats"] > 0.95
    assert abs(right["floats"] - right["integers"]) < 0.01
    assert sources["integers"].constant_bytes < 0.5 * sources["floats"].constant_bytes
    assert sources["integers"].arena_bytes < 0.4 * sources["floats"].arena_bytes


MAIN = """
#include <stdio.h>
{includes}
int main(void) {{
{blocks}
    return 0;
}}
"""
BLOCK = """    {{
        static {n}_context context;
        static float x[{u}_INPUT_X_SIZE], y[{u}_OUTPUT_Y_SIZE];
        for (int i = 0; i < {u}_INPUT_X_SIZE; ++i) {{ x[i] = (float)(i % 17 - 8) * 0.25f; }}
        if ({n}_run(&context, x, y) != 0) {{ return 1; }}
        printf("{n} %.9g\\n", (double)y[0]);
    }}"""


@pytest.mark.slow
def test_sanitizers_find_nothing(tmp_path):
    rng = np.random.default_rng(2)
    sources = {}
    for build, shape in NETS.items():
        with nn.parameter_scope("", {}):
            x = nn.Variable.from_numpy_array(rng.normal(size=shape))
            sources[build.__name__] = export_source({"y": build(x)}, {"x": x}, name=build.__name__)
    with nn.parameter_scope("", {}):
        x = nn.Variable((1, 1, 8, 8))
        h = F.average_pooling(F.relu(PF.convolution(x, 3, (3, 3), pad=(1, 1))), (2, 2), pad=(1, 1))
        y = F.softmax(PF.affine(F.concatenate(h, F.tanh(h), axis=1), 4) - 0.25)
        samples = rng.normal(size=(4, 1, 8, 8))
        sources["integers"] = export_source({"y": y}, {"x": x}, name="integers", dtype="int8", calibration=samples)
    for name, source in sources.items():
        (tmp_path / f"{name}.h").write_text(source.header)
    (tmp_path / "all.c").write_text("\n".join(source.code for source in sources.values()))
    includes = "\n".join(f'#include "{name}.h"' for name in sources)
    blocks = "\n".join(BLOCK.format(n=name, u=name.upper()) for name in sources)
    (tmp_path / "main.c").write_text(MAIN.format(includes=includes, blocks=blocks))
    program = compile_files(
        tmp_path, [tmp_path / "main.c", tmp_path / "all.c"], "main", "-O1", "-g",
        "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
    )  # fmt: skip
    done = subprocess.run([program], capture_output=True, text=True, check=False, env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(sources)


def test_the_source_is_cpp_too(tmp_path):
    """Headers can be included by C++."""
    compiler = shutil.which("c++") or shutil.which("g++")
    assert compiler, "a C++ compiler must be installed"
    x = nn.Variable((2,))
    (tmp_path / "net.h").write_text(export_source({"y": F.tanh(x)}, {"x": x}, name="net").header)
    (tmp_path / "main.cpp").write_text('#include "net.h"\nint main() { return NET_INPUT_X_SIZE - 2; }\n')
    subprocess.run([compiler, "-Wall", "-Werror", tmp_path / "main.cpp", "-o", tmp_path / "main"], check=True)
    subprocess.run([tmp_path / "main"], check=True)
