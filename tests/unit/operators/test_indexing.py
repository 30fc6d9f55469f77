"""Functions that pick, place and order elements, against NumPy, plain loops and central differences."""

from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.reference.registry import KERNELS
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

RNG = np.random.default_rng(4)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def test_every_function_of_the_topic_has_its_attachments() -> None:
    check_table("indexing")


# Picking by number


def test_one_hot_marks_positions() -> None:
    check_forward("OneHot", [[[0], [2]]], np.eye(3)[[0, 2]], shape=(3,))
    truth = np.zeros((2, 3, 2))
    truth[0, 0, 1] = truth[1, 2, 0] = 1
    check_forward("OneHot", [[[0, 1], [2, 0]]], truth, shape=(3, 2))
    check_forward("OneHot", [[[0, 1], [-1, -2]]], truth, shape=(3, 2))


def test_one_hot_of_positions_outside_is_zero() -> None:
    check_forward("OneHot", [[[3], [-4]]], np.zeros((2, 3)), shape=(3,))
    check_forward("OneHot", [np.zeros((0, 1), int)], np.zeros((0, 3)), shape=(3,))
    check_forward("OneHot", [np.zeros((2, 0), int)], np.ones(2), shape=())


@pytest.mark.parametrize("x0", [[0, 2, 2, -1], [[1], [3]], np.array(2), np.zeros((0, 2), int)])
def test_embed_looks_up_rows(x0: Any) -> None:
    w = normal(4, 3, 2)
    check_forward("Embed", [x0, w], lambda x0, w: w[np.asarray(x0, int)])
    check_gradient("Embed", [x0, w])


@pytest.mark.parametrize(("axis", "indices"), [(0, [2, 0, 2]), (1, [[1, -1], [0, 3]]), (-1, 1), (2, np.zeros((0,), int))])
def test_gather_without_batch_axes_is_take(axis: int, indices: Any) -> None:
    x = normal(3, 4, 2)
    check_forward("Gather", [x, indices], lambda x, i: np.take(x, np.asarray(indices), axis=axis), axis=axis)
    check_gradient("Gather", [x, indices], axis=axis)


@pytest.mark.parametrize(
    ("axis", "batch_dims", "index_shape"),
    [(1, 1, (2, 3)), (2, 1, (2, 3, 2)), (2, 2, (2, 3, 5)), (3, 1, (2,)), (2, 2, (2, 3))],
)
def test_gather_with_batch_axes_agrees_with_loops(axis: int, batch_dims: int, index_shape: tuple[int, ...]) -> None:
    x = normal(2, 3, 4, 2)
    indices = RNG.integers(-x.shape[axis], x.shape[axis], index_shape)
    shape = x.shape[:axis] + index_shape[batch_dims:] + x.shape[axis + 1 :]
    truth = np.empty(shape)
    for batch in np.ndindex(*x.shape[:batch_dims]):
        truth[batch] = np.take(x[batch], indices[batch], axis=axis - batch_dims)
    check_forward("Gather", [x, indices], truth, axis=axis, batch_dims=batch_dims, dtypes=("float64",))
    check_gradient("Gather", [x, indices], axis=axis, batch_dims=batch_dims)


@pytest.mark.parametrize("indices", [[[0, 1, 2], [1, -1, 0]], [[0, 2, 2]], [[[1, 0]], [[0, 0]], [[1, 1]]]])
def test_gather_nd_and_scatter_nd_use_positions(indices: Any) -> None:
    x, places = normal(3, 2, 2), tuple(np.asarray(indices))
    check_forward("GatherNd", [x, indices], lambda x, i: x[places])
    check_gradient("GatherNd", [x, indices])
    data = normal(*x[places].shape)
    added = np.zeros(x.shape)
    np.add.at(added, places, data)
    check_forward("ScatterNd", [data, indices, None], (added, None), shape=x.shape, add=True, dtypes=("float64",))
    check_gradient("ScatterNd", [data, indices, None], shape=x.shape, add=True)
    check_gradient("ScatterNd", [data, indices, x], add=True)


def test_gather_nd_of_a_single_position() -> None:
    check_forward("GatherNd", [normal(3, 2), [1]], lambda x, i: x[1])


