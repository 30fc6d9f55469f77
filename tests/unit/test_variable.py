"""Variable: properties, links, shapes, errors."""

import gc
import weakref

import numpy as np
import pytest

import nn_core as nn
from nn_core.errors import ArgumentError, GraphError, ShapeError
from nn_core.graph.apply import operator

sin, mul2, affine = operator("sin"), operator("mul2"), operator("affine")


def variable(*values, need_grad=True):
    return nn.Variable.from_numpy_array(np.float32(values), need_grad=need_grad)


def test_need_grad_is_false_for_a_leaf_and_follows_the_inputs_otherwise():
    x = nn.Variable((2,))
    y = sin(sin(x))
    assert not x.need_grad and not y.need_grad
    x.need_grad = True
    assert y.need_grad
    x.need_grad = False
    assert not y.need_grad


def test_need_grad_set_on_an_intermediate_variable_wins():
    x = variable(1, 2)
    h = sin(x)
    h.need_grad = False
    assert not sin(h).need_grad


def test_d_and_g_fill_with_numbers():
    x = nn.Variable((2, 2))
    x.d = 1.25
    x.g = 2
    assert x.d.tolist() == [[1.25, 1.25]] * 2
    assert x.g.tolist() == [[2, 2]] * 2


def test_from_numpy_array_with_gradient():
    x = nn.Variable.from_numpy_array(np.ones(3), np.zeros(3), need_grad=True)
    assert x.need_grad and x.g.tolist() == [0, 0, 0]


def test_parent_and_inputs():
    x = variable(1, 2)
    y = sin(x)
    assert x.parent is None
    assert y.parent.name == "Sin"
    assert list(y.parent.inputs) == [x]
    assert y.parent.outputs == [y]
    assert y.parent.info.type_name == "Sin"


def test_function_shows_its_arguments():
    y = affine(nn.Variable((2, 3)), nn.Variable((3, 4)), base_axis=1)
    assert y.parent.info.args == {"base_axis": 1}
    assert y.parent.arguments == {"base_axis": 1}


def test_equality_is_identity_of_the_data():
    x = variable(1, 2)
    unlinked = x.get_unlinked_variable(need_grad=False)
    assert unlinked == x and hash(unlinked) == hash(x)
    assert not unlinked.need_grad and x.need_grad
    assert x != variable(1, 2)


def test_unlinked_variable_shares_data_and_gradient():
    y = sin(variable(1, 2))
    y.forward()
    z = y.get_unlinked_variable()
    assert z.parent is None
    z.d[0] = 9
    assert y.d[0] == 9


def test_rewire_on_joins_two_graphs():
    xb = variable(1, 2)
    yb = mul2(xb, xb)
    xa = variable(0, 0)
    ya = sin(xa)
    xa.rewire_on(yb)
    ya.forward()
    assert np.allclose(ya.d, np.sin(xb.d**2))
    ya.backward()
    assert np.allclose(xb.g, np.cos(xb.d**2) * 2 * xb.d)
    assert yb.parent is None


def test_rewire_on_refuses_circles_and_other_shapes():
    x = variable(1, 2)
    with pytest.raises(GraphError, match="must not depend on the variable"):
        x.rewire_on(sin(x))
    with pytest.raises(ShapeError, match=r"must have the shape \(2,\), got \(3,\)"):
        x.rewire_on(variable(1, 2, 3))


def test_function_references():
    x = variable(1, 2)
    y, z = sin(x), mul2(x, x)
    assert x.function_references == [y.parent, z.parent]
    del z
    assert x.function_references == [y.parent]


def test_a_graph_is_freed_at_once():
    x = variable(1, 2)
    y = sin(x)
    y.forward()
    y.backward()
    gc.disable()
    try:
        node = weakref.ref(y.parent)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_clear_all_graph_links_cuts_everything_before():
    h = sin(variable(1, 2))
    y = sin(h)
    y.clear_all_graph_links()
    assert y.parent is None and h.parent is None


