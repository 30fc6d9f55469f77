"""NNB files: the bytes that NNabla 1.39's converter writes for the same networks, and their values when they are read."""

import base64
import hashlib
import io
import json
import lzma
import struct
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import nn_core as nn
import nn_core.functions as F
from nn_core.__main__ import main
from nn_core.ext import ArgumentError, Entry, FileFormatError, NNCoreError
from nn_ext_nnp.codec import parse_text
from nn_ext_nnp.document import Document, read_document
from nn_ext_nnp.loading import load
from nn_ext_nnp.network import build, plan_network
from nn_ext_nnp.nnb.functions import by_name, by_number
from nn_ext_nnp.nnb.memory import share_buffers
from nn_ext_nnp.nnb.numbers import NumberType, decoded, encoded, type_named
from nn_ext_nnp.nnb.options import NnbOptions, read_settings_file
from nn_ext_nnp.nnb.reading import read_nnb
from nn_ext_nnp.nnb.writing import nnb_bytes

DATA = Path(__file__).with_name("data")
with lzma.open(DATA / "functions.json.xz") as recorded_file:
    RECORDED = json.load(recorded_file)
#: Functions with outputs whose shapes follow from values.
DYNAMIC = {"bool_gather", "nonzero", "onnx_non_max_suppression", "pack_padded_sequence", "pad_packed_sequence"}
CONFIG = DATA / "convnet_protobuf.nnp"
VALUES = np.load(DATA / "convnet_values.npz")
#: SHA-256 of what ``nnabla_cli convert -b 1`` writes for the recorded networks of one function, without the API level.
DIGESTS = json.loads((DATA / "nnb_digests.json").read_text())
#: Dropout has a further setting at its API level, which NNabla leaves out; buffers of PatchCorrelation are shared otherwise;
#: NNabla writes weights that functions compute as if nothing set them, and the statistics of binary weights.
OTHER_BYTES = {"dropout", "patch_correlation"}
#: Functions that are refused: NNB files cannot hold them, or their inputs in the recorded networks are not all set, or their
#: weights are computed.
REFUSED = {
    "affine", "batch_matmul", "binary_connect_affine", "binary_connect_convolution", "binary_weight_affine",
    "binary_weight_convolution", "cumprod", "cumsum", "einsum", "fused_convolution", "gather", "hard_sigmoid",
    "mish", "onnx_resize", "random_erase", "roi_align", "searchsorted", "tensor_normalization",
}  # fmt: skip
FIXED = {"x": "FIXED8_4", "y": "FIXED16_10", "c1/conv/W": "FIXED16", "c1/conv/b": "FIXED8", "a/affine/W": "FIXED8",
         "b1/bn/mean": "FIXED8", "b1/bn/var": "FIXED16"}  # fmt: skip


