"""Profilers: what they name, that nothing changes while they watch, and what they write."""

import csv
import io
import json

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import ArgumentError, GraphError
from nn_core.training import Trainer, Updater, every
from nn_core.utils.data_iterator import data_iterator_simple
from nn_core.utils.profiler import GraphProfiler, GraphProfilerCsvWriter, Profiler, convert_time_scale


def network():
    nn.clear_parameters()
    nn.seed(3)
    x, t = nn.Variable((4, 3)), nn.Variable((4, 1))
    x.d, t.d = np.random.RandomState(0).randn(4, 3), [[0], [1], [0], [1]]
    with nn.parameter_scope("first"):
        h = F.relu(PF.batch_normalization(PF.affine(x, 5))) * 2
    with nn.parameter_scope("second"):
        y = F.dropout(PF.affine(h, 2), seed=4)
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())
    return [x, t], F.mean(F.softmax_cross_entropy(y, t)), solver


def train(loss, solver, steps, after=lambda: None):
    losses = []
    for _ in range(steps):
        solver.zero_grad()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        solver.update()
        losses.append(float(loss.d))
        after()
    return losses


def test_watching_changes_nothing():
    _, loss, solver = network()
    expected = train(loss, solver, 6)
    _, loss, solver = network()
    with Profiler() as profiler:
        assert train(loss, solver, 3, profiler.step) == expected[:3]
    assert train(loss, solver, 3) == expected[3:]
    assert profiler.n_steps == 3


def test_rows_name_functions_scopes_and_passes():
    _, loss, solver = network()
    with Profiler() as profiler:
        train(loss, solver, 4, profiler.step)
    rows = profiler.rows()
    forward = [(row.name, row.scope) for row in rows if row.pass_name == "forward"]
    assert forward == [
        ("Affine", "first/affine"),
        ("BatchNormalization", "first/bn"),
        ("ReLU + MulScalar", "first"),
        ("Affine", "second/affine"),
        ("Dropout", "second"),
        ("SoftmaxCrossEntropy", ""),
        ("Mean", ""),
    ]
    backward = [(row.name, row.scope) for row in rows if row.pass_name == "backward"]
    assert ("MulScalar + ReLU", "first") in backward
    assert {row.n_calls for row in rows} == {3}  # all runs but the first, which prepares
    assert sum(row.share for row in rows) == pytest.approx(1)
    assert all(row.milliseconds > 0 for row in rows)
    assert rows[0].n_bytes == 4 * 5 * 4
    for by in ("scope", "kind", "pass"):
        assert sum(row.milliseconds for row in profiler.rows(by)) == pytest.approx(sum(row.milliseconds for row in rows))
    assert {row.name for row in profiler.rows("pass")} == {"forward", "backward"}
    assert "first/bn" in str(profiler)
    assert len(profiler.table(limit=2).splitlines()) == 6


def test_memory_rises_and_falls():
    _, loss, solver = network()
    with Profiler() as profiler:
        train(loss, solver, 2)
    found = profiler.memory()
    assert found[0].name == "Affine"
    assert found[0].n_bytes == 4 * 5 * 4  # its result: inputs and parameters are leaves
    assert max(moment.n_bytes for moment in found) > found[-1].n_bytes
    assert [moment.pass_name for moment in found] == sorted([m.pass_name for m in found], reverse=True)


def test_the_trace_is_in_order(tmp_path):
    _, loss, solver = network()
    with Profiler(max_runs=3) as profiler:
        train(loss, solver, 4, profiler.step)
    profiler.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events if event.get("cat") == "step"] == [f"step {n}" for n in range(4)]
    functions = [event for event in events if event.get("cat") in ("forward", "backward")]
    assert len([event for event in functions if event["name"] == "Dropout" and event["cat"] == "forward"]) == 2
    assert all(event["dur"] >= 0 for event in functions)
    assert [event["ts"] for event in functions] == sorted(event["ts"] for event in functions)
    assert max(event["args"]["forward"] for event in events if event["ph"] == "C" and "forward" in event["args"]) > 0


def test_as_an_extension(tmp_path):
    inputs, loss, solver = network()
    with data_iterator_simple(lambda i: (np.ones(3) * i, [i % 2]), 8, 4) as data:
        trainer = Trainer(Updater(data, inputs, loss, solver), every(2, "epoch"), tmp_path, [Profiler()])
        trainer.run()
    assert "4 steps" in (tmp_path / "profile.txt").read_text()
    assert json.loads((tmp_path / "profile.json").read_text())["traceEvents"]
    with Profiler():  # the first one has let go
        pass


def test_errors_of_functions_keep_their_notes():
    _, loss, solver = network()
    train(loss, solver, 2)

    def fail(function):
        raise KeyError(function.name)

    with Profiler() as profiler:
        train(loss, solver, 2)
        with pytest.raises(KeyError):
            loss.forward(function_post_hook=fail)
        train(loss, solver, 1)
    assert profiler.rows()


def test_refusals():
    with pytest.raises(ArgumentError, match="max_runs must be at least 0, got -1"):
        Profiler(-1)
    with Profiler() as profiler, pytest.raises(GraphError, match="one profiler can watch at a time"), Profiler():
        pass
    with pytest.raises(ArgumentError, match="by must be one of function, scope, kind, pass, got 'x'"):
        profiler.rows("x")


def test_single_functions(capsys):
    _, loss, solver = network()
    profiler = GraphProfiler(loss, "0", "cpu", solver=solver, n_run=2)
    text = io.StringIO()
    with pytest.raises(ArgumentError, match="must have been run"):
        GraphProfilerCsvWriter(profiler, text).write()
    profiler.run()
    result = profiler.get_result()
    assert [stat.function_name for stat in result["forward"]][:3] == ["Affine", "BatchNormalization", "ReLU"]
    assert result["forward"][0].parameter_scope == "first/affine"
    assert result["forward"][0].inputs_shape[0] == (4, 3)
    assert len(result["backward"]) == len(result["forward"])
    assert {result[f"n_run_{name}"] for name in ("forward_all", "backward_all", "training")} <= {1, 2}
    assert float(result["training"]) > 0
    GraphProfilerCsvWriter(profiler, text).write()
    rows = list(csv.reader(io.StringIO(text.getvalue())))
    assert ["first/affine", "Affine", "[(4, 3), (3, 5), (5,)]", "base_axis: 1"] in [row[:4] for row in rows]
    profiler.print_result()
    assert "SoftmaxCrossEntropy" in capsys.readouterr().out


def test_units():
    assert [convert_time_scale(0.5, unit) for unit in "mun"] == ["500.0", "500000.0", "500000000.0"]
    with pytest.raises(ArgumentError, match="format must be one of m, u, n, got 'h'"):
        convert_time_scale(1, "h")
    with pytest.raises(ArgumentError, match="n_run must be at least 1"):
        GraphProfiler(network()[1], "0", "cpu", n_run=0)
