"""Numbers and signatures of the backend API against the header of cuDNN."""

import pytest

from nn_ext_cudnn import precision
from nn_ext_cudnn.graph import attributes, descriptor


@pytest.fixture(scope="module")
def graph(header):
    return header("cudnn_graph.h")


@pytest.mark.parametrize("kind", attributes.KINDS, ids=lambda kind: kind.name)
def test_kinds_and_attributes(graph, kind):
    assert graph.numbers("CUDNN_BACKEND_")[f"{kind.name}_DESCRIPTOR"] == kind.number
    known = graph.numbers(f"CUDNN_ATTR_{kind.prefix}_")
    for name, (number, _) in kind.attributes.items():
        assert known[name.upper()] == number, name


def test_types(graph):
    known = graph.numbers("CUDNN_TYPE_")
    types = {name: value for name, value in vars(attributes).items() if isinstance(value, attributes.Type)}
    assert len(types) >= 13
    for name, kind in types.items():
        assert known[name] == kind.number, name


def test_modes_and_notes(graph):
    pointwise = graph.numbers("CUDNN_POINTWISE_")
    assert {mode: pointwise[mode.upper()] for mode in attributes.POINTWISE_MODES} == dict(attributes.POINTWISE_MODES)
    data = graph.numbers("CUDNN_DATA_")
    names = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "HALF", "bfloat16": "BFLOAT16"}
    names |= {"int32": "INT32", "bool": "BOOLEAN"}
    assert {name: data[other] for name, other in names.items()} == dict(attributes.DATA_TYPES)
    operators = graph.numbers("CUDNN_REDUCE_TENSOR_")
    assert {name: operators[name.upper()] for name in attributes.REDUCTION_OPERATORS} == dict(attributes.REDUCTION_OPERATORS)
    assert graph.numbers("CUDNN_")["CROSS_CORRELATION"] == attributes.CROSS_CORRELATION
    notes = graph.numbers("CUDNN_NUMERICAL_NOTE_")
    for name in ("TENSOR_CORE", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION", "FFT", "NONDETERMINISTIC"):
        assert notes[name] == getattr(precision, name), name
    assert {number for name, number in notes.items() if "WINOGRAD" in name} == precision.WINOGRAD


def test_functions(graph):
    for name, arguments in descriptor.FUNCTIONS.items():
        assert len(arguments) == graph.n_parameters(name), name