def run(*args, code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    return result.output


def arrays(entries):
    return {
        name: np.frombuffer(base64.b64decode(entry["data"]), entry["dtype"]).reshape(entry["shape"])
        for name, entry in entries.items()
    }


def document_of(text):
    return Document(parse_text(text.encode(), "x"), name="x")


def without_level(data):
    return data[:4] + data[8:]


def written(api):
    """The bytes for a recorded function; None when it is refused."""
    try:
        return nnb_bytes(document_of(RECORDED[api]["text"]), NnbOptions())
    except ArgumentError as error:
        assert str(error).startswith("C runtime: ")
        return None


@pytest.mark.parametrize("api", sorted(set(DIGESTS) - OTHER_BYTES - DYNAMIC - REFUSED))
def test_bytes_are_those_of_nnabla(api):
    assert hashlib.sha256(without_level(written(api))).hexdigest()[:16] == DIGESTS[api]


def test_few_functions_are_refused():
    assert {api for api in RECORDED if api not in DYNAMIC and written(api) is None} == REFUSED


@pytest.mark.parametrize("api", sorted(api for api in set(RECORDED) - DYNAMIC - REFUSED if not RECORDED[api]["random"]))
def test_functions_that_are_read_give_their_results(api):
    data = written(api)
    recorded = RECORDED[api]
    (executor,) = parse_text(recorded["text"].encode(), api).executor
    document = read_nnb(data, api)
    network = build(plan_network(document.proto.network[0], api))
    (made,) = document.proto.executor
    values = arrays(recorded["in"])
    for old, new in zip(executor.data_variable, made.data_variable, strict=True):
        if new.variable_name in network.inputs:
            network.inputs[new.variable_name].d = values[old.variable_name]
    names = [output.variable_name for output in made.output_variable]
    outputs = [network.variables[name].apply(persistent=True) for name in names]
    (outputs[0] if len(outputs) == 1 else F.sink(*outputs)).forward()
    expected = arrays(recorded["out"])
    for output, old in zip(outputs, executor.output_variable, strict=True):
        wanted = expected[old.variable_name]
        scale = max(1.0, np.nanmax(np.abs(np.where(np.isfinite(wanted), wanted, 0)), initial=0))
        np.testing.assert_allclose(output.d, wanted, rtol=0, atol=1e-5 * scale)


def test_functions_that_the_runtime_lacks_are_named_in_a_warning(caplog):
    assert written("cosh") is not None
    assert "C runtime cannot run this file, since it does not have Cosh" in caplog.text
    caplog.clear()
    assert written("tanh") is not None
    assert not caplog.text


def test_a_network_with_parameters_has_the_bytes_of_nnabla(tmp_path):
    run("convert", CONFIG, tmp_path / "a.nnb")
    assert without_level((tmp_path / "a.nnb").read_bytes()) == without_level((DATA / "convnet.nnb").read_bytes())
    assert struct.unpack_from("<2i", (tmp_path / "a.nnb").read_bytes()) == (2, 28)


def test_fixed_point_numbers_have_the_bytes_of_nnabla(tmp_path):
    (tmp_path / "types.yaml").write_text(yaml.safe_dump({"variables": FIXED}))
    run("convert", "-b", 3, "-d", "nnb_3", "-s", tmp_path / "types.yaml", CONFIG, tmp_path / "a.nnb")
    assert without_level((tmp_path / "a.nnb").read_bytes()) == without_level((DATA / "convnet_fixed.nnb").read_bytes())


@pytest.mark.parametrize(("name", "tolerance"), [("convnet.nnb", 1e-5), ("convnet_fixed.nnb", 0.02)])
def test_files_of_nnabla_compute_what_the_network_computes(name, tolerance, tmp_path):
    samples = 1 if name == "convnet.nnb" else 3
    VALUES["x"][:samples].astype("<f4").tofile(tmp_path / "x.bin")
    assert run("infer", "-c", DATA / name, "-b", -1, "-o", tmp_path / "r", tmp_path / "x.bin") == f"{samples} samples\n"
    for n in range(samples):
        np.testing.assert_allclose(np.fromfile(tmp_path / f"r_{n}.bin", "<f4"), VALUES["y"][n], atol=tolerance)


def test_dump_and_convert_read_what_convert_writes(tmp_path):
    run("convert", CONFIG, tmp_path / "a.nnb")
    assert "Affine f4: v4, v12, v13 -> v5" in run("dump", "-F", "-I", "NNB", tmp_path / "a.nnb")
    run("convert", tmp_path / "a.nnb", tmp_path / "b.nnp")
    run("convert", tmp_path / "b.nnp", tmp_path / "c.nnb")
    again = (tmp_path / "c.nnb").read_bytes()
    # The number of samples is known now, where Reshape had -1.
    assert (tmp_path / "a.nnb").read_bytes().replace(struct.pack("<2i", -1, 32), struct.pack("<2i", 1, 32)) == again


def test_a_template_lists_every_variable_and_function(tmp_path):
    run("nnb_template", "-T", "FIXED16", CONFIG, tmp_path / "t.yaml")
    template = yaml.safe_load((tmp_path / "t.yaml").read_text())
    assert template["functions"]["@net/Affine"] == {"implement": 0}
    assert template["variables"]["x"] == "FLOAT32" and template["variables"]["a/affine/W"] == "FIXED16"
    run("convert", "-s", tmp_path / "t.yaml", CONFIG, tmp_path / "a.nnb")
    run("convert", "-T", "FIXED16", CONFIG, tmp_path / "b.nnb")
    assert (tmp_path / "a.nnb").read_bytes() == (tmp_path / "b.nnb").read_bytes()
    assert "Example: nn-core nnb_template " in " ".join(run("nnb_template", "--help").split())
    run("nnb_template", "--nothing", code=2)


@pytest.mark.parametrize(("text", "message"), [
    ("variables: {x: FIXED8}", "the type of 'x', which is computed, must say the digits after the point, as FIXED8_4"),
    ("variables: {x: FLOAT64}", "types.yaml: x must be FLOAT32, SIGN, FIXED16 or FIXED8"),
    ("variables: {x: FIXED8_16}", "must be FLOAT32, SIGN"),
    ("variables: {x: FLOAT32_3}", "must be FLOAT32, SIGN"),
    ("variables: {z: FLOAT32}", "settings must name variables and functions of the network, got 'z'"),
    ("functions: {f: {implement: 1}}", "settings must name variables and functions of the network, got 'f'"),
    ("functions: {f: {implement: -1}}", "functions: f must have `implement`, a number from 0 to 65535"),
    ("functions: [1]", "functions must be a mapping, got list"),
    ("other: {}", "must have the keys functions and variables, got ['other']"),
    ("[", "types.yaml: must be YAML, got"),
])  # fmt: skip
def test_settings_that_say_something_else_are_refused(text, message, tmp_path):
    (tmp_path / "types.yaml").write_text(text)
    assert message in run("convert", "-s", tmp_path / "types.yaml", CONFIG, tmp_path / "a.nnb", code=1)
    assert not (tmp_path / "a.nnb").exists()


def test_implementations_are_written(tmp_path):
    (tmp_path / "types.yaml").write_text("functions: {'@net/ReLU': {implement: 7}}")
    _, implementations = read_settings_file(tmp_path / "types.yaml")
    data = nnb_bytes(read_document(CONFIG), NnbOptions(implementations=implementations))
    assert struct.pack("<HH", by_name()["ReLU"].number, 7) in data


@pytest.mark.parametrize(("options", "message"), [
    (("--api", 27), "functions must be those of API level 27, got BatchNormalization (it needs API"),
    (("--api", 46), "the API level must be from 1 to 45, got 46"),
    (("-E", 3), "--nnp-import-executor-index must be below 1, got 3"),
    (("-O", "NNP"), "--export-format NNP must go with .nnp"),
    (("-I", "NNB"), "--import-format NNB must go with .nnb"),
])  # fmt: skip
def test_options_that_do_not_fit_are_refused(options, message, tmp_path):
    assert message in run("convert", *options, CONFIG, tmp_path / "a.nnb", code=1)
    assert not (tmp_path / "a.nnb").exists()


def text_of(functions, inputs="x", shape="dim: 2 dim: 3", more="", network=""):
    """A network whose variables have the shape (2, 3)."""
    names = dict.fromkeys(name for _, ins, outs in functions for name in (*ins, *outs))
    kind = {name: "Parameter" if name.startswith("w") else "Buffer" for name in names}
    variables = "".join(f'variable {{ name: "{n}" type: "{kind[n]}" shape {{ {shape} }} }} ' for n in names)
    listed = "".join(
        f'function {{ name: "f{n}" type: "{f}" {"".join(f"""input: "{i}" """ for i in ins)}'
        f'{"".join(f"""output: "{o}" """ for o in outs)} }} '
        for n, (f, ins, outs) in enumerate(functions)
    )
    last = functions[-1][2][0]
    data = "".join(f'data_variable {{ variable_name: "{name}" data_name: "{name}" }} ' for name in inputs)
    executor = f'executor {{ name: "e" network_name: "n" {data} output_variable {{ variable_name: "{last}" }} {more} }}'
    return f'network {{ name: "n" batch_size: 2 {variables}{listed} {network} }} {executor}'


def test_what_outputs_do_not_need_is_left_out():
    text = text_of([("Mish", ["x"], ["a"]), ("Exp", ["x"], ["y"])])
    assert by_number()[struct.unpack_from("<H", nnb_bytes(document_of(text), NnbOptions()), -24)[0]].name == "Exp"


def test_generated_inputs_become_data():
    more = 'generator_variable { variable_name: "z" type: "Constant" multiplier: 3 }'
    data = nnb_bytes(document_of(text_of([("Minimum2", ["x", "z"], ["y"])], more=more)), NnbOptions())
    assert data.count(struct.pack("<6f", *[3.0] * 6)) == 1
    with pytest.raises(ArgumentError, match="executor 'e' must set every input, got none for 'z'"):
        nnb_bytes(document_of(text_of([("Minimum2", ["x", "z"], ["y"])])), NnbOptions())


def test_settings_that_follow_from_others_are_written():
    text = text_of([("MaxPooling", ["x"], ["y"])], shape="dim: 1 dim: 4 dim: 6")
    kernel, rest = "kernel { dim: 2 dim: 3 }", "stride { dim: 2 dim: 3 } pad { dim: 0 dim: 0 }"
    short, long = (
        text.replace('type: "MaxPooling"', f'type: "MaxPooling" max_pooling_param {{ ignore_border: true {kernel} {more} }}')
        for more in ("", rest)
    )
    assert nnb_bytes(document_of(short), NnbOptions()) == nnb_bytes(document_of(long), NnbOptions())


def test_parameters_that_are_no_numbers_are_read_as_they_are():
    bits = np.array([0x7F800001, 0x7FC00000, 0x7F800000], np.uint32)  # a signalling NaN among them
    with np.errstate(all="raise"):
        assert decoded(bits.tobytes(), (3,), 0, 0, "x").view(np.uint32).tolist() == bits.tolist()


def test_all_functions_that_cannot_be_written_are_named():
    text = text_of([("Mish", ["x"], ["a"]), ("HardSigmoid", ["a"], ["b"]), ("Exp", ["b"], ["y"])])
    with pytest.raises(ArgumentError, match=r"got Mish \(NNabla's API levels .*\), HardSigmoid \(its settings .*\)$"):
        nnb_bytes(document_of(text), NnbOptions())


def test_weights_that_others_read_as_well_are_refused():
    functions = [("Affine", ["x", "w"], ["a"]), ("Minimum2", ["a", "w"], ["y"])]
    with pytest.raises(ArgumentError, match=r"weights of 'f0' must be data that only .* got 'w'"):
        nnb_bytes(document_of(text_of(functions, shape="dim: 3 dim: 3")), NnbOptions())


def test_a_shared_weight_is_turned_once():
    functions = [("Affine", ["x", "w"], ["a"]), ("Affine", ["a", "w"], ["y"])]
    text = text_of(functions, shape="dim: 3 dim: 3")
    text = text.replace('type: "Affine"', 'type: "Affine" affine_param { base_axis: 1 }')
    document = document_of(text)
    values = np.arange(9, dtype=np.float32).reshape(3, 3)
    document.parameters["w"] = Entry(values, {"need_grad": True, "index": 0})
    data = nnb_bytes(document, NnbOptions())
    assert data.count(values.T.tobytes()) == 1
    assert np.array_equal(read_nnb(data, "x").parameters["v1"].values, values)


def test_executors_must_name_what_there_is():
    text = text_of([("Exp", ["x"], ["y"])])
    with pytest.raises(ArgumentError, match=r"the executor must be one of the 1 of x, got 1"):
        nnb_bytes(document_of(text), NnbOptions(executor=1))
    with pytest.raises(ArgumentError, match=r"executor 'e' must name one of \['n'\], got 'm'"):
        nnb_bytes(document_of(text.replace('network_name: "n"', 'network_name: "m"')), NnbOptions())
    with pytest.raises(ArgumentError, match=r"must name variables and at least one output, got \['q'\]"):
        nnb_bytes(document_of(text_of([("Exp", ["x"], ["y"])], inputs="q")), NnbOptions())
    with pytest.raises(ArgumentError, match="outputs of executor 'e' must be computed, got 'w'"):
        whole = text_of([("Exp", ["x"], ["y"]), ("Add2", ["x", "w"], ["z"])])
        nnb_bytes(document_of(whole.replace('output_variable { variable_name: "z"', 'output_variable { variable_name: "w"')),
                  NnbOptions())  # fmt: skip
    with pytest.raises(ArgumentError, match=r"the version must be 2 or 3, got 4"):
        NnbOptions(version=4)


# -- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("top", "digits"), [
    (0.0, 15), (0.5, 15), (0.999, 15), (1.0, 14), (1.5, 14), (2.0, 13), (3.0, 13), (4.0, 12), (7.99, 12), (8.0, 11),
    (100.0, 8),
])  # fmt: skip
def test_digits_after_the_point_are_those_of_nnabla(top, digits):
    for sign in (1, -1):
        data, fraction = encoded(np.array([sign * top, 0.0], np.float32), type_named("FIXED16", "x"), "x")
        assert fraction == digits
        values = decoded(data, (2,), 1, fraction, "x")
        assert abs(values[0] - sign * top) <= 2.0 ** -(digits + 1)


