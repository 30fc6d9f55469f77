"""The files of the extension, read by TensorBoard's own reader."""

import io
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("tensorboardX")

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import ArgumentError, PluginError
from nn_core.training import Checkpoint, Log, Trainer, Updater, every
from nn_core.utils.data_iterator import data_iterator_simple
from nn_ext_tensorboard import TensorBoard
from nn_ext_tensorboard.graph import graph_definition

SAMPLES = np.random.default_rng(0).standard_normal((12, 3)).astype(np.float32)


def network():
    x, t = nn.Variable((4, 3)), nn.Variable((4, 1))
    y = PF.affine(F.tanh(PF.affine(x, 5, name="first")), 1, name="last")
    return x, t, F.mean((y - t) ** 2)


@pytest.fixture
def train(tmp_path):
    def run(extension, until, resume=False, others=()):
        nn.clear_parameters()
        nn.seed(1)
        x, t, loss = network()
        solver = S.Adam(0.01)
        solver.set_parameters(nn.get_parameters())
        with data_iterator_simple(lambda i: (SAMPLES[i], SAMPLES[i, :1]), 12, 4, shuffle=True) as data:
            trainer = Trainer(Updater(data, [x, t], loss, solver), every(until, "epoch"), tmp_path)
            trainer.extend(extension(loss) if callable(extension) and not isinstance(extension, TensorBoard) else extension)
            trainer.extend(*others)
            trainer.run(resume=resume)
        return trainer

    return run


