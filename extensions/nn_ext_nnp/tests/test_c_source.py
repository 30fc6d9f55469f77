"""C source for NNabla's runtime: its functions and settings beside those of NNabla 1.39's converter, and what it computes.

The runtime itself is not at hand: data/nnablart is a small stand-in for it, with which the source that NNabla's converter
writes for the network of convnet.nnp gives the same numbers.
"""

import json
import lzma
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.__main__ import main
from nn_core.ext import ArgumentError
from nn_core.utils.save import save
from nn_ext_nnp.codec import parse_text
from nn_ext_nnp.document import Document, read_document
from nn_ext_nnp.nnb.c_source import c_source, number, setting_texts, snake_name
from nn_ext_nnp.nnb.functions import FAULTS, by_name, by_number
from nn_ext_nnp.nnb.options import NnbOptions
from nn_ext_nnp.nnb.writing import runtime_network

DATA = Path(__file__).with_name("data")
RUNTIME = DATA / "nnablart"
with lzma.open(DATA / "functions.json.xz") as recorded_file:
    RECORDED = json.load(recorded_file)
#: Names and numbers that tools/nnabla/nnabla_c_source.py took from the source of NNabla's converter for these networks.
SETTINGS = json.loads((DATA / "c_source_settings.json").read_text())
#: Its BatchNormalization has inputs that nothing sets.
UNSET = "tensor_normalization"
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"]


def document_of(api):
    return Document(parse_text(RECORDED[api]["text"].encode(), "x"), name="x")


def kinds_of(api):
    return {function.type for network in document_of(api).proto.network for function in network.function}


def runs(api):
    kinds = kinds_of(api)
    return api != UNSET and not kinds & set(FAULTS) and all(kind in by_name() and by_name()[kind].runs for kind in kinds)


RUNS = sorted(filter(runs, SETTINGS))


def test_functions_of_the_runtime_are_recorded():
    of_the_runtime = {name for name, entry in by_name().items() if entry.runs}
    assert of_the_runtime - {kind for api in RUNS for kind in kinds_of(api)} == {"Affine", "BatchMatmul"}


@pytest.mark.parametrize("api", RUNS)
def test_functions_and_settings_are_those_of_nnabla(api):
    stored = runtime_network(document_of(api), NnbOptions()).stored
    assert len(stored.functions) == len(SETTINGS[api])
    for function, (name, n_inputs, n_outputs, settings) in zip(stored.functions, SETTINGS[api], strict=True):
        assert snake_name(by_number()[function.number].name) == name
        assert (len(function.inputs), len(function.outputs)) == (n_inputs, n_outputs)
        texts = setting_texts(function).items()
        ours = {key: list(map(str, value)) if isinstance(value, list) else value for key, value in texts}
        assert sorted(ours) == sorted(settings)
        for key, theirs in settings.items():
            try:
                assert np.float32(ours[key].rstrip("f")) == np.float32(theirs)
            except (AttributeError, ValueError):  # lists, and names of choices
                assert ours[key] == theirs