def test_signs_are_bits():
    values = np.array([1, -1, 1, 1, -1, -1, -1, -1, 1, -1], np.float32)
    data, fraction = encoded(values, type_named("SIGN", "x"), "x")
    assert (data, fraction) == (bytes([0b00001101, 0b01]), 0)
    np.testing.assert_array_equal(decoded(data + bytes(2), (10,), 3, 0, "x"), values)


@pytest.mark.parametrize("code", [0, 3])
def test_shapes_that_no_array_has_are_refused(code):
    with pytest.raises(FileFormatError, match=r"x must have at most 64 axes, got 304"):
        decoded(np.ones(1, np.float32).tobytes(), (1,) * 304, code, 0, "x")
    with pytest.raises(FileFormatError, match=r"x must have a shape of an array, got \(0, 4611686018427387904, 4\)"):
        decoded(b"", (0, 2**62, 4), code, 0, "x")


def test_values_that_do_not_fit_are_refused():
    with pytest.raises(ArgumentError, match=r"x must have values that fit into FIXED8, got 200\.0"):
        encoded(np.array([200.0], np.float32), type_named("FIXED8", "x"), "x")
    with pytest.raises(ArgumentError, match="x must have finite values for FIXED16, got others"):
        encoded(np.array([np.nan], np.float32), type_named("FIXED16", "x"), "x")
    clipped, _ = encoded(np.array([9.0, -9.0], np.float32), NumberType(2, 5), "x")
    assert np.frombuffer(clipped, np.int8).tolist() == [127, -128]


