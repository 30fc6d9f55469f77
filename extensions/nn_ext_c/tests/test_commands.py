"""``nn-core export-c``: networks of files as C."""

import numpy as np
import pytest
from click.testing import CliRunner

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from extensions.nn_ext_c.tests.compiled import compile_files
from nn_core.__main__ import main
from nn_core.ext import find_extension


def run(*args, code=0):
    result = CliRunner().invoke(main, ["export-c", *(str(arg) for arg in args)])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def network(tmp_path):
    pytest.importorskip("nn_ext_nnp", reason="writes the file that the command reads")
    x = nn.Variable((4, 3, 6, 6), name="x")
    y = PF.affine(F.relu(PF.convolution(x, 4, (3, 3))), 5)
    contents = {"networks": [{"name": "net", "batch_size": 4, "outputs": {"y": y}, "names": {"x": x}}]}
    path = tmp_path / "net.nnp"
    find_extension("file_formats", ".nnp", "write_network")(path, contents)
    return path


def test_a_network_of_a_file_becomes_c(network, tmp_path):
    before = set(nn.get_parameters())
    text = run(network, tmp_path / "net.c")
    assert "bytes of memory" in text
    assert "NET_INPUT_X_SHAPE {1, 3, 6, 6}" in (tmp_path / "net.h").read_text()
    compile_files(tmp_path, [tmp_path / "net.c"], "net.o", "-c")
    assert set(nn.get_parameters()) == before
    run(network, tmp_path / "two.c", "-b", 2, "-n", "net")
    assert "TWO_INPUT_X_SHAPE {2, 3, 6, 6}" in (tmp_path / "two.h").read_text()


def test_samples_make_it_integers(network, tmp_path):
    np.save(tmp_path / "samples.npy", np.random.default_rng(0).normal(size=(7, 3, 6, 6)))
    run(network, tmp_path / "net.c", "-c", tmp_path / "samples.npy", "-m", "mse")
    assert "Computed in int8" in (tmp_path / "net.h").read_text()
    compile_files(tmp_path, [tmp_path / "net.c"], "net.o", "-c")


def test_models_of_onnx(tmp_path):
    pytest.importorskip("nn_ext_onnx", reason="writes the file that the command reads")
    x = nn.Variable((4, 3))
    write = find_extension("file_formats", ".onnx", "write_network")
    write(tmp_path / "net.onnx", {"y": PF.affine(x, 5)}, {"x": x}, dynamic_batch="N")
    run(tmp_path / "net.onnx", tmp_path / "net.c", "-d", "N=2")
    assert "NET_INPUT_X_SHAPE {2, 3}" in (tmp_path / "net.h").read_text()
    assert "--dimension must be NAME=LENGTH, got 'N'" in run(tmp_path / "net.onnx", tmp_path / "net.c", "-d", "N", code=1)


def test_failures_are_sentences(network, tmp_path):
    assert "--name must be one of ['net'], got 'x'" in run(network, tmp_path / "net.c", "-n", "x", code=1)
    (tmp_path / "wrong.npy").write_text("no array")
    text = run(network, tmp_path / "net.c", "-c", tmp_path / "wrong.npy", code=1)
    assert "must be a .npy or .npz file of arrays" in text
    (tmp_path / "net.xyz").write_text("")
    assert "Error: " in run(tmp_path / "net.xyz", tmp_path / "net.c", code=1)
    run("--nothing", code=2)
    assert "Example: nn-core export-c " in " ".join(run("--help").split())
