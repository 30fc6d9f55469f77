"""Tracing: a profiler, a counter of calls and an exporter of spans, written as a plugin would."""

import threading
from contextlib import nullcontext

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.engine.graph import plan, tracing
from nn_core.errors import ArgumentError
from nn_core.ext import TracedCall, find_extension, trace_calls
from nn_core.settings import disabled_optimizations


class Profiler:
    """The time of each function."""

    def __init__(self):
        self.ns = {}

    def __call__(self, call):
        key = call.function, call.part
        self.ns[key] = self.ns.get(key, 0) + call.end_ns - call.start_ns


class Exporter:
    """Spans as OpenTelemetry has them: a name, attributes, two times, a status, and the span around it."""

    def __init__(self, service):
        self.service, self.spans, self.around = service, [], []

    def __call__(self, call):
        self.spans.append({
            "name": f"{call.function}.{call.part}",
            "parent": self.around[-1] if self.around else None,
            "start_time_unix_nano": call.start_ns,
            "end_time_unix_nano": call.end_ns,
            "attributes": {
                "service.name": self.service, "thread.id": call.thread, "nn_core.backend": call.backend,
                "nn_core.plugin": call.plugin, "nn_core.shapes": [a and list(a[0]) for a in call.arrays],
                "nn_core.settings": {key: str(value) for key, value in call.settings.items()},
            },
            "status": call.error or "OK",
        })  # fmt: skip


def network(x):
    return F.mean(PF.affine(F.relu(PF.affine(x, 8, name="a")), 3, name="b"))


def leaf():
    return nn.Variable.from_numpy_array(np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32), need_grad=True)


def functions(calls, part="forward"):
    return [call.function for call in calls if call.part == part]


def static(x):
    loss = network(x)
    loss.forward(clear_no_need_grad=True)
    loss.backward(clear_buffer=True)
    return loss


def dynamic(x):
    with nn.auto_forward():
        loss = network(x)
    loss.backward(clear_buffer=True)
    return loss


@pytest.mark.parametrize("run", [static, dynamic])
@pytest.mark.parametrize("times", [1, 4])
def test_every_function_of_a_step_is_seen(run, times):
    x, calls = leaf(), []
    for _ in range(times - 1):
        run(x)  # what was compiled before is seen as well
    with trace_calls(calls.append):
        run(x)
    assert functions(calls) == ["affine", "relu", "affine", "mean"]
    assert set(functions(calls, "backward")) >= {"affine", "relu", "mean"}
    assert all(call.start_ns <= call.end_ns and call.backend and call.plugin == "" for call in calls)
    assert calls[0].arrays[0] == ((4, 5), "float32") and calls[0].settings["base_axis"] == 1
    calls.clear()
    run(x)
    assert calls == [] and tracing.LISTENERS == [] and not disabled_optimizations()


def test_a_graph_that_ran_before_is_seen_in_each_further_pass():
    x, calls = leaf(), []
    loss = network(x)
    for _ in range(3):
        loss.forward()
    with trace_calls(calls.append):
        loss.forward()
        loss.forward()
    assert functions(calls) == 2 * ["affine", "relu", "affine", "mean"]


def test_results_are_those_without_tracing():
    x = leaf()
    expected = static(x), x.g.copy()
    x.grad.zero()
    with trace_calls(lambda call: None):
        assert np.allclose(static(x).d, expected[0].d, rtol=1e-6)
    assert np.allclose(x.g, expected[1], rtol=1e-5)


def test_calls_on_arrays_are_seen():
    calls, a = [], nn.NdArray.from_numpy_array(np.ones((2, 3), np.float32))
    with trace_calls(calls.append):
        F.tanh(a)
        F.sum(a * 2)
    assert functions(calls) == ["tanh", "mul_scalar", "sum"]


def test_a_profiler_and_an_exporter_listen_together():
    profiler, exporter = Profiler(), Exporter("training")
    with trace_calls(profiler), trace_calls(exporter) as heard:
        exporter.around.append("step 1")
        static(leaf())
    assert heard is exporter
    assert set(profiler.ns) == {(span["name"].split(".")[0], span["name"].split(".")[1]) for span in exporter.spans}
    span = exporter.spans[0]
    assert span["name"] == "affine.forward" and span["parent"] == "step 1" and span["status"] == "OK"
    assert span["attributes"]["nn_core.shapes"][:2] == [[4, 5], [5, 8]]
    assert span["attributes"]["thread.id"] == threading.get_ident()


def test_functions_that_fail_are_seen_and_other_threads(monkeypatch):
    calls, x = [], nn.Variable.from_numpy_array(np.array([7.0]))
    y = F.gather(nn.Variable.from_numpy_array(np.ones(3)), x, axis=0)
    with trace_calls(calls.append):
        with pytest.raises(Exception):  # noqa: B017  # whichever
            y.forward()
        thread = threading.Thread(target=lambda: F.tanh(nn.NdArray.from_numpy_array(np.ones(2))))
        thread.start()
        thread.join()
    assert calls[0].function == "gather" and calls[0].error
    assert calls[-1].function == "tanh" and calls[-1].thread != threading.get_ident()


def test_a_tracer_of_a_plugin_listens_by_its_name(kinds):
    with trace_calls("CallCounter") as tell:
        static(leaf())
    assert tell.tracer.counts["affine"] >= 2
    assert find_extension("tracers", "CallCounter")().counts == {}


@pytest.mark.parametrize("wrong", [3, None, "Nobody"])
def test_listeners_must_be_callable_or_offered(wrong):
    with pytest.raises(ArgumentError), trace_calls(wrong):
        pass
    assert tracing.LISTENERS == []


def test_functions_of_plugins_name_them(kinds):
    calls = []
    x = nn.Variable.from_numpy_array(np.ones((3, 2)))
    with trace_calls(calls.append):
        F.kinds_count_positive(x).forward()
    assert isinstance(calls[0], TracedCall) and (calls[0].function, calls[0].plugin) == ("kinds_count_positive", "kinds")


def test_nothing_is_paid_when_nobody_listens_any_more(monkeypatch):
    """Gradients are added up, so that the plan of the first pass, which overwrote them, fits no more."""
    signatures = []
    signature_of = plan.signature_of
    monkeypatch.setattr(plan, "signature_of", lambda *given: (signatures.append(given), signature_of(*given))[1])
    x = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32), need_grad=True)
    y = F.sum(F.tanh(F.tanh(x)))
    for listens in (False, True, False):
        for _ in range(3):
            with trace_calls(lambda call: None) if listens else nullcontext():
                y.forward()
                y.backward()
    signatures.clear()
    for _ in range(3):
        y.forward()
        y.backward()
    assert signatures == []
