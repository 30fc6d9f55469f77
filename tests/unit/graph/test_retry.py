"""A kernel that fails when it runs and refuses the call from then on: the next pass of the same graph leaves it out."""

import types
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import nn_core as nn
from nn_core import F, ext


class Failing:
    """A kernel of Tanh that finds out in a pass that it cannot do it."""

    def __init__(self, fails_in: str) -> None:
        self.fails_in = fails_in
        self.has_failed = False
        self.runs = 0

    def refuse(self, call: ext.Call) -> ext.Refusal | None:
        return ext.Refusal("turned out not to run it") if self.has_failed else None

    def forward(self, call: ext.Call) -> ext.Runner:
        def run(x: Any, y: Any) -> None:
            self.runs += 1
            y[...] = np.tanh(x)
            self._fail("forward")

        return run

    def backward(self, call: ext.Call, wanted: Sequence[bool]) -> ext.Runner | None:
        def run(x: Any, y: Any, dy: Any, dx: Any) -> None:
            dx[...] = dy * (1 - y * y)
            self._fail("backward")

        return run

    def _fail(self, name: str) -> None:
        if name == self.fails_in and self.runs > 2:  # steps are bound by then
            self.has_failed = True
            ext.forget_prepared()
            raise ext.NNCoreError("the library refused it")


@pytest.fixture
def failing(request: pytest.FixtureRequest) -> Iterator[Failing]:
    kernel = Failing(request.param)
    module: Any = types.ModuleType("failing")
    package = ext.FunctionPackage(overlays={"reference": {"Tanh": kernel}})
    module.nn_core_functions = ext.hookimpl(lambda: [package], specname="nn_core_functions")
    ext.register(module)
    with nn.context_scope(nn.Context(["reference:float"])):
        yield kernel
    ext.unregister("failing")


@pytest.mark.parametrize("failing", ["forward", "backward"], indirect=True)
def test_the_same_graph_runs_without_a_kernel_that_has_failed(failing: Failing) -> None:
    x = nn.Variable.from_numpy_array(np.array([0.5, -1.0], np.float32), need_grad=True)
    y = F.sum(F.tanh(x))

    def step() -> None:
        x.grad.zero()
        y.forward(clear_no_need_grad=True)
        y.backward(clear_buffer=True)

    for _ in range(2):
        step()
    with pytest.raises(ext.NNCoreError, match="the library refused it"):
        step()
    runs = failing.runs
    for _ in range(3):
        step()
        assert float(y.d) == pytest.approx(np.tanh(0.5) - np.tanh(1), rel=1e-6)
        np.testing.assert_allclose(x.g, 1 - np.tanh([0.5, 1.0]) ** 2, rtol=1e-6)
    assert failing.runs == runs
