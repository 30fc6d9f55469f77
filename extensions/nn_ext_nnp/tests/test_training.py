"""Training by a configuration: the costs that NNabla 1.39's command line reports for the same files, and exact resuming."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import nn_core as nn
from nn_core.__main__ import main
from nn_core.errors import FileFormatError
from nn_core.utils.load import load
from nn_ext_nnp.codec import parse_text
from nn_ext_nnp.schedules import Schedule, schedule_of

DATA = Path(__file__).with_name("data") / "training"
#: monitoring_report.yml of ``nnabla_cli train -c X.nnp -p X.nnp``: cost and valid_error of three epochs.
REPORTED = {
    "Sgd": [(1.2055816253, 1.0184390942), (0.9960224628, 0.8761993447), (0.8636653224, 0.7725090185)],
    "Momentum": [(1.1993536750, 0.8128075599), (0.7385478814, 0.4462773104), (0.4183667103, 0.3272226452)],
    "Adam": [(1.2098024487, 0.9310786128), (0.8792870243, 0.7141975959), (0.6804944475, 0.5688146849)],
}


def run(*args, code=0):
    nn.clear_parameters()
    result = CliRunner().invoke(main, ["train", *(str(arg) for arg in args)])
    assert result.exit_code == code, result.output
    return result.output


def changed(folder, old, new, name="Adam"):
    """A configuration with another text in its network."""
    nn.clear_parameters()
    folder.mkdir(exist_ok=True)
    shutil.copy(DATA / "data.csv", folder)
    CliRunner().invoke(main, ["convert", str(DATA / f"{name}.nnp"), str(folder / "c.nntxt")])
    text = (folder / "c.nntxt").read_text()
    assert re.search(old, text)
    (folder / "c.nntxt").write_text(re.sub(old, new, text))
    return folder / "c.nntxt"


@pytest.mark.parametrize("solver", REPORTED)
def test_costs_are_those_of_nnabla(solver, tmp_path):
    run("-c", DATA / f"{solver}.nnp", "-o", tmp_path)
    report = (tmp_path / "monitoring_report.yml").read_text()
    costs, errors = ([float(v) for v in re.findall(rf"{key}: (\S+)", report)] for key in ("cost", "valid_error"))
    np.testing.assert_allclose(np.transpose([costs, errors]), REPORTED[solver], atol=1e-5)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["monitoring_report.yml", "results.nnp", "results_current_3.nnp"]
    info = load(tmp_path / "results.nnp", prepare_data_iterator=False)
    assert {state.t for state in info.optimizers["opt"].solver.get_states().values()} == {9}


@pytest.mark.parametrize("more", ["", "\n  shuffle: true"])
def test_resuming_gives_the_same_bits(more, tmp_path):
    config = changed(tmp_path / "config", r"(uri: .data.csv.\n  batch_size: 4)", r"\1" + more)
    run("-c", config, "-o", tmp_path / "whole")
    short = tmp_path / "config" / "short.nntxt"
    short.write_text(config.read_text().replace("max_epoch: 3", "max_epoch: 2"))
    run("-c", short, "-o", tmp_path / "parts")
    run("-c", config, "-o", tmp_path / "parts", "-r")
    whole, parts = ((tmp_path / name / "results_current_3.nnp").read_bytes() for name in ("whole", "parts"))
    found = []
    for name in ("whole", "parts"):
        nn.clear_parameters()
        info = load(tmp_path / name / "results_current_3.nnp", prepare_data_iterator=False)
        states = info.optimizers["opt"].solver.get_states()
        values = {key: p.d.copy() for key, p in nn.get_parameters(grad_only=False).items()}
        found.append((values, {(p, k): v.d.copy() for p, s in states.items() for k, v in s.pstate.items()}))
    for first, second in zip(*found, strict=True):
        assert first.keys() == second.keys()
        for key, array in first.items():
            np.testing.assert_array_equal(second[key], array)
    reports = [(tmp_path / name / "monitoring_report.yml").read_text() for name in ("whole", "parts")]
    assert reports[0] == reports[1] and len(whole) == len(parts)


@pytest.mark.parametrize(("old", "new", "message"), [
    ('uri: "data.csv"', 'uri: "none.csv"', "the data set 'd' must be at none.csv, got nothing there"),
    ('data_name: "y"', 'data_name: "z"', "data must have a column 'z', got ['x', 'y']"),
    ('data_name: "y"', 'data_name: "%pi"', "data names with % must be one of %iter"),
    ("alpha: 0.05", "alpha: 1e38", "the cost must be a number, got"),
    ('dataset_name: "d"', 'dataset_name: "e"', "data sets must be one of ['d'], got 'e'"),
])  # fmt: skip
def test_what_cannot_be_trained_ends_with_1(old, new, message, tmp_path):
    config = changed(tmp_path / "config", old, new)
    assert message in run("-c", config, "-o", tmp_path / "out", code=1)
    assert not (tmp_path / "out" / "results.nnp").exists() or "cost" in message


def without(text, part, column):
    """Return a configuration in which a part does not say what a column is for."""
    pattern = rf"(?s)(^{part} {{(?:(?!^}}).)*?)  data_variable {{[^}}]*data_name: \"{column}\"\n  }}\n"
    found, n = re.subn(pattern, r"\1", text, count=1, flags=re.MULTILINE)
    assert n == 1
    return found


@pytest.mark.parametrize("part", ["optimizer", "monitor"])
@pytest.mark.parametrize("columns", ["y", "xy"])
def test_inputs_that_nothing_is_said_of_are_refused(part, columns, tmp_path):
    config = changed(tmp_path / "config", "max_epoch: 3", "max_epoch: 1")
    text = config.read_text()
    for column in columns:
        text = without(text, part, column)
    config.write_text(text)
    output = run("-c", config, "-o", tmp_path / "out", code=1)
    assert f"train: each input of the network of {part} '" in output
    assert f"must be a data_variable or a generator_variable, got neither for {', '.join(columns).replace('y', 't')}" in output
    assert not list((tmp_path / "out").iterdir())


def test_training_stops_at_zero_epochs_with_the_initial_values(tmp_path):
    config = changed(tmp_path / "config", "max_epoch: 3", "max_epoch: 0")
    run("-c", config, "-o", tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["results.nnp"]


def solver_text(text):
    return parse_text(f'optimizer {{ solver {{ type: "Sgd" {text} }} }}'.encode(), "x").optimizer[0].solver


@pytest.mark.parametrize(("text", "expected"), [
    ("", [1.0, 1.0, 1.0, 1.0]),
    ("lr_decay: 0.5 lr_decay_interval: 2", [1.0, 1.0, 0.5, 0.5]),
    ('lr_scheduler_type: "Polynomial" polynomial_scheduler_param { max_iter: 4 power: 2 }', [1.0, 0.5625, 0.25, 0.0625]),
    ('lr_scheduler_type: "Polynomial" polynomial_scheduler_param { max_iter: 4 }', [1.0, 1.0, 1.0, 1.0]),
    ('lr_scheduler_type: "Cosine" cosine_scheduler_param { max_iter: 4 }', [1.0, 0.853553, 0.5, 0.146447]),
    ('lr_scheduler_type: "Exponential" exponential_scheduler_param { gamma: 0.5 iter_interval: 1 }', [1.0, 0.5, 0.25, 0.125]),
    ('lr_scheduler_type: "Step" step_scheduler_param { gamma: 0.5 iter_steps: 1 iter_steps: 3 }', [1.0, 0.5, 0.5, 0.25]),
    ('lr_warmup_scheduler_type: "Linear" linear_warmup_scheduler_param { warmup_iter: 2 }', [0.5, 1.0, 1.0, 1.0]),
    ('lr_warmup_scheduler_type: "None"', [1.0, 1.0, 1.0, 1.0]),
])  # fmt: skip
def test_learning_rates_follow_the_schedule(text, expected):
    schedule = schedule_of(solver_text(text), 1.0, "x")
    assert [schedule.get_learning_rate(n) for n in range(4)] == pytest.approx(expected, abs=1e-6)


def test_unknown_schedules_are_refused():
    with pytest.raises(FileFormatError, match=r"lr_scheduler_type must be Polynomial, .* got 'Custom'"):
        schedule_of(solver_text('lr_scheduler_type: "Custom"'), 1.0, "x")
    assert Schedule(0.5).get_learning_rate(7) == 0.5
