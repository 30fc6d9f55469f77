"""The work that is done once for a call, and when it is done anew."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.dispatch.registry import spec_of
from nn_core.engine.graph import call
from nn_core.engine.graph.apply import operator
from nn_core.engine.graph.call import resolved_call
from nn_core.errors import ArgumentError, ShapeError

CONTEXT = nn.Context(["reference"])


def test_the_same_question_is_answered_by_the_same_call():
    first = resolved_call(spec_of("Sum"), {"axes": (0,)}, [(2, 3)])
    assert resolved_call(spec_of("Sum"), {"axes": (0,)}, [(2, 3)]) is first
    assert resolved_call(spec_of("Sum"), {"axes": (0,)}, [(2, 4)]) is not first
    assert first.output_shapes == ((3,),)


def test_settings_that_cannot_be_looked_up_share_kernels_and_keep_their_words():
    spec, words = spec_of("Reshape"), [-1, 2]
    first = resolved_call(spec, {"shape": words}, [(2, 3)])
    second = resolved_call(spec, {"shape": [3, 2]}, [(2, 3)])
    assert first.given == {"shape": [-1, 2]}  # for inputs of another shape, -1 is another length
    assert second.given == {"shape": [3, 2]}
    assert first.output_shapes == second.output_shapes == ((3, 2),)
    assert resolved_call(spec, {"shape": words}, [(2, 3)]).kernel(CONTEXT) is first.kernel(CONTEXT)


def test_a_reshape_that_was_given_a_list_follows_its_input():
    x = nn.Variable((2, 3))
    y = F.tanh(F.reshape(x, [-1, 2]))
    y.forward()
    z = F.reshape(nn.Variable((2, 3)), [3, 2])
    x.reset_shape((4, 3), True)
    y.forward()
    assert y.shape == (6, 2)
    assert z.shape == (3, 2)


def test_kernels_are_kept_by_context_and_by_the_dtypes_that_are_taken_as_they_are():
    sum_of = resolved_call(spec_of("Sum"), {}, [(2, 3)])
    assert sum_of.kernel(CONTEXT) is sum_of.kernel(nn.Context(["reference"]))
    assert sum_of.kernel(CONTEXT) is not sum_of.kernel(nn.Context(["reference:double"]))
    remainder = resolved_call(spec_of("Mod2"), {}, [(2,), (2,)])
    assert remainder.takes_given
    whole = remainder.kernel(CONTEXT, ("int32", "int32"))
    assert whole.output_dtypes == ("int32",)
    assert whole is remainder.kernel(CONTEXT, ("int32", "int32"))
    assert whole is not remainder.kernel(CONTEXT, ("float32", "float32"))


def test_forgetting_asks_the_backends_again():
    before = resolved_call(spec_of("Sum"), {}, [(5, 7)])
    kernel = before.kernel(CONTEXT)
    call.forget()
    after = resolved_call(spec_of("Sum"), {}, [(5, 7)])
    assert after is not before
    assert after.kernel(CONTEXT) is not kernel


def test_a_graph_is_compiled_with_other_kernels_after_forgetting():
    x = nn.Variable((2, 2))
    x.d = 1
    with nn.context_scope(CONTEXT):
        y = F.tanh(x)
    y.forward()
    before = y.parent._node.kernel
    call.forget()
    y.forward(clear_buffer=True)
    assert y.parent._node.kernel is not before


@pytest.mark.parametrize(("settings", "error"), [({"axes": (5,)}, ArgumentError), ({"axis": 1}, ArgumentError)])
def test_wrong_settings_are_refused_each_time(settings, error):
    for _ in range(2):
        with pytest.raises(error, match="sum: "):
            resolved_call(spec_of("Sum"), settings, [(2, 3)])


def test_wrong_shapes_are_refused_each_time():
    for _ in range(2):
        with pytest.raises(ShapeError, match="add2: "):
            resolved_call(spec_of("Add2"), {}, [(2, 3), (4,)])


def test_a_negative_zero_is_zero_whoever_comes_first():
    x = nn.NdArray.from_numpy_array(np.ones(2, np.float32))
    signs = {value: np.signbit(F.mul_scalar(x, value).data).any() for value in (-0.0, 0.0)}
    assert not any(signs.values())
    assert not np.signbit(F.mul_scalar(x, -0.0).data).any()


def test_surplus_arguments_of_operators_are_refused():
    x = nn.Variable((2, 3))
    with pytest.raises(ArgumentError, match="leaky_relu: must get at most 3 positional arguments, got 4"):
        operator("leaky_relu")(x, 0.1, False, 3)