# -- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_variables_that_are_needed_at_one_time_have_buffers_of_their_own(seed):
    rng = np.random.default_rng(seed)
    sizes = {number: int(rng.integers(1, 50)) for number in range(3)}
    functions = []
    for _ in range(int(rng.integers(1, 25))):
        inputs = [int(n) for n in rng.choice(len(sizes), int(rng.integers(1, min(4, len(sizes) + 1))))]
        results = list(range(len(sizes), len(sizes) + int(rng.integers(1, 3))))
        sizes |= {number: int(rng.integers(1, 50)) for number in results}
        functions.append((inputs, results))
    outputs = [len(sizes) - 1, int(rng.integers(len(sizes)))]
    buffers, places = share_buffers(functions, sizes, outputs)
    assert buffers == sorted(buffers) and sum(buffers) <= sum(sizes.values())
    held = {places[number]: number for number in range(3)}
    assert len(held) == 3
    for inputs, results in functions:
        assert all(held[places[number]] == number for number in inputs)
        assert not {places[number] for number in results} & {places[number] for number in inputs}
        held |= {places[number]: number for number in results}
    assert all(held[places[number]] == number for number in outputs)
    assert all(buffers[place] >= sizes[number] for number, place in places.items())


def test_a_chain_needs_two_buffers():
    functions = [([n], [n + 1]) for n in range(20)]
    assert share_buffers(functions, dict.fromkeys(range(21), 7), [20])[0] == [7, 7]


