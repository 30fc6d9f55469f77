"""Computations on the host by functions of nn_core, which files of other formats have."""

import numpy as np
import pytest
from onnx import parser

from nn_core.ext import ArgumentError
from nn_core.graph_rewriting import functions_of, without_python
from nn_ext_onnx import load
from nn_ext_onnx.importing.expressed import _ALIKE, expressed
from nn_ext_onnx.importing.host import FlatPlaces

pytest.importorskip("nn_ext_nnp", reason="writes the files")
from nn_core.utils.nnp_graph import NnpLoader
from nn_core.utils.save import save

RNG = np.random.default_rng(0)
WHOLE = {"a": RNG.integers(-9, 9, (3, 4)), "b": RNG.integers(-9, 9, (3, 4))}
TRUTHS = {name: array > 0 for name, array in WHOLE.items()}
OF_BOOLEANS, OF_ONE = ("And", "Or", "Xor", "Not"), ("Abs", "Neg", "Not")


def network_of(text, values):
    network = load(parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}'))
    for name, variable in network.inputs.items():
        variable.d = values[name]
    return network


def results_of(y):
    y.forward()
    return np.array(y.d, np.float64)


@pytest.mark.parametrize("kind", sorted(_ALIKE))
def test_operators_on_whole_numbers_have_equal_results(kind):
    values = TRUTHS if kind in OF_BOOLEANS else WHOLE
    dtype = "bool" if kind in OF_BOOLEANS else "int64"
    made = "bool" if kind in OF_BOOLEANS or kind.startswith(("Eq", "Gr", "Le")) else "int64"
    call = f"{kind}(a)" if kind in OF_ONE else f"{kind}(a, b)"
    network = network_of(f"({dtype}[3, 4] a, {dtype}[3, 4] b) => ({made}[3, 4] y) {{ y = {call} }}", values)
    y = network.outputs["y"]
    (copy,) = without_python([y])
    assert all(function.node.python is None for function in functions_of([copy]))
    np.testing.assert_array_equal(results_of(copy), results_of(y))


PLACES = {
    "elements": "(float[3, 4] x, int64[2, 4] i) => (float[2, 4] y) { y = GatherElements<axis = 0>(x, i) }",
    "coordinates": "(float[3, 4] x, int64[2, 4, 2] i) => (float[2, 4] y) { y = GatherND(x, i) }",
    "placed": "(float[3, 4] x, int64[2, 4] i, float[2, 4] u) => (float[3, 4] y) { y = ScatterElements(x, i, u) }",
}


@pytest.mark.parametrize("case", sorted(PLACES))
def test_networks_with_places_are_files_of_nnabla(case, tmp_path):
    shape = (2, 4, 2) if case == "coordinates" else (2, 4)
    places = np.stack([RNG.permutation(3)[:2] for _ in range(4)], axis=1) - 3
    values = {"x": RNG.normal(size=(3, 4)), "u": RNG.normal(size=(2, 4))}
    values["i"] = RNG.integers(-3, 3, shape) if case == "coordinates" else places
    network = network_of(PLACES[case], values)
    y = network.outputs["y"]
    contents = {"name": "net", "batch_size": 1, "names": network.inputs, "outputs": {"y": y}}
    save(tmp_path / "net.nnp", {"networks": [contents]}, variable_batch_size=False)
    again = NnpLoader(str(tmp_path / "net.nnp")).get_network("net", batch_size=1)
    for name, variable in again.inputs.items():
        variable.d = values[name]
    np.testing.assert_array_equal(results_of(again.outputs["y"]), results_of(y))


def test_places_beyond_float32_are_refused(tmp_path):
    text = "(float[5000, 5000] x, int64[1, 4] i) => (float[1, 4] y) { y = GatherElements<axis = 0>(x, i) }"
    network = network_of(text, {"x": np.zeros((5000, 5000)), "i": np.zeros((1, 4))})
    contents = {"name": "net", "batch_size": 1, "names": network.inputs, "outputs": network.outputs}
    with pytest.raises(ArgumentError, match="must not be written in Python, got Index"):
        save(tmp_path / "net.nnp", {"networks": [contents]}, variable_batch_size=False)


def test_division_of_whole_numbers_has_no_other_form():
    network = network_of("(int64[3, 4] a, int64[3, 4] b) => (int64[3, 4] y) { y = Div(a, b) }", WHOLE)
    function = network.outputs["y"].parent
    assert not isinstance(function.node.python.compute, FlatPlaces)
    assert expressed(function.node.python, function.inputs) is None
