"""Functions that arrange elements, against NumPy and central differences."""

from typing import Any

import numpy as np
import pytest

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.reference import axis_maps
from nn_core.testing.operators import (
    ArrayFunctions,
    check_forward,
    check_gradient,
    check_table,
    infer_shapes,
    run,
    run_gradient,
    spec_of,
)

RNG = np.random.default_rng(3)
X = RNG.normal(size=(3, 4, 5))


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def shapes(name: str, *inputs: tuple[int, ...], **args: Any) -> tuple[tuple[int, ...], ...]:
    """Return the result of the shape rule for arguments as the engine passes them."""
    return infer_shapes(spec_of(name), inputs, args)


def test_every_function_of_the_topic_has_its_attachments() -> None:
    check_table("shape")


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concatenate_joins_along_an_axis(axis: int) -> None:
    parts = np.split(X, [1, 3], axis=axis)
    check_forward("Concatenate", parts, X, axis=axis, dtypes=("float64",))
    check_gradient("Concatenate", parts, axis=axis)


def test_concatenate_defaults_to_the_last_axis_and_takes_empty_arrays() -> None:
    check_forward("Concatenate", [normal(2, 3), np.zeros((2, 0))], lambda a, b: a)
    check_forward("Concatenate", [X], lambda a: a)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_split_and_stack_undo_each_other(axis: int) -> None:
    parts = [np.take(X, place, axis) for place in range(X.shape[axis])]
    check_forward("Split", [X], tuple(parts), axis=axis, dtypes=("float64",))
    check_forward("Stack", parts, X, axis=axis, dtypes=("float64",))
    check_gradient("Split", [X], axis=axis)
    check_gradient("Stack", parts, axis=axis)


def test_stack_takes_scalars_and_a_single_input() -> None:
    check_forward("Stack", [np.array(1.0), np.array(2.0)], np.array([1.0, 2.0]))
    check_gradient("Stack", [normal(2)], axis=1)


SLICES = [
    ({"start": (0, 1, 2), "stop": (3, 3, 5), "step": (1, 1, 1)}, np.s_[0:3, 1:3, 2:5]),
    ({"start": (1,), "stop": (4,)}, np.s_[:, :, 1:4]),
    ({"start": (-2, 0), "stop": (-1, 100)}, np.s_[:, -2:-1, :]),
    ({"step": (-1, 1, -2)}, np.s_[::-1, :, ::-2]),
    ({"start": (2, 3, 4), "stop": (0, -5, 0), "step": (-1, -2, -3)}, np.s_[2:0:-1, 3:-5:-2, 4:0:-3]),
    ({"start": (0, 1, 1), "step": (1, 2, 3)}, np.s_[:, 1::2, 1::3]),
    ({"start": (2,), "stop": (2,)}, np.s_[:, :, 2:2]),
    ({"start": (1, 0, 0), "stop": (0, 4, 5)}, np.s_[1:0]),
    ({}, np.s_[:]),
]


@pytest.mark.parametrize(("args", "index"), SLICES)
def test_slice_is_a_python_slice_on_each_axis(args: dict[str, Any], index: Any) -> None:
    check_forward("Slice", [X], lambda x: x[index], **args)
    dy = normal(*X[index].shape)
    dx = np.zeros_like(X)
    dx[index] = dy
    np.testing.assert_array_equal(run_gradient("Slice", X, grads=[dy], **args)[0], dx)


def test_slice_rules_take_open_ends() -> None:
    assert shapes("Slice", (6, 5), start=(None, 1), stop=(2, None), step=(None, -1)) == ((2, 2),)