# -- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("place", "value", "message"), [
    (0, 4, "the version must be 2 or 3, got 4"),
    (12, 1 << 30, "61 items of 1748 bytes must fill the file"),
    (11 + 1, -1, "-1 items of 1748 bytes must fill the file"),
    (2, 1000, "list 2 must have from 0 to 2 numbers, got 1000"),
    (5, 99, "items must be numbered from 0 to 60, got 99"),
    (4, 1, "variables must be listed, got identifier 6"),
    (15, 3, "items must follow each other within the file"),
])  # fmt: skip
def test_damaged_files_are_refused(place, value, message):
    data = bytearray((DATA / "convnet.nnb").read_bytes())
    if place == 12:
        value = value if value < 0 else 61
        struct.pack_into("<i", data, 4 * 12, value)
        data += b"" if value < 0 else bytes(4)
    else:
        struct.pack_into("<i", data, 4 * place, value)
    with pytest.raises(FileFormatError, match=message):
        read_nnb(bytes(data), "x")


def test_old_functions_are_refused_by_number():
    data = (DATA / "convnet.nnb").read_bytes().replace(struct.pack("<HHi", 326, 0, 5), struct.pack("<HHi", 22, 0, 5))
    with pytest.raises(FileFormatError, match=r"functions must have identifiers of NNabla 1\.39 .*, got 22"):
        read_nnb(data, "x")


