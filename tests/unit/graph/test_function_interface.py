"""``variable.parent``: a Function that describes and computes one place of a graph.

nnabla_functions.json was recorded from NNabla 1.39 by function_cases.py.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core import function
from nn_core.engine.graph.apply import operator_of
from nn_core.errors import ArgumentError, GraphError, ShapeError
from nn_core.testing.cases import Case, cases
from nn_core.testing.expected import truth_of
from tests.unit.graph.function_cases import Cases, computed, described

RECORDED = json.loads(Path(__file__).with_name("nnabla_functions.json").read_text())["functions"]

#: Answers that differ here: gradient rules read other data than those of NNabla.
OTHERWISE: dict[str, dict[str, Any]] = {
    "batch_normalization, frozen": {
        "reads_inputs": [
            [False, False, True, False, True],
            [False, False, False, False, False],
            [True, False, False, True, True],
            [False, False, True, False, True],
            [True, False, True, True, True],
        ]
    },
    "layer_normalization": {"reads_inputs": [[True, False, True], [False, False, False], [True, False, False]]},
    "softmax_cross_entropy": {"reads_inputs": [[True, True], [False, False]]},
    # to the ends, so that it follows an input that changes its shape
    "slice": {"args": {"start": [1, 0], "stop": [2**31 - 1, 2**31 - 1], "step": [1, 1]}},
    "reshape": {"reads_outputs": [[False]]},
    "max_pooling": {"reads_inputs": [[True]]},
    "mul2": {"reads_inputs": [[False, True], [True, False]]},
    "div2": {"reads_inputs": [[False, True], [False, True]], "reads_outputs": [[False], [True]]},
}


def leaf(values: Any, need_grad: bool = True) -> nn.Variable:
    return nn.Variable.from_numpy_array(np.array(values, np.float32), need_grad=need_grad)


@pytest.fixture(scope="module")
def results() -> dict[str, nn.Variable]:
    return Cases("nn_core").all()


@pytest.mark.parametrize("name", RECORDED)
def test_a_function_describes_itself_as_in_nnabla(results: dict[str, nn.Variable], name: str) -> None:
    expected = {**RECORDED[name], **OTHERWISE.get(name, {})}
    says = described(results[name].parent)
    rounded = {key: pytest.approx(value) if isinstance(value, float) else value for key, value in expected["args"].items()}
    assert says == {**{key: expected[key] for key in says}, "args": rounded}


@pytest.mark.parametrize("name", [name for name, says in RECORDED.items() if "values" in says])
def test_a_function_computes_as_in_nnabla(results: dict[str, nn.Variable], name: str) -> None:
    results[name].forward()
    numbers = computed(results[name].parent)
    for what, summaries in numbers.items():
        for given, expected in zip(summaries, RECORDED[name][what], strict=True):
            assert given == (None if expected is None else pytest.approx(expected, rel=1e-4, abs=2e-4)), what


def float_cases() -> list[Case]:
    return [case for case in cases(["reference"], True) if not case.spec.has("dynamic_shape")]


@pytest.mark.parametrize("case", float_cases(), ids=lambda case: case.spec.name)
def test_every_function_computes_what_its_graph_does(case: Case) -> None:
    rng = np.random.RandomState(0)
    with nn.context_scope(case.context):
        inputs = [
            None if array is None else nn.Variable.from_numpy_array(array, need_grad=array.dtype.kind == "f")
            for array in truth_of(case.spec, case.sample, case.dtype).inputs
        ]
        made = operator_of(case.spec)(*inputs, **case.sample.args)
        made = list(made) if isinstance(made, tuple) else [made]
        parent = made[0].parent
        assert isinstance(parent, function.Function) and parent.outputs == made
        before = [v.d.copy() for v in parent.inputs]
        nn.forward_all(made)
        for variable, old in zip(parent.inputs, before, strict=True):
            variable.d = old  # a state that the function has changed
        outputs = [nn.Variable(y.shape) for y in made]
        parent.recompute(parent.inputs, outputs)
        for variable, old in zip(parent.inputs, before, strict=True):
            np.testing.assert_array_equal(variable.d, old)
        for y, again in zip(made, outputs, strict=True):
            np.testing.assert_array_equal(again.d, y.d)
        floating = [y for y in made if y.need_grad and y.d.dtype.kind == "f"]
        if not floating or not parent.need_grad:
            return
        weights = {y: rng.normal(size=y.shape).astype(np.float32) for y in floating}
        for y, output in zip(made, outputs, strict=True):
            if y in weights:
                output.g = weights[y]
        for variable in parent.inputs:
            variable.g = np.nan
        parent.backward(parent.inputs, outputs, [False] * len(parent.inputs))
        given = [v.g.copy() for v in parent.inputs if v.need_grad]
        parent.backward(parent.inputs, outputs)
        twice = [v.g.copy() for v in parent.inputs if v.need_grad]
        for variable in parent.inputs:
            variable.grad.zero()
        for y in floating:
            y.backward(weights[y])
        expected = [v.g for v in parent.inputs if v.need_grad]
        for one, two, true in zip(given, twice, expected, strict=True):
            np.testing.assert_allclose(one, true, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(two, 2 * one, rtol=1e-4, atol=1e-5)


# -- what it is --------------------------------------------------------------------------------------------------------


def test_graphs_hold_functions_of_one_class() -> None:
    x = leaf([1.0, 2.0])
    h = F.tanh(x)
    y = F.exp(h)
    assert type(y.parent) is function.Function and type(y.parent).__module__ == "nn_core.function"
    assert isinstance(function.Tanh(nn.Context()), function.Function)
    assert y.parent == y.parent and y.parent != h.parent and y.parent != "Exp"
    assert len({y.parent, y.parent, h.parent}) == 2
    assert (str(h.parent), repr(F.add_scalar(x, 2.0).parent)) == ("Tanh", "<AddScalar(val=2.0, inplace=False)>")
    assert x.parent is None


def test_hooks_and_visits_get_functions() -> None:
    x = leaf([1.0, 2.0])
    y = F.exp(F.tanh(x))
    seen: list[Any] = []
    y.visit(seen.append)
    y.forward(function_pre_hook=seen.append)
    y.backward(function_post_hook=seen.append)
    with nn.auto_forward():
        nn.set_function_post_hook("seen", seen.append)
        z = F.sin(x)
        nn.unset_function_post_hook("seen")
    h = y.parent.inputs[0]
    assert seen == [h.parent, y.parent, h.parent, y.parent, y.parent, h.parent, z.parent]
    assert all(isinstance(f, function.Function) for f in [*seen, *x.function_references])


def test_inputs_leave_out_optional_ones_that_were_not_given() -> None:
    x, gamma = leaf(np.ones((2, 3, 4))), leaf(np.ones((1, 3, 1)))
    mean, variance = leaf(np.zeros((1, 3, 1)), False), leaf(np.ones((1, 3, 1)), False)
    parent = F.batch_normalization(x, None, gamma, mean, variance).parent
    assert parent.inputs == [x, gamma, mean, variance]
    y = nn.Variable()
    parent.forward([x, gamma, mean, variance], [y])
    assert y.shape == (2, 3, 4)
    assert parent(*parent.inputs).shape == (2, 3, 4)


def test_settings_are_read_only_lists_and_numbers() -> None:
    parent = F.reshape(leaf(np.ones((2, 3))), (3, 2)).parent
    assert parent.args == parent.arguments == parent.info.args == {"shape": [3, 2], "inplace": True}
    parent.args["shape"][0] = 5
    assert parent.args["shape"] == [3, 2]
    assert parent.info.type_name == parent.name == "Reshape"
    with pytest.raises(AttributeError):
        parent.args = {}
    with pytest.raises(AttributeError):
        parent.unknown = 1


def test_a_parent_can_be_given_to_another_variable() -> None:
    y, z = F.tanh(leaf([1.0])), nn.Variable((1,))
    z.parent = y.parent
    assert z.parent == y.parent and y.parent.outputs == [z]
    with pytest.raises(ArgumentError, match="parent: must be a Function or None, got str"):
        z.parent = "Tanh"


def test_a_python_function_has_a_function_in_the_graph(results: dict[str, nn.Variable]) -> None:
    parent = results["PythonFunction"].parent
    assert type(parent) is function.Function and parent.info.type_name == "Double"
    assert parent.args == {"factor": 2} and parent.tags == {}
    y = parent(leaf([3.0]))
    y.forward()
    assert y.d.tolist() == [6.0] and y.parent == parent


def test_settings_of_a_python_function_reach_its_registered_gradient() -> None:
    def backward(grads: Any, inputs: Any, input_shapes: Any, outputs: Any, output_shapes: Any, factor: float) -> Any:
        return grads[0] * (10 * factor)

    nn.backward_functions.register("Double", backward)
    try:
        x = leaf([3.0])
        (dx,) = nn.grad(Cases("nn_core").double(x), x)
        dx.forward()
    finally:
        del nn.backward_functions.registry["Double"]
    assert dx.d.tolist() == [20.0]


def test_an_operator_applied_by_hand_becomes_the_parent() -> None:
    affine = function.Affine(nn.Context(), 1)
    assert affine.inputs == affine.outputs == [] and not affine.need_grad and affine.rank == 0
    x, w = leaf(np.ones((2, 4))), leaf(np.ones((4, 3)))
    y = affine(x, w)
    assert y.parent == affine and affine.inputs == [x, w] and affine.outputs == [y]
    with pytest.raises(ArgumentError, match="Affine: ctx must be a Context, or the name of a backend, got int"):
        function.Affine(1)
    with pytest.raises(ArgumentError, match=r"__call__: inputs of Tanh must be 1 values, got 2"):
        function.Tanh(nn.Context())(x, x)


# -- passes on given variables -----------------------------------------------------------------------------------------


def test_setup_and_forward_give_outputs_their_shape() -> None:
    w = leaf(np.ones((4, 3)))
    parent = F.affine(leaf(np.ones((2, 4))), w).parent
    y = nn.Variable((1,))
    parent.setup([leaf(np.ones((6, 4))), w], [y])
    assert y.shape == (6, 3)
    parent.forward([leaf(np.ones((5, 4))), w], [y])
    assert y.d.tolist() == [[4.0] * 3] * 5
    assert parent.outputs[0].shape == (2, 3)
    with pytest.raises(ShapeError, match="affine: weight must have as many rows as x has features, got 4 and 5"):
        parent.setup([leaf(np.ones((6, 5))), w], [y])


def test_outputs_may_share_the_memory_of_inputs() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    parent = F.transpose(x, (1, 0)).parent
    parent.forward([x], [x])
    assert x.d.tolist() == [[1.0, 3.0], [2.0, 4.0]]


@pytest.mark.parametrize("before", [10.0, np.array([10.0, 10.0]), 0.0])
def test_backward_adds_unless_told_otherwise(before: Any) -> None:
    x, y = leaf([1.0, 2.0]), nn.Variable((2,))
    parent = F.mul_scalar(x, 3.0).parent
    parent.forward([x], [y])
    y.g = 1
    x.g = before
    parent.backward([x], [y])
    assert x.g.tolist() == [float(np.mean(before)) + 3.0] * 2
    parent.backward([x], [y], [True])
    parent.backward([x], [y], accum=[False])
    assert x.g.tolist() == [3.0, 3.0]
    x.need_grad, x.g = False, 7.0
    parent.backward([x], [y])
    assert x.g.tolist() == [7.0, 7.0]


@pytest.mark.parametrize("before", [10.0, np.array([10.0, 10.0]), 0.0, None])
def test_a_graph_adds_to_a_gradient_however_it_was_set(before: Any) -> None:
    x = leaf([1.0, 2.0])
    if before is not None:
        x.g = before
    y = x * 3.0
    y.forward()
    y.backward()
    assert x.g.tolist() == [(0.0 if before is None else float(np.mean(before))) + 3.0] * 2


def test_comparisons_are_inputs_like_others() -> None:
    x = leaf([-1.0, 2.0])
    y = F.where(F.greater_scalar(x, 0.0), x, x * 0.5)
    for _ in range(2):
        y.forward()
        assert y.d.tolist() == [-0.5, 2.0]


@pytest.mark.parametrize(
    ("accum", "expected"), [(None, 10.0), ([False, True], 0.0), ([True, False], -1.0), ([False, False], -1.0)]
)
def test_one_variable_as_two_inputs_gets_one_gradient_after_the_other(accum: Any, expected: float) -> None:
    x, y = leaf([6.0]), nn.Variable((1,))
    parent = F.sub2(x, x).parent
    parent.forward([x, x], [y])
    x.g, y.g = 10.0, 1.0
    parent.backward([x, x], [y], accum)
    assert x.g.tolist() == [expected]


def test_random_functions_compute_the_same_again() -> None:
    x, y, again = leaf(np.ones(64)), nn.Variable((64,)), nn.Variable((64,))
    h = F.dropout(x, 0.5)
    with pytest.raises(GraphError, match=r"recompute: Dropout must have been computed by forward\(\) before, got none"):
        h.parent.recompute([x], [y])
    h.forward()
    kept = h.d.copy()
    h.parent.recompute([x], [again])
    assert again.d.tolist() == kept.tolist()
    h.parent.forward([x], [y])
    assert h.d.tolist() == kept.tolist() != y.d.tolist()
    h.parent.recompute([x], [again])
    assert again.d.tolist() == y.d.tolist()
    y.g = 1
    h.parent.backward([x], [y], [False])
    assert x.g.tolist() == y.d.tolist()
    h.backward(clear_buffer=False)  # the graph keeps what it has drawn itself
    assert (x.g - y.d).tolist() == kept.tolist()
    h.forward()
    h.parent.recompute([x], [again])
    assert again.d.tolist() == h.d.tolist()


def test_only_forward_changes_running_statistics() -> None:
    x = leaf(np.random.RandomState(0).normal(3.0, 1.0, (8, 2)))
    beta, gamma = leaf(np.zeros((1, 2))), leaf(np.ones((1, 2)))
    mean, variance = leaf(np.zeros((1, 2)), False), leaf(np.ones((1, 2)), False)
    inputs, y = [x, beta, gamma, mean, variance], nn.Variable((8, 2))
    parent = F.batch_normalization(*inputs).parent
    parent.recompute(inputs, [y])
    y.g = 1
    parent.backward(inputs, [y])
    assert mean.d.tolist() == [[0.0, 0.0]]
    parent.forward(inputs, [y])
    assert mean.d == pytest.approx(0.1 * x.d.mean(axis=0, keepdims=True))


def test_gradients_of_several_outputs_add_up() -> None:
    x, outputs = leaf([[1.0, 2.0], [3.0, 4.0]]), [nn.Variable((2,)), nn.Variable((2,))]
    parent = F.split(x, axis=0)[0].parent
    parent.forward([x], outputs)
    outputs[0].g, outputs[1].g = 5.0, 7.0
    parent.backward([x], outputs, [False])
    assert x.g.tolist() == [[5.0, 5.0], [7.0, 7.0]]


@pytest.mark.parametrize(("make", "expected"), [(F.add_n, [5.0, 7.0]), (F.mul_n, [4.0, 10.0])])
def test_masked_inputs_take_no_part(make: Any, expected: list[float]) -> None:
    a, b, c = leaf([1.0, 2.0]), leaf([7.0, 7.0]), leaf([4.0, 5.0])
    y = make(a, b, c)
    y.forward()
    everything = y.d.tolist()
    y.parent.set_active_input_mask([True, False, True])
    assert y.parent.inputs == [a, b, c]
    y.forward()
    assert y.d.tolist() == expected
    for variable in (a, b, c):
        variable.g = 1
    y.backward()
    assert b.g.tolist() == [1.0, 1.0] and a.g.tolist() != [1.0, 1.0]
    out = nn.Variable((2,))
    y.parent.forward([a, b, c], [out])
    assert out.d.tolist() == expected
    y.parent.set_active_input_mask([False, False, False])
    y.forward()
    assert y.d.tolist() == everything


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_wrong_arguments_are_refused() -> None:
    x, y = leaf([1.0, 2.0]), nn.Variable((2,))
    tanh, affine = F.tanh(x).parent, F.affine(leaf(np.ones((2, 2))), leaf(np.ones((2, 2)))).parent
    with pytest.raises(ArgumentError, match="forward: inputs must be Variables, got NdArray"):
        tanh.forward([x.data], [y])
    with pytest.raises(ArgumentError, match="setup_recompute: outputs must be Variables, got int"):
        tanh.setup_recompute([x], [1])
    with pytest.raises(ArgumentError, match="forward: outputs of Tanh must be 1 Variables, got 2"):
        tanh.forward([x], [y, y])
    with pytest.raises(ArgumentError, match="backward: inputs of Tanh must be 1 values, got 2"):
        tanh.backward([x, x], [y])
    with pytest.raises(ArgumentError, match="affine: input weight must be given, got none"):
        affine.forward([leaf(np.ones((2, 2)))], [y])
    with pytest.raises(ArgumentError, match="backward: accum must be a list of 1 booleans, got False"):
        tanh.backward([x], [y], False)
    with pytest.raises(GraphError, match=r"set_active_input_mask: the function must be one of .*, got Tanh"):
        tanh.set_active_input_mask([True])
    with pytest.raises(ArgumentError, match=r"set_active_input_mask: mask must be a list of 2 booleans, got \[True\]"):
        F.add_n(x, x).parent.set_active_input_mask([True])


def test_places_that_do_not_exist_are_refused() -> None:
    tanh = F.tanh(leaf([1.0])).parent
    for method, name, count in (
        (lambda: tanh.grad_depends_input_data(1, 0), "grad_depends_input_data: i", 0),
        (lambda: tanh.auto_grad_depends_input_data(0, -1), "grad_depends_input_data: j", 0),
        (lambda: tanh.grad_depends_output_data(0, 1), "grad_depends_output_data: o", 0),
        (lambda: tanh.auto_grad_depends_output_data(2, 0), "grad_depends_output_data: i", 0),
        (lambda: tanh.inplace_data(1), "inplace_data: i", 0),
        (lambda: tanh.need_setup_recompute(1), "need_setup_recompute: o", 0),
    ):
        with pytest.raises(ArgumentError, match=f"{name} must be from 0 to {count} in Tanh, got"):
            method()
    assert F.reshape(leaf([1.0]), (1, 1)).parent.inplace_data_with(0) == 0
    with pytest.raises(GraphError, match="inplace_data_with: Tanh must have an output in the memory of input 0, got none"):
        tanh.inplace_data_with(0)


def test_a_python_function_may_have_whole_numbers_as_outputs():
    class Increment(function.PythonFunction):
        output_dtype = "int64"

        def min_outputs(self):
            return 1

        def setup_impl(self, inputs, outputs):
            outputs[0].reset_shape(inputs[0].shape, True)

        def forward_impl(self, inputs, outputs):
            outputs[0].d = np.asarray(inputs[0].d) + 1

    x = nn.Variable.from_numpy_array(np.array([2**40, 5]))
    y = Increment()(Increment()(x))
    y.forward()
    assert (y.d.dtype, y.d.tolist()) == (np.int64, [2**40 + 2, 7])
    with nn.auto_forward():
        assert Increment()(x).d.tolist() == [2**40 + 1, 6]


def test_a_python_function_has_one_output_of_the_shape_of_its_first_input_by_default():
    class Twice(nn.PythonFunction):
        def forward_impl(self, inputs, outputs):
            outputs[0].d = 2 * inputs[0].d

        def backward_impl(self, inputs, outputs, propagate_down, accum):
            inputs[0].g = 2 * outputs[0].g + (inputs[0].g if accum[0] else 0)

    x = nn.Variable.from_numpy_array(np.ones((2, 3)), need_grad=True)
    y = Twice()(x)
    assert y.shape == (2, 3)
    x.grad.zero()
    y.forward()
    y.backward(np.full((2, 3), 5.0))
    assert (y.d == 2).all() and (x.g == 10).all()
    with pytest.raises(NotImplementedError, match=r"Twice: setup_impl\(\) must be defined for a function without inputs"):
        Twice()()


# -- as many outputs as the call shows ---------------------------------------------------------------------------------


def passed(function, inputs, count):
    """Outputs of a forward pass by `function` itself, and the gradients of `inputs` for ones as gradients of all outputs."""
    outputs = [nn.Variable() for _ in range(count)]
    function.setup(inputs, outputs)
    function.forward(inputs, outputs)
    for output in outputs:
        output.g = 1
    function.backward(inputs, outputs, [False] * len(inputs))
    return [output.d.copy() for output in outputs], [x.g.copy() for x in inputs]


def test_batch_normalization_gives_its_statistics_to_who_brings_variables_for_them():
    rng = np.random.RandomState(0)
    x = nn.Variable.from_numpy_array(rng.randn(4, 3), need_grad=True)
    beta, gamma, mean, variance = (nn.Variable.from_numpy_array(np.ones((1, 3)), need_grad=i < 2) for i in range(4))
    context = nn.get_current_context()
    for name, settings in (("BatchNormalization", {}), ("FusedBatchNormalization", {"nonlinearity": "relu"})):
        made = getattr(function, name)(context, axes=[1], decay_rate=0.9, eps=1e-5, batch_stat=True, **settings)
        (y,), (alone, *_) = passed(made, [x, beta, gamma, mean, variance], 1)
        (y3, batch_mean, batch_variance), (all_three, *_) = passed(made, [x, beta, gamma, mean, variance], 3)
        np.testing.assert_array_equal(y, y3)
        np.testing.assert_allclose(batch_mean, x.d.mean(0, keepdims=True), rtol=1e-5)
        np.testing.assert_allclose(batch_variance, x.d.var(0, keepdims=True), rtol=1e-5)
        np.testing.assert_allclose(all_three - alone, (1 + 2 * (x.d - x.d.mean(0))) / 4, rtol=1e-4, atol=1e-6)
        with pytest.raises(ArgumentError, match=f"setup: outputs of {name} must be 1 or 3 Variables, got 2"):
            passed(made, [x, beta, gamma, mean, variance], 2)


def test_spectral_norm_gives_u_as_it_was():
    w, u = nn.Variable.from_numpy_array(np.eye(3) * 2, need_grad=True), nn.Variable.from_numpy_array([3.0, 1.0, 1.0])
    (_, before), _ = passed(function.SpectralNorm(nn.get_current_context(), 0, 1, 1e-12, False, True), [w, u], 2)
    np.testing.assert_array_equal(before, [3, 1, 1])


@pytest.mark.parametrize("name", ["Sort", "Max", "Min"])
def test_places_alone_are_one_output(name):
    x = nn.Variable.from_numpy_array([[1.0, 5.0, 3.0], [6.0, 4.0, 8.0]], need_grad=True)
    axis = {"axis": 1} if name == "Sort" else {"axes": [1]}
    (values, places), _ = passed(getattr(function, name)(nn.get_current_context(), **axis, with_index=True), [x], 2)
    for only in ({"only_index": True}, {"with_index": True}):
        (alone,), (dx,) = passed(getattr(function, name)(nn.get_current_context(), **axis, **only), [x], 1)
        np.testing.assert_array_equal(alone, places)
        assert not dx.any()
    assert values.shape == places.shape


def test_masks_and_accum_may_be_flags_of_numpy():
    xs = [nn.Variable.from_numpy_array([float(i)], need_grad=True) for i in range(3)]
    y = F.add_n(*xs)
    y.parent.set_active_input_mask(np.array([True, False, True]))
    y.forward()
    np.testing.assert_array_equal(y.d, [2.0])
    z = F.mul2(xs[1], xs[2])
    z.forward()
    z.g = 1
    for accum in (np.array([True, False]), [np.bool_(True), np.bool_(False)], (True, False)):
        xs[1].g, xs[2].g = 10, 10
        z.parent.backward([xs[1], xs[2]], [z], accum)
        assert (xs[1].g.item(), xs[2].g.item()) == (12, 1)


def test_accum_of_assign_may_be_the_flag_of_the_destination():
    to, source = (nn.Variable.from_numpy_array([2.0], need_grad=True) for _ in range(2))
    y = F.assign(to, source)
    y.g = 1
    for accum, total in (([True], 8), ([False], 1), ([True, False], 8)):
        to.g, source.g = 7, 5
        y.parent.backward([to, source], [y], accum)
        assert to.g.item() == total


def test_gradients_of_places_are_dropped_in_passes_that_are_not_compiled():
    x = nn.Variable.from_numpy_array(np.random.RandomState(0).randn(4, 5), need_grad=True)
    for make in (lambda: F.top_k_data(x, 2, with_index=True), lambda: F.sort(x, with_index=True)):
        with nn.auto_forward():
            for _ in range(3):
                x.grad.zero()
                values, places = make()
                F.sum(values + places).backward(clear_buffer=True)
                assert x.g.sum() == values.size


def _rewriting(name):
    """Return inputs, and a call of a function that rewrites one of them, of which its gradient depends on the old value."""
    rng = np.random.RandomState(3)
    x = nn.Variable.from_numpy_array(rng.randn(4, 3).astype(np.float32), need_grad=True)
    if name == "mean_subtraction":
        state = [nn.Variable.from_numpy_array(np.zeros(3, np.float32)), nn.Variable.from_numpy_array(np.ones(1, np.float32))]
        return [x, *state], lambda inputs: F.mean_subtraction(*inputs, base_axis=1, update_running_mean=True)
    u = nn.Variable.from_numpy_array(rng.randn(4).astype(np.float32))
    return [x, u], lambda inputs: F.spectral_norm(*inputs, dim=0, itr=1)


@pytest.mark.parametrize("name", ["mean_subtraction", "spectral_norm"])
@pytest.mark.parametrize("how", ["graph", "own", "other"])
def test_the_gradient_of_a_function_that_rewrites_an_input(name, how):
    """The gradient is that of the run before, whose inputs are no longer there."""
    inputs, call = _rewriting(name)
    expected, first = _rewriting(name)[0], _rewriting(name)[1]
    z = first(expected)
    z.forward()
    expected[0].grad.zero()
    factors = np.cos(np.arange(12.0)).reshape(4, 3)
    z.backward(nn.NdArray.from_numpy_array(factors))
    y = call(inputs)
    function, outputs = y.parent, [y]
    if how == "graph":
        y.forward()
    else:
        outputs = [y] if how == "own" else [nn.Variable(y.shape)]
        function.forward(inputs, outputs)
    outputs[0].g = factors
    function.backward(inputs, outputs, [False] * len(inputs))
    np.testing.assert_allclose(inputs[0].g, expected[0].g, rtol=1e-5)