@pytest.mark.parametrize("mode", ["constant", "reflect", "repeat"])
@pytest.mark.parametrize("pad_width", [(1, 2), (0, 0, 3, 0), (1, 0, 0, 2, 6, 7), ()])
def test_pad_agrees_with_numpy(mode: str, pad_width: tuple[int, ...]) -> None:
    pairs = [(0, 0)] * (3 - len(pad_width) // 2) + list(zip(pad_width[::2], pad_width[1::2], strict=True))
    names: Any = {"constant": "constant", "reflect": "reflect", "repeat": "edge"}
    options = {"constant_values": 0.5} if mode == "constant" else {}
    args = {"pad_width": pad_width, "mode": mode}
    check_forward("Pad", [X], lambda x: np.pad(x, pairs, mode=names[mode], **options), constant_value=0.5, **args)
    check_gradient("Pad", [normal(2, 1, 3)], **args)
    padded = shapes("Pad", (2, 1, 3), constant_value=0.0, **args)[0]
    check_gradient("PadBackward", [normal(*padded)], **args)


def test_pad_takes_0d_and_empty_arrays() -> None:
    check_forward("Pad", [np.array(2.0)], np.array(2.0), pad_width=())
    check_forward("Pad", [np.zeros((0, 2))], np.zeros((1, 2)), pad_width=(1, 0, 0, 0))
    check_forward("Pad", [np.zeros((0, 2))], np.zeros((0, 3)), pad_width=(1, 0), mode="repeat")


def test_transpose_turns_axes() -> None:
    check_forward("Transpose", [X], lambda x: x.transpose(2, 0, 1), axes=(2, 0, -2))
    check_gradient("Transpose", [X], axes=(2, 0, 1))
    check_forward("Transpose", [np.array(1.0)], np.array(1.0), axes=())


def test_data_movement_keeps_integers() -> None:
    ints = np.arange(6).reshape(2, 3)
    for name, args in [
        ("Transpose", {"axes": (1, 0)}),
        ("Slice", {}),
        ("Flip", {}),
        ("Identity", {}),
        ("Tile", {"reps": (2,)}),
    ]:
        assert run(name, ints, **args)[0].dtype == np.int64


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("given", [(3, 4, 5), (4, 1), (3, 1, 5), (1,), ()])
def test_broadcast_repeats_axes_of_length_one(given: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x = normal(*given)
    check_forward("Broadcast", [x], lambda x: np.broadcast_to(x, shape), shape=shape)
    check_gradient("Broadcast", [x], shape=shape)


def test_broadcast_to_length_zero() -> None:
    check_forward("Broadcast", [normal(1, 3)], np.zeros((0, 3)), shape=(0, 3))


@pytest.mark.parametrize(("y_shape", "axis"), [((4, 5), None), ((5,), -1), ((3, 4), 0), ((4,), 1), ((), None), ((3, 4, 5), 0)])
def test_broadcast_to_places_y_at_an_axis_of_x(y_shape: tuple[int, ...], axis: int | None) -> None:
    y = normal(*y_shape)
    first = 3 - len(y_shape) if axis is None or axis < 0 else axis

    def truth(x: Any, y: Any) -> Any:
        return np.zeros_like(x) + y.reshape(y_shape + (1,) * (3 - first - len(y_shape)))

    check_forward("BroadcastTo", [X, y], truth, axis=axis)
    check_gradient("BroadcastTo", [X, y], axis=axis)


@pytest.mark.parametrize("reps", [(2,), (2, 1, 3), (2, 1, 1, 2), ()])
def test_tile_agrees_with_numpy(reps: tuple[int, ...]) -> None:
    check_forward("Tile", [X], lambda x: np.tile(x, reps), reps=reps)
    check_gradient("Tile", [normal(2, 2, 2)], reps=reps)


@pytest.mark.parametrize("axes", [None, (0,), (-1, 0), ()])
def test_flip_reverses_axes(axes: tuple[int, ...] | None) -> None:
    check_forward("Flip", [X], lambda x: np.flip(x, (2,) if axes is None else axes), axes=axes)
    check_gradient("Flip", [X], axes=axes)


def shifted(x: np.ndarray, by: int, border_mode: str) -> np.ndarray:
    """Move the last axis by padding and cutting."""
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(20, 20)], mode="edge" if border_mode == "nearest" else "symmetric")
    return padded[..., 20 - by : 20 - by + x.shape[-1]]


@pytest.mark.parametrize("border_mode", ["nearest", "reflect"])
@pytest.mark.parametrize("by", [0, 2, -3, 8, -9])
def test_shift_agrees_with_padding_and_cutting(border_mode: str, by: int) -> None:
    args = {"shifts": (by,), "border_mode": border_mode}
    check_forward("Shift", [X], lambda x: shifted(x, by, border_mode), **args)
    check_gradient("Shift", [normal(2, 4)], **args)
    check_gradient("ShiftBackward", [normal(2, 4)], **args)


