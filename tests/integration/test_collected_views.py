"""Memory that a program looks at when the next values come: seen on NNabla 1.39 as a black box."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S


def leaf(*shape):
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return nn.Variable.from_numpy_array(values, need_grad=True)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "choose",
    [
        lambda x: F.max(x, axis=1, only_index=True),
        lambda x: F.min(F.relu(x), axis=1, keepdims=True, only_index=True),
        lambda x: F.reshape(F.max(x, axis=1, only_index=True), (1, 1)),
    ],
)
def test_choices_that_a_program_collects_stay_what_they_were(choose, dynamic):
    x = leaf(1, 3)
    y = choose(x)
    collected, copies = [], []
    for step in range(6):
        x.d = np.roll([1.0, 2.0, 3.0], step)
        with nn.auto_forward(dynamic):
            y = choose(x) if dynamic else y
        if not dynamic:
            y.forward(clear_no_need_grad=True)
        collected.append(np.squeeze(y.d, axis=0))
        copies.append(np.array(collected[-1]))
    assert [np.ravel(now).tolist() for now in collected] == [np.ravel(then).tolist() for then in copies]
    assert len(set(np.ravel(copies).tolist())) == 3


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "zero", [lambda w, solver: w.grad.zero(), lambda w, solver: solver.zero_grad(), lambda w, solver: w.g]
)
def test_gradients_that_a_program_collects_stay_what_they_were(zero, dynamic):
    w, solver = leaf(3), S.Sgd(0.1)
    solver.set_parameters({"w": w})
    collected = []
    loss = F.sum(w * w * 2)
    for step in range(5):
        w.d = step
        if zero(w, solver) is not None:
            w.g = 0
        with nn.auto_forward(dynamic):
            loss = F.sum(w * w * 2) if dynamic else loss
        loss.forward()
        loss.backward(clear_buffer=True)
        collected.append(w.g)
    assert [gradient.tolist() for gradient in collected] == [[4 * step] * 3 for step in range(5)]


def test_gradients_of_two_losses_are_two():
    w = leaf(2)
    first, second = F.sum(w * w), F.sum(w * 3)
    gradients = []
    for _ in range(3):
        for loss in (first, second):
            w.grad.zero()
            loss.forward()
            loss.backward()
            gradients.append(w.g)
    assert [gradient.tolist() for gradient in gradients] == [[0, 2], [3, 3]] * 3


def test_a_number_that_is_filled_in_leaves_views_alone():
    x = leaf(2)
    before, y = x.d, F.sum(x)
    for number in (3.0, 4.0):
        x.d = number
        assert before.tolist() == [0, 1] and x.d.tolist() == [number] * 2
        y.forward()
        assert float(y.d) == 2 * number
    held = x.d
    x.d = np.array([5, 6], np.float32)  # an array is written where the values are
    assert held.tolist() == [5, 6]
    x.d = np.array([7, 8])  # unless it is one of another dtype
    y.forward()
    assert held.tolist() == [5, 6] and float(y.d) == 15


def test_memory_whose_address_others_have_is_filled_in_place():
    values = np.ones(3, np.float32)
    x = nn.Variable.from_dlpack(values)
    view = x.d
    x.d = 2
    assert x.d.tolist() == values.tolist() == view.tolist() == [2, 2, 2]


def test_a_hook_may_fill_what_the_pass_reads_and_adds_to():
    w, x = leaf(2), leaf(2)
    y = F.sum(F.mul2(w, x))
    y.forward()
    y.backward()
    views = w.d, w.g

    def double(function):
        if function.info.type_name == "Mul2":
            w.data.fill(2)

    y.forward(function_pre_hook=double)
    assert float(y.d) == 2 and views[0].tolist() == [2, 2]
    w.grad.zero()
    again = w.g
    y.backward(function_pre_hook=lambda function: w.grad.fill(10))
    assert w.g.tolist() == [10, 11] == again.tolist()
    assert views[1].tolist() == [0, 1]
