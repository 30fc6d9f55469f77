"""Models that PyTorch 2.13 has exported (tools/release/export_torch_models.py), and PyTorch's own results."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import nn_core.functions as F
import nn_core.solvers as S
from nn_ext_onnx import load

DATA = Path(__file__).with_name("data") / "torch"
VALUES = np.load(DATA / "values.npz")
CASES = sorted({tuple(name.split("/")[:2]) for name in VALUES.files})
#: Of float32, relative and absolute; the sums of these small models have at most 144 terms.
TOLERANCE = 1e-5


def arrays(model, case):
    """The inputs of a case by name, and the results in order."""
    found = {name.split("/")[2]: VALUES[name] for name in VALUES.files if name.startswith(f"{model}/{case}/")}
    results = [found.pop(name) for name in sorted(found) if name.startswith("result")]
    return found, results


def loaded(model, inputs):
    network = load(DATA / f"{model}.onnx", shapes={name: values.shape for name, values in inputs.items()})
    for name, values in inputs.items():
        network.inputs[name].d = values
    return network


@pytest.mark.parametrize(("model", "case"), CASES)
def test_results_are_those_of_pytorch(model, case):
    inputs, results = arrays(model, case)
    network = loaded(model, inputs)
    outputs = [output.apply(persistent=True) for output in network.outputs.values()]
    (outputs[0] if len(outputs) == 1 else F.sink(*outputs)).forward()
    for output, expected in zip(outputs, results, strict=True):
        np.testing.assert_allclose(output.d, expected, rtol=TOLERANCE, atol=TOLERANCE)


def test_there_are_models_of_all_kinds_with_fixed_and_dynamic_axes():
    counts = Counter(model for model, _ in CASES)
    assert len(counts) >= 14 and sum(count > 1 for count in counts.values()) >= 8
    assert {"lstm", "encoder", "convolutions"} <= set(counts)


@pytest.mark.parametrize("model", ["residuals", "encoder", "gru"])
def test_models_are_trained_further(model):
    inputs, results = arrays(model, "0")
    network = loaded(model, inputs)
    output = next(iter(network.outputs.values()))
    loss = F.mean(F.squared_error(output, F.constant(0.5, results[0].shape)))
    solver = S.Adam(0.01)
    solver.set_parameters(network.parameters)
    losses = []
    for _ in range(20):
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.update()
        losses.append(float(loss.d))
    assert losses[-1] < 0.5 * losses[0]