def read(folder):
    """The log as TensorBoard reads it."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="tensorboard is not installed"
    )
    found = accumulator.EventAccumulator(str(folder), size_guidance=dict.fromkeys(("scalars", "histograms", "images"), 0))
    found.Reload()
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scalars_are_read_back(train, tmp_path):
    trainer = train("tensorboard", 3, others=[Log()])
    found = read(tmp_path / "tensorboard")
    events = found.Scalars("loss")
    assert [event.step for event in events] == [3, 6, 9]
    expected = [entry["loss"] for entry in trainer.get_extension("Log").entries]
    assert np.allclose([event.value for event in events], expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_histograms_are_read_back(train, tmp_path):
    written = {}

    def remember(trainer):
        for name, parameter in trainer.updater.solvers["main"].get_parameters().items():
            values = {"parameters": parameter.d, "gradients": parameter.g}
            written.update({(f"{kind}/{name}", trainer.iteration): array.copy() for kind, array in values.items()})

    remember.every = every(1, "epoch")
    train(TensorBoard(histograms=True), 2, others=[remember])
    found = read(tmp_path / "tensorboard")
    names = {f"{side}/affine/{letter}" for side in ("first", "last") for letter in "Wb"}
    assert set(found.Tags()["histograms"]) == {f"{kind}/{name}" for kind in ("parameters", "gradients") for name in names}
    for tag in found.Tags()["histograms"]:
        events = found.Histograms(tag)
        assert [event.step for event in events] == [3, 6]
        for event in events:
            values = written[tag, event.step].astype(np.float64).ravel()
            seen = event.histogram_value
            assert (seen.num, seen.min, seen.max) == (values.size, values.min(), values.max())
            np.testing.assert_allclose([seen.sum, seen.sum_squares], [values.sum(), values @ values], rtol=1e-12)
            edges = [-np.inf, *seen.bucket_limit]
            counts = [np.count_nonzero((values > low) & (values <= high)) for low, high in pairwise(edges)]
            assert list(seen.bucket) == counts


def pixels(event):
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(io.BytesIO(event.encoded_image_string)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_images_are_read_back(train, tmp_path):
    pytest.importorskip("PIL", reason="packs the images")
    colours = np.random.default_rng(1).integers(0, 256, (3, 8, 6), dtype=np.uint8)
    grey = np.arange(20, dtype=np.uint8).reshape(4, 5)
    calls = []
    images = {"colours": lambda: np.roll(colours, len(calls), 2), "grey": lambda: grey}
    images["last"] = lambda: calls.append(1) or grey / np.float32(255)
    train(TensorBoard("loss", images=images), 2)
    found = read(tmp_path / "tensorboard")
    assert [event.step for event in found.Images("colours")] == [3, 6]
    for number, event in enumerate(found.Images("colours")):
        np.testing.assert_array_equal(pixels(event), np.moveaxis(np.roll(colours, number, 2), 0, -1))
    for name in ("grey", "last"):
        for event in found.Images(name):
            seen = pixels(event)
            np.testing.assert_array_equal(seen if seen.ndim == 2 else seen[..., 0], grey)
            assert (event.width, event.height) == (5, 4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_several_images_are_one_beside_the_other(train, tmp_path):
    pytest.importorskip("PIL", reason="packs the images")
    several = np.random.default_rng(2).integers(0, 256, (2, 1, 4, 4), dtype=np.uint8)
    train(TensorBoard("loss", images={"several": lambda: several}), 1)
    (event,) = read(tmp_path / "tensorboard").Images("several")
    np.testing.assert_array_equal(pixels(event)[..., 0], np.hstack(several[:, 0]))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_graph_is_read_back(train, tmp_path):
    expected = []
    train(lambda loss: expected.append(graph_definition(loss)) or TensorBoard(graph=loss), 1)
    seen = read(tmp_path / "tensorboard").Graph()
    assert [(node.name, node.op, list(node.input)) for node in seen.node] == [
        (node.name, node.op, list(node.input)) for node in expected[0].node
    ]
    assert seen.SerializeToString(deterministic=True) == expected[0].SerializeToString(deterministic=True)
    assert [node.op for node in seen.node if node.op not in ("Parameter", "Input")].count("Affine") == 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_resumed_run_replaces_what_came_after_its_checkpoint(train, tmp_path):
    def checkpoint():
        return Checkpoint(), every(2, "epoch")

    extension, when = checkpoint()
    extension.every = when
    train("tensorboard", 3, others=[extension])
    extension, when = checkpoint()
    extension.every = when
    train("tensorboard", 5, resume=True, others=[extension])
    events = read(tmp_path / "tensorboard").Scalars("loss")
    assert [event.step for event in events] == [3, 6, 9, 12, 15]


def test_the_graph_names_functions_parameters_and_shapes():
    nn.clear_parameters()
    nodes = {node.name: node for node in graph_definition(network()[2]).node}
    assert list(nodes["Affine"].input) == ["inputs/Input", "parameters/W", "parameters/b"]
    assert list(nodes["Affine_1"].input) == ["Tanh", "parameters/W_1", "parameters/b_1"]
    shape = nodes["Affine"].attr["_output_shapes"].list.shape[0]
    assert [dimension.size for dimension in shape.dim] == [4, 5]
    assert nodes["Affine"].attr["base_axis"].s == b"1"


def test_the_state_has_the_open_sums():
    first, second = TensorBoard(), TensorBoard()
    first.set_state({"sums": {"loss": [3.0, 2.0]}})
    second.set_state(first.get_state())
    assert second.get_state() == {"sums": {"loss": [3.0, 2.0]}}


def test_an_image_of_another_shape_is_refused(train):
    pytest.importorskip("PIL", reason="packs the images")
    with pytest.raises(ArgumentError, match=r"image line must have the shape .* got \(3,\)"):
        train(TensorBoard(images={"line": lambda: np.zeros(3)}), 1)


def test_describing_the_extension_imports_no_library():
    code = (
        "import sys, nn_core.ext; assert 'tensorboard.tensorboard' in nn_core.ext.list_offers('training');"
        "import nn_ext_tensorboard.extension; assert 'tensorboardX' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_images_without_pillow_are_refused_when_training_starts(train, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(PluginError, match=r"pillow must be installed.*\n  hint: pip install 'nn-ext-tensorboard\[images\]'"):
        train(TensorBoard("loss", images={"never": lambda: pytest.fail("was asked for")}), 1)
    assert not list(tmp_path.rglob("events.*"))
