"""How many inputs and outputs ``y.parent`` shows, beside NNabla; and what outputs beyond the results of a function are.

nnabla_outputs.json was recorded from NNabla 1.39 by output_cases.py.
"""

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core.graph_rewriting import copy_graph
from tests.unit.graph.output_cases import Calls, shown

RECORDED = json.loads(Path(__file__).with_name("nnabla_outputs.json").read_text())


def leaf(*shape: int) -> nn.Variable:
    return nn.Variable.from_numpy_array(np.random.RandomState(0).rand(*shape) + 0.5, need_grad=True)


def batch_normalized(x: nn.Variable) -> tuple[nn.Variable, ...]:
    statistics = [leaf(1, x.shape[1]) for _ in range(4)]
    return F.batch_normalization(x, *statistics, output_stat=True)


def test_functions_show_as_many_inputs_and_outputs_as_in_nnabla() -> None:
    calls = Calls("nn_core").all()
    with nn.parameter_scope("outputs"):
        found = {name: shown(call) for name, call in calls.items()}
    assert len(found) >= 50
    assert found == RECORDED


def test_statistics_are_outputs_through_which_gradients_flow() -> None:
    x = leaf(4, 2)
    y, mean, variance = batch_normalized(x)
    assert [a is b for a, b in zip(y.parent.outputs, (y, mean, variance), strict=True)] == [True] * 3
    assert y.parent.results == [y] and mean.parent.name == "Mean"
    mean.forward()
    mean.backward()
    np.testing.assert_allclose(x.g, 0.25)


def test_statistics_that_were_not_given_are_no_inputs() -> None:
    x, beta, gamma = leaf(4, 2), leaf(1, 2), leaf(1, 2)
    assert F.batch_normalization(x, beta, gamma, None, None).parent.inputs == [x, beta, gamma]


def test_statistics_that_nobody_holds_are_made_again() -> None:
    x = leaf(4, 2)
    y = batch_normalized(x)[0]
    y.forward()
    _, mean, variance = y.parent.outputs
    nn.forward_all([mean, variance])
    np.testing.assert_allclose(mean.d, x.d.mean(0, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(variance.d, x.d.var(0, keepdims=True), rtol=1e-5)
    _, again, other = y.parent.outputs
    assert again is mean and other is variance


def test_statistics_do_not_keep_a_graph() -> None:
    y, mean, _ = batch_normalized(leaf(4, 2))
    node = weakref.ref(y.parent.node)
    gc.disable()
    try:
        del y
        assert node() is None and mean.parent.name == "Mean"
    finally:
        gc.enable()


def test_copies_of_graphs_show_the_same_outputs() -> None:
    y, mean, _ = batch_normalized(leaf(4, 2))
    copied, _ = copy_graph([F.sum(y), F.sum(mean)])
    assert [v.shape for v in copied.parent.inputs[0].parent.outputs] == [(4, 2), (1, 2), (1, 2)]
    y, u = F.spectral_norm(leaf(4, 2), leaf(4), output_u=True)
    copied, total = copy_graph([F.sum(y), F.sum(u)])
    assert len(copied.parent.inputs[0].parent.outputs) == 2
    total.forward()
    np.testing.assert_allclose(total.d, (np.random.RandomState(0).rand(4) + 0.5).sum(), rtol=1e-6)


def test_a_function_computes_and_propagates_all_of_its_outputs() -> None:
    x = leaf(2, 4, 3)
    calls: list[Any] = [
        lambda: F.layer_normalization(x, None, None, output_stat=True),
        lambda: F.instance_normalization(x, None, None, output_stat=True),
        lambda: F.group_normalization(x, None, None, 2, output_stat=True),
        lambda: F.tensor_normalization(x, (1,), output_stat=True),
        lambda: F.weight_standardization(x, output_stat=True),
    ]
    for call in calls:
        made = call()
        function = made[0].parent
        outputs = [nn.Variable(output.shape) for output in function.outputs]
        function.forward(function.inputs, outputs)
        nn.forward_all(made)
        for given, output in zip(made, outputs, strict=True):
            np.testing.assert_allclose(output.d, given.d, rtol=1e-5, atol=1e-5)
            output.g = np.cos(np.arange(output.size)).reshape(output.shape)
        function.backward(function.inputs, outputs, [False])
        alone = x.g.copy()
        x.grad.zero()
        for given, output in zip(made, outputs, strict=True):
            given.backward(output.g)
        np.testing.assert_allclose(alone, x.g, rtol=1e-4, atol=1e-5)