def test_scatter_nd_overwrites_zeros_or_an_existing_array() -> None:
    data, indices, out = normal(3, 2), [[4, 0, -2]], normal(5, 2)
    truth = np.zeros((5, 2))
    truth[[4, 0, 3]] = data
    check_forward("ScatterNd", [data, indices, None], (truth, None), shape=(5, 2), dtypes=("float64",))
    truth[[1, 2]] = out[[1, 2]]
    y, new_out = run("ScatterNd", data, indices, out)
    np.testing.assert_array_equal(y, truth)
    np.testing.assert_array_equal(new_out, truth)
    check_gradient("ScatterNd", [data, indices, None], shape=(5, 2))
    check_gradient("ScatterNd", [data, indices, out])


def test_scatter_nd_sums_half_precision_in_single() -> None:
    ones = np.ones(4096, np.float16)
    assert run("ScatterNd", ones, np.zeros((1, 4096), int), None, shape=(1,), add=True)[0] == 4096


@pytest.mark.parametrize(("axis", "index_shape"), [(0, (5, 2)), (0, (3, 1)), (1, (3, 4)), (-1, (1, 4)), (1, (0, 2))])
def test_scatter_add_agrees_with_loops(axis: int, index_shape: tuple[int, ...]) -> None:
    x0, x1 = normal(3, 2), normal(5, 4)
    indices = RNG.integers(-x0.shape[axis], x0.shape[axis], index_shape)
    truth = x0.copy()
    for i, j in np.ndindex(*index_shape):
        place = (indices[i, j], j) if axis == 0 else (i, indices[i, j])
        truth[place] += x1[i, j]
    check_forward("ScatterAdd", [x0, indices, x1], truth, axis=axis, dtypes=("float64",))
    check_gradient("ScatterAdd", [x0, indices, x1], axis=axis)


