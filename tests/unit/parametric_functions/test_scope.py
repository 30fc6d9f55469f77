"""Scopes of parameters: names, nesting, looking up, making, and the decorator."""

import inspect
import threading

import numpy as np
import pytest

import nn_core as nn
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, ShapeError
from nn_core.initializer import ConstantInitializer, UniformInitializer
from nn_core.parameter import (
    clear_parameters,
    get_current_parameter_scope,
    get_parameter,
    get_parameter_or_create,
    get_parameters,
    parameter_scope,
    pop_parameter,
    set_parameter,
)
from nn_core.parametric_functions import scope


def test_scopes_nest_and_slashes_separate():
    with parameter_scope("a"), parameter_scope("/b//c/"):
        get_parameter_or_create("d/w", (2,))
        assert list(get_parameters()) == ["d/w"]
    assert list(get_parameters()) == ["a/b/c/d/w"]


def test_empty_name_is_the_same_scope():
    with parameter_scope("") as scope:
        assert scope is get_current_parameter_scope()
        get_parameter_or_create("w", (1,))
    assert list(get_parameters()) == ["w"]


def test_scope_ends_when_the_block_raises():
    outer = get_current_parameter_scope()
    with pytest.raises(ValueError, match="inside"), parameter_scope("a"):
        raise ValueError("inside")
    assert get_current_parameter_scope() is outer


def test_given_scope_replaces_the_base():
    own = {}
    with parameter_scope("a"), parameter_scope("b", own):
        get_parameter_or_create("w", (1,))
    assert list(get_parameters()) == []
    assert isinstance(own["b"]["w"], nn.Variable)


def test_scope_serves_as_a_decorator():
    @parameter_scope("inner")
    def make():
        return get_parameter_or_create("w", (1,))

    make()
    with parameter_scope("outer"):
        make()
    assert list(get_parameters()) == ["inner/w", "outer/inner/w"]


def test_threads_do_not_see_each_others_scopes():
    inside, checked = threading.Event(), threading.Event()
    seen = []

    def look():
        inside.wait(60)
        seen.append(get_current_parameter_scope())
        checked.set()

    thread = threading.Thread(target=look)
    thread.start()
    root = get_current_parameter_scope()
    with parameter_scope("mine"):
        inside.set()
        assert checked.wait(60)
    thread.join()
    assert seen == [root]


def test_threads_make_a_parameter_once():
    barrier = threading.Barrier(8)
    made = []

    def make():
        barrier.wait(60)
        made.append(get_parameter_or_create("w", (3,), UniformInitializer()))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(variable.data) for variable in made}) == 1


def test_parameters_come_in_the_order_in_which_they_were_made():
    for name in ("z", "a/y", "b", "a/x"):
        get_parameter_or_create(name, (1,))
    assert list(get_parameters()) == ["z", "a/y", "a/x", "b"]


def test_get_parameters_adds_to_a_dictionary_under_a_path():
    get_parameter_or_create("w", (1,))
    get_parameter_or_create("fixed", (1,), need_grad=False)
    found = {"old": None}
    assert get_parameters(found, "net") is found
    assert list(found) == ["old", "net/w"]
    assert list(get_parameters(grad_only=False)) == ["w", "fixed"]


def test_get_and_set_and_pop():
    variable = nn.Variable((2,))
    set_parameter("a/w", variable)
    assert get_parameter("a/w") is variable
    assert get_parameter("a/none") is None
    assert get_parameter("none/w") is None
    assert pop_parameter("a/w") is variable
    assert pop_parameter("a/w") is None
    assert pop_parameter("none/w") is None


def test_clear_forgets_the_current_scope_only():
    get_parameter_or_create("w", (1,))
    with parameter_scope("a"):
        get_parameter_or_create("w", (1,))
        clear_parameters()
    assert list(get_parameters()) == ["w"]


def test_a_scope_is_not_a_parameter():
    get_parameter_or_create("a/w", (1,))
    with pytest.raises(ArgumentError, match=r"get_parameter: key must name a parameter, got the scope 'a'"):
        get_parameter("a")
    with pytest.raises(ArgumentError, match=r"set_parameter: key must not name a scope, got 'a'"):
        set_parameter("a", nn.Variable((1,)))
    with pytest.raises(ArgumentError, match=r"get_parameter_or_create: name must not be that of a scope, got 'a'"):
        get_parameter_or_create("a", (1,))
    with pytest.raises(ArgumentError, match=r"parameter_scope: a scope must not have the name of a parameter, got 'a/w'"):
        parameter_scope("a/w").__enter__()


