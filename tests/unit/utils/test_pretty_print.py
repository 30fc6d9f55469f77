"""The functions of a graph are printed with shapes, arguments and values."""

import io

import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.utils.inspection import pprint


def graph():
    nn.clear_parameters()
    x = nn.Variable.from_numpy_array(np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    return F.relu(PF.affine(x, 2, w_init=np.ones((3, 2), np.float32), name="first"))


def test_each_function_is_printed_in_order(capsys):
    assert pprint(graph()) is None
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith("\t")] == ["first/affine/Affine(Affine)", "ReLU(ReLU)"]
    assert lines[1:6] == [
        "\tDepth = 1",
        "\tArgs: ['base_axis=1']",
        "\tInputs: [(2, 3), (3, 2), (2,)]",
        "\tOutputs: [(2, 2)]",
        "\tBackward Inputs: [False, True, True]",
    ]


def test_the_depth_is_the_number_of_functions_on_the_longest_path():
    x = nn.Variable((4, 3))
    h = F.relu(x)
    y = F.tanh(h) + F.exp(F.sin(h)) + F.cos(x)
    printer = pprint(y, printer=True, file=io.StringIO())
    depths = {text.split("(")[0]: int(text.split("Depth = ")[1].split()[0]) for text in printer.functions}
    assert depths == {"ReLU": 1, "Tanh": 2, "Sin": 2, "Exp": 3, "Add2": 5, "Cos": 1}


def test_a_summary_describes_values_and_gradients():
    y = graph()
    for parameter in nn.get_parameters().values():
        parameter.grad.zero()
    printer = pprint(y, forward=True, backward=True, summary=True, printer=True, file=io.StringIO())
    affine = printer.functions[0].split("\n\t")
    data, grads = affine.index("Input Data:"), affine.index("Input Grads:")
    assert affine[data + 1 : data + 6] == [
        "\tMed:  [3.5, 1.0, 0.0]", "\tAve:  [3.5, 1.0, 0.0]", "\tStd:  [1.707825, 0.0, 0.0]",
        "\tMin:  [1.0, 1.0, 0.0]", "\tMax:  [6.0, 1.0, 0.0]",
    ]  # fmt: skip
    assert affine[grads + 2] == "\tAve:  [0.0, 7.0, 2.0]"