@pytest.mark.parametrize(
    ("name", "inputs", "args", "text"),
    [
        ("Embed", [[0, 3], normal(3, 2)], {}, r"embed: x0 must be in \[-3, 3\), got values from 0 to 3"),
        ("Gather", [normal(3), [-4]], {}, r"gather: Indices must be in \[-3, 3\), got values from -4 to -4"),
        (
            "GatherNd",
            [normal(3, 2), [[0], [2]]],
            {},
            r"gather_nd: indices must be in \[-2, 2\), got values from 2 to 2",
        ),
        ("ScatterNd", [normal(1), [[3]], None], {"shape": (3,)}, r"scatter_nd: indices must be in \[-3, 3\)"),
        ("ScatterAdd", [normal(3), [3], normal(1)], {}, r"scatter_add: indices must be in \[-3, 3\)"),
    ],
)
def test_numbers_outside_are_refused(name: str, inputs: list[Any], args: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        run(name, *inputs, **args)


# Picking by mask


@pytest.mark.parametrize("mask", [[1, 0, 1], [[1.0, 0.0], [0.0, 0.0], [0.5, -1.0]], [0, 0, 0], 1])
def test_bool_gather_and_bool_scatter_undo_each_other(mask: Any) -> None:
    x, mask = normal(3, 2, 2), np.asarray(mask)
    picked = x[mask != 0]
    check_forward("BoolGather", [x, mask], lambda x, mask: x[mask != 0])
    check_gradient("BoolGather", [x, mask], wrt=[0])
    truth = np.where((mask != 0).reshape(mask.shape + (1,) * (3 - mask.ndim)), x, 0)
    check_forward("BoolScatter", [picked, mask, None], (truth, None), dtypes=("float64",))
    check_gradient("BoolScatter", [picked, mask, None], wrt=[0])


def test_bool_scatter_into_an_existing_array() -> None:
    x, mask, output = normal(2, 2), np.array([1, 0, 1]), normal(3, 2)
    y, new_output = run("BoolScatter", x, mask, output)
    np.testing.assert_array_equal(y, [x[0], output[1], x[1]])
    np.testing.assert_array_equal(new_output, y)
    check_gradient("BoolScatter", [x, mask, output], wrt=[0, 2])


def test_bool_scatter_refuses_a_mask_with_another_count() -> None:
    with pytest.raises(ShapeError, match="input must have an entry for each non-zero of mask, got 1 and 2"):
        run("BoolScatter", normal(1, 2), np.array([1, 0, 1]), None)


@pytest.mark.parametrize("mask", [[[1, 0], [0, 0], [1, 1]], [0, 1], [[1], [0], [0]], 1])
def test_bool_fill_replaces(mask: Any) -> None:
    x = normal(3, 2)
    check_forward("BoolFill", [x, mask], lambda x, mask: np.where(mask != 0, -1.5, x), value=-1.5)
    check_gradient("BoolFill", [x, mask], wrt=[0], value=-1.5)


def test_bool_fill_removes_nan() -> None:
    check_forward("BoolFill", [[np.nan, 1.0], [1, 0]], np.array([0.0, 1.0]))


def test_nonzero_agrees_with_numpy() -> None:
    x = RNG.integers(0, 2, (3, 4, 2))
    check_forward("NonZero", [x], np.stack(np.nonzero(x)))
    check_forward("NonZero", [[0.0, np.nan]], np.array([[1]]))
    check_forward("NonZero", [np.zeros((2, 3))], np.zeros((2, 0), int))
    check_forward("NonZero", [np.array(3.0)], np.zeros((0, 1), int))
    check_forward("NonZero", [np.array(0.0)], np.zeros((0, 0), int))


def test_dynamic_shapes_are_zero_before_the_run() -> None:
    def shapes(name: str, *inputs: tuple[int, ...], **args: Any) -> Any:
        return infer_shapes(spec_of(name), inputs, args)

    flags = {"sorted": True, "with_index": True, "with_inverse": True, "with_counts": True}
    assert shapes("BoolGather", (3, 4, 2), (3, 4)) == ((0, 2),)
    assert shapes("NonZero", (3, 4)) == ((2, 0),)
    assert shapes("Unique", (3, 4), flatten=True, axis=None, **flags) == ((0,), (0,), (12,), (0,))
    assert shapes("Unique", (3, 4), flatten=False, axis=1, **flags) == ((3, 0), (0,), (4,), (0,))
    for name in ("BoolGather", "NonZero", "Unique", "ONNXNonMaxSuppression"):
        assert spec_of(name).has("dynamic_shape")


# Ordering


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sort_agrees_with_numpy(axis: int, reverse: bool) -> None:
    x = normal(3, 4, 2)
    sign = -1 if reverse else 1
    truth = (sign * np.sort(sign * x, axis=axis), np.argsort(sign * x, axis=axis))
    check_forward("Sort", [x], truth, axis=axis, reverse=reverse, with_index=True, dtypes=("float64",))
    check_forward("Sort", [x], truth[:1], axis=axis, reverse=reverse, dtypes=("float64",))
    check_forward("Sort", [x], truth[1:], axis=axis, reverse=reverse, only_index=True, dtypes=("float64",))
    check_gradient("Sort", [x], axis=axis, reverse=reverse)
    check_gradient("Sort", [x], axis=axis, reverse=reverse, with_index=True)


def test_sort_keeps_the_order_of_equal_elements_and_takes_nan_for_the_largest() -> None:
    x = np.array([3.0, np.nan, 1.0, 3.0, np.nan, 2.0])
    assert run("Sort", x, only_index=True)[0].tolist() == [2, 5, 0, 3, 1, 4]
    assert run("Sort", x, only_index=True, reverse=True)[0].tolist() == [1, 4, 0, 3, 5, 2]
    assert run("Sort", x, only_index=True)[0].dtype == np.int64


def test_sort_places_have_no_gradient() -> None:
    assert run_gradient("Sort", normal(3), only_index=True) == (None,)


def test_sort_takes_empty_arrays() -> None:
    check_forward("Sort", [np.zeros((2, 0))], (np.zeros((2, 0)), np.zeros((2, 0), int)), with_index=True, reverse=True)


@pytest.mark.parametrize("flags", [(False, False, False), (True, True, True), (False, True, False), (False, False, True)])
def test_unique_agrees_with_numpy(flags: tuple[bool, bool, bool]) -> None:
    x = RNG.integers(0, 4, (3, 5)).astype(float)
    args = dict(zip(("with_index", "with_inverse", "with_counts"), flags, strict=True))
    expected = np.unique(x, True, True, True)
    truth = (expected[0], *[value.reshape(-1) for value, wanted in zip(expected[1:], flags, strict=True) if wanted])
    check_forward("Unique", [x], truth, **args)


def test_unique_along_an_axis_and_in_order_of_occurrence() -> None:
    x = np.array([[3.0, 1.0], [0.0, 2.0], [3.0, 1.0]])
    everything = {"with_index": True, "with_inverse": True, "with_counts": True}
    truth: Any = (x[[1, 0]], np.array([1, 0]), np.array([1, 0, 1]), np.array([1, 2]))
    check_forward("Unique", [x], truth, flatten=False, axis=0, **everything)
    truth = (x[[0, 1]], np.array([0, 1]), np.array([0, 1, 0]), np.array([2, 1]))
    check_forward("Unique", [x], truth, flatten=False, axis=0, sorted=False, **everything)
    truth = (
        np.array([3.0, 1.0, 0.0, 2.0]),
        np.array([0, 1, 2, 3]),
        np.array([0, 1, 2, 3, 0, 1]),
        np.array([2, 2, 1, 1]),
    )
    check_forward("Unique", [x], truth, sorted=False, axis=1, **everything)
    assert run("Unique", np.zeros((0, 3)))[0].shape == (0,)


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted_agrees_with_numpy(right: bool) -> None:
    sequence, values = (
        np.sort(RNG.integers(0, 9, (2, 3, 5)), axis=-1).astype(float),
        RNG.integers(-1, 10, (2, 3, 4)).astype(float),
    )
    side: Any = "right" if right else "left"
    truth = np.empty((2, 3, 4), int)
    for place in np.ndindex(2, 3):
        truth[place] = np.searchsorted(sequence[place], values[place], side=side)
    check_forward("SearchSorted", [sequence, values], truth, right=right)
    check_forward("SearchSorted", [sequence[0, 0], values[0, 0]], truth[0, 0], right=right)
    check_forward("SearchSorted", [np.zeros((0, 3)), np.zeros((0, 2))], np.zeros((0, 2), int), right=right)


TOP_K = [
    ({"k": 2}, [[3.0, 1.0], [4.0, 2.0]], [[2, 0], [0, 1]]),
    ({"k": 2, "abs": True}, [[-5.0, 3.0], [4.0, 2.0]], [[1, 2], [0, 1]]),
    ({"k": 2, "largest": False}, [[-5.0, 1.0], [2.0, 2.0]], [[1, 0], [1, 2]]),
    ({"k": 3, "base_axis": 0}, [4.0, 3.0, 2.0], [3, 2, 4]),
]


@pytest.mark.parametrize(("args", "y", "places"), TOP_K)
def test_top_k_data_keeps_the_best(args: dict[str, Any], y: Any, places: Any) -> None:
    x = np.array([[1.0, -5.0, 3.0], [4.0, 2.0, 2.0]])
    check_forward("TopKData", [x], (np.array(y), np.array(places)), with_index=True, **args)
    check_forward("TopKData", [x], np.array(y), **args)
    in_place = np.zeros(x.size if args.get("base_axis") == 0 else x.shape)
    np.put_along_axis(in_place, np.array(places), np.array(y), axis=-1)
    check_forward("TopKData", [x], in_place.reshape(x.shape), reduce=False, **args)


@pytest.mark.parametrize(
    "args", [{}, {"reduce": False}, {"with_index": True}, {"abs": True, "base_axis": 2}, {"largest": False}]
)
def test_top_k_data_gradient(args: dict[str, Any]) -> None:
    check_gradient("TopKData", [normal(2, 3, 4)], k=3, **args)


def test_top_k_grad_keeps_the_best_gradients() -> None:
    x, dy = normal(1, 2, 2), np.array([[[1.0, -7.0], [3.0, 2.0]]])
    check_forward("TopKGrad", [x], lambda x: x, k=2)
    np.testing.assert_array_equal(run_gradient("TopKGrad", x, grads=[dy], k=2)[0], [[[0.0, 0.0], [3.0, 2.0]]])
    np.testing.assert_array_equal(run_gradient("TopKGrad", x, grads=[dy], k=1, abs=True)[0], [[[0.0, -7.0], [0.0, 0.0]]])


# Boxes


BOXES = [[[0.5, 0.5, 1, 1, 0.9, 0.7, 0.9], [0.5, 0.55, 1, 1, 0.8, 0.75, 0.95], [3, 3, 1, 1, 0.4, 0.8, 0.1]]]


def suppressed(objectness: list[float], probabilities: list[list[float]]) -> np.ndarray:
    y = np.array(BOXES)
    y[0, :, 4], y[0, :, 5:] = objectness, probabilities
    return y


@pytest.mark.parametrize(
    ("args", "truth"),
    [
        ({}, suppressed([0.9, 0.8, 0.0], [[0.63, 0.81], [0, 0], [0, 0]])),
        ({"thresh": 0.1}, suppressed([0.9, 0.8, 0.4], [[0.63, 0.81], [0, 0], [0.32, 0]])),
        ({"thresh": 0.35, "nms_per_class": False}, suppressed([0.9, 0.0, 0.4], [[0.63, 0.81], [0, 0], [0, 0]])),
        ({"thresh": 0.62, "nms": 1.0}, suppressed([0.9, 0.8, 0.0], [[0.63, 0.81], [0, 0.76], [0, 0]])),
    ],
)
def test_nms_detection2d_suppresses_overlapping_boxes(args: dict[str, Any], truth: np.ndarray) -> None:
    check_forward("NmsDetection2d", [BOXES], truth, dtypes=("float64", "float32"), **args)


def test_a_suppressed_box_suppresses_nothing() -> None:
    chain = [[[0.5, 0.5, 1, 1, 0.9, 1.0], [1.1, 0.5, 1, 1, 0.8, 1.0], [1.7, 0.5, 1, 1, 0.7, 1.0]]]
    assert run("NmsDetection2d", chain, nms=0.2)[0][0, :, 5].tolist() == [0.9, 0.0, 0.7]


def test_equal_boxes_leave_the_first() -> None:
    twins = [[[0.5, 0.5, 1, 1, 0.5, 1.0]] * 3]
    assert run("NmsDetection2d", twins, thresh=0.5)[0][0, :, 5].tolist() == [0.5, 0.0, 0.0]


CORNERS = [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 3, 1, 4.0]]]


