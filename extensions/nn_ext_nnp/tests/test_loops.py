"""Loops within loops, and recurrent layers, written out: NNabla 1.39 computes the same for these texts, to 3e-7."""

import io

import numpy as np
import pytest

import nn_core as nn
from nn_core.errors import FileFormatError
from nn_core.utils.load import load
from nn_core.utils.nnp_graph import NnpLoader


def variable(name, shape, repeat="", kind="Buffer"):
    repeats = " ".join(f'repeat_id: "{loop}"' for loop in repeat)
    return f'variable {{ name: "{name}" type: "{kind}" {repeats} shape {{ {" ".join(f"dim: {n}" for n in shape)} }} }}\n'


def function(kind, inputs, output, repeat="", settings=""):
    lines = [f'repeat_id: "{loop}"' for loop in repeat] + [f'input: "{name}"' for name in inputs.split()]
    return f'function {{ name: "make_{output}" type: "{kind}" {" ".join(lines)} output: "{output}" {settings} }}\n'


def built(loops, *parts):
    """The network, with numbers for its inputs and parameters."""
    repeats = " ".join(f'repeat_info {{ id: "{name}" times: {times} }}' for name, times in loops.items())
    text = f'network {{ name: "net" batch_size: 2 {repeats}\n{"".join(parts)} }}'
    network = NnpLoader(io.BytesIO(text.encode())).get_network("net")
    rng = np.random.default_rng(0)
    for leaf in (*network.inputs.values(), *nn.get_parameters().values()):
        leaf.d = rng.normal(size=leaf.shape)
    (y,) = network.outputs.values()
    y.forward()
    return network, y.d


@pytest.mark.parametrize(("outer", "inner"), [(2, 3), (3, 1)])
@pytest.mark.parametrize("weight", ["w{A}{B}", "w"])
def test_loops_within_loops(outer, inner, weight):
    loops = {"A": outer, "B": inner}
    a, b = (f'repeat_param {{ repeat_id: "{name}" times: {times} }}' for name, times in loops.items())
    network, y = built(
        loops,
        *(variable(name, (-1, 4)) for name in ("x", "f", "y")),
        *(variable(name, (-1, 4), "A") for name in ("s", "e", "z")),
        *(variable(name, (-1, 4), "AB") for name in ("t", "h", "c")),
        variable(weight, (4, 4), "AB" if "{" in weight else "", "Parameter"),
        function("RepeatStart", "x z", "s", "A", a),
        function("RepeatStart", "s c", "t", "AB", b),
        function("Affine", f"t {weight}", "h", "AB", "affine_param { base_axis: 1 }"),
        function("Tanh", "h", "c", "AB"),
        function("RepeatEnd", "c", "e", "A", b),
        function("Sigmoid", "e", "z", "A"),
        function("RepeatEnd", "z", "f", "", a),
        function("MulScalar", "f", "y", "", "mul_scalar_param { val: 3 }"),
    )
    h = network.inputs["x"].d
    for i in range(outer):
        for k in range(inner):
            h = np.tanh(h @ nn.get_parameters()[weight.format(A=f"[{i}]", B=f"[{k}]")].d)
        h = 1 / (1 + np.exp(-h))
    np.testing.assert_allclose(y, 3 * h, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("shape", "axis"), [((-1, 4, 3), 1), ((-1, 3, 4), 2)])
