"""Plugins of thousands of operators: registering costs the same for each of them."""

import json
import sys
import types

import pytest

from nn_core import ext
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.errors import PluginError
from nn_core.ext import FunctionPackage, gradient, hookimpl, kernel


def entry(i):
    return {
        "name": f"many.Op{i}", "api": f"many_op{i}", "topic": "arithmetic", "doc": "Twice.", "shape": "same_as x",
        "inputs": {"x": {"doc": "Input."}}, "outputs": {"y": {"doc": "Output."}}, "backward": {"needs": []},
    }  # fmt: skip


def plugin(count, spec=None):
    module = types.ModuleType("nn_ext_many")
    for i in range(count):
        for decorate in (kernel, gradient):

            def rule(F, g):
                return 2 * g

            rule.__module__, rule.__qualname__ = "nn_ext_many", f"rule{i}"
            decorate(f"many.Op{i}")(rule)
    spec = spec or json.dumps([entry(i) for i in range(count)])
    module.nn_core_functions = hookimpl(lambda: [FunctionPackage(spec=spec)], specname="nn_core_functions")
    return module


def lines_run(run):
    """Return how many lines of Python ran, which a busy machine does not change."""
    count = [0]

    def trace(frame, event, argument):
        count[0] += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count[0]


def test_an_operator_costs_the_same_among_many():
    counts = []
    ext.register(plugin(1))  # which imports what registering needs
    ext.unregister("many")
    for n in (10, 40, 160):
        counts.append(lines_run(lambda n=n: ext.register(plugin(n))))
        ext.unregister("many")
    per_operator = [(counts[2] - counts[1]) / 120, (counts[1] - counts[0]) / 30]
    assert per_operator[0] < 1.05 * per_operator[1], counts


def test_a_complaint_about_json_has_its_line():
    broken = [entry(0), {**entry(1), "nonsense": True}]
    with pytest.raises(PluginError, match=r"plugin many:\d+: many.Op1: keys must be among .* got 'nonsense'") as caught:
        ext.register(plugin(2, json.dumps(broken, indent=1)))
    assert "plugin many:1:" not in str(caught.value)
    assert "many" not in PLUGINS.names()


@pytest.mark.parametrize(
    "text", ['[{"name": "a", "name": "b"}]', "[NaN]", "[" * 5000, '[{"name": 1e400}]', "[", '["\\ud800"]', "[1]"]
)
def test_json_that_is_no_specification_is_refused(text):
    with pytest.raises(PluginError, match=r"plugin 'many' \(registered by the program\): must load, got: plugin many:[12]: "):
        ext.register(plugin(0, text))
