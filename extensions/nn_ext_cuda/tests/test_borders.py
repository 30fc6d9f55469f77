"""Borders, grids and arrays made of arguments, of sizes that the samples of the conformance kit do not have, emulated."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.operators.reference import image as images
from nn_core.operators.reference import shape as shapes
from nn_core.operators.reference.indexing import searchsorted

RNG = np.random.default_rng(0)


def ran(device, name, inputs, dtype="float32", **args):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    call = emulated.call_of(name, inputs, dtype, **args)
    assert KERNELS[name].refuse(call) is None
    return emulated.forward(device, KERNELS[name], call, inputs)[0], call


def gradient(device, name, call, x, dy):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    return emulated.backward(device, KERNELS[name], call, [x], dy)[0]


#: Once and several times around, on one side, on joined axes.
WIDTHS = [(1, 2), (9, 14), (0, 3), (5, 0, 0, 0), (2, 1, 0, 0, 3, 4), (0, 0, 0, 0)]


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("mode", ["reflect", "repeat", "constant"])
def test_paddings(device, widths, mode):
    x = RNG.normal(size=(3, 4, 5)).astype("float32")
    y, call = ran(device, "Pad", [x], pad_width=widths, mode=mode)
    np.testing.assert_array_equal(y, shapes.pad(np, x, pad_width=widths, mode=mode, constant_value=0))
    dy = RNG.normal(size=y.shape).astype("float32")
    expected = shapes.pad_backward(np, dy.astype("float64"), pad_width=widths, mode=mode)
    np.testing.assert_allclose(gradient(device, "Pad", call, x, dy), expected, atol=1e-5)
    dx, call = ran(device, "PadBackward", [dy], pad_width=widths, mode=mode)
    np.testing.assert_allclose(dx, expected, atol=1e-5)
    np.testing.assert_array_equal(gradient(device, "PadBackward", call, dy, x), y)


@pytest.mark.parametrize("shifts", [(2,), (-3, 1), (13, -12), (0, 0, -1)])
@pytest.mark.parametrize("border_mode", ["nearest", "reflect"])
def test_shifts(device, shifts, border_mode):
    x = RNG.normal(size=(2, 4, 5)).astype("float32")
    args = {"shifts": shifts, "border_mode": border_mode}
    y, call = ran(device, "Shift", [x], **args)
    np.testing.assert_array_equal(y, shapes.shift(np, x, **args))
    dy = RNG.normal(size=y.shape).astype("float32")
    expected = shapes.shift_backward(np, dy.astype("float64"), **args)
    np.testing.assert_allclose(gradient(device, "Shift", call, x, dy), expected, atol=1e-5)
    np.testing.assert_allclose(ran(device, "ShiftBackward", [dy], **args)[0], expected, atol=1e-5)


def test_nothing_is_padded_by_the_reference(device):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    call = emulated.call_of("Pad", [np.zeros((0, 3), "float32")], pad_width=(1, 1), mode="reflect")
    assert "at least one element" in KERNELS["Pad"].refuse(call).reason


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(("start", "stop", "step"), [(0, 7, 1), (-1.5, 90000, 0.1), (5, -3, -0.7), (2, 2, 1)])
def test_ranges_are_rounded_once(device, start, stop, step, dtype):
    if dtype == "float16" and stop > 1000:
        stop = 100
    args = {"start": start, "stop": stop, "step": step}
    np.testing.assert_array_equal(ran(device, "Arange", [], dtype, **args)[0], shapes.arange(np, **args).astype(dtype))


@pytest.mark.parametrize("num", [1, 2, 49])
def test_lines_end_where_they_should(device, num):
    y, _ = ran(device, "Linspace", [], start=0.1, stop=0.7, num=num)
    np.testing.assert_array_equal(y, np.linspace(0.1, 0.7, num).astype("float32"))


@pytest.mark.parametrize(("start", "end"), [(0, 0), (1, 3), (2, 2), (-2, 0)])
def test_shapes_are_numbers(device, start, end):
    y, call = ran(device, "Shape", [np.zeros((2, 3, 5, 7), "float32")], start=start, end=end)
    assert y.tolist() == list((2, 3, 5, 7)[call.args["start"] : call.args["end"] or 4])


@pytest.mark.parametrize("ij_indexing", [False, True])
def test_meshes(device, ij_indexing):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    lines = [RNG.normal(size=n).astype("float32") for n in (3, 4, 2)]
    call = emulated.call_of("Meshgrid", lines, ij_indexing=ij_indexing)
    found = emulated.forward(device, KERNELS["Meshgrid"], call, lines)
    for one, other in zip(found, np.meshgrid(*lines, indexing="ij" if ij_indexing else "xy"), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("size", [(5, 7), (1, 4), (3, 2, 6)])
@pytest.mark.parametrize("align_corners", [False, True])
def test_grids(device, size, align_corners):
    theta = RNG.normal(size=(3, len(size), len(size) + 1)).astype("float32")
    args = {"size": size, "align_corners": align_corners}
    np.testing.assert_allclose(ran(device, "AffineGrid", [theta], **args)[0], images.affine_grid(np, theta, **args), atol=2e-6)


@pytest.mark.parametrize("right", [False, True])
def test_places_of_values_among_ties_and_nan(device, right):
    rows = np.sort(RNG.integers(0, 6, size=(2, 3, 11)).astype("float32"), axis=-1)
    rows[0, 1, -2:] = np.nan
    values = RNG.integers(-1, 8, size=(2, 3, 20)).astype("float32")
    values[0, :, 3] = np.nan
    y, _ = ran(device, "SearchSorted", [rows, values], right=right)
    np.testing.assert_array_equal(y, searchsorted(np, rows, values, right=right))


def test_they_are_recorded_in_graphs(cuda):
    import emulated

    x = nn.Variable.from_numpy_array(RNG.normal(size=(2, 3, 6, 6)).astype("float32"), need_grad=True)
    y = F.pad(F.shift(x, (1, -2)), (1, 1, 2, 2), mode="reflect") * F.arange(0, 10)
    loss = F.sum(y * F.linspace(0, 1, 10) + F.unlink(y)) + F.sum(F.matrix_diag_part(y[..., :8]))
    emulated.check_recorded(loss, x)