@pytest.mark.parametrize(
    ("boxes", "scores", "args", "truth"),
    [
        (CORNERS, [[[0.9, 0.8, 0.7]]], {"score_threshold": 0.7}, [[0, 0, 0], [0, 0, 2]]),
        (CORNERS, [[[0.7, 0.8, 0.9]]], {"max_output_boxes_per_class": 1}, [[0, 0, 2]]),
        (CORNERS, [[[-0.7, 0.8, 0.0]]], {}, [[0, 0, 1], [0, 0, 2]]),
        ([[[0, 0, 1, 1], [0, 0, 1, 2.0]]], [[[0.9, 0.8]]], {}, [[0, 0, 0], [0, 0, 1]]),
        ([[[1, 1, 0, 0], [0, 0.1, 1, 1.1]]], [[[0.9, 0.8], [0.1, 0.3]]], {}, [[0, 0, 0], [0, 1, 1]]),
        ([[[0.5, 0.5, 1, 1], [0.5, 0.6, 1, 1.0]]], [[[0.8, 0.9]]], {"center_point_box": 1}, [[0, 0, 1]]),
        (CORNERS, [[[0.9, 0.8, 0.7]]], {"max_output_boxes_per_class": 0}, np.zeros((0, 3), int)),
    ],
)
def test_onnx_non_max_suppression(boxes: Any, scores: Any, args: dict[str, Any], truth: Any) -> None:
    settings = {"max_output_boxes_per_class": 3, "iou_threshold": 0.5, **args}
    check_forward("ONNXNonMaxSuppression", [boxes, scores], np.asarray(truth), dtypes=("float64", "float32"), **settings)