def test_recurrent_layers_along_any_axis(shape, axis):
    steps, base = f'recurrent_param {{ repeat_id: "R" length: 4 axis: {axis} }}', "affine_param { base_axis: 1 }"
    network, y = built(
        {"R": 4},
        variable("x", shape),
        variable("h0", (-1, 5)),
        variable("y", (-1, 4, 5)),
        variable("i", (-1, 3), "R"),
        *(variable(name, (-1, 5), "R") for name in ("p", "d", "q", "m", "h")),
        variable("U", (3, 5), "", "Parameter"),
        variable("W", (5, 5), "", "Parameter"),
        function("RecurrentInput", "x", "i", "R", steps),
        function("Affine", "i U", "p", "R", base),
        function("Delay", "h h0", "d", "R", steps),
        function("Affine", "d W", "q", "R", base),
        function("Add2", "p q", "m", "R", "add2_param { }"),
        function("Tanh", "m", "h", "R"),
        function("RecurrentOutput", "h", "y", "", 'recurrent_param { repeat_id: "R" length: 4 axis: 1 }'),
    )
    h, expected = network.inputs["h0"].d, []
    for x in np.moveaxis(network.inputs["x"].d, axis, 0):
        h = np.tanh(x @ nn.get_parameters()["U"].d + h @ nn.get_parameters()["W"].d)
        expected.append(h)
    np.testing.assert_allclose(y, np.stack(expected, axis=1), rtol=0, atol=1e-6)


REPEAT, RECUR = 'repeat_param { repeat_id: "L" times: 3 }', 'recurrent_param { repeat_id: "L" length: 3 axis: 1 }'
OTHER = 'repeat_param { repeat_id: "M" times: 2 }'


def repeated(start=REPEAT, end=REPEAT, loops="L", last="RepeatEnd"):
    return (
        {"L": 3, "M": 2},
        *(variable(name, (-1, 2)) for name in "xe"),
        *(variable(name, (-1, 2), "L") for name in "sa"),
        function("RepeatStart", "x a", "s", loops, start),
        function("Exp", "s", "a", "L"),
        function(last, "a", "e", "", end),
    )


def recurrent(delay=RECUR, part=RECUR, stack=RECUR, loops="L", times=3):
    return (
        {"L": times, "M": 2},
        variable("x", (-1, 3, 2)),
        variable("h0", (-1, 2)),
        variable("y", (-1, 3, 2)),
        *(variable(name, (-1, 2), "L") for name in "idh"),
        function("RecurrentInput", "x", "i", loops, part),
        function("Delay", "h h0", "d", "L", delay),
        function("Add2", "i d", "h", "L", "add2_param { }"),
        function("RecurrentOutput", "h", "y", "", stack),
    )


@pytest.mark.parametrize(("parts", "message"), [
    (repeated(start=""), r"RepeatStart 'make_s' must be in the loop that it names, got '' and the loops \['L'\]"),
    (repeated(start=OTHER), r"RepeatStart 'make_s' must be in the loop that it names, got 'M' and the loops \['L'\]"),
    (repeated(loops=""), r"RepeatStart 'make_s' must be in the loop that it names, got 'L' and the loops \[\]"),
    (repeated(end=OTHER), r"RepeatEnd 'make_e' must be in loop 'L' to read or compute 'a', got the loops \['M'\]"),
    (repeated(end=""), r"must say how often '' repeats, got 0"),
    (repeated(last="Tanh", end=""), r"Tanh 'make_e' must be in loop 'L' to read or compute 'a', got the loops \[\]"),
    (recurrent(delay=""), r"Delay 'make_d' must be in the loop that it names, got '' and the loops \['L'\]"),
    (recurrent(loops=""), r"RecurrentInput 'make_i' must be in the loop that it names, got 'L' and the loops \[\]"),
    (recurrent(stack=RECUR.replace("L", "M")), r"RecurrentOutput 'make_y' must be in loop 'L' to read or compute 'h'"),
    (recurrent(times=2), r"'make_i_L\[0\]' \(Split\) of network 'net' must have 3 outputs, got 2"),
])  # fmt: skip
def test_parts_of_loops_must_fit_together(parts, message):
    with pytest.raises(FileFormatError, match=message):
        built(*parts)
    assert built(*repeated())[1].shape == (2, 2) and built(*recurrent())[1].shape == (2, 3, 2)


