"""Variable: properties, links, shapes, errors."""

import gc
import re
import sys
import weakref

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parameter
import nn_core.parametric_functions as PF
from nn_core.engine.graph.apply import operator
from nn_core.errors import ArgumentError, GraphError, ShapeError, SignatureError, UnknownAttributeError

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
        node = weakref.ref(y.producer)
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


def test_reshape_takes_the_shape_by_its_name_as_nnabla_does():
    x = variable(1, 2, 3, 4)
    assert x.reshape(shape=(2, 2)).shape == (2, 2) and x.reshape(shape=[4, 1], unlink=True).parent is None
    assert x.data.reshape(shape=(2, 2)).shape == (2, 2)
    with pytest.raises(SignatureError, match=r"reshape: the shape must be given once, got \(4,\) and shape=\(2, 2\)"):
        x.reshape(4, shape=(2, 2))


def test_apply_sets_properties_and_refuses_others():
    x = nn.Variable((1,)).apply(need_grad=True, persistent=True)
    assert x.need_grad and x.persistent
    with pytest.raises(ArgumentError, match="a property of Variable must be named, got 'colour'"):
        x.apply(colour=1)


@pytest.mark.parametrize("need_grad", [False, True])
def test_no_grad_of_a_graph_is_a_copy_with_constant_parameters(need_grad):
    x = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32), need_grad=need_grad)
    y = PF.affine(x, 4)
    copy = y.no_grad()
    weight, copied = y.parent.inputs[1], copy.parent.inputs[1]
    assert copy is not y and copy.parent.inputs[0] is x
    assert (weight.need_grad, copied.need_grad, y.need_grad, copy.need_grad) == (True, False, True, need_grad)
    assert weight == copied and len(nn.get_parameters()) == 2
    nn.forward_all([y, copy])
    np.testing.assert_array_equal(y.d, copy.d)


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


class Labelled(nn.Variable):
    """A Variable of a program's own, with an attribute."""

    def __init__(self, values, label):
        super().__init__(np.shape(values), need_grad=True)
        self.d = values
        self.label = label


@pytest.mark.parametrize("auto", [False, True])
def test_a_subclass_of_variable_is_taken_wherever_a_variable_is(auto):
    values = np.float32([[-1, 2, 3], [4, -5, 6]])
    gradients = []
    for make in (lambda: Labelled(values, "x"), lambda: nn.Variable.from_numpy_array(values, need_grad=True)):
        with nn.auto_forward(auto):
            for _ in range(3):  # the later steps of a dynamic graph may take other paths than the first
                x = make()
                x.grad.zero()
                y = F.sum(F.relu(x * 2 + x[:, :1])) + F.sum(F.concatenate(x, x) ** 2) + F.sum(F.split(x)[0])
                if not auto:
                    y.forward()
                y.backward()
                (dx,) = nn.grad([F.sum(x**2)], [x])
                dx.forward()
            gradients.append((x.g.copy(), dx.d.copy(), y.d.copy()))
    for ours, plain in zip(*gradients, strict=True):
        np.testing.assert_array_equal(ours, plain)
    assert Labelled([1.0], "w").label == "w"


def test_a_subclass_of_variable_is_a_parameter_like_any_other():
    w = Labelled(np.ones((1, 3), np.float32), "w")
    with nn.parameter_scope("", scope={}):
        nn.parameter.set_parameter("affine/W", w)
        nn.parameter.set_parameter("affine/b", Labelled(np.zeros(3, np.float32), "b"))
        for _ in range(2):
            y = F.sum(PF.affine(variable([2.0]), 3))
            w.grad.zero()
            y.forward()
            y.backward()
            np.testing.assert_array_equal(w.g, [[2, 2, 2]])
        assert nn.get_parameters()["affine/W"] is w