@pytest.mark.parametrize("key", ["", "/", "//"])
def test_a_parameter_has_a_name(key):
    with pytest.raises(ArgumentError, match=f"a parameter must have a name, got {key!r}"):
        get_parameter(key)
    with pytest.raises(ArgumentError, match=f"set_parameter: a parameter must have a name, got {key!r}"):
        set_parameter(key, nn.Variable((1,)))


def test_only_variables_are_parameters():
    with pytest.raises(ArgumentError, match="set_parameter: param must be a Variable, got NdArray"):
        set_parameter("w", nn.NdArray((1,)))


def test_a_found_parameter_shares_data_and_gradient():
    first = get_parameter_or_create("w", (2, 3))
    second = get_parameter_or_create("w", (2, 3))
    assert second is not first
    assert second == first
    first.d = 5
    assert float(second.d[0, 0]) == 5
    assert get_parameter("w").name == "w"


def test_another_shape_is_refused():
    get_parameter_or_create("a/w", (2, 3))
    with pytest.raises(ShapeError, match=r"parameter 'a/w' must keep its shape \(2, 3\), got \(3, 2\)"):
        get_parameter_or_create("a/w", (3, 2))


@pytest.mark.parametrize(
    ("initializer", "values"),
    [
        (None, [0, 0]),
        (np.array([1.5, 2.5]), [1.5, 2.5]),
        (ConstantInitializer(3), [3, 3]),
        (lambda shape: np.full(shape, 4), [4, 4]),
    ],
)
def test_initial_values(initializer, values):
    assert get_parameter_or_create("w", (2,), initializer).d.tolist() == values


def test_an_array_gives_the_shape():
    assert get_parameter_or_create("w", initializer=np.zeros((2, 5))).shape == (2, 5)


def test_an_array_is_copied():
    values = np.zeros(2, np.float32)
    parameter = get_parameter_or_create("w", (2,), values)
    parameter.d = 1
    assert values.tolist() == [0, 0]


def test_wrong_initial_values_are_refused_and_nothing_is_made():
    with pytest.raises(ShapeError, match=r"initial values of 'w' must have the shape \(2,\), got \(3,\)"):
        get_parameter_or_create("w", (2,), np.zeros(3))
    with pytest.raises(ArgumentError, match="initializer of 'w' must be callable with a shape or an array, got float"):
        get_parameter_or_create("w", (2,), 1.0)
    with pytest.raises(ArgumentError, match="shape must be given for the new parameter 'w', got None"):
        get_parameter_or_create("w")
    assert list(get_parameters()) == []


def test_need_grad_follows_the_last_request():
    get_parameter_or_create("w", (1,), need_grad=False)
    assert not get_parameter("w").need_grad
    assert get_parameter_or_create("w", (1,)).need_grad
    assert get_parameter("w").need_grad
    assert not get_parameter_or_create("w", (1,), as_need_grad=False).need_grad
    assert get_parameter("w").need_grad


def test_no_grad_leaves_the_parameter_trainable():
    with nn.no_grad():
        assert not get_parameter_or_create("w", (1,)).need_grad
        assert not get_parameter_or_create("w", (1,), as_need_grad=True).need_grad
    assert get_parameter("w").need_grad


@PF.parametric_function_api("scaled", [("a", "Factor.", "()", True), ("n", "Count.", "()", False)])
def scale(x, factor=1.0, *, offset=0.0):
    """Multiply by a trained factor.

    Args:
        x: Input.
        factor: Another factor.
        offset: Added.

    Returns:
        Shape of x.
    """
    return x * get_parameter_or_create("a", x.shape, ConstantInitializer(1)) * factor + offset


def test_decorated_function_takes_a_name_at_the_end():
    x = nn.Variable((2,))
    scale(x)
    scale(x, name="first")
    with parameter_scope("outer"):
        scale(x, 2.0, name="second", offset=1.0)
    assert list(get_parameters()) == ["scaled/a", "first/scaled/a", "outer/second/scaled/a"]
    assert str(inspect.signature(scale)) == "(x, factor=1.0, name: str | None = None, *, offset=0.0)"