def test_shift_moves_each_axis_and_takes_empty_arrays() -> None:
    truth = shifted(shifted(X, 2, "nearest").swapaxes(1, 2), -1, "nearest").swapaxes(1, 2)
    check_forward("Shift", [X], truth, shifts=(0, -1, 2), dtypes=("float64",))
    check_forward("Shift", [X], X, dtypes=("float64",))
    check_forward("Shift", [np.zeros((0, 3))], np.zeros((0, 3)), shifts=(1, 1))


@pytest.mark.parametrize("shape", [(12, 5), (-1,), (3, -1, 2), (60, 1, -1)])
def test_reshape_keeps_the_elements_in_order(shape: tuple[int, ...]) -> None:
    check_forward("Reshape", [X], lambda x: x.reshape(shape), shape=shape)
    check_gradient("Reshape", [X], shape=shape)


def test_reshape_of_empty_and_0d_arrays() -> None:
    check_forward("Reshape", [np.zeros((0, 3))], np.zeros((3, 0, 2)), shape=(3, 0, 2))
    check_forward("Reshape", [np.zeros((0, 3))], np.zeros((0, 3)), shape=(-1, 3))
    check_forward("Reshape", [np.array(1.0)], np.array([1.0]), shape=(-1,))
    check_forward("Reshape", [np.array([1.0])], np.array(1.0), shape=())


@pytest.mark.parametrize(
    ("args", "lengths"),
    [
        ({}, [3, 4, 5]),
        ({"start": 1}, [4, 5]),
        ({"end": -1}, [3, 4]),
        ({"start": -2}, [4, 5]),
        ({"start": 2, "end": 1}, []),
    ],
)
def test_shape_reports_lengths(args: dict[str, int], lengths: list[int]) -> None:
    check_forward("Shape", [X], np.array(lengths, dtype=np.int64), **args)


def test_matrix_diag_and_its_inverse() -> None:
    check_forward("MatrixDiag", [normal(2, 3)], lambda x: np.stack([np.diag(row) for row in x]))
    check_forward("MatrixDiagPart", [normal(2, 3, 3)], lambda x: np.stack([np.diag(matrix) for matrix in x]))
    check_gradient("MatrixDiag", [normal(2, 3)])
    check_gradient("MatrixDiagPart", [normal(2, 3, 3)])
    check_forward("MatrixDiag", [np.zeros((2, 0))], np.zeros((2, 0, 0)))
    check_forward("MatrixDiag", [np.array([np.inf, 1.0])], np.array([[np.inf, 0.0], [0.0, 1.0]]))


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("k", [0, 1, -2, 9])
def test_trilu_keeps_a_triangle(k: int, upper: bool) -> None:
    check_forward("Trilu", [X], lambda x: (np.triu if upper else np.tril)(x, k), k=k, upper=upper)
    check_gradient("Trilu", [X], k=k, upper=upper)