def compiled(folder, *more):
    """The example program of a folder, with the stand-in for the runtime."""
    sources = [*folder.glob("*.c"), RUNTIME / "functions.c"]
    command = [
        shutil.which("cc") or "gcc",
        *FLAGS,
        *more,
        f"-I{DATA}",
        *map(str, sources),
        "-o",
        str(folder / "program"),
        "-lm",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "program"


def run(program, values, folder):
    """Outputs that the program writes for inputs by position."""
    paths = []
    for n, value in enumerate(values):
        paths.append(folder / f"in{n}.bin")
        value.astype("<f4").tofile(paths[-1])
    done = subprocess.run([program, *paths, folder / "out"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [np.fromfile(path, "<f4") for path in sorted(folder.glob("out_*.bin"))]


def convert(*args, code=0):
    result = CliRunner().invoke(main, ["convert", *map(str, args)])
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("samples", [1, 3])
def test_the_program_computes_what_the_network_computes(samples, tmp_path):
    convert("-O", "CSRC", "-b", samples, DATA / "convnet_protobuf.nnp", tmp_path / "c")
    with np.load(DATA / "convnet_values.npz") as stored:
        values = dict(stored)
    (y,) = run(compiled(tmp_path / "c"), [values["x"][:samples]], tmp_path)
    np.testing.assert_allclose(y, values["y"][:samples].ravel(), atol=1e-5)


def network(path, name="two heads"):
    """A network with two inputs, two outputs and a function without settings, saved."""
    rng = np.random.default_rng(0)
    x, skip = (nn.Variable.from_numpy_array(rng.standard_normal(shape).astype(np.float32)) for shape in [(1, 2, 6, 6), (1, 5)])
    h = F.max_pooling(F.tanh(PF.convolution(x, 3, (3, 3), pad=(1, 0), stride=(1, 2), name="*/ odd\n\\")), (2, 2))
    h = F.add2(PF.affine(h, 5, name="a"), skip)
    outputs = {"probabilities": F.softmax(h), "large": F.relu(h)}
    executor = {"name": "run", "network": name, "data": ["x", "skip"], "output": list(outputs)}
    save(path, {
        "networks": [{"name": name, "batch_size": 1, "names": {"x": x, "skip": skip}, "outputs": outputs}],
        "executors": [executor],
    })  # fmt: skip
    nn.forward_all(list(outputs.values()))
    return [x.d, skip.d], [output.d for output in outputs.values()]


def test_names_of_every_kind_and_several_inputs_and_outputs(tmp_path):
    values, expected = network(str(tmp_path / "n.nnp"))
    convert("-O", "CSRC", tmp_path / "n.nnp", tmp_path / "c")
    names = {path.name for path in (tmp_path / "c").iterdir()}
    assert names == {f"two_heads_{part}" for part in (
        "example.c", "inference.c", "inference.h", "parameters.c", "parameters.h")} | {"GNUmakefile"}  # fmt: skip
    for ours, wanted in zip(run(compiled(tmp_path / "c"), values, tmp_path), expected, strict=True):
        np.testing.assert_allclose(ours, wanted.ravel(), atol=1e-5)


CALLER = """
#include <stdio.h>
#include <string.h>
#include "first_inference.h"
#include "first_parameters.h"
#include "second_inference.h"
#include "second_parameters.h"
int main(void)
{
    void *a = nnablart_first_allocate_context(first_parameters), *b = nnablart_second_allocate_context(0);
    for (int i = 0; i < NNABLART_SECOND_NUM_OF_PARAM_BUFFERS; i++) {
        const size_t sizes[] = {NNABLART_SECOND_PARAM0_SIZE, NNABLART_SECOND_PARAM1_SIZE, NNABLART_SECOND_PARAM2_SIZE,
                                NNABLART_SECOND_PARAM3_SIZE};
        memcpy(nnablart_second_param_buffer(b, i), second_parameters[i], sizes[i] * sizeof(float));
    }
    for (int k = 0; k < NNABLART_FIRST_INPUT0_SIZE; k++)
        nnablart_first_input_buffer(a, 0)[k] = nnablart_second_input_buffer(b, 0)[k] = (float)k / 10.0f;
    for (int k = 0; k < NNABLART_FIRST_INPUT1_SIZE; k++)
        nnablart_first_input_buffer(a, 1)[k] = nnablart_second_input_buffer(b, 1)[k] = (float)k;
    nnablart_first_inference(a);
    nnablart_second_inference(b);
    for (int i = 0; i < 2; i++)
        if (memcmp(nnablart_first_output_buffer(a, i), nnablart_second_output_buffer(b, i), 5 * sizeof(float))) return 1;
    if (nnablart_first_input_buffer(a, 2) || nnablart_first_output_buffer(a, -1)) return 2;
    nnablart_first_free_context(a);
    return nnablart_second_free_context(b);
}
"""


def test_several_networks_in_a_program_and_parameters_that_the_context_owns(tmp_path):
    for name in ("first", "second"):
        with nn.parameter_scope("", {}):
            nn.seed(3)
            network(str(tmp_path / f"{name}.nnp"), name)
        convert("-O", "CSRC", tmp_path / f"{name}.nnp", tmp_path / "c")
        (tmp_path / "c" / f"{name}_example.c").unlink()
    (tmp_path / "c" / "caller.c").write_text(CALLER)
    program = compiled(tmp_path / "c", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


FAILING = """
#include <stdlib.h>
#include "first_inference.h"
#include "first_parameters.h"
static int left;
static void *few(size_t size) { return left-- > 0 ? malloc(size) : 0; }
extern void *(*rt_malloc_func)(size_t size);
int main(void)
{
    rt_malloc_func = few;
    for (int n = 0; n < 8; n++) {
        left = n;
        void *context = nnablart_first_allocate_context(first_parameters);
        if (context) return nnablart_first_free_context(context) ? 2 : n == 6 ? 0 : 3;
    }
    return 1;
}
"""


def test_memory_that_is_missing_gives_no_context_and_leaks_nothing(tmp_path):
    network(str(tmp_path / "first.nnp"), "first")
    convert("-O", "CSRC", tmp_path / "first.nnp", tmp_path / "c")
    (tmp_path / "c" / "first_example.c").write_text(FAILING)
    program = compiled(tmp_path / "c", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_example_says_what_is_wrong(tmp_path):
    convert("-O", "CSRC", DATA / "convnet_protobuf.nnp", tmp_path / "c")
    program = compiled(tmp_path / "c")
    (tmp_path / "short.bin").write_bytes(b"abc")
    for arguments, status, words in [
        ([], 2, "usage"),
        ([tmp_path / "short.bin", tmp_path / "out"], 1, "must be a file of 108 float32 numbers"),
        ([tmp_path / "none.bin", tmp_path / "out"], 1, "none.bin must be a file"),
    ]:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == status
        assert words in done.stderr


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, 0.1, 1e-40, 3.4e38, 1e20, -2.5, np.nextafter(np.float32(1), np.float32(2))])
def test_numbers_keep_their_bits(value):
    assert np.float32(number(float(value)).rstrip("f")).tobytes() == np.float32(value).tobytes()


def test_numbers_that_are_none():
    assert [number(value) for value in (np.inf, -np.inf, np.nan, 1e39)] == ["INFINITY", "-INFINITY", "NAN", "INFINITY"]


@pytest.mark.parametrize(
    ("api", "words"),
    [
        ("cosh", "functions must be those that the runtime has, got Cosh"),
        ("add_n", "functions must be those that the runtime has, got AddN"),
        ("mul_n", "functions must be those that the runtime has, got MulN"),
        ("trilu", "functions must be those that the runtime has, got Trilu"),
        ("batch_matmul", "BatchMatmul (NNabla's C runtime adds its products to what"),
        ("mish", "Mish (NNabla's API levels do not have it)"),
    ],
)
def test_functions_that_the_runtime_lacks_are_named(api, words):
    with pytest.raises(ArgumentError, match="C runtime: ") as caught:
        c_source(document_of(api), NnbOptions())
    assert words in str(caught.value)


@pytest.mark.parametrize(("part", "status"), [("allocate", "there must be memory for the network"), ("exec", "")])
def test_a_function_of_the_runtime_that_fails_stops_the_program(tmp_path, part, status):
    convert("-O", "CSRC", "-b", 1, DATA / "convnet_protobuf.nnp", tmp_path / "c")
    function = {"allocate": "allocate_relu_local_context", "exec": "exec_relu"}[part]
    (source,) = (tmp_path / "c").glob("*_inference.c")
    fails = f"static int failing(rt_function_t *f) {{ (void)f; return 7; }}\n#define {function} failing\n"
    include = "#include <nnablart/functions.h>\n"
    source.write_text(source.read_text().replace(include, include + fails))
    program = compiled(tmp_path / "c")
    with np.load(DATA / "convnet_values.npz") as stored:
        stored["x"][:1].astype("<f4").tofile(tmp_path / "x.bin")
    done = subprocess.run([program, tmp_path / "x.bin", tmp_path / "out"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert status in done.stderr
    assert not list(tmp_path.glob("out_*.bin"))


def test_levels_and_executors_are_checked():
    with pytest.raises(ArgumentError, match="needs API level 28"):
        c_source(read_document(DATA / "convnet_protobuf.nnp"), NnbOptions(level=20))


def test_other_options_and_places_are_refused(tmp_path):
    config = DATA / "convnet_protobuf.nnp"
    assert "must be FLOAT32" in convert("-O", "CSRC", "-T", "FIXED8", config, tmp_path / "c", code=1)
    (tmp_path / "file").write_text("kept")
    assert "must be a folder for C source" in convert("-O", "CSRC", config, tmp_path / "file", code=1)
    assert (tmp_path / "file").read_text() == "kept"
    assert "a folder with -O CSRC" in convert(config, tmp_path, code=1)