WORDS = (0, 1, -1, 2, 7, 255, 65536, 1 << 30, -(1 << 31), (1 << 31) - 1)


def mutated(data, rng):
    """`data` with a few words or bytes replaced, cut out or repeated."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(changed)))
        match rng.integers(5):
            case 0 | 1:
                word = WORDS[rng.integers(len(WORDS))]
                struct.pack_into("<i", changed, min(place // 4, len(changed) // 4 - 1) * 4, word)
            case 2:
                changed[place] = int(rng.integers(256))
            case 3:
                del changed[place : place + int(rng.integers(1, 50))]
            case _:
                changed[place:place] = changed[: int(rng.integers(1, 50))]
    return bytes(changed)


@pytest.mark.parametrize("name", ["convnet.nnb", "convnet_fixed.nnb"])
def test_mutated_files_are_read_or_refused(name):
    rng = np.random.default_rng(11)
    original = (DATA / name).read_bytes()
    outcomes = {"read": 0, "refused": 0}
    tracemalloc.start()
    start = time.process_time()
    try:
        for _ in range(1000):
            try:
                with nn.parameter_scope("", {}):
                    load(io.BytesIO(mutated(original, rng)), prepare_data_iterator=False, extension=".nnb")
                outcomes["read"] += 1
            except NNCoreError:
                outcomes["refused"] += 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert outcomes["refused"] > 500 and outcomes["read"] > 50
    assert peak < 32 << 20 and time.process_time() - start < 60
