"""Random networks with loops: the results of NNabla 1.39's executors, recorded by tools/lanes/network_values.py."""

import base64
import io
import json
import lzma
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.utils.load import load
from tools.nnabla.run_network_cases import values_of

with lzma.open(Path(__file__).with_name("data") / "networks.json.xz") as file:
    RECORDED = json.load(file)


def results(executor, inputs):
    for variable, name in executor.dataset_assign.items():
        variable.d = values_of(name, variable.shape, inputs[name])
    kept = [(p, p.d.copy()) for p in nn.get_parameters(grad_only=False).values()]
    outputs = [variable.apply(persistent=True) for variable in executor.output_assign]
    for _ in range(executor.num_evaluations):  # without random functions, all give the same but for running statistics
        (outputs[0] if len(outputs) == 1 else F.sink(*outputs)).forward()
    for parameter, values in kept:
        parameter.d = values
    return {name: output.d for output, (_, name) in zip(outputs, executor.output_assign.values(), strict=True)}


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_executors_give_the_results_of_nnabla(number):
    recorded = RECORDED[number]
    found = {}
    for batch_size in recorded["about"]["batch_sizes"]:
        nn.clear_parameters()
        info = load(io.BytesIO(recorded["text"].encode()), prepare_data_iterator=False, batch_size=batch_size)
        for name, executor in info.executors.items():
            inputs = recorded["about"]["networks"][executor.network.name]["inputs"]
            for key, values in results(executor, inputs).items():
                found[f"run_executors {batch_size} {name}: {key}"] = values
    assert found.keys() == recorded["values"].keys()
    for key, entry in recorded["values"].items():
        expected = np.frombuffer(base64.b64decode(entry["data"]), np.float32).reshape(entry["shape"])
        assert found[key].shape == expected.shape
        scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
        np.testing.assert_allclose(found[key], expected, rtol=0, atol=1e-4 * scale, err_msg=key)


def test_the_networks_have_loops_and_many_functions():
    networks = [more for recorded in RECORDED for more in recorded["about"]["networks"].values()]
    assert sum(more["loops"] > 0 for more in networks) >= 12
    assert len(set().union(*(more["kinds"] for more in networks))) >= 60
