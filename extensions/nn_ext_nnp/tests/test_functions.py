"""Networks of one function: those that NNabla 1.39 has written are read and computed, and written byte for byte.

data/functions.json.xz was recorded by tools/nnabla/compare_nnp.py --folder: the text that NNabla writes, inputs, results.
"""

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
from nn_core.utils.nnp_graph import NnpLoader, NnpNetworkPass
from nn_core.utils.save import create_proto
from nn_ext_nnp.codec import parse_text, print_text
from nn_ext_nnp.network import build, plan_network

with lzma.open(Path(__file__).with_name("data") / "functions.json.xz") as file:
    RECORDED = json.load(file)

#: Written in other functions, since the function of nn_core is made of others, or NNabla's is.
OTHER_TEXT = {"batch_normalization", "tensor_normalization", "patch_correlation"}
#: NNabla infers other shapes without values, which it only has in dynamic mode.
DYNAMIC = {"bool_gather", "nonzero", "onnx_non_max_suppression", "pack_padded_sequence", "pad_packed_sequence"}


def arrays(entries):
    return {
        name: np.frombuffer(base64.b64decode(entry["data"]), entry["dtype"]).reshape(entry["shape"])
        for name, entry in entries.items()
    }


@pytest.mark.parametrize("api", sorted(set(RECORDED) - DYNAMIC))
def test_networks_of_nnabla_give_its_results(api):
    recorded = RECORDED[api]
    (proto,) = parse_text(recorded["text"].encode(), api).network
    network = build(plan_network(proto, api))
    for name, values in arrays(recorded["in"]).items():
        if name in network.inputs:
            network.inputs[name].d = values
    expected = arrays(recorded["out"])
    outputs = [network.variables[name].apply(persistent=True) for name in expected]
    (outputs[0] if len(outputs) == 1 else F.sink(*outputs)).forward()
    for output, values in zip(outputs, expected.values(), strict=True):
        assert output.shape == values.shape
        if not recorded["random"] and values.size:
            scale = max(1.0, np.nanmax(np.abs(np.where(np.isfinite(values), values, 0))))
            np.testing.assert_allclose(output.d, values, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("api", sorted(DYNAMIC))
def test_shapes_that_follow_from_values_need_them_when_the_graph_is_built(api):
    recorded = RECORDED[api]
    change = NnpNetworkPass()
    for name, values in arrays(recorded["in"]).items():
        change.set_variable(name, nn.Variable.from_numpy_array(values))
    network = NnpLoader(io.BytesIO(recorded["text"].encode())).get_network("net", callback=change)
    expected = arrays(recorded["out"])
    outputs = [network.variables[name].apply(persistent=True) for name in expected]
    (outputs[0] if len(outputs) == 1 else F.sink(*outputs)).forward()
    if api == "pad_packed_sequence":  # NNabla always pads with 0
        expected["y0"] = np.where(expected["y0"] == 0, recorded["settings"]["padding_value"], expected["y0"])
    for output, values in zip(outputs, expected.values(), strict=True):
        np.testing.assert_allclose(output.d, values, rtol=0, atol=1e-6)


def test_shapes_that_follow_from_values_are_found_by_the_forward_pass():
    network = load(io.BytesIO(RECORDED["nonzero"]["text"].encode())).networks["net"]
    (values,) = arrays(RECORDED["nonzero"]["in"]).values()
    network.inputs["x0"].d = values
    assert network.outputs["y0"].shape == (2, 0)
    network.outputs["y0"].forward()
    np.testing.assert_array_equal(network.outputs["y0"].d, np.nonzero(values))


def test_all_texts_are_printed_as_nnabla_does():
    texts = {api: recorded["text"] for api, recorded in RECORDED.items()}
    assert len(texts) == 223
    assert [api for api, text in texts.items() if print_text(parse_text(text.encode(), api)).decode() != text] == []


def setting(value):
    if isinstance(value, str) and value.startswith("np."):
        return getattr(np, value.removeprefix("np."))
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize("api", sorted(set(RECORDED) - DYNAMIC - OTHER_TEXT))
def test_networks_are_written_as_nnabla_does(api):
    recorded = RECORDED[api]
    variables = {name: nn.Variable.from_numpy_array(values) for name, values in arrays(recorded["in"]).items()}
    inputs = [None if name is None else variables[name] for name in recorded["inputs"]]
    named = {key: variables[name] for key, name in recorded["named"].items()}
    outputs = getattr(F, api)(*inputs, **named, **{key: setting(value) for key, value in recorded["settings"].items()})
    outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
    results = {f"y{n}": output for n, output in enumerate(outputs)}
    contents = {
        "networks": [{"name": "net", "batch_size": 1, "names": variables, "outputs": results}],
        "executors": [{"name": "run", "network": "net", "data": list(variables), "output": list(results)}],
    }
    assert print_text(create_proto(contents, variable_batch_size=False)).decode() == recorded["text"]