# Several axes at once


def test_gather_axes_and_scatter_axes_are_transposes() -> None:
    x, source = normal(2, 3, 4), np.array([[0, 2, 3, 3, -1], [1, -1, 0, 1, 2]])
    truth = np.zeros((2, 2, 3))
    for n, i, j in np.ndindex(2, 2, 3):
        places = source[n, i], source[n, 2 + j]
        truth[n, i, j] = 0 if -1 in places else x[(n, *places)]
    check_forward("GatherAxes", [x, source], truth, shape=(2, 3), dtypes=("float64",))
    check_gradient("GatherAxes", [x, source], shape=(2, 3))
    check_gradient("ScatterAxes", [normal(2, 2, 3), source], shape=(3, 4))


def test_gather_axes_without_sample_axes_and_without_elements() -> None:
    check_forward("GatherAxes", [normal(3), [2, 0]], lambda x, source: x[[2, 0]], base_axis=0, shape=(2,))
    check_forward("GatherAxes", [np.zeros((0, 3)), np.zeros((0, 2), int)], np.zeros((0, 2)), shape=(2,))
    check_forward("GatherAxes", [np.zeros((1, 0)), [[-1, -1]]], np.zeros((1, 2)), shape=(2,))
    check_forward("ScatterAxes", [np.zeros((1, 2)), [[-1, -1]]], np.zeros((1, 0)), shape=(0,))


