"""``nn-core serve``: files of networks, weights, reloads by signals, failures."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request

import numpy as np
import pytest
from click.testing import CliRunner

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.__main__ import main
from nn_core.ext import ArgumentError, find_extension
from nn_ext_serve import NetworkFile, Predictor, commands

GIVEN = {"x": np.ones((2, 3), np.float32)}


def write(path, weight):
    """Write a network whose answers are 3 * weight."""
    with nn.parameter_scope("", {}):
        x = nn.Variable((4, 3), name="x")
        y = PF.affine(x, 2, w_init=np.full((3, 2), weight, np.float32), name="fc")
        store = find_extension("file_formats", path.suffix, "write_network")
        if path.suffix == ".onnx":
            store(path, {"y": y}, {"x": x}, dynamic_batch="N")
        else:
            store(path, {"networks": [{"name": "net", "batch_size": 4, "outputs": {"y": y}, "names": {"x": x}}]})


@pytest.fixture(params=[".onnx", ".nnp"])
def path(request, tmp_path):
    pytest.importorskip(f"nn_ext_{request.param[1:]}", reason="reads the file")
    path = tmp_path / f"net{request.param}"
    write(path, 1.0)
    return path


def run(*args, code=0):
    result = CliRunner().invoke(main, ["serve", *map(str, args)])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


@pytest.fixture
def caught(monkeypatch):
    """Return the arguments of a call that would serve."""
    found = {}
    monkeypatch.setattr(
        commands, "run", lambda predictor, reload, **options: found.update(p=predictor, reload=reload, **options)
    )
    monkeypatch.setattr(commands, "set_num_threads", lambda n: None)  # of the process
    return found


def test_a_network_of_a_file_is_served_and_read_again(path, caught):
    before = set(nn.get_parameters())
    run(path, "--max-batch", 4, "--workers", 2, "--port", 0)
    predictor = caught["p"]
    assert (caught["title"], predictor.max_batch) == (path.name, 4)
    (output,) = predictor.predict(GIVEN).values()
    np.testing.assert_allclose(output, np.full((2, 2), 3.0))
    write(path, 2.0)
    caught["reload"]()
    for n in (1, 2, 4):
        (output,) = predictor.predict({"x": np.ones((n, 3))}).values()
        np.testing.assert_allclose(output, np.full((n, 2), 6.0))
    path.write_bytes(b"broken")
    with pytest.raises(Exception, match=re.escape(path.name)):
        caught["reload"]()
    np.testing.assert_allclose(next(iter(predictor.predict(GIVEN).values())), np.full((2, 2), 6.0))
    assert set(nn.get_parameters()) == before


def test_a_check_shows_the_network_and_ends(path):
    assert re.search(r"^input \S+ \(n, 3\) float32 output \S+ \(n, 2\) float32$", run(path, "--check"))


def test_weights_replace_those_of_the_file(path, caught, tmp_path):
    predictor = Predictor(NetworkFile(path))
    own = predictor._generation.parameters
    file = tmp_path / "weights.h5"

    def save(value):
        nn.save_parameters(file, {name: nn.Variable.from_numpy_array(np.full(w.shape, value)) for name, w in own.items()})

    save(1.0)
    run(path, "--weights", file)
    (output,) = caught["p"].predict(GIVEN).values()
    np.testing.assert_allclose(output, np.full((2, 2), 4.0))  # 3 * 1 and a bias of 1
    save(2.0)
    caught["reload"]()
    (output,) = caught["p"].predict(GIVEN).values()
    np.testing.assert_allclose(output, np.full((2, 2), 8.0))


def test_failures_are_sentences(path, tmp_path):
    if path.suffix == ".nnp":
        assert "--name must be one of ['net'], got 'other'" in run(path, "--name", "other", code=1)
    (tmp_path / "net.xyz").write_text("")
    assert "Error: " in run(tmp_path / "net.xyz", code=1)
    assert "does not exist" in run(tmp_path / "missing.onnx", code=2)
    assert "Example: nn-core serve digits.onnx" in run("--help")
    assert re.search(r"serve +Serve a network of a file by HTTP", CliRunner().invoke(main, ["--help"]).output)


def test_a_file_that_changes_while_it_is_read_is_refused(path):
    file = NetworkFile(path)
    file(1)
    write(path, 2.0)
    with pytest.raises(ArgumentError, match="must stay as it is while it is read"):
        file(2)
    file.again()(2)


def test_batch_normalization_in_training_mode_is_refused(tmp_path):
    path = tmp_path / "net.nnp"
    pytest.importorskip("nn_ext_nnp", reason="reads the file")
    x = nn.Variable((4, 3), name="x")
    y = F.relu(PF.batch_normalization(x))
    contents = {"networks": [{"name": "net", "batch_size": 4, "outputs": {"y": y}, "names": {"x": x}}]}
    find_extension("file_formats", ".nnp", "write_network")(path, contents)
    assert "must not depend on the other samples of its batch" in run(path, code=1)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals of POSIX")
def test_the_server_answers_reloads_by_a_signal_and_ends_by_another(tmp_path):
    pytest.importorskip("nn_ext_nnp", reason="reads the file")
    path = tmp_path / "net.nnp"
    write(path, 1.0)
    command = [sys.executable, "-m", "nn_core", "serve", str(path), "--port", "0", "--max-batch", "2", "--reload-endpoint"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    try:
        log = iter(process.stderr.readline, "")
        url = next(found[0] for line in log if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))

        def ask():
            body = json.dumps({"inputs": GIVEN["x"].tolist()}).encode()
            request = urllib.request.Request(f"{url}/predict", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=30) as reply:
                return json.load(io.TextIOWrapper(reply))["outputs"]["y"]

        assert ask() == [[3.0, 3.0]] * 2
        write(path, 2.0)
        process.send_signal(signal.SIGHUP)
        assert any("reloaded" in line for line in log)
        assert ask() == [[6.0, 6.0]] * 2
        path.write_bytes(b"broken")
        process.send_signal(signal.SIGHUP)
        assert any("the present network stays" in line for line in log)
        assert ask() == [[6.0, 6.0]] * 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
