"""The CTC loss in C against the reference kernel in float64, and the calls that it gives back to the reference kernel."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError
from nn_ext_contrib import native
from nn_ext_contrib.operators.ctc import ctc_loss

C = F.contrib

pytestmark = pytest.mark.skipif(native._ctc() is None, reason="nn_ext_contrib was installed without a C compiler")


def compiled(x, target, steps=None, labels=None, blank=0):
    """Loss and slope, or None where the library gives the call back."""
    x, (target, steps, labels) = np.float32(x), (None if a is None else np.int64(a) for a in (target, steps, labels))
    loss, slope = np.full(x.shape[1], 7, np.float32), np.full(x.shape, 7, np.float32)
    sizes = (*x.shape, target.shape[1], blank)
    status = native._ctc()(*map(native._address, (x, target, steps, labels)), *sizes, *map(native._address, (loss, slope)))
    return None if status else (loss, slope)


def compare(x, target, steps=None, labels=None, blank=0):
    loss, slope = compiled(x, target, steps, labels, blank)
    given = [None if a is None else np.asarray(a) for a in (target, steps, labels)]
    with np.errstate(all="ignore"):
        wanted = ctc_loss(np, np.float32(x).astype(np.float64), *given, blank=blank)
    np.testing.assert_allclose(loss, wanted[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(slope, wanted[1], atol=2e-6)


@pytest.mark.parametrize("seed", range(12))
def test_random_calls(seed):
    rng = np.random.default_rng(seed)
    n_steps, n_samples, n_classes, n_labels = rng.integers(1, (40, 6, 30, 12))
    x = rng.normal(size=(n_steps, n_samples, n_classes)) * rng.choice([0.1, 3, 12])
    target = rng.integers(0, n_classes, (n_samples, n_labels))
    steps, labels = rng.integers(0, n_steps + 1, n_samples), rng.integers(0, n_labels + 1, n_samples)
    compare(x, target, steps, labels, blank=int(rng.integers(n_classes)))


@pytest.mark.parametrize("scale", [0.0, 1.0, 8.0])
def test_two_thousand_steps_leave_no_range(scale):
    rng = np.random.default_rng(1)
    compare(rng.normal(size=(2000, 2, 6)) * scale, rng.integers(1, 6, (2, 90)))


def test_paths_that_are_far_less_likely_at_first_are_kept():
    # the labels come late: until then the likeliest beginnings are those that cannot end in time
    x = np.zeros((120, 1, 4))
    x[:80, 0, 1:] = 25
    x[80:, 0, 0] = 25
    compare(x, [[1, 2, 3, 1, 2]])
    compare(x[::-1], [[1, 2, 3, 1, 2]])


def test_classes_that_are_ruled_out():
    x = np.random.default_rng(2).normal(size=(9, 2, 4))
    x[3, :, 0] = x[4, 0, 2] = -np.inf
    compare(x, [[1, 2], [2, 2]])
    x[:, :, 2] = -np.inf
    compare(x, [[1, 2], [3, 1]])


def test_empty_calls():
    compare(np.zeros((3, 2, 3)), np.zeros((2, 0), np.int64))
    compare(np.zeros((3, 0, 3)), np.zeros((0, 2), np.int64))
    compare(np.zeros((3, 2, 3)), [[1], [2]], [0, 0], [0, 1])


@pytest.mark.parametrize("value", [np.nan, np.inf, -200.0])
def test_numbers_out_of_range_are_given_back(value):
    pytest.importorskip("nn_ext_cpu", reason="the backend of the native kernels")
    x = np.zeros((4, 1, 3), np.float32)
    x[2, 0, 1] = value
    assert compiled(x, [[1]]) is None
    target = np.array([[1]])
    with np.errstate(all="ignore"):
        wanted = ctc_loss(np, x, target, None, None, blank=0)
    with nn.context_scope(nn.Context(["cpu:float"])):
        loss = C.ctc_loss(nn.Variable.from_numpy_array(x), nn.Variable.from_numpy_array(target))
        loss.forward()
    np.testing.assert_allclose(loss.d, wanted[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([[1, 3]],), "labels must be in"),
        (([[1]], [5]), "input_length must be in"),
        (([[1]], [2], [2]), "target_length must be"),
    ],
)
def test_wrong_calls_are_refused_as_by_the_reference(given, message):
    pytest.importorskip("nn_ext_cpu", reason="the backend of the native kernels")
    x = np.zeros((4, 1, 3), np.float32)
    assert compiled(x, *given) is None
    with nn.context_scope(nn.Context(["cpu:float"])), pytest.raises(ArgumentError, match=message):
        C.ctc_loss(nn.Variable.from_numpy_array(x), *map(nn.Variable.from_numpy_array, given)).forward()


def test_without_the_library_the_reference_runs(monkeypatch):
    pytest.importorskip("nn_ext_cpu", reason="the backend of the native kernels")
    x, target = nn.Variable.from_numpy_array(np.zeros((3, 1, 4))), nn.Variable.from_numpy_array([[1]])
    with nn.context_scope(nn.Context(["cpu:float"])):
        assert "C compiler" not in str(nn.explain(C.ctc_loss(x, target)))
        monkeypatch.setattr(native, "_ctc", lambda: None)
        assert "installed without a C compiler" in str(nn.explain(C.ctc_loss(x, nn.Variable.from_numpy_array([[1, 2]]))))