def test_name_is_also_positional():
    PF.affine(nn.Variable((2, 3)), 5, 1, None, None, False, None, True, None, None, "fc")
    assert list(get_parameters()) == ["fc/affine/W", "fc/affine/b"]


@pytest.mark.parametrize(("name", "path"), [(None, ""), ("", ""), ("a", "a/"), ("/a//b/", "a/b/"), (np.str_("a"), "a/")])
def test_a_name_may_be_a_path(name, path):
    for _ in range(2):
        scale(nn.Variable((2,)), name=name)
        assert list(get_parameters()) == [f"{path}scaled/a"]


@pytest.mark.parametrize("name", [1, True, b"a", ["a"]])
def test_a_name_is_a_string(name):
    with pytest.raises(ArgumentError, match="scale: name must be a string, got "):
        scale(nn.Variable((2,)), name=name)
    assert get_parameters() == {}


@pytest.mark.parametrize(("taken", "name"), [("a", "a"), ("a/scaled", "a"), ("scaled", None), ("a/b", "a/b")])
def test_a_function_needs_a_scope_where_no_parameter_is(taken, name):
    set_parameter(taken, nn.Variable((2,)))
    with pytest.raises(ArgumentError, match="parameter_scope: a scope must not have the name of a parameter, got "):
        scale(nn.Variable((2,)), name=name)
    assert list(get_parameters(grad_only=False)) == [taken]


def test_scope_name_defaults_to_the_function():
    @PF.parametric_function_api()
    def twice(x):
        return get_parameter_or_create("w", x.shape)

    twice(nn.Variable((1,)))
    assert list(get_parameters()) == ["twice/w"]
    assert twice.__name__ == "twice"


def test_docstring_lists_the_parameters():
    doc = scale.__doc__
    assert 'Parameters in the scope "scaled":' in doc
    assert "    a: Factor. Shape ()." in doc
    assert "    n: Count. Shape (). Not trained." in doc
    assert "    name: Name of a scope around the parameters." in doc
    assert doc.index("name: Name") < doc.index("Returns:")


class OddError(Exception):
    """An exception of somebody's initializer."""


def refuse(shape):
    raise OddError


@pytest.mark.parametrize("at_once", [False, True], ids=["graph", "arrays"])
def test_a_function_that_fails_takes_back_the_parameters_it_has_made(at_once):
    x = nn.NdArray.from_numpy_array(np.ones((2, 3))) if at_once else nn.Variable((2, 3))
    with pytest.raises(OddError):
        PF.affine(x, 4, b_init=refuse)
    assert get_parameters() == {}
    PF.affine(x, 5)  # no weight of four columns is in the way
    assert [w.shape for w in get_parameters().values()] == [(3, 5), (5,)]


def test_a_function_that_fails_keeps_the_parameters_that_were_there():
    x = nn.Variable((2, 3))
    PF.affine(x, 4, with_bias=False)
    (w,) = get_parameters().values()
    with pytest.raises(OddError):
        PF.affine(x, 4, b_init=refuse)
    assert [found.data for found in get_parameters().values()] == [w.data]


def test_a_function_of_functions_takes_back_what_they_have_made():
    @PF.parametric_function_api("block")
    def block(x):
        PF.affine(x, 4, name="inner")
        get_parameter_or_create("scale", (1,))
        raise OddError

    with parameter_scope("net"):
        get_parameter_or_create("before", (1,))
        with pytest.raises(OddError):
            block(nn.Variable((2, 3)), name="outer")
    assert list(get_parameters()) == ["net/before"]


def test_a_new_parameter_is_not_searched_for_among_all_others(monkeypatch):
    """The search made networks of many layers quadratic."""

    def refuse(*scopes):
        raise AssertionError("the scopes were searched")

    monkeypatch.setattr(scope, "_path_between", refuse)
    x = nn.Variable((2, 3))
    with nn.parameter_scope("net"), nn.parameter_scope("block"):
        PF.affine(x, 4, name="first")
    PF.affine(x, 4)
    assert [*nn.get_parameters()] == ["net/block/first/affine/W", "net/block/first/affine/b", "affine/W", "affine/b"]
    with pytest.raises(AssertionError, match="searched"):
        PF.affine(nn.Variable((2, 5)), 4)  # its message says the whole path
