"""Every tutorial runs to its end, where it checks its own result, and draws its pictures."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import nn_core
from nn_core.ext_utils import list_extensions

TUTORIALS = Path(nn_core.__file__).parent.parent / "examples" / "tutorials"
#: Modules that the tutorials share.
SHARED = {"pictures", "tiny_digits", "tutorial"}
#: Name of the variable that says on which backend alone the tutorials are run.
CONTEXT = "NN_CORE_TUTORIAL_CONTEXT"
#: Tutorials that take less than two seconds.
FAST = {
    ("backpropagation_by_hand", "cpu"),
    ("higher_order_gradients", "cpu"),
    ("higher_order_gradients", "reference"),
    ("python_api_tour", "cpu"),
}
PICTURES = {
    "decision_boundaries": ["boundaries.png"],
    "filters_and_gradients": ["digits.png", "edges.png", "gradients.png"],
    "logistic_regression": ["batch.png", "digits.png"],
    "multi_layer_perceptron": ["mlp.png"],
    "convolutional_network": ["cnn.png", "cnn_conv1.png", "cnn_conv2.png"],
    "elman_rnn": ["rnn.png"],
    "save_and_load": ["losses.png"],
    "siamese_network": ["embedding.png"],
    "python_api_tour": ["lengths.png"],
}


def every_tutorial():
    """The paths of the tutorials."""
    return [path for path in sorted(TUTORIALS.glob("*.py")) if path.stem not in SHARED]


def contexts():
    """The backends that tutorials are run on: one that was asked for, else the CPU and the reference."""
    chosen = os.environ.get(CONTEXT)
    return [chosen] if chosen else [name for name in ("cpu", "reference") if name in list_extensions()]


def scripts():
    """The tutorials on each backend, marked slow unless they are known to be fast."""
    for context in contexts():
        for path in every_tutorial():
            marks = () if (path.stem, context) in FAST else pytest.mark.slow
            yield pytest.param(path, context, id=f"{path.stem}-{context}", marks=marks)


def run(path, folder, *words):
    """Run a tutorial as a user does, with warnings as errors; one thread, because tests run beside each other."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NN_CORE_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    command = [sys.executable, "-W", "error", str(path), *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("path", "context"), list(scripts()))
def test_the_tutorial_reaches_its_result(path, context, tmp_path):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    words = ["-c", context]
    if path.stem in PICTURES:
        words += ["--pictures", "pictures"]
    result = run(path, tmp_path, *words)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    drawn = sorted(picture.name for picture in tmp_path.glob("pictures/*"))
    assert drawn == PICTURES.get(path.stem, [])


@pytest.mark.slow
@pytest.mark.parametrize("path", [*every_tutorial(), TUTORIALS.parent / "digits_demo.py"], ids=lambda path: path.stem)
def test_every_script_takes_its_backend_from_the_command_line(path, tmp_path):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    result = run(path, tmp_path, "-c", "absent")
    assert result.returncode == 1
    assert "BackendNotFoundError" in result.stderr and "got 'absent'" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_tutorial_says_what_it_expected(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from tutorial import expect\nexpect('loss', 2.0, high=1.0)\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(TUTORIALS)}
    command = [sys.executable, str(script)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == "expected loss between -inf and 1, got 2\n"


def test_every_tutorial_is_in_the_documentation():
    text = (TUTORIALS.parents[1] / "docs" / "tutorial.md").read_text(encoding="utf-8")
    missing = [path.name for path in every_tutorial() if path.name not in text]
    assert missing == []
