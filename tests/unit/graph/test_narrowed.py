"""Narrowed arrays as data and gradient of leaves: a plan works in their memory, as a single call does."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.errors import ArgumentError, GraphError, ShapeError


@pytest.fixture(params=["cpu:float", "reference:float"])
def context(request):
    if request.param.startswith("cpu"):
        pytest.importorskip("nn_ext_cpu")
    with nn.context_scope(nn.Context([request.param, "reference:float"])):
        yield


def _base(dtype=np.float32):
    return nn.NdArray.from_numpy_array(np.arange(12).reshape(3, 4).astype(dtype) / 8)


def _narrowed(kind, base):
    part = base.narrow(0, 1, 1).view((2, 2)) if kind == "a row in another shape" else base.narrow(1, 1, 2)
    return part.narrow(0, 1, 2) if kind == "twice" else part


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["columns", "twice", "a row in another shape"])
@pytest.mark.parametrize("mode", ["static", "lean", "dynamic"])
def test_forward_and_backward_work_in_the_memory_of_a_narrowed_array(mode, kind, dtype):
    data, grad = _base(dtype), nn.NdArray((3, 4))
    grad.data = np.ones((3, 4), np.float32)
    part = _narrowed(kind, data)
    x = nn.Variable(part.shape, need_grad=True)
    x.data, x.grad = part, _narrowed(kind, grad)
    gain = nn.Variable.from_numpy_array(np.full(part.shape, 2, np.float32), need_grad=True)
    for step in range(3):
        data.data = data.data + 0.25
        values = x.d.copy()
        x.grad.zero()
        gain.grad.zero()
        with nn.auto_forward(mode == "dynamic"):
            if step == 0 or mode == "dynamic":
                loss = F.sum(F.sin(x) * gain + F.mul_scalar(x, 3.0))
            if mode != "dynamic":
                loss.forward(clear_no_need_grad=mode == "lean")
            loss.backward(clear_buffer=mode == "lean")
        np.testing.assert_allclose(loss.d, (np.sin(values) * 2 + 3 * values).sum(), rtol=1e-5)
        np.testing.assert_allclose(x.g, 2 * np.cos(values) + 3, rtol=1e-5)
        np.testing.assert_allclose(gain.g, np.sin(values), rtol=1e-5)
        assert grad.data.sum() == pytest.approx(x.g.sum() + 12 - x.size, rel=1e-5)  # the rest has not changed


@pytest.mark.usefixtures("context")
def test_two_leaves_in_one_memory():
    data, grad = _base(), nn.NdArray((3, 4))
    grad.zero()
    leaves = []
    for start in (0, 2):
        leaf = nn.Variable((3, 2), need_grad=True)
        leaf.data, leaf.grad = data.narrow(1, start, 2), grad.narrow(1, start, 2)
        leaves.append(leaf)
    loss = F.sum(leaves[0] * leaves[1])
    for _ in range(2):
        grad.zero()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        np.testing.assert_allclose(grad.data[:, :2], data.data[:, 2:])
        np.testing.assert_allclose(grad.data[:, 2:], data.data[:, :2])


@pytest.mark.usefixtures("context")
def test_solvers_and_arithmetic_in_place_change_the_memory():
    base = _base()
    before = base.data.copy()
    x = nn.Variable((3, 2), need_grad=True)
    x.data = base.narrow(1, 1, 2)
    loss = F.sum(x * x)
    for solver in (S.Sgd(0.25), S.Momentum(0.25, 0.0), S.Adam(0.0)):
        solver.set_parameters({"x": x})
        base.data = before
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.update()
        moved = before[:, 1:3] * (1 if isinstance(solver, S.Adam) else 0.5)
        np.testing.assert_allclose(base.data[:, 1:3], moved, rtol=1e-6)
        np.testing.assert_array_equal(base.data[:, [0, 3]], before[:, [0, 3]])
    base.data = before
    x.data += 1
    x.data *= 2
    np.testing.assert_allclose(base.data[:, 1:3], (before[:, 1:3] + 1) * 2)
    loss.forward()
    np.testing.assert_allclose(loss.d, (base.data[:, 1:3] ** 2).sum(), rtol=1e-6)


def test_a_later_window_is_seen():
    base = _base()
    x = nn.Variable((3, 2))
    y = F.mul_scalar(x, 2.0)
    for start in (0, 2, 1):
        x.data = base.narrow(1, start, 2)
        y.forward()
        np.testing.assert_allclose(y.d, base.data[:, start : start + 2] * 2)


def test_what_cannot_be_narrowed_is_refused():
    base = _base()
    with pytest.raises(ArgumentError, match="narrow: start and length must lie within axis 1"):
        base.narrow(1, -1, 2)
    with pytest.raises(ShapeError, match="must be contiguous"):
        base.narrow(1, 1, 2).view((6,))
    with pytest.raises(ShapeError, match="must not be narrowed"):
        base.narrow(0, 1, 2).view((8,)).view((2, 2, 2)).narrow(0, 0, 1)
    x = nn.Variable.from_numpy_array(np.ones((3, 2), np.float32))
    with pytest.raises(GraphError, match="must not be a narrowed"):
        F.sin(x, outputs=[base.narrow(1, 1, 2)])


def test_graphs_of_one_structure_read_their_own_part_of_an_array():
    rows = np.arange(12.0).reshape(3, 4)
    base = nn.NdArray.from_numpy_array(rows)
    inputs = [nn.Variable((1, 4)) for _ in rows]
    for number, x in enumerate(inputs):
        x.data = base.narrow(0, number, 1)
    w = nn.Variable.from_numpy_array(np.ones((1, 4)), need_grad=True)
    for number in (0, 1, 2, 1):
        with nn.auto_forward():
            y = F.sum(w * F.tanh(inputs[number]) * inputs[number])
        w.grad.zero()
        y.backward(clear_buffer=True)
        np.testing.assert_allclose(w.g[0], np.tanh(rows[number]) * rows[number], rtol=1e-5)


def test_filling_a_narrowed_array_is_as_filling_a_whole_one():
    array = nn.NdArray((2, 3))
    part = array.narrow(0, 1, 1)
    part.fill(1e308)  # beyond float32
    assert array.data.tolist() == [[0, 0, 0], [np.inf, np.inf, np.inf]]
    array.zero()
    array.cast("int32")
    with pytest.raises(ArgumentError, match="numbers read as int32"):
        array.narrow(0, 0, 1).fill(np.nan)


@pytest.mark.usefixtures("context")
def test_a_result_in_a_part_of_memory_that_nobody_has_written():
    base = nn.NdArray((2, 3))
    part = base.narrow(0, 1, 1)
    assert F.cos(nn.NdArray((1, 3)), outputs=part) is part
    np.testing.assert_array_equal(part.data, np.ones((1, 3)))
    np.testing.assert_array_equal(base.data, [[0, 0, 0], [1, 1, 1]])