@pytest.mark.parametrize(("need_grad", "value"), [(1, True), (0, False), (np.True_, True), (None, False)])
def test_need_grad_may_be_a_number_or_a_bool_of_numpy(need_grad, value):
    assert nn.Variable((2, 3), need_grad).need_grad is value


@pytest.mark.parametrize("arguments", [(2, 3), (2, 1), ((2,), 3), ((2,), "yes")])
def test_a_second_length_is_no_flag(arguments):
    with pytest.raises(ArgumentError, match=r"Variable: need_grad must be .*\n  hint: the shape is one argument, as in Var"):
        nn.Variable(*arguments)


def test_variables_made_inside_recompute_carry_the_flag():
    with nn.recompute():
        assert nn.Variable((2,)).recompute
        assert nn.Variable.from_numpy_array(np.ones(2)).recompute
        assert F.exp(nn.Variable((2,))).recompute
        with nn.recompute(False):
            assert not nn.Variable((2,)).recompute
    assert not nn.Variable((2,)).recompute


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("requires_grad", "need_grad says"),
        ("value", "d is the data as a NumPy array"),
        ("gradient", "g as a NumPy array"),
    ],
)
def test_names_of_other_libraries_are_refused_with_the_right_one(name, hint):
    x = nn.Variable((2,))
    for use in (lambda: getattr(x, name), lambda: setattr(x, name, 3), lambda: x.apply(**{name: 3})):
        with pytest.raises(UnknownAttributeError, match=f"Variable: has no attribute '{name}'\n  hint: .*{hint}"):
            use()
    assert not hasattr(x, name)


@pytest.mark.parametrize(
    ("value", "name", "similar"), [(nn.Variable(), "persistant", "persistent"), (nn.NdArray(), "cas", "cast")]
)
def test_attributes_that_do_not_exist_are_refused_and_similar_ones_suggested(value, name, similar, capsys):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
        getattr(value, name)
    sys.__excepthook__(caught.type, caught.value, caught.tb)  # before Python 3.12, the interpreter suggests
    assert re.search(f"did you mean:? '{similar}'", capsys.readouterr().err, re.IGNORECASE)


def test_attributes_of_other_classes_and_unknown_ones_are_refused():
    x = nn.Variable((2,))
    with pytest.raises(UnknownAttributeError, match="NdArray: has no attribute 'grad'\n  hint: gradients belong"):
        _ = x.data.grad
    with pytest.raises(AttributeError, match="are not on a CUDA device"):
        _ = x.data.__cuda_array_interface__
    for name in ("persistant", "step", "trail", "index"):
        with pytest.raises(AttributeError):
            setattr(x, name, 3)
    for name in ("d", "value", "need_grad", "strides", "cas"):
        with pytest.raises(AttributeError):
            setattr(x.data, name, 3)


def test_dir_lists_what_programs_use():
    x = nn.Variable((2,))
    assert {"d", "forward", "need_grad", "parent"} < set(dir(x))
    assert not {"storage", "producer", "of_storage", "plans", "requires_grad"} & set(dir(x))
    assert {"cast", "fill", "narrow"} < set(dir(x.data))
    assert not {"of_shape", "readwrite", "synced", "grad"} & set(dir(x.data))


def test_subclasses_with_room_for_attributes_may_use_every_name():
    class Named(nn.Variable):
        pass

    x = Named((2,))
    x.value, x.requires_grad, x.anything = 3, True, "a"
    assert (x.value, x.requires_grad, x.anything) == (3, True, "a")
    with pytest.raises(UnknownAttributeError, match="hint: grad is"):
        _ = x.gradient


@pytest.mark.parametrize("kind", [nn.Variable, nn.NdArray])
def test_the_ways_to_make_an_object_are_methods_of_its_class(kind):
    """Tools that read documentation looked for them in the functions that make them."""
    for name in ("__new__", "__init__"):
        way = getattr(kind, name)
        assert (way.__name__, way.__qualname__, way.__module__) == (name, f"{kind.__name__}.{name}", kind.__module__)
