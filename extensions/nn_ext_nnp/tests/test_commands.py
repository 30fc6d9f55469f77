"""Commands: results against those that NNabla's command line gave for the same files, and exit codes."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.__main__ import main
from nn_core.utils.save import save
from nn_ext_nnp.codec import print_text
from nn_ext_nnp.document import read_document

DATA = Path(__file__).with_name("data")
CONFIG = str(DATA / "convnet.nnp")
VALUES = np.load(DATA / "convnet_values.npz")
COMMANDS = ("dump", "convert", "decode_param", "encode_param", "infer", "forward", "train")


def run(*args, code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example(name):
    assert f"Example: nn-core {name} " in " ".join(run(name, "--help").split())


@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_options_end_with_2(name):
    run(name, "--nothing", code=2)


def test_dump_prints_what_there_is():
    text = run("dump", "-F", "-V", CONFIG)
    assert "Network net: batch size 4, 14 variables, 5 functions" in text
    assert "Convolution @net/Convolution: x, c1/conv/W, c1/conv/b -> @net/Convolution_out" in text
    assert "Executor[0]: Output    y [-1, 5]" in text
    assert "Network train" not in run("dump", "--network", "net", CONFIG)
    assert "--network must be one of ['net', 'train'], got 'x'" in run("dump", "--network", "x", CONFIG, code=1)


def test_infer_computes_each_sample(tmp_path):
    VALUES["x"].astype("<f4").tofile(tmp_path / "x.bin")
    assert run("infer", "-c", CONFIG, "-b", 4, "-o", tmp_path / "r", tmp_path / "x.bin") == "4 samples\n"
    for n in range(4):
        np.testing.assert_allclose(np.fromfile(tmp_path / f"r_{n}.bin", "<f4"), VALUES["y"][n], atol=1e-5)
    assert len(list(tmp_path.iterdir())) == 5


def test_infer_refuses_data_of_another_size(tmp_path):
    VALUES["x"].astype("<f4").tofile(tmp_path / "x.bin")
    text = run("infer", "-c", CONFIG, "-b", 3, "-o", tmp_path / "r", tmp_path / "x.bin", code=1)
    assert "must have 324 numbers of type float32 for the shape (3, 3, 6, 6), got 432" in text
    assert "INPUTS must be 1 files, for x, got 2" in run("infer", "-c", CONFIG, tmp_path / "x.bin", tmp_path / "x.bin", code=1)
    assert "--executor must be one of ['rt'], got 'e'" in run("infer", "-c", CONFIG, "-E", "e", tmp_path / "x.bin", code=1)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("command", ["infer", "forward"])
def test_a_file_without_executors_is_named(command, tmp_path):
    (tmp_path / "none.nntxt").write_text("")
    (tmp_path / "x.bin").write_bytes(b"")
    words = [tmp_path / "x.bin"] if command == "infer" else ["-d", dataset(tmp_path), "-o", tmp_path / "r"]
    text = run(command, "-c", tmp_path / "none.nntxt", *words, code=1)
    assert f"{tmp_path / 'none.nntxt'}: the file must have an executor, got none" in text


def dataset(folder, rows=6):
    lines = ["x:image,y:label"]
    for n in range(rows):
        np.save(folder / f"{n}.npy", VALUES["x"][n % 4])
        lines.append(f"{n}.npy,{n}")
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    return folder / "data.csv"


@pytest.mark.parametrize("batch_size", [-1, 1, 5])
def test_forward_adds_columns(batch_size, tmp_path):
    run("forward", "-c", CONFIG, "-d", dataset(tmp_path), "-o", tmp_path / "out", "-b", batch_size)
    header, *lines = (tmp_path / "out" / "output_result.csv").read_text().splitlines()
    assert header == "x:image,y:label,y__0,y__1,y__2,y__3,y__4" and len(lines) == 6
    for n, line in enumerate(lines):
        assert line.startswith(f"{n}.npy,{n},")
        np.testing.assert_allclose([float(cell) for cell in line.split(",")[2:]], VALUES["y"][n % 4], atol=1e-5)


def network_of_positive_numbers(folder):
    x = nn.Variable((1, 6))
    found = F.greater_scalar(x, val=0)
    picked = F.bool_gather(x, found)
    outputs = {"places": F.nonzero(found), "picked": picked, "total": F.sum(picked * 2)}
    networks = [{"name": "net", "batch_size": 1, "names": {"x": x}, "outputs": outputs}]
    executors = [{"name": "run", "network": "net", "data": ["x"], "output": list(outputs)}]
    save(folder / "net.nnp", {"networks": networks, "executors": executors}, variable_batch_size=False)
    return folder / "net.nnp"


def test_infer_knows_shapes_that_follow_from_values(tmp_path):
    config = network_of_positive_numbers(tmp_path)
    np.array([1, -1, 2, 3, -4, 5], "<f4").tofile(tmp_path / "x.bin")
    run("infer", "-c", config, "-o", tmp_path / "r", tmp_path / "x.bin")
    assert np.fromfile(tmp_path / "r_0.bin", "<f4").tolist() == [0, 0, 0, 0, 0, 2, 3, 5, 1, 2, 3, 5, 22]


def test_forward_writes_vectors_of_different_lengths_to_files(tmp_path):
    config = network_of_positive_numbers(tmp_path)
    lines = ["x__0,x__1,x__2,x__3,x__4,x__5", "1,-1,2,3,-4,5", "-1,-1,-2,3,-4,-5"]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    run("forward", "-c", config, "-d", tmp_path / "data.csv", "-o", tmp_path / "out")
    out = tmp_path / "out"
    assert (out / "output_result.csv").read_text().splitlines() == [
        lines[0] + ",places,picked,total",
        lines[1] + ",places_0000/0.csv,picked_0000/0.csv,22.0",
        lines[2] + ",places_0000/1.csv,picked_0000/1.csv,6.0",
    ]
    assert np.loadtxt(out / "picked_0000" / "0.csv").tolist() == [1, 2, 3, 5]
    assert np.loadtxt(out / "picked_0000" / "1.csv").tolist() == 3
    assert np.loadtxt(out / "places_0000" / "1.csv").tolist() == [0, 3]


@pytest.mark.parametrize("name", ["../../evil", "/evil", "C:\\\\evil", "a\\nb"])
def test_forward_writes_nothing_outside_of_its_folder(name, tmp_path):
    text = print_text(read_document(network_of_positive_numbers(tmp_path)).proto).decode()
    assert '"picked"' in text
    (tmp_path / "net.nntxt").write_text(text.replace('"picked"', f'"{name}"'))
    (tmp_path / "data.csv").write_text("x__0,x__1,x__2,x__3,x__4,x__5\n1,-1,2,3,-4,5\n-1,-1,-2,3,-4,-5\n")
    out = tmp_path / "a" / "b" / "out"
    message = run("forward", "-c", tmp_path / "net.nntxt", "-d", tmp_path / "data.csv", "-o", out, code=1)
    assert "a name in a file must stay below its folder" in message
    assert not [path for path in tmp_path.rglob("*evil*") if out not in path.parents]


def test_forward_takes_one_sample_at_a_time_where_shapes_follow_from_values(tmp_path):
    config = network_of_positive_numbers(tmp_path)
    text = print_text(read_document(config).proto).decode()
    for old, new in (("batch_size: 1", "batch_size: 2"), ("dim: 1\n      dim: 6", "dim: -1\n      dim: 6")):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "open.nntxt").write_text(text)
    lines = ["x__0,x__1,x__2,x__3,x__4,x__5", "1,-1,2,3,-4,5", "-1,-1,-2,3,-4,-5", "1,2,3,4,5,6"]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    for name in ("net.nnp", "open.nntxt"):
        run("forward", "-c", tmp_path / name, "-d", tmp_path / "data.csv", "-o", tmp_path / name[:3])
    fixed, free = (
        {path.relative_to(folder): path.read_text() for path in folder.rglob("*.csv")}
        for folder in (tmp_path / "net", tmp_path / "ope")
    )
    assert len(free) == 7 and fixed == free


def test_sequences_that_are_packed_and_padded_again_are_cut_into_samples(tmp_path):
    rng = np.random.default_rng(0)
    x = nn.Variable.from_numpy_array(rng.standard_normal((3, 5, 2)).astype(np.float32))
    lengths = nn.Variable.from_numpy_array(np.array([5, 3, 2], np.float32))
    packed, sizes = F.pack_padded_sequence(x, lengths, batch_first=True)
    padded, found = F.pad_packed_sequence(PF.affine(packed, 4), sizes, batch_first=True)
    outputs = {"y": padded, "lengths": found}
    networks = [{"name": "net", "batch_size": 3, "names": {"x": x, "l": lengths}, "outputs": outputs}]
    executors = [{"name": "run", "network": "net", "data": ["x", "l"], "output": list(outputs)}]
    save(tmp_path / "net.nnp", {"networks": networks, "executors": executors}, variable_batch_size=False)
    for name, values in (("x", x), ("l", lengths)):
        values.d.astype("<f4").tofile(tmp_path / f"{name}.bin")
    F.sink(padded, found).forward()
    assert (
        run("infer", "-c", tmp_path / "net.nnp", "-o", tmp_path / "r", tmp_path / "x.bin", tmp_path / "l.bin") == "3 samples\n"
    )
    for n in range(3):
        expected = np.append(padded.d[n].ravel(), found.d[n])
        np.testing.assert_allclose(np.fromfile(tmp_path / f"r_{n}.bin", "<f4"), expected, rtol=1e-6)


@pytest.mark.parametrize("shuffle", [False, True])
def test_forward_reads_a_cache_with_its_table(shuffle, tmp_path):
    table, cache = dataset(tmp_path), tmp_path / "data.cache"
    run("conv_dataset", *(["-S"] if shuffle else []), table, cache)
    run("forward", "-c", CONFIG, "-d", table, "-o", tmp_path / "expected")
    run("forward", "-c", CONFIG, "-d", cache, "-o", tmp_path / "out")
    header, *lines = (tmp_path / "out" / "output_result.csv").read_text().splitlines()
    expected_header, *expected = (tmp_path / "expected" / "output_result.csv").read_text().splitlines()
    assert header == expected_header
    assert sorted(lines) == sorted(expected)  # the results are still beside their rows
    order = [int(line.split(",")[1]) for line in (cache / "order.csv").read_text().splitlines()]
    assert lines == [expected[row] for row in order]
    assert (order != sorted(order)) == shuffle


def test_forward_refuses_a_cache_without_its_table(tmp_path):
    cache = tmp_path / "data.cache"
    run("conv_dataset", dataset(tmp_path), cache)
    (cache / "original.csv").unlink()
    message = run("forward", "-c", CONFIG, "-d", cache, "-o", tmp_path / "out", code=1)
    assert "a cache must have original.csv, the table that it was made from" in message
    assert not (tmp_path / "out").exists()


def test_forward_refuses_other_columns(tmp_path):
    path = dataset(tmp_path)
    path.write_text(path.read_text().replace("x:image", "z:image"))
    assert "must have the columns ['x'], got ['z', 'y']" in run("forward", "-c", CONFIG, "-d", path, "-o", tmp_path, code=1)
    assert not (tmp_path / "output_result.csv").exists()


@pytest.mark.parametrize("options", [(), ("--nnp-parameter-protobuf",)])
def test_convert_goes_around(options, tmp_path):
    run("convert", CONFIG, tmp_path / "a.protobuf")
    run("convert", tmp_path / "a.protobuf", tmp_path / "a.nntxt")
    run("convert", *options, tmp_path / "a.nntxt", tmp_path / "a.nnp")
    run("convert", tmp_path / "a.nnp", tmp_path / "a.h5")
    assert run("dump", "-F", "-V", tmp_path / "a.nnp") == run("dump", "-F", "-V", CONFIG)
    nn.load_parameters(tmp_path / "a.h5")
    found = {name: p.d.copy() for name, p in nn.get_parameters(grad_only=False).items()}
    nn.load_parameters(CONFIG)
    for name, parameter in nn.get_parameters(grad_only=False).items():
        np.testing.assert_array_equal(found[name], parameter.d)


def test_failures_leave_no_file(tmp_path):
    assert "OUTPUT must be .nnp" in run("convert", CONFIG, tmp_path / "a.xyz", code=1)
    (tmp_path / "bad.nntxt").write_text("network { colour: 1 }")
    assert "bad.nntxt:1: the text must be" in run("convert", tmp_path / "bad.nntxt", tmp_path / "b.nnp", code=1)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.nntxt"]


def test_parameters_as_texts_and_back(tmp_path):
    run("decode_param", "-p", CONFIG, "-o", tmp_path / "texts")
    assert (tmp_path / "texts" / "b1~bn~beta.txt").read_text().startswith("(1, 2, 1, 1)\n-0.00099999946542")
    run("encode_param", "-i", tmp_path / "texts", "-p", tmp_path / "p.protobuf")
    nn.load_parameters(tmp_path / "p.protobuf")
    found = {name: p.d.copy() for name, p in nn.get_parameters(grad_only=False).items()}
    nn.load_parameters(CONFIG)
    assert set(found) == set(nn.get_parameters(grad_only=False))
    for name, parameter in nn.get_parameters(grad_only=False).items():
        np.testing.assert_array_equal(found[name], parameter.d)


def test_any_name_of_a_parameter_survives(tmp_path):
    names = ["a/b~c", "a~b/c", "x y", "日本", "w.1", "p%2F"]
    for name in names:
        nn.parameter.set_parameter(name, nn.Variable((1,)))
    nn.save_parameters(tmp_path / "p.h5")
    nn.clear_parameters()
    run("decode_param", "-p", tmp_path / "p.h5", "-o", tmp_path / "texts")
    run("encode_param", "-i", tmp_path / "texts", "-p", tmp_path / "q.h5")
    nn.load_parameters(tmp_path / "q.h5")
    assert set(nn.get_parameters(grad_only=False)) == set(names)


@pytest.mark.parametrize("text", ["(2,)\n1.0", "(2,)\n1.0\nx", "__import__('os')\n1", "(-1, -2)\n1.0\n2.0"])
def test_texts_of_parameters_are_not_evaluated(text, tmp_path):
    (tmp_path / "w.txt").write_text(text)
    assert "w.txt: must have" in run("encode_param", "-i", tmp_path, "-p", tmp_path / "p.h5", code=1)
    assert not (tmp_path / "p.h5").exists()