# Errors

NMS = {"center_point_box": 0, "max_output_boxes_per_class": 0, "iou_threshold": 0.0, "score_threshold": 0.0}
TOP: dict[str, Any] = {"abs": False, "reduce": True, "base_axis": 1, "largest": True, "with_index": False}
UNIQUE: dict[str, Any] = {"sorted": True, "with_index": False, "with_inverse": False, "with_counts": False}
ERRORS: list[Any] = [
    (
        "OneHot",
        [(2,)],
        {"shape": (3,)},
        ShapeError,
        "the last axis of x must have an entry for each axis of shape, got .2,. and .3,.",
    ),
    ("OneHot", [(2, 1)], {"shape": (-1,)}, ArgumentError, "shape must have no negative length, got .-1,."),
    ("Embed", [(2,), ()], {}, ShapeError, "w must have at least one axis, got 0-d"),
    (
        "Gather",
        [(2, 3), (2,)],
        {"axis": 0, "batch_dims": 1},
        ArgumentError,
        "batch_dims must be at most axis and the rank of Indices, got 1, 0 and 1",
    ),
    (
        "Gather",
        [(2, 3), (3, 1)],
        {"axis": 1, "batch_dims": 1},
        ShapeError,
        "agree on the first 1 axes, got .2, 3. and .3, 1.",
    ),
    ("GatherNd", [(2, 3), ()], {}, ShapeError, "indices must have at least one axis, got 0-d"),
    ("GatherNd", [(2,), (2, 3)], {}, ShapeError, "at most one row for each axis of x, got .2, 3. and .2,."),
    (
        "ScatterNd",
        [(2,), (1, 2), None],
        {"shape": None, "add": False},
        ArgumentError,
        "exactly one of shape and out .* got none",
    ),
    (
        "ScatterNd",
        [(2,), (1, 2), (3,)],
        {"shape": (3,), "add": False},
        ArgumentError,
        "exactly one of shape and out .* got both",
    ),
    (
        "ScatterNd",
        [(2,), (1, 3), (3,)],
        {"shape": None, "add": False},
        ShapeError,
        "data must have the shape .3,. that indices .1, 3.",
    ),
    ("ScatterAdd", [(2, 3), (2,), (2, 3)], {"axis": 0}, ShapeError, "equally many axes, got .2, 3., .2,. and .2, 3."),
    (
        "ScatterAdd",
        [(2,), (3,), (2,)],
        {"axis": 0},
        ShapeError,
        "indices must not be longer than x1, nor x0 except along axis 0",
    ),
    (
        "ScatterAdd",
        [(2, 2), (2, 3), (2, 3)],
        {"axis": 0},
        ShapeError,
        "indices must not be longer than x1, nor x0",
    ),
    (
        "BoolGather",
        [(2, 3), (3,)],
        {},
        ShapeError,
        "mask must have the shape of the first axes of input, got .3,. and .2, 3.",
    ),
    ("BoolScatter", [(), (3,), None], {}, ShapeError, "input must have at least one axis, got 0-d"),
    (
        "BoolScatter",
        [(2, 3), (4,), (4, 2)],
        {},
        ShapeError,
        "output must have the shape .4, 3. of mask and the elements of input",
    ),
    (
        "BoolFill",
        [(2, 3), (2,)],
        {"value": 0.0},
        ShapeError,
        "mask must have lengths of 1 or those of data, .* got .2,. and .2, 3.",
    ),
    ("BoolFill", [(3,), (2, 3)], {"value": 0.0}, ShapeError, "mask must have lengths of 1 or those of data"),
    (
        "Unique",
        [(3,)],
        {"flatten": False, "axis": None, **UNIQUE},
        ArgumentError,
        "axis must be given if flatten is False, got None",
    ),
    (
        "SearchSorted",
        [(3,), (2, 3)],
        {"right": False},
        ShapeError,
        "agree except along the last axis, got .3,. and .2, 3.",
    ),
    ("TopKData", [(2, 3)], {"k": 4, **TOP}, ArgumentError, r"k must be in \[1, 3\], the size of a sample, got 4"),
    (
        "TopKData",
        [(2, 3)],
        {**TOP, "k": 1, "reduce": False, "with_index": True},
        ArgumentError,
        "reduce must be True if with_index",
    ),
    ("TopKGrad", [(2, 3)], {"k": 0, "abs": False, "base_axis": 1}, ArgumentError, r"k must be in \[1, 3\]"),
    (
        "NmsDetection2d",
        [(2, 3, 4)],
        {"thresh": 0.5, "nms": 0.5, "nms_per_class": True},
        ShapeError,
        "samples, boxes, 5 . classes",
    ),
    (
        "ONNXNonMaxSuppression",
        [(2, 3), (2, 1, 3)],
        NMS,
        ShapeError,
        "boxes must have the shape .samples, boxes, 4., got .2, 3.",
    ),
    (
        "ONNXNonMaxSuppression",
        [(2, 3, 4), (2, 1, 4)],
        NMS,
        ShapeError,
        "scores must have the shape .2, classes, 3., got .2, 1, 4.",
    ),
    (
        "GatherAxes",
        [(2, 3), (2, 2)],
        {"base_axis": 1, "shape": (2, 2)},
        ArgumentError,
        "a length for each axis from base_axis 1 on",
    ),
    (
        "GatherAxes",
        [(2, 3), (2, 2)],
        {"base_axis": 1, "shape": (3,)},
        ShapeError,
        "source must have the shape .2, 3. of the samples",
    ),
    (
        "ScatterAxes",
        [(2, 3), (2, 2)],
        {"base_axis": 1, "shape": (3,)},
        ShapeError,
        "source must have the shape .2, 3., got|of the samples",
    ),
    (
        "ScatterAxes",
        [(2, 3), (2, 2)],
        {"base_axis": 1, "shape": (3, 3)},
        ArgumentError,
        "a length for each axis from base_axis 1 on",
    ),
]


