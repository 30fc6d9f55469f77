"""The status of a training command, its limit of time, and the names of its results."""

import argparse
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from nn_core.errors import ArgumentError, FileFormatError
from nn_core.utils import callback


@pytest.fixture(autouse=True)
def in_memory():
    callback.configure_status(None)
    yield
    callback.configure_status(None)


def test_the_status_is_in_the_file(tmp_path):
    callback.configure_status(tmp_path / "out")
    callback.update_status("training", start_time=10.0)
    callback.update_progress("epoch 3")
    callback.update_status({"best": 0.5, "epoch": 3})
    callback.update_time_train(prediction=60)
    callback.update_forward_time()
    status = json.loads((tmp_path / "out" / "status.json").read_text())
    assert status == callback.get_status()
    assert (status["state"], status["progress"], status["best"], status["epoch"]) == ("training", "epoch 3", 0.5, 3)
    assert (status["start_time"], status["predicted_time"]) == (10.0, 60.0)
    assert status["train_time"] > 1e9
    assert status["forward_time"] >= status["train_time"]
    assert callback.get_best_from_status(SimpleNamespace(outdir=tmp_path / "out")) == 0.5
    with pytest.raises(TypeError):
        callback.update_status({"odd": object()})
    assert json.loads((tmp_path / "out" / "status.json").read_text()) == status


def test_times_start_now():
    callback.update_status(start=True)
    callback.update_time_train()
    assert 0 <= callback.get_status()["train_time"] < 60
    assert "predicted_time" not in callback.get_status()
    callback.configure_status(None)
    callback.update_forward_time()
    assert callback.get_status() == {"forward_time": 0.0}


@pytest.mark.parametrize("content", ["", "[]", '{"best": "x"}', "[" * 100_000])
def test_a_damaged_status(tmp_path, content):
    assert callback.get_best_from_status(SimpleNamespace(outdir=tmp_path)) is None
    (tmp_path / "status.json").write_text('{"state": "x"}')
    assert callback.get_best_from_status(SimpleNamespace(outdir=tmp_path)) is None
    (tmp_path / "status.json").write_text(content)
    with pytest.raises(FileFormatError, match=r"status\.json: the file must hold a status, got"):
        callback.get_best_from_status(SimpleNamespace(outdir=tmp_path))


def test_the_limit_of_time():
    parser = argparse.ArgumentParser()
    callback.add_train_command_arg(parser)
    free, limited = parser.parse_args([]), parser.parse_args(["--time-limit", "100"])
    assert (callback.get_timelimit(free), callback.get_timelimit(limited)) == (math.inf, 100.0)
    assert callback.get_timelimit(SimpleNamespace()) == math.inf

    def goes_on(seconds, epoch, args=limited):
        return callback.check_training_time(args, None, SimpleNamespace(past_time=seconds), epoch, 10)

    assert goes_on(80, 4)
    assert not goes_on(81, 4)
    assert goes_on(81, 4, free)
    assert goes_on(1000, 10)
    assert goes_on(1000, 0)
    with pytest.raises(ArgumentError, match="time_limit must be a positive number of seconds, got -1"):
        callback.get_timelimit(parser.parse_args(["--time-limit", "-1"]))


def test_snapshots():
    saved = []
    end = callback.on_snapshot(lambda: saved.append(1))
    callback.save_train_snapshot()
    end()
    callback.save_train_snapshot()
    assert saved == [1]


def test_results(tmp_path):
    assert callback.result_base("results", "_current_3", tmp_path) == str(tmp_path / "results_current_3")
    (tmp_path / "result.csv").write_text("x\n")
    callback.process_evaluation_result(tmp_path, "result.csv")
    assert callback.get_status() == {"evaluation": str(tmp_path / "result.csv")}
    with pytest.raises(ArgumentError, match=r"process_evaluation_result: filename must be a file in .*, got none\.csv"):
        callback.process_evaluation_result(tmp_path, "none.csv")


def test_images(tmp_path):
    images = pytest.importorskip("nn_core.utils.image_utils")
    pytest.importorskip("PIL")
    images.imsave(tmp_path / "a.png", np.full((2, 3), 7, np.uint8))
    assert callback.get_load_image_func(".PNG")(tmp_path / "a.png").tolist() == [[[7, 7, 7], [7, 7, 7]]]
    with pytest.raises(ArgumentError, match=r"get_load_image_func: ext must be one of \.bmp, .* got '\.wav'"):
        callback.get_load_image_func(".wav")
    assert callback.get_callback_version() == 1
    assert callback.alternative_cli(None) is False