def test_a_loop_ends_outside_of_it():
    parts = repeated()
    inside = function("RepeatEnd", "a", "e", "L", REPEAT)
    with pytest.raises(FileFormatError, match="RepeatEnd 'make_e' must be outside of the loop that it ends, got 'L'"):
        built(*parts[:2], variable("e", (-1, 2), "L"), *parts[3:-1], inside)


def test_the_number_of_steps_may_be_in_the_functions_alone():
    loops, *parts = repeated()
    _, y = built({}, *parts)
    nn.clear_parameters()
    _, expected = built(loops, *parts)
    np.testing.assert_array_equal(y, expected)


def test_names_may_have_any_letters():
    settings = "mul_scalar_param { val: 3 }"
    network, y = built(
        {}, variable("画像", (-1, 2)), variable("Größe", (-1, 2)), function("MulScalar", "画像", "Größe", "", settings)
    )
    np.testing.assert_allclose(y, 3 * network.inputs["画像"].d, rtol=1e-6)


def test_a_sequence_of_one_step():
    steps = 'recurrent_param { repeat_id: "R" length: 1 axis: 1 }'
    network, y = built(
        {"R": 1},
        variable("x", (-1, 1, 3)),
        variable("y", (-1, 1, 3)),
        *(variable(name, (-1, 3), "R") for name in ("i", "h")),
        function("RecurrentInput", "x", "i", "R", steps),
        function("Tanh", "i", "h", "R"),
        function("RecurrentOutput", "h", "y", "", steps),
    )
    np.testing.assert_allclose(y, np.tanh(network.inputs["x"].d), rtol=1e-6)


def computed(parts, outputs, values):
    """The outputs of an executor as `load` builds it, for an input x."""
    listed = " ".join(f'output_variable {{ variable_name: "{name}" data_name: "{name}" }}' for name in outputs)
    executor = f'executor {{ name: "run" network_name: "net" data_variable {{ variable_name: "x" data_name: "x" }} {listed} }}'
    text = f'network {{ name: "net" batch_size: 2\n{"".join(parts)} }}\n{executor}'
    run = load([io.BytesIO(text.encode())], prepare_data_iterator=False, extension=".nntxt").executors["run"]
    (x,) = run.dataset_assign
    x.d = values
    for output in run.output_assign:
        output.forward()
    return [np.array(output.d) for output in run.output_assign]


def test_a_delay_starts_from_the_initializer_of_its_buffer():
    steps = 'recurrent_param { repeat_id: "R" length: 3 axis: 1 }'
    start = variable("h0", (-1, 2)).replace(" shape", ' initializer { type: "Constant" multiplier: 2 } shape')
    parts = [
        variable("x", (-1, 3, 2)),
        start,
        variable("y", (-1, 3, 2)),
        *(variable(name, (-1, 2), "R") for name in ("i", "d", "h")),
        function("RecurrentInput", "x", "i", "R", steps),
        function("Delay", "h h0", "d", "R", 'repeat_param { repeat_id: "R" times: 3 }'),
        function("Add2", "i d", "h", "R", "add2_param { }"),
        function("RecurrentOutput", "h", "y", "", steps),
    ]
    x = np.arange(12).reshape(2, 3, 2)
    (y,) = computed(parts, ["y"], x)
    np.testing.assert_allclose(y, 2 + np.cumsum(x, axis=1))


def test_an_executor_reads_two_ends_of_a_loop():
    parts = [
        *(variable(name, (-1, 2)) for name in ("x", "e", "f")),
        *(variable(name, (-1, 2), "L") for name in ("s", "a")),
        function("RepeatStart", "x a", "s", "L", REPEAT),
        function("MulScalar", "s", "a", "L", "mul_scalar_param { val: 2 }"),
        function("RepeatEnd", "a", "e", "", REPEAT),
        function("RepeatEnd", "a", "f", "", REPEAT),
    ]
    x = np.arange(4).reshape(2, 2)
    times = int(REPEAT.split("times: ")[1].split()[0])
    for found in computed(parts, ["e", "f"], x):
        np.testing.assert_allclose(found, 2**times * x)
