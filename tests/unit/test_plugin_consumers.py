"""Offers of plugins are used where programs name them: iterators, tables, converters, passes, trainers, viewers."""

import types

import numpy as np
import pytest
from click.testing import CliRunner

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import __main__, ext, monitor
from nn_core.data.table import CsvDataSource
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.graph import forward
from nn_core.errors import ArgumentError, FileFormatError, PluginError
from nn_core.experimental.graph_converters import GraphConverter
from nn_core.training import Trainer, Updater, every
from nn_core.utils import data_source
from nn_core.utils.data_iterator import data_iterator, data_iterator_simple
from nn_core.utils.inspection import view


def names_of(y):
    found = []
    y.visit(lambda function: found.append(function.info.type_name))
    return found


@pytest.fixture
def offered():
    """Registers a module that offers one thing."""

    def register(kind, info):
        module = types.ModuleType("offering")
        setattr(module, f"nn_core_{kind}", ext.hookimpl(lambda: [info]))
        vars(module)[f"nn_core_{kind}"].__name__ = f"nn_core_{kind}"
        ext.register(module)

    yield register
    if "offering" in PLUGINS.names():
        ext.unregister("offering")


@pytest.mark.usefixtures("kinds")
def test_sources_and_caches_feed_iterators():
    source = data_source.CountingSource(4, shuffle=True)
    assert "CountingSource" in dir(data_source) and ".txt" not in dir(data_source)
    with data_iterator(source, 4, use_thread=False, cache="FirstEpochCache") as iterator:
        epochs = [np.ravel(iterator.next()[0]).tolist() for _ in range(2)]
    assert sorted(epochs[0]) == [0, 1, 2, 3] and epochs[0] == epochs[1]  # the cache keeps the order of the first
    for wrong in ("CountingSource", "Nothing"):
        with pytest.raises(ArgumentError, match=f"cache: must be offered by a plugin .*FirstEpochCache.*, got '{wrong}'"):
            data_iterator(source, 4, cache=wrong)


@pytest.mark.usefixtures("kinds")
def test_a_cache_must_make_a_source(offered):
    offered("data", ext.DataInfo(name="Nonsense", role="cache", target=lambda source, shuffle, rng: 3))
    with pytest.raises(PluginError, match="'Nonsense' of plugin 'offering': must make a DataSource, got int"):
        data_iterator(data_source.CountingSource(4), 4, cache="Nonsense")


@pytest.mark.usefixtures("kinds")
def test_cells_of_tables_are_read(tmp_path):
    (tmp_path / "a.txt").write_text("AB")
    table = tmp_path / "table.csv"
    table.write_text("x,y\na.txt,1\n")
    (x, y) = CsvDataSource(table).next()
    assert x.tolist() == [65, 66] and y.tolist() == [1]
    table.write_text("x\nb.md\n")
    with pytest.raises(FileFormatError, match=r"must hold a number or the path of one of .*\.npy.*\.txt, got 'b.md'"):
        CsvDataSource(table).next()


@pytest.mark.usefixtures("kinds")
def test_converters_take_passes_by_name():
    y = F.tanh(F.dropout(F.sigmoid(nn.Variable((2,))), 0.5))
    assert names_of(GraphConverter(["drop_dropout"]).convert(y)) == ["Sigmoid", "Tanh"]
    with pytest.raises(ArgumentError, match=r"pass: must be offered by a plugin .*drop_dropout.*, got 'sigmoid_then_relu'"):
        GraphConverter("sigmoid_then_relu")


def test_a_pass_may_be_a_function(offered):
    offered("passes", ext.PassInfo(name="wrap", role="pass", target=lambda outputs: [F.tanh(y) for y in outputs]))
    assert names_of(GraphConverter("wrap").convert(F.sigmoid(nn.Variable((2,))))) == ["Sigmoid", "Tanh"]


