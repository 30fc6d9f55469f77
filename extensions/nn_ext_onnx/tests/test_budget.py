"""Models whose own functions call each other: a few kilobytes that stand for more nodes than there is memory for."""

import onnx
import pytest
from onnx import TensorProto, helper

from nn_core.errors import HostMemoryError
from nn_core.ext import FileFormatError
from nn_core.files import reading_budget
from nn_ext_onnx.importing.models import load

DOMAIN = "local"


def doubling(depth):
    """Return a model of `depth` functions, each of which calls the next one twice."""
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(DOMAIN, 1)]
    functions = [helper.make_function(DOMAIN, "f0", ["x"], ["y"], [helper.make_node("Relu", ["x"], ["y"])], opsets)]
    for i in range(1, depth):
        nodes = [helper.make_node(f"f{i - 1}", [x], [y], domain=DOMAIN) for x, y in ("xh", "hy")]
        functions.append(helper.make_function(DOMAIN, f"f{i}", ["x"], ["y"], nodes, opsets))
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(f"f{depth - 1}", ["x"], ["y"], domain=DOMAIN)], "g", ports[:1], ports[1:])
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=8)


def test_functions_that_call_each_other_twice_are_bounded(tmp_path):
    path = tmp_path / "doubling.onnx"
    onnx.save(doubling(40), path)
    refused = pytest.raises(FileFormatError, match=r"nodes of the model, .* budget of readers, nodes 500, got \d{10,}")
    with reading_budget(nodes=500), refused:
        load(path)
    onnx.save(doubling(5), path)
    assert load(path)


ENDLESS = """<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[4] y) {
    y = Loop (, , x) <body = b (int64 i, bool c, float[4] s) => (bool c2, float[4] s2) { c2 = Identity(c) s2 = Add(s, s) }>
}"""


def test_a_loop_without_end_is_bounded_by_what_the_file_has(tmp_path):
    path = tmp_path / "endless.onnx"
    onnx.save(onnx.parser.parse_model(ENDLESS), path)
    with (
        reading_budget(written_out=100),
        pytest.raises(FileFormatError, match=r"endless\.onnx.*loops and functions write out, .* written_out 100, got 101"),
    ):
        load(path)
    onnx.save(
        onnx.parser.parse_model(
            ENDLESS.replace("Loop (,", "Loop (steps,").replace("{\n", "{\n steps = Constant<value_int=40>()\n", 1)
        ),
        path,
    )
    with reading_budget(written_out=100):
        assert load(path)


def test_functions_may_stand_for_more_in_a_larger_file(tmp_path):
    path = tmp_path / "doubling.onnx"
    onnx.save(doubling(11), path)  # 3,071 nodes of 22 in the file
    with reading_budget(written_out=0):
        assert load(path)
    onnx.save(doubling(14), path)
    with (
        reading_budget(written_out=0),
        pytest.raises(FileFormatError, match="beyond 200 for each node of the file, must stay"),
    ):
        load(path)


@pytest.mark.parametrize("dtype", [TensorProto.INT64, TensorProto.FLOAT])
def test_inputs_that_no_memory_holds(dtype):
    ports = [helper.make_tensor_value_info(name, dtype, [10**6, 10**6]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "g", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    if dtype == TensorProto.FLOAT:
        assert load(model).inputs["x"].shape == (10**6, 10**6)  # no memory is taken before it is run
    else:
        with pytest.raises(HostMemoryError, match=r"7450\.6 GiB"):
            load(model)
