"""A log of the demo, two epochs of its network, is what TensorBoard reads and what the trainer has seen."""

import importlib.util
import io
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tensorboardX")
pytest.importorskip("sklearn")
pytest.importorskip("PIL", reason="packs the images")

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.training import Evaluator, Log, Trainer, Updater, every
from nn_core.utils.data_iterator import data_iterator_simple
from nn_ext_tensorboard import TensorBoard

DEMO = Path(__file__).parents[3] / "examples" / "digits_demo.py"
EPOCHS, SHOWN = 2, 8


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("digits_demo", DEMO)
    if spec is None or not DEMO.exists():
        pytest.skip(f"{DEMO} is not there: the tests run outside the repository")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def trained(demo, folder):
    """Train the network of the demo; gives its loss, what the trainer logged, the images, and the parameters by step."""
    images, held_out_images, labels, held_out_labels = demo.load_images()
    images, labels, held_out_images, held_out_labels = images[:512], labels[:512], held_out_images[:64], held_out_labels[:64]
    nn.clear_parameters()
    nn.seed(0)
    x, t = nn.Variable((demo.BATCH_SIZE, 1, 8, 8)), nn.Variable((demo.BATCH_SIZE, 1))
    loss = F.mean(F.softmax_cross_entropy(demo.network(x), t))
    error = F.mean(F.top_n_error(demo.network(x, test=True), t))
    solver = S.Adam(2e-3)
    solver.set_parameters(nn.get_parameters())
    histograms, log = {}, Log()

    def remember(trainer):
        for name, parameter in solver.get_parameters().items():
            for kind, values in (("parameters", parameter.d), ("gradients", parameter.g)):
                histograms[f"{kind}/{name}", trainer.iteration] = values.astype(np.float64).ravel()

    remember.every = every(1, "epoch")
    with (
        data_iterator_simple(lambda i: (images[i], labels[i]), len(images), demo.BATCH_SIZE, shuffle=True) as data,
        data_iterator_simple(
            lambda i: (held_out_images[i], held_out_labels[i]), len(held_out_images), demo.BATCH_SIZE
        ) as held_out,
    ):
        trainer = Trainer(Updater(data, [x, t], loss, solver), every(EPOCHS, "epoch"), folder)
        trainer.extend(Evaluator(held_out, [x, t], {"error": error}, name="validation"), log, remember)
        board = TensorBoard(histograms=True, images={"validation": lambda: held_out_images[:SHOWN]}, graph=loss)
        trainer.extend(board)
        trainer.run()
    return loss, log.entries, held_out_images, histograms


@pytest.fixture(scope="module")
def run(demo, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    written = trained(demo, folder)
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    limits = dict.fromkeys(("scalars", "histograms", "images"), 0)
    read = accumulators.EventAccumulator(str(folder / "tensorboard"), size_guidance=limits)
    read.Reload()
    return *written, read


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_scalars_are_those_of_the_log(run):
    _, entries, _, _, read = run
    assert set(read.Tags()["scalars"]) >= {"loss", "validation/error"}
    for tag in read.Tags()["scalars"]:
        events = read.Scalars(tag)
        assert [event.step for event in events] == [entry["iteration"] for entry in entries]
        # events keep float32
        np.testing.assert_allclose([event.value for event in events], [entry[tag] for entry in entries], rtol=1e-6)
    losses = [event.value for event in read.Scalars("loss")]
    assert losses[-1] < losses[0]


def test_histograms_are_those_of_the_parameters_and_gradients(run):
    _, entries, _, histograms, read = run
    assert set(read.Tags()["histograms"]) == {tag for tag, _ in histograms}
    assert "parameters/conv1/bn/gamma" in read.Tags()["histograms"]
    for tag in read.Tags()["histograms"]:
        events = read.Histograms(tag)
        assert [event.step for event in events] == [entry["iteration"] for entry in entries]
        for event in events:
            values, seen = histograms[tag, event.step], event.histogram_value
            assert (seen.num, seen.min, seen.max) == (values.size, values.min(), values.max())
            counts = [
                np.count_nonzero((values > low) & (values <= high)) for low, high in pairwise([-np.inf, *seen.bucket_limit])
            ]
            assert list(seen.bucket) == counts


def test_images_are_the_digits(run):
    _, entries, images, _, read = run
    image = pytest.importorskip("PIL.Image")
    events = read.Images("validation")
    assert [event.step for event in events] == [entry["iteration"] for entry in entries]
    for event in events:
        pixels = np.asarray(image.open(io.BytesIO(event.encoded_image_string)).convert("L"))
        assert pixels.shape == (8, 8 * SHOWN)
        np.testing.assert_allclose(pixels, np.hstack(images[:SHOWN, 0]) * 255, atol=1)


def test_the_graph_is_that_of_the_loss(run):
    loss, _, _, _, read = run
    functions = []
    loss.visit(lambda function: functions.append(function.info.type_name))
    nodes = read.Graph().node
    by_name = {node.name: node for node in nodes}
    seen = [node.op for node in nodes if node.op not in ("Parameter", "Input")]
    assert sorted(seen) == sorted(functions)
    assert seen.count("Convolution") == seen.count("BatchNormalization") == 3
    assert all(source in by_name for node in nodes for source in node.input)
    trained, running = nn.get_parameters(), 6  # a mean and a variance of each of the three normalizations
    assert [node.op for node in nodes].count("Parameter") == len(trained) == 11
    assert [node.op for node in nodes].count("Input") == 2 + running
    shape = by_name["Affine"].attr["_output_shapes"].list.shape[0]
    assert [dimension.size for dimension in shape.dim] == [64, 10]