@pytest.mark.parametrize("made", [3, [3], []])
def test_a_pass_must_return_variables(offered, made):
    offered("passes", ext.PassInfo(name="wrong", role="pass", target=lambda outputs: made))
    with pytest.raises(PluginError, match="graph pass 'wrong' of plugin 'offering': must return a list of 1 variables, got"):
        GraphConverter("wrong").convert(F.sigmoid(nn.Variable((2,))))


@pytest.fixture
def planned(monkeypatch):
    """Names of the functions in the plans that are compiled."""
    names = []
    emit = forward._emit
    monkeypatch.setattr(forward, "_emit", lambda *given: (names.extend(node.spec.name for node in given[1]), emit(*given)))
    return names


def run_without_gradients(persistent=False):
    """2 relu(sigmoid(x)), compared with the truth."""
    x = nn.Variable.from_numpy_array(np.array([-1.0, 2.0], np.float32))
    with nn.context_scope(nn.Context(["reference"])):
        hidden = F.sigmoid(x)
        y = F.mul_scalar(F.relu(hidden), 2)
    hidden.persistent = persistent
    y.forward(clear_buffer=True)
    np.testing.assert_allclose(y.d, 2 / (1 + np.exp(-x.d)), rtol=1e-6)


@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize("persistent", [False, True])
def test_passes_without_gradients_run_fusions(planned, persistent):
    run_without_gradients(persistent)  # somebody may look at what is persistent
    assert planned == (["Sigmoid", "ReLU", "MulScalar"] if persistent else ["Sigmoid", "MulScalar"])


@pytest.mark.usefixtures("kinds")
def test_gradients_are_those_of_all_functions():
    x = nn.Variable.from_numpy_array(np.array([-1.0, 2.0], np.float32), need_grad=True)
    y = F.relu(F.sigmoid(x))
    y.forward()
    x.g = 0
    y.backward()
    np.testing.assert_allclose(x.g, y.d * (1 - y.d), rtol=1e-5)


class Fusion:
    """A fusion; without settings it declines."""

    def __init__(self, function="Sigmoid", settings=None, chain=("Sigmoid", "ReLU")):
        self.chain, self.function, self._settings = chain, function, settings

    def settings(self, *args):
        return self._settings


@pytest.mark.parametrize(
    "fusion",
    [
        Fusion(),
        Fusion("Sum", {}),
        Fusion("Convolution", {}),
        Fusion(settings={}, chain=("Sigmoid", "Tanh")),
        Fusion(settings={}, chain=("Sigmoid", "ReLU", "MulScalar", "Tanh")),
    ],
    ids=["declined", "another shape", "does not take it", "another chain", "a longer chain"],
)
def test_what_does_not_fit_is_not_fused(offered, planned, fusion):
    offered("passes", ext.PassInfo(name="half", role="fusion", target=lambda: fusion))
    run_without_gradients()
    assert planned == ["Sigmoid", "ReLU", "MulScalar"]


def test_functions_stay_apart_when_what_they_read_is_rewritten_between_them(offered, planned):
    """The fused function runs in the place of the last, and would read the assigned values."""
    fusion = Fusion("Add2", {}, chain=("Sigmoid", "Add2"))
    offered("passes", ext.PassInfo(name="half", role="fusion", target=lambda: fusion))
    x = nn.Variable.from_numpy_array(np.array([-1.0, 2.0], np.float32))
    with nn.context_scope(nn.Context(["reference"])):
        y = F.add2(F.sigmoid(x), F.assign(x, nn.Variable.from_numpy_array(np.array([5.0, 6.0], np.float32))))
    y.forward(clear_buffer=True)
    assert planned == ["Sigmoid", "Assign", "Add2"]
    np.testing.assert_allclose(y.d, 1 / (1 + np.exp([1.0, -2.0])) + [5, 6], rtol=1e-6)


