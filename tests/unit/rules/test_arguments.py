"""Resolution of arguments: defaults, conversions, and the text of every refusal."""

import numpy as np
import pytest

from nn_core.errors import ArgumentError, SpecError
from nn_core.operators.rules.arguments import resolve_args
from nn_core.operators.rules.defaults import DEFAULT_RULES
from nn_core.operators.spec.model import ArgSpec, FunctionSpec, InputSpec, OutputSpec

SHAPE = (8, 3, 6, 5)


def spec_with(*args: ArgSpec) -> FunctionSpec:
    inputs = (InputSpec("x", "Input."),)
    return FunctionSpec("Test", "test", "shape", "A test.", inputs, (OutputSpec("y", "Output."),), args)


def resolved(arg: ArgSpec, value: object) -> object:
    return resolve_args(spec_with(arg), {arg.name: value}, (SHAPE,))[arg.name]


def test_absent_and_none_mean_the_default() -> None:
    spec = spec_with(ArgSpec("a", "int", "", default=3), ArgSpec("b", "float", "", default=None))
    assert resolve_args(spec, {}, (SHAPE,)) == {"a": 3, "b": None}
    assert resolve_args(spec, {"a": None, "b": None}, (SHAPE,)) == {"a": 3, "b": None}


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("last_axis", 3),
        ("last_axis_list", (3,)),
        ("all_axes", (0, 1, 2, 3)),
        ("full_shape", SHAPE),
        ("zeros_per_axis", (0, 0, 0, 0)),
        ("ones_per_axis", (1, 1, 1, 1)),
        ("spatial_zeros", (0, 0)),
        ("spatial_ones", (1, 1)),
        ("kernel", (2, 3)),
        ("kernel_zeros", (0, 0)),
    ],
)
def test_default_rules(rule: str, value: object) -> None:
    before = (ArgSpec("base_axis", "axis", "", default=1), ArgSpec("kernel", "shape", "", default=(2, 3)))
    spec = spec_with(*before, ArgSpec("a", "ints", "", default_rule=rule))
    assert resolve_args(spec, {}, (SHAPE,))["a"] == value


def test_default_rules_for_arrays_without_axes() -> None:
    assert DEFAULT_RULES["last_axis_list"](((),), {}) == ()
    assert DEFAULT_RULES["all_axes"]((None,), {}) == ()


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        ("bool", np.True_, True),
        ("bool", 1, True),
        ("bool", 0, False),
        ("bool", np.int64(1), True),
        ("int", np.int32(4), 4),
        ("float", np.float32(0.5), 0.5),
        ("float", 2, 2.0),
        ("float", np.array(1.5), 1.5),
        ("str", "text", "text"),
        ("ints", [np.int64(1), 2], (1, 2)),
        ("ints", np.array([1, 2]), (1, 2)),
        ("ints", range(2), (0, 1)),
        ("floats", [1, 2.5], (1.0, 2.5)),
        ("shape", [2, -1], (2, -1)),
        ("axis", -1, 3),
        ("axes", [-1, 0], (3, 0)),
    ],
)
def test_values_become_plain(kind: str, given: object, value: object) -> None:
    result = resolved(ArgSpec("a", kind, ""), given)
    assert result == value and type(result) is type(value)


@pytest.mark.parametrize(
    ("arg", "given", "message"),
    [
        (ArgSpec("a", "int", ""), 2**63, "a must be an integer of 64 bits, got one of 64 bits"),
        (ArgSpec("a", "ints", ""), (1, -(10**400)), "each of a must be an integer of 64 bits, got one of 1329 bits"),
        (ArgSpec("a", "float", ""), 10**401, "a must be a number that a float can hold, got one of 1333 bits"),
        (ArgSpec("a", "floats", ""), (10**400,), "each of a must be a number that a float can hold, got one of 1329 bits"),
        (ArgSpec("a", "bool", ""), 2, "a must be True or False, or 1 or 0, got 2"),
        (ArgSpec("a", "bool", ""), "True", "a must be True or False, or 1 or 0, got 'True'"),
        (ArgSpec("a", "bool", ""), 1.0, "a must be True or False, or 1 or 0, got 1.0"),
        (ArgSpec("a", "int", ""), "1", "a must be an integer, got '1'"),
        (ArgSpec("a", "int", ""), True, "a must be an integer, got True"),
        (ArgSpec("a", "float", ""), "1", "a must be a number, got '1'"),
        (ArgSpec("a", "float", ""), [1.0], "a must be a number, got [1.0]"),
        (ArgSpec("a", "str", ""), 1, "a must be a string, got 1"),
        (ArgSpec("a", "ints", ""), 3, "a must be a sequence of integers, got 3"),
        (ArgSpec("a", "ints", ""), "12", "a must be a sequence of integers, got '12'"),
        (ArgSpec("a", "ints", ""), (1, "2"), "each of a must be an integer, got '2'"),
        (ArgSpec("a", "floats", ""), (1.0, "x"), "each of a must be a number, got 'x'"),
        (ArgSpec("a", "shape", ""), (2, -2), "a must have no length below -1, got (2, -2)"),
        (ArgSpec("a", "axis", ""), 4, "a must be in [-4, 4) for an input of 4 axes, got 4"),
        (ArgSpec("a", "axes", ""), (0, -5), "a must be in [-4, 4) for an input of 4 axes, got -5"),
        (ArgSpec("a", "axes", ""), (0, -4), "a must differ from each other, got (0, -4)"),
        (ArgSpec("a", "str", "", choices=("b", "c")), "d", "a must be one of 'b', 'c', got 'd'"),
        (ArgSpec("a", "int", "", minimum=1), 0, "a must be at least 1, got 0"),
        (ArgSpec("a", "floats", "", maximum=1), (0.5, 2), "a must be at most 1, got (0.5, 2.0)"),
        (ArgSpec("a", "float", "", minimum=0), float("nan"), "a must be at least 0, got nan"),
        (ArgSpec("a", "int", ""), None, "a must be given, got none"),
    ],
)
def test_refusals_name_the_function_the_argument_and_the_value(arg: ArgSpec, given: object, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        resolved(arg, given)
    assert str(caught.value) == f"test: {message}"


def test_defaults_of_axes_are_checked_against_the_input() -> None:
    spec = spec_with(ArgSpec("axis", "axis", "", default=1))
    assert resolve_args(spec, {}, (SHAPE,)) == {"axis": 1}
    with pytest.raises(ArgumentError, match=r"test: axis must be in \[-1, 1\) for an input of 1 axis, got 1"):
        resolve_args(spec, {}, ((3,),))


def test_unknown_names_are_refused_with_a_hint() -> None:
    spec = spec_with(ArgSpec("keep_dims", "bool", "", default=False))
    with pytest.raises(ArgumentError, match="test: arguments must be among keep_dims, got 'keepdims'; did you"):
        resolve_args(spec, {"keepdims": True}, (SHAPE,))
    with pytest.raises(ArgumentError, match="got 'keepdim'; did you mean 'keep_dims'"):  # the name in PyTorch
        resolve_args(spec, {"keepdim": 1}, (SHAPE,))
    with pytest.raises(ArgumentError, match=r"test: arguments must be among \(none\), got 'q'"):
        resolve_args(spec_with(), {"q": 1}, (SHAPE,))


def test_a_default_rule_must_exist() -> None:
    with pytest.raises(SpecError, match=r"Test.a: default rule must be one of last_axis, .*, got 'first_axis'"):
        resolve_args(spec_with(ArgSpec("a", "axis", "", default_rule="first_axis")), {}, (SHAPE,))
