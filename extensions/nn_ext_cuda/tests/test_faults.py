"""Indices and labels out of range on an emulated device: NaN at once, and our error when the host next waits."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError


def variable(values):
    return nn.Variable.from_numpy_array(np.asarray(values))


IMAGES = np.ones((2, 1, 4, 4), "float32")
#: A call of each function with a value at fault, and what is told.
CALLS = {
    "embed": (lambda: F.embed(variable([0, -5]), variable(np.ones((4, 3)))), r"embed: x0 must be in \[-4, 4\), got -5"),
    "gather": (lambda: F.gather(variable(np.ones((4, 3))), variable([9])), r"gather: Indices must be in \[-4, 4\), got 9"),
    "gather_nd": (
        lambda: F.gather_nd(variable(np.ones((3, 4))), variable([[2], [4]])),
        r"gather_nd: indices must be in \[-3, 3\) or \[-4, 4\), got 4",
    ),
    "scatter_nd": (
        lambda: F.scatter_nd(variable(np.ones((1, 3))), variable([[-6]]), shape=(5, 3)),
        r"scatter_nd: indices must be in \[-5, 5\), got -6",
    ),
    "scatter_add": (
        lambda: F.scatter_add(variable(np.ones(3)), variable([2**50]), variable(np.ones(1))),
        r"scatter_add: indices must be in \[-3, 3\), got 549755813887",
    ),
    "softmax_cross_entropy": (
        lambda: F.softmax_cross_entropy(variable(np.ones((2, 3))), variable([[0], [3]])),
        "softmax_cross_entropy: target must be below 3, the number of classes, got 3",
    ),
    "categorical_cross_entropy": (
        lambda: F.categorical_cross_entropy(variable(np.ones((2, 3))), variable([[0], [7]])),
        "categorical_cross_entropy: target must be below 3, the number of classes, got 7",
    ),
    "top_n_error": (
        lambda: F.top_n_error(variable(np.ones((2, 3))), variable([[0], [3]])),
        "top_n_error: target must be below 3, the number of classes, got 3",
    ),
    "roi_align": (
        lambda: F.roi_align(variable(IMAGES), variable([[0.5, 0, 0, 4, 4]]), (2, 2)),
        "roi_align: boxes must be finite and begin with the number of an image, from 0 to 1, and bins",
    ),
    "roi_align of NaN": (
        lambda: F.roi_align(variable(IMAGES), variable([[0, 0, np.nan, 4, 4]]), (2, 2)),
        "roi_align: boxes must be finite and begin with the number of an image, from 0 to 1, and bins",
    ),
    "roi_align of a box that is too large": (
        lambda: F.roi_align(variable(IMAGES), variable([[0, 0, 0, 4, 1e30]]), (2, 2)),
        "roi_align: boxes must be finite .* and bins have at most 65536 samples on an axis, got another one",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_value_out_of_range_is_an_error_when_results_are_read(cuda, name):
    build, text = CALLS[name]
    y = build()
    y.forward()
    with pytest.raises(ArgumentError, match=text):
        y.data.get_data("r")
    assert y.d is not None  # the fault was told, and the device goes on
    assert F.add_scalar(variable([1.0]), 1).shape == (1,)


def test_a_replayed_graph_tells_of_a_label_and_goes_on(cuda):
    x, t = nn.Variable((2, 3)), nn.Variable((2, 1))
    x.d = np.ones((2, 3))
    loss = F.mean(F.softmax_cross_entropy(x, t))
    for label in (0, 1, 2, 3, 1):
        t.d = [[0], [label]]
        loss.forward()
        if label == 3:
            with pytest.raises(ArgumentError, match="must be below 3, the number of classes, got 3"):
                float(loss.d)
            assert np.isnan(loss.d)
        else:
            assert float(loss.d) == pytest.approx(np.log(3))


@pytest.mark.parametrize("waits", ["device_synchronize", "synchronize_stream"])
def test_waiting_for_the_device_tells_of_faults(cuda, waits):
    import nn_ext_cuda

    F.gather(variable(np.ones(4)), variable([4])).forward()
    with pytest.raises(ArgumentError, match=r"gather: .* got 4"):
        getattr(nn_ext_cuda, waits)()
    getattr(nn_ext_cuda, waits)()


def test_values_in_range_are_no_fault(cuda):
    y = F.embed(variable([0, 3, -4]), variable(np.arange(4.0)))
    y.forward()
    assert y.d.tolist() == [0, 3, 0]
    loss = F.softmax_cross_entropy(variable(np.zeros((2, 3))), variable([[-1], [2]]))
    loss.forward()
    np.testing.assert_allclose(loss.d[:, 0], [0, np.log(3)], rtol=1e-6)