@pytest.mark.parametrize(("name", "inputs", "args", "error", "text"), ERRORS)
def test_shape_rules_say_what_must_hold(
    name: str, inputs: list[Any], args: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        infer_shapes(spec_of(name), inputs, args)


def test_kernels_of_the_topic_are_registered_once() -> None:
    assert ArrayFunctions().gather_nd(np.arange(3.0), np.array([[1]])).tolist() == [1.0]
    assert "GatherNd" in KERNELS


@pytest.mark.parametrize("name", ["GatherAxes", "ScatterAxes"])
@pytest.mark.parametrize(
    ("source", "text"),
    [
        ([0, 2, 0, 1, 2], r"_axes: source must be in \[-1, 2\) along axis 0 of a sample, got 2"),
        ([0, 1, 0, 1, 7], r"_axes: source must be in \[-1, 3\) along axis 1 of a sample, got 7"),
    ],
)
def test_positions_beyond_the_array(name: str, source: list[int], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        run(name, np.ones((1, 2, 3)), np.array([source]), shape=(2, 3))


@pytest.mark.parametrize("call", [
    lambda indices: F.gather_nd(nn.Variable((3, 4)), indices),
    lambda indices: F.scatter_nd(nn.Variable((5, 3, 4)), indices, shape=(3, 4)),
    lambda indices: F.scatter_add(nn.Variable((3, 4)), indices, nn.Variable((3, 5))),
])  # fmt: skip
def test_indices_without_rows_are_refused(call: Any) -> None:
    with pytest.raises(ShapeError):
        call(nn.Variable((0, 5)))