@pytest.mark.parametrize("ij_indexing", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_meshgrid_agrees_with_numpy(n: int, ij_indexing: bool) -> None:
    x = [normal(length) for length in (2, 3, 4)[:n]]
    check_forward(
        "Meshgrid",
        x,
        lambda *x: tuple(np.meshgrid(*x, indexing="ij" if ij_indexing else "xy")),
        ij_indexing=ij_indexing,
    )
    check_gradient("Meshgrid", x, ij_indexing=ij_indexing)


def test_identity_and_unlink_copy() -> None:
    for name in ("Identity", "Unlink"):
        check_forward(name, [X], lambda x: x)
        check_forward(name, [np.array(3.0)], np.array(3.0))
        assert not np.shares_memory(run(name, X)[0], X)
    check_gradient("Identity", [X])
    assert not spec_of("Unlink").differentiable


def test_functions_that_make_arrays() -> None:
    check_forward("Constant", [], np.full((2, 0, 3), 1.5), val=1.5, shape=(2, 0, 3))
    check_forward("Constant", [], np.array(0.0))
    check_forward("Arange", [], np.arange(5.0), start=0, stop=5)
    check_forward("Arange", [], np.array([0.0, 0.5, 1.0, 1.5, 2.0]), start=0, stop=2.2, step=0.5)
    check_forward("Arange", [], np.array([3.0, 2.0, 1.0]), start=3, stop=0, step=-1)
    check_forward("Arange", [], np.zeros(0), start=3, stop=0)
    for num in (0, 1, 2, 5):
        check_forward("Linspace", [], np.linspace(-1, 2, num), start=-1, stop=2, num=num)
    for k in (0, 1, -1, 7):
        check_forward("EyeLike", [normal(3, 4)], np.eye(3, 4, k), k=k)


def test_assign_returns_the_new_value_twice_and_its_gradient_belongs_to_dst() -> None:
    dst, src = normal(2, 3), normal(2, 3)
    y, new_dst = run("Assign", dst, src)
    np.testing.assert_array_equal(y, src)
    np.testing.assert_array_equal(new_dst, src)
    dy = normal(2, 3)
    dx = run_gradient("Assign", dst, src, grads=[dy])
    np.testing.assert_array_equal(dx[0], dy)
    assert dx[1] is None


def test_sink_gives_ones_or_nothing() -> None:
    inputs = [normal(2), np.arange(3), np.array(1.0)]
    check_forward("Sink", inputs, np.array(0.0), dtypes=("float64",))
    gradients = run_gradient("Sink", *inputs, grads=[np.array(7.0)])
    assert [dx.tolist() for dx in gradients] == [[1.0, 1.0], [1.0, 1.0, 1.0], 1.0]
    assert run_gradient("Sink", *inputs, one_input_grad=False) == (None, None, None)


def test_second_derivatives_of_linear_functions_come_from_the_functions_themselves() -> None:
    F = ArrayFunctions()
    x, dy = normal(2, 3), normal(2, 7)
    dx = F.pad_backward(dy, pad_width=(2, 2), mode="reflect")
    assert np.isclose(np.sum(dx * x), np.sum(dy * F.pad(x, pad_width=(2, 2), mode="reflect")))


def test_axis_maps_without_axes_return_a_copy() -> None:
    x = normal(3)
    for result in (axis_maps.take(np, x, []), axis_maps.give_back(np, x, [], ())):
        np.testing.assert_array_equal(result, x)
        assert result is not x


ERRORS = [
    (
        "Concatenate",
        [(2, 3), (2, 3, 1)],
        {"axis": 1},
        ShapeError,
        "equal shapes except along axis 1, got .2, 3. and .2, 3, 1.",
    ),
    ("Concatenate", [(2, 3), (3, 3)], {"axis": 1}, ShapeError, "equal shapes except along axis 1"),
    ("Concatenate", [()], {"axis": -1}, ShapeError, "at least one axis, got 0-d"),
    ("Split", [(2, 0)], {"axis": 1}, ShapeError, "a length of at least 1 along axis 1, got shape .2, 0."),
    ("Stack", [(2,), (3,)], {"axis": 0}, ShapeError, "equal shapes, got .2,. and .3,."),
    ("Stack", [(2,), (2,)], {"axis": 2}, ArgumentError, r"axis must be in \[-2, 1\], got 2"),
    (
        "Slice",
        [(2,)],
        {"start": (0, 0), "stop": None, "step": None},
        ArgumentError,
        "start must have at most one entry for each",
    ),
    ("Slice", [(2,)], {"start": None, "stop": None, "step": (0,)}, ArgumentError, "step must not be zero, got .0,."),
    (
        "Pad",
        [(2,)],
        {"pad_width": (1,)},
        ArgumentError,
        "pad_width must have an even number of entries, at most 2, got .1,.",
    ),
    ("Pad", [(2,)], {"pad_width": (1, 1, 1, 1)}, ArgumentError, "at most 2, got .1, 1, 1, 1."),
    ("Pad", [(2,)], {"pad_width": (1, -1)}, ArgumentError, "pad_width must not be negative, got .1, -1."),
    (
        "Pad",
        [(0,)],
        {"pad_width": (1, 1), "mode": "repeat"},
        ShapeError,
        "must not be empty in mode 'repeat', got shape .0,.",
    ),
    (
        "PadBackward",
        [(2,)],
        {"pad_width": (1, 2)},
        ShapeError,
        "at least as long as pad_width on each axis, got shape .2,.",
    ),
    ("Reshape", [(2, 3)], {"shape": (4,)}, ShapeError, "the same size, got .2, 3. .size 6. and .4,. .size 4."),
    ("Reshape", [(2, 3)], {"shape": (-1, -1)}, ArgumentError, "at most one length of -1, got .-1, -1."),
    (
        "Reshape",
        [(2, 3)],
        {"shape": (4, -1)},
        ShapeError,
        "a multiple of the given lengths, got .2, 3. .size 6. and shape",
    ),
    ("Reshape", [(0, 3)], {"shape": (0, -1)}, ShapeError, "a multiple of the given lengths"),
    ("Transpose", [(2, 3)], {"axes": (0,)}, ArgumentError, "axes must name each of the 2 axes of x once, got .0,."),
    (
        "Shift",
        [(2,)],
        {"shifts": (1, 1), "border_mode": "nearest"},
        ArgumentError,
        "shifts must have at most one entry",
    ),
    ("Broadcast", [(3,)], {"shape": (2,)}, ShapeError, "must be 1 or that of shape"),
    (
        "Broadcast",
        [(3,)],
        {"shape": (1,)},
        ShapeError,
        "must be 1 or that of shape, counted from the last, got .3,. and .1,.",
    ),
    ("Broadcast", [(3,)], {"shape": (-1, 3)}, ArgumentError, "shape must have no negative length, got .-1, 3."),
    ("Broadcast", [(2, 3)], {"shape": (3,)}, ShapeError, "must be 1 or that of shape"),
    (
        "BroadcastTo",
        [(2, 3), (2,)],
        {"axis": -1},
        ShapeError,
        "y must have the shape of the last axes of x, got .2,. and .2, 3.",
    ),
    ("BroadcastTo", [(2, 3), (2,)], {"axis": 1}, ShapeError, "y must have the shape of the axes from 1 of x"),
    ("Tile", [(2,)], {"reps": (0,)}, ArgumentError, "reps must be at least 1, got .0,."),
    ("Meshgrid", [(2,), (2, 2)], {"ij_indexing": False}, ShapeError, "inputs must have one axis, got shape .2, 2."),
    ("MatrixDiag", [()], {}, ShapeError, "x must have at least 1 axes, got shape ()"),
    ("MatrixDiagPart", [(2, 3)], {}, ShapeError, "the last two axes of x must have equal lengths, got shape .2, 3."),
    ("Trilu", [(3,)], {"k": 0, "upper": True}, ShapeError, "x must have at least 2 axes, got shape .3,."),
    ("EyeLike", [(3,)], {"k": 0}, ShapeError, "x must have two axes, got shape .3,."),
    ("Constant", [], {"val": 0.0, "shape": (-1,)}, ArgumentError, "shape must have no negative length, got .-1,."),
    ("Arange", [], {"start": 0.0, "stop": 1.0, "step": 0.0}, ArgumentError, "step must not be zero, got 0.0"),
    ("Arange", [], {"start": 0.0, "stop": np.inf, "step": 1.0}, ArgumentError, "must be finite, got 0.0, inf and 1.0"),
    ("Assign", [(2,), (3,)], {}, ShapeError, "dst and src must have equal shapes, got .2,. and .3,."),
]


@pytest.mark.parametrize(("name", "inputs", "args", "error", "text"), ERRORS)
def test_shape_rules_say_what_must_hold(
    name: str, inputs: list[tuple[int, ...]], args: dict[str, Any], error: type[Exception], text: str
) -> None:
    defaults = {
        "Pad": {"mode": "constant", "constant_value": 0.0},
        "PadBackward": {"mode": "constant"},
        "Reshape": {"inplace": True},
    }
    with pytest.raises(error, match=text):
        shapes(name, *inputs, **{**defaults.get(name, {}), **args})
