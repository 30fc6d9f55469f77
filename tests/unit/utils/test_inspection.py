"""Tracing NaN and infinity, and timing functions."""

import csv

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.engine.graph.hooks import POST_HOOKS
from nn_core.errors import ArgumentError
from nn_core.utils.inspection import CpuTimerCallback, NanInfTracer, TimeProfiler


def leaf(values):
    return nn.Variable.from_numpy_array(np.array(values, np.float32), need_grad=True)


def test_the_first_bad_function_is_named(caplog):
    y = F.exp(F.log(leaf([-1.0, 1.0]))) + leaf([np.inf, 0.0])
    tracer = NanInfTracer()
    with pytest.raises(ValueError, match="forward of Log must be finite, got NaN in output 0"), tracer.trace():
        y.forward(function_post_hook=tracer.forward_post_hook)
    assert caplog.text.count("must be finite") == 3
    tracer.check()  # it was said


def test_gradients():
    x = leaf([0.0])
    y = F.pow_scalar(x, 0.5)
    y.forward()
    x.grad.zero()
    tracer = NanInfTracer(need_details=False)
    with pytest.raises(ValueError, match="backward of PowScalar must be finite, got infinity in gradient 0"), tracer.trace():
        y.backward(function_post_hook=tracer.backward_post_hook)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_block_looks_at_all_passes_without_hooks(dynamic):
    x = leaf([0.0, 1.0])
    tracer = NanInfTracer()
    with pytest.raises(ValueError, match="backward of PowScalar must be finite, got infinity"), tracer.trace():
        with nn.auto_forward(dynamic):
            y = F.sum(F.pow_scalar(x, 0.5))
        if not dynamic:
            y.forward()
        y.backward()
    y = F.log(leaf([-1.0]))
    y.forward()  # nobody looks any more
    tracer.check()


def test_the_hook_of_a_block_is_removed_after_another_error():
    with pytest.raises(KeyError), NanInfTracer().trace():
        raise KeyError
    assert not POST_HOOKS


def test_what_is_looked_for():
    y = F.log(leaf([-1.0]))
    tracer = NanInfTracer(trace_nan=False)
    with tracer.trace():
        y.forward(function_pre_hook=tracer.pre_hook, function_post_hook=tracer.post_hook)
    with pytest.raises(ArgumentError, match="NanInfTracer: at least one of trace_nan and trace_inf must be True"):
        NanInfTracer(False, False)


def test_times(tmp_path):
    w = leaf(np.ones((2, 2)))
    y = F.sum(F.tanh(w) * F.sin(w))
    solver = S.Sgd()
    solver.set_parameters({"w": w})
    profiler = TimeProfiler()
    hooks = {"function_pre_hook": profiler.pre_hook, "function_post_hook": profiler.post_hook}
    for _ in range(3):
        with profiler.scope("forward"):
            y.forward(**hooks)
        with profiler.scope("backward"):
            solver.zero_grad()
            y.backward(**hooks)
        with profiler.scope("update"):
            solver.update(profiler.pre_hook, profiler.post_hook)
    times = profiler.calc_elapsed_time()
    assert [key.split(":")[1] for key in times["forward"]] == ["Tanh", "Sin", "Mul2", "Sum"]
    assert len(times["backward"]) == 4
    assert list(times["update"]) == ["0:parameter"]
    assert all(0 < value < 1000 for scope in times.values() for value in scope.values())
    profiler.to_csv(str(tmp_path / "times"))
    summary, detail = (_rows(tmp_path / "times" / f"profile_{name}.csv") for name in ("summary", "detail"))
    assert [(row["scope"], row["num"], row["scale"]) for row in summary] == [
        (scope, "2", "ms") for scope in ("forward", "backward", "update")
    ]
    assert [(row["scope"], row["original_key"], row["num_forward"], row["num_backward"]) for row in detail[:4]] == [
        (f"{name}_0", name, "2", "2") for name in ("Tanh", "Sin", "Mul2", "Sum")
    ]
    assert detail[4]["scope"] == "parameter_0"
    assert all(float(row["time_backward"]) > 0 for row in detail[:4])


def _rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_timers_of_single_functions():
    y = F.sum(F.relu(nn.Variable.from_numpy_array(np.ones((2, 3)))))
    timer = CpuTimerCallback("cpu", "0")
    for _ in range(3):
        timer.restart()
        y.forward(function_pre_hook=timer.pre_hook, function_post_hook=timer.post_hook)
    assert list(timer.average(1)) == ["0:ReLU", "1:Sum"] == list(timer.calc_elapsed_time())
    assert [len(runs) for runs in timer.seconds.values()] == [3, 3]


def test_results_of_all_scopes():
    profiler = TimeProfiler("cpu", "0")
    profiler.call_pre_hook("load", "batch")
    profiler.call_post_hook("load", "batch")
    found = profiler.average()["load"]["0:batch"]
    assert (found["num"], found["scale"]) == (1, "ms")
    (seconds,) = profiler.get_all_results()["load"]["0:batch"]
    assert found["time"] == 1e3 * seconds >= 0
    profiler.create_new_profiler("load")
    assert profiler.get_all_results() == {"load": {}}


def test_nan_is_found_in_a_gradient_that_is_added_to_another():
    x = nn.Variable.from_numpy_array([0.0, 1.0], need_grad=True)
    loss = F.sum(F.sqrt(x) * x)  # 0 times an infinite slope, beside a finite gradient
    tracer = NanInfTracer(need_details=False)
    with pytest.raises(ValueError, match="backward of PowScalar must be finite, got NaN in gradient 0"), tracer.trace():
        loss.forward(function_post_hook=tracer.forward_post_hook)
        loss.backward(function_post_hook=tracer.backward_post_hook)


@pytest.mark.parametrize("hook", ["forward_post_hook", "backward_post_hook", "post_hook"])
def test_hooks_of_the_tracer_take_a_function(hook):
    y = F.exp(nn.Variable((2,)))
    with pytest.raises(TypeError, match="a hook must be called with a function, got"):
        getattr(NanInfTracer(), hook)([y.parent])
