"""Overlays and fusions are named with their owner, and overlays are known from the start."""

import types

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core import ext
from nn_core.engine.dispatch import doctor
from nn_core.engine.dispatch.plugin_manager import PLUGINS

BODY = """
class Eleven:
    def __init__(self, reason=""):
        self.reason = reason
    def refuse(self, call):
        return Refusal(self.reason) if self.reason else None
    def forward(self, call):
        return lambda x, y: y.fill(11)
    def backward(self, call, wanted):
        return None

@hookimpl
def nn_core_functions():
    return [FunctionPackage(overlays={"reference": {"Exp": Eleven(REASON)}})]
"""


class Fusion:
    chain, function = ("Exp", "Abs"), "Exp"

    def settings(self, *args):
        return {}


@pytest.fixture(params=["", "not today"])
def overlaid(request):
    made = types.ModuleType("nn_ext_eleven")
    exec(f"from nn_core.ext import *\nfrom nn_core.ext import FunctionPackage, Refusal, hookimpl\nREASON = {request.param!r}\n"
         f"PLUGIN_API, REQUIRES_CORE = 2, '>=0.1,<1'\n{BODY}", vars(made))  # fmt: skip
    offer = ext.PassInfo(name="positive", role="fusion", target=Fusion)
    made.nn_core_passes = ext.hookimpl(lambda: [offer], specname="nn_core_passes")
    ext.register(made)
    with nn.context_scope(nn.Context(["reference:float"])):
        yield request.param
    ext.unregister("eleven")


def test_explain_shows_which_kernel_runs_and_whose_it_is(overlaid):
    y = F.exp(nn.Variable.from_numpy_array(np.ones(1, np.float32)))
    explanation = nn.explain(y)
    entries = [(answer.entry, answer.reason) for answer in explanation.answers]
    assert entries[:2] == [("reference:float, overlay of 'eleven'", overlaid), ("reference:float", "")]
    assert explanation.winner == entries[1 if overlaid else 0][0]
    assert str(explanation).count("->") == 1
    y.forward()
    assert y.d.item() == pytest.approx(2.718 if overlaid else 11, rel=1e-3)
    assert "graph pass 'positive' of plugin 'eleven' runs Exp in place of Exp, Abs" in str(explanation)


def test_doctor_names_overlays_and_fusions(overlaid):
    (finding,) = doctor.findings("eleven", PLUGINS, watched=False)
    assert "fusions: positive; overlays: Exp on reference" in str(finding)


def test_overlays_without_an_index_are_refused(install, plugins):
    install("acme", BODY.replace("REASON", "''"))
    plugin = plugins.plugin("acme")
    assert "overlays of plugin 'acme' must be in the index of its package, got none" in plugin.failure.reason
    assert '"overlays.reference" = "acme"' in plugin.failure.reason


def test_ops_names_overlays_and_fusions(overlaid):
    from click.testing import CliRunner

    from nn_core.__main__ import main

    result = CliRunner().invoke(main, ["ops", "exp"])
    assert "reference (overlay of eleven)" in result.output
    (fusion,) = [line for line in result.output.splitlines() if "'positive'" in line]
    assert fusion == "in passes without gradients, graph pass 'positive' of plugin 'eleven' runs Exp in place of Exp, Abs"
    assert "'positive'" not in CliRunner().invoke(main, ["ops", "tanh"]).output