@pytest.mark.usefixtures("kinds")
def test_viewers_and_monitors_are_found():
    y = F.tanh(F.tanh(nn.Variable((2,))) + 1)
    assert view(y, "TextViewer").splitlines()[0] == "Tanh [(2,)]"
    with pytest.raises(ArgumentError, match=r"viewer: must be offered by a plugin .*, got 'LastValueMonitor'"):
        view(y, "LastValueMonitor")
    monitored = monitor.LastValueMonitor("loss")
    monitored.add(1, 0.5)
    assert monitored.value == 0.5 and not hasattr(monitor, "TextViewer")


@pytest.mark.usefixtures("kinds")
def test_the_trainer_tells_loggers_what_was_reported(tmp_path):
    x = nn.Variable((2, 3))
    loss = F.mean(PF.affine(x, 1) ** 2)
    solver = S.Sgd(0.1)
    solver.set_parameters(nn.get_parameters())
    with data_iterator_simple(lambda index: (np.full((3,), index, np.float32),), 4, 2, use_thread=False) as data:
        trainer = Trainer(Updater(data, [x], loss, solver), every(3), tmp_path)
        trainer.extend("LossLogger", every=every(1))
        trainer.run()
    rows = trainer.get_extension("Tell").logger.rows
    assert [(iteration, name) for iteration, name, _ in rows] == [(1, "loss"), (2, "loss"), (3, "loss")]
    assert all(value >= 0 for _, _, value in rows)


@pytest.mark.usefixtures("kinds")
def test_operators_have_topics_and_tags_of_plugins():
    x = nn.Variable.from_numpy_array(np.array([[1, -1, 2], [0, 0, 3]], np.float32))
    y = F.kinds_count_positive(x)
    y.forward()
    assert y.d.tolist() == [2, 1]
    assert ext.function_spec("kinds.CountPositive").tags == ("kinds.exact",)
    for options in (("--topic", "kinds.counting"), ("--tag", "kinds.exact")):
        lines = CliRunner().invoke(__main__.main, ["ops", *options]).output.splitlines()
        assert [line.split()[0] for line in lines[1:]] == ["kinds_count_positive"]
    result = CliRunner().invoke(__main__.main, ["ops", "--tag", "unknown"])
    assert "PATTERN must fit a function, got '*', tag 'unknown'" in result.output
    assert ext.list_offers("words")["kinds.exact"] == "Results are exact in every dtype."


@pytest.mark.parametrize(
    ("name", "message"), [("exact", "names must be like"), ("acme.exact", r"must start with 'offering\.', got 'acme.exact'")]
)
def test_words_carry_the_name_of_their_plugin(offered, name, message):
    with pytest.raises(PluginError, match=message):
        offered("words", ext.WordInfo(name=name, role="tag"))


def _exits(*_):
    raise SystemExit(3)


def _fails(*_):
    raise ValueError("no such thing")


def test_composites_name_their_plugin(offered):
    _exits.__globals__["__name__"] = "offering"  # as if the module of the plugin had it
    try:
        offered("composites", ext.CompositeInfo(name="offering_twice", target=_exits))
        with pytest.raises(PluginError, match=r"F\.offering_twice of plugin 'offering': must not end the program"):
            F.offering_twice(nn.Variable((2,)))
        ext.unregister("offering")
        offered("composites", ext.CompositeInfo(name="offering_twice", target=_fails))
        with pytest.raises(ValueError, match="no such thing") as caught:
            F.offering_twice(nn.Variable((2,)))
        assert caught.value.__notes__ == ["nn_core: in the function F.offering_twice of plugin 'offering'"]
    finally:
        _exits.__globals__["__name__"] = __name__


def test_a_fusion_that_exits_is_left_out(offered, caplog):
    module = __name__
    _exits.__globals__["__name__"] = "offering"
    try:
        offered("passes", ext.PassInfo(name="leaves", role="fusion", target=_exits))
        ext.find_extension("passes", "leaves")
        x = nn.Variable.from_numpy_array([1.0, -1.0])
        y = F.relu(F.tanh(x))
        y.forward(clear_buffer=True)
    finally:
        _exits.__globals__["__name__"] = module
    assert y.d[1] == 0
    assert "must not end the program, got SystemExit: 3" in caplog.text
