"""Recurrent networks on the emulated device, beside the reference: steps, layers, directions, dropout, and gradients."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

GATES = {"rnn": ((), ()), "lstm": ((4,), (4,)), "gru": ((3,), (4,))}
BATCH, FEATURES, HIDDEN = 3, 5, 4


def network(name, steps, layers, directions, *, bias=True):
    """Names and values of the inputs."""
    draw = np.random.default_rng(0)
    gates, bias_gates = GATES[name]
    shapes = {"x": (steps, BATCH, FEATURES), "h": (layers, directions, BATCH, HIDDEN)}
    if name == "lstm":
        shapes["c"] = shapes["h"]
    shapes["weight_l0"] = (directions, *gates, HIDDEN, FEATURES + HIDDEN)
    if layers > 1:
        shapes["weight"] = (layers - 1, directions, *gates, HIDDEN, directions * HIDDEN + HIDDEN)
    if bias:
        shapes["bias"] = (layers, directions, *bias_gates, HIDDEN)
    return {key: (0.5 * draw.normal(size=shape)).astype("float32") for key, shape in shapes.items()}


def passes(context, name, inputs, wanted, **args):
    """Results and gradients of four passes, with gradients of all results; on a device the last ones are recorded."""
    nn.seed(5)
    found = []
    with nn.context_scope(context):
        variables = {key: nn.Variable.from_numpy_array(a, need_grad=key in wanted) for key, a in inputs.items()}
        outputs = getattr(F, name)(**variables, **args)
        draw = np.random.default_rng(1)
        factors = [nn.Variable.from_numpy_array(draw.normal(size=y.shape).astype("float32")) for y in outputs]
        loss = sum(F.sum(y * factor) for y, factor in zip(outputs, factors, strict=True))
        for y in outputs:
            y.persistent = True
        for _ in range(4):
            loss.forward()
            for key in wanted:
                variables[key].grad.zero()
            loss.backward()
            found += [*[y.d.copy() for y in outputs], *[variables[key].g.copy() for key in wanted]]
    return found


def compare(name, inputs, wanted, dtype="float", **args):
    """Both backends, without a function that falls back to the reference."""
    context = nn.Context([f"cuda:{dtype}"], nn.get_current_context().array_class)
    found = passes(context, name, inputs, wanted, **args)
    assert not nn.fallback_report()
    expected = passes(nn.Context(["reference:float"]), name, inputs, wanted, **args)
    tolerance = 2e-5 if dtype == "float" else 2e-2
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(np.abs(other).max(), 1))


@pytest.mark.parametrize("steps", [1, 6])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("name", GATES)
def test_layers(cuda, name, directions, steps):
    inputs = network(name, steps, 3, directions)
    compare(name, inputs, list(inputs), num_layers=3, bidirectional=directions == 2, dropout=0.3)


@pytest.mark.parametrize("name", GATES)
def test_half_precision(cuda, name):
    inputs = network(name, 5, 2, 2)
    compare(name, inputs, list(inputs), "half", num_layers=2, bidirectional=True)


@pytest.mark.parametrize("wanted", [["x"], ["weight_l0"], ["h", "bias"], ["weight"]])
@pytest.mark.parametrize("name", GATES)
def test_gradients_of_some_inputs(cuda, name, wanted):
    compare(name, network(name, 3, 2, 2), wanted, num_layers=2, bidirectional=True)


@pytest.mark.parametrize("name", GATES)
def test_inference_and_its_gradient_by_the_rule(cuda, name):
    inputs = network(name, 4, 2, 1, bias=False)
    compare(name, inputs, ["x", "weight_l0"], num_layers=2, dropout=0.5, training=False)


def test_relu(cuda):
    inputs = network("rnn", 5, 2, 1)
    compare("rnn", inputs, list(inputs), num_layers=2, nonlinearity="relu")


@pytest.mark.parametrize("name", GATES)
def test_they_are_recorded_in_graphs(cuda, name):
    import emulated

    inputs = {key: nn.Variable.from_numpy_array(a, need_grad=True) for key, a in network(name, 4, 2, 2).items()}
    loss = F.sum(getattr(F, name)(**inputs, num_layers=2, bidirectional=True, dropout=0.2)[0])
    emulated.check_recorded(loss, inputs["weight"])


def test_weights_of_another_dtype_are_left_to_the_reference(device):
    from dataclasses import replace

    import emulated

    from nn_core.ext import ArrayDesc
    from nn_ext_cuda.kernels import KERNELS

    x, h, weight = network("rnn", 2, 1, 1, bias=False).values()
    call = emulated.call_of("RNN", [x, h, weight, None, None], "float32")
    assert KERNELS["RNN"].refuse(call) is None
    inputs = (*call.inputs[:2], ArrayDesc(call.inputs[2].shape, "float64"), *call.inputs[3:])
    assert "takes weights of float32, got float64" in KERNELS["RNN"].refuse(replace(call, inputs=inputs)).reason