def test_visit_and_visit_check():
    y = sin(mul2(variable(1.0), variable(2.0)))
    names = []
    y.visit(lambda function: names.append(function.info.type_name))
    assert names == ["Mul2", "Sin"]
    assert y.visit_check(lambda function: function.info.type_name == "Mul2")
    assert not y.visit_check(lambda function: function.info.type_name == "Affine")


def test_reset_shape():
    x = nn.Variable((2, 3))
    x.d = np.arange(6).reshape(2, 3)
    x.reset_shape((3, 2))
    assert x.d.tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ShapeError, match="force=True"):
        x.reset_shape((4,))
    x.reset_shape((4,), force=True)
    assert x.shape == (4,) and x.d.shape == (4,)


def test_reshape_shares_memory_and_infers_a_length():
    x = variable(1, 2, 3, 4)
    y = x.reshape((2, -1))
    assert y.shape == (2, 2)
    x.d[0] = 9
    assert y.d[0, 0] == 9
    y.forward()
    y.backward(np.float32([[1, 2], [3, 4]]))
    assert x.g.tolist() == [1, 2, 3, 4]


def test_reshape_with_unlink():
    y = variable(1, 2).reshape((2, 1), unlink=True)
    assert y.parent is None and y.shape == (2, 1)


def test_apply_sets_properties_and_refuses_others():
    x = nn.Variable((1,)).apply(need_grad=True, persistent=True)
    assert x.need_grad and x.persistent
    with pytest.raises(ArgumentError, match="a property of Variable must be named, got 'colour'"):
        x.apply(colour=1)


def test_no_grad_of_a_graph():
    x = variable(1, 2)
    y = sin(x).no_grad()
    assert not x.need_grad and not y.need_grad


def test_data_of_another_shape_is_refused():
    with pytest.raises(ShapeError, match=r"must have the shape \(2,\), got \(3,\)"):
        nn.Variable((2,)).data = nn.NdArray((3,))


def test_rank_counts_functions():
    x = variable(1, 2)
    assert x.rank == 0 and sin(sin(x)).rank == 2


def test_inputs_of_a_wrong_kind_are_named():
    with pytest.raises(ArgumentError, match="mul2: input x1 must be a Variable or an NdArray, got ndarray"):
        mul2(variable(1.0), np.ones(1))


def test_wrong_shapes_name_the_function_and_the_inputs():
    with pytest.raises(ShapeError, match=r"(?s)affine: .*x \(2, 3\)  weight \(4, 5\)"):
        affine(nn.Variable((2, 3)), nn.Variable((4, 5)))


def test_unknown_arguments_are_refused():
    with pytest.raises(ArgumentError, match="base_axes"):
        affine(nn.Variable((2, 3)), nn.Variable((3, 5)), base_axes=1)


@pytest.mark.parametrize("left", [True, False])
def test_operators_with_numbers(left):
    x = variable(1, 2, 4)
    pairs = [
        ((2 + x, 2 - x, 2 * x, 2 / x, 2**x) if left else (x + 2, x - 2, x * 2, x / 2, x**2)),
    ]
    values = x.d
    expected = (
        (2 + values, 2 - values, 2 * values, 2 / values, 2**values)
        if left
        else (values + 2, values - 2, values * 2, values / 2, values**2)
    )
    for result, truth in zip(pairs[0], expected, strict=True):
        result.forward()
        assert np.allclose(result.d, truth)


def test_matmul_operator():
    a, b = np.random.randn(2, 3, 4), np.random.randn(4, 5)
    y = nn.Variable.from_numpy_array(a) @ nn.Variable.from_numpy_array(b)
    y.forward()
    assert np.allclose(y.d, a @ b, atol=1e-5)


def test_in_place_operators_make_a_new_variable():
    x = variable(1, 2)
    y = x
    y += 1
    y.forward()
    assert x.parent is None and y.d.tolist() == [2, 3] and x.d.tolist() == [1, 2]


def test_an_ndarray_operand_gives_an_ndarray():
    result = variable(1, 2) * nn.NdArray.from_numpy_array(np.float32([3, 4]))
    assert isinstance(result, nn.NdArray) and result.data.tolist() == [3, 8]
