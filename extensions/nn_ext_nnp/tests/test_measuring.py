"""Commands that measure networks: monitors over data, times, one backend against another; and those that are refused."""

import csv
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import nn_core as nn
from nn_core.__main__ import main

DATA = Path(__file__).with_name("data")
CONFIG = DATA / "convnet_protobuf.nnp"
TRAINING = DATA / "training" / "Adam.nnp"


def run(*args, code=0):
    nn.clear_parameters()
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(autouse=True)
def _own_context():
    before = nn.get_current_context()
    yield
    nn.set_default_context(before)


@pytest.mark.parametrize("name", ["evaluate", "profile", "compare"])
def test_help_has_an_example(name):
    assert f"Example: nn-core {name} " in " ".join(run(name, "--help").split())
    run(name, "--nothing", code=2)


def test_evaluate_gives_the_values_that_training_reports(tmp_path):
    run("train", "-c", TRAINING, "-o", tmp_path / "out")
    text = run("evaluate", "-c", TRAINING, "-p", tmp_path / "out" / "results.nnp", "-o", tmp_path / "values.csv")
    assert text == "valid_error=0.568815\ntrain_error=0.568815\n"
    found = dict(csv.reader((tmp_path / "values.csv").read_text().splitlines()))
    assert found["monitor"] == "value" and float(found["valid_error"]) == pytest.approx(0.5688146849, abs=1e-5)
    assert run("evaluate", "-c", TRAINING, "-m", "train_error") == "train_error=1.251697\n"


def test_evaluate_refuses_monitors_that_there_are_not():
    message = "--monitor must be one of ['valid_error', 'train_error'], got 'x'"
    assert message in run("evaluate", "-c", TRAINING, "-m", "x", code=1)


def test_profile_has_a_line_for_each_function(tmp_path):
    run("profile", "-c", TRAINING, "-o", tmp_path / "new", "-r", 2, "-C", "reference")
    rows = {row[1]: row for row in csv.reader((tmp_path / "new" / "profile.csv").read_text().splitlines()) if len(row) > 4}
    assert list(rows) == [
        "function_name", "Affine", "BatchNormalization", "Tanh", "SoftmaxCrossEntropy", "Mean", "Sum", "MulScalar"
    ]  # fmt: skip
    assert float(rows["Affine"][4]) > 0 and rows["Affine"][6] == "2"
    assert "training," in (tmp_path / "new" / "profile.csv").read_text()


def test_profile_takes_executors_without_optimizers(tmp_path):
    text = 'network { name: "n" batch_size: 2 variable { name: "x" type: "Buffer" shape { dim: -1 dim: 3 } } '
    text += 'variable { name: "y" type: "Buffer" shape { dim: -1 dim: 3 } } function { name: "f" type: "Exp" input: "x" '
    text += 'output: "y" } }'
    (tmp_path / "a.nntxt").write_text(text)
    assert "must have an optimizer or an executor, got none" in run(
        "profile", "-c", tmp_path / "a.nntxt", "-o", tmp_path / "out", code=1
    )
    assert not (tmp_path / "out").exists()
    executor = 'executor { name: "e" network_name: "n" data_variable { variable_name: "x" data_name: "x" } '
    (tmp_path / "a.nntxt").write_text(text + executor + 'output_variable { variable_name: "y" data_name: "y" } }')
    assert run("profile", "-c", tmp_path / "a.nntxt", "-o", tmp_path, "-r", 1).startswith("e: forward ")


def test_compare_looks_at_every_variable_and_gradient(tmp_path):
    assert run("compare", "-c", TRAINING, "-C", "reference", "-o", tmp_path).startswith("12 variables, largest difference 0, ")
    rows = list(csv.reader((tmp_path / "compare.csv").read_text().splitlines()))
    assert ["opt", "gradient", "a/affine/W", "0.0"] in rows and len(rows) == 13


def test_compare_ends_with_1_when_something_differs(tmp_path):
    pytest.importorskip("nn_ext_cpu", reason="the backend that is compared")
    run("convert", TRAINING, tmp_path / "a.nntxt")
    changed = (tmp_path / "a.nntxt").read_text().replace('type: "Tanh"', 'type: "Sin"')
    (tmp_path / "b.nntxt").write_text(changed)
    message = run(
        "compare", "-c", tmp_path / "a.nntxt", "-c2", tmp_path / "b.nntxt", "-C", "reference", "-o", tmp_path, code=1
    )
    assert "reference and reference must agree within 0.0001, got 12 variables, largest difference" in message
    rows = {row[2]: row[3] for row in csv.reader((tmp_path / "compare.csv").read_text().splitlines())}
    assert rows["@train/Affine_out"] == "0.0" and float(rows["@train/Tanh_out"]) > 0.01
    assert "both sides must have the same variables" in run("compare", "-c", TRAINING, "-c2", CONFIG, code=1)


def test_compare_finds_values_that_are_numbers_on_one_side_only(tmp_path):
    run("convert", TRAINING, tmp_path / "a.nntxt")
    text = (tmp_path / "a.nntxt").read_text()
    (tmp_path / "b.nntxt").write_text(text.replace('type: "Tanh"', 'type: "ACosh"'))
    message = run("compare", "-c", TRAINING, "-c2", tmp_path / "b.nntxt", "-C", "reference", code=1)
    assert "largest difference inf" in message


@pytest.mark.parametrize("name", ["upload", "create_tar"])
def test_what_serves_a_web_service_is_refused(name):
    assert "Neural Network Console" in run(name, "a.csv", "b.tar", "-e", "x", code=1)
    assert "hint:" in run(name, code=1)
    assert np.char.count(run(name, "--help"), "Refused") == 1


def test_optimize_is_refused():
    assert "networks are optimized when they run" in run("optimize", "a.nnp", "b.nnp", code=1)
