"""Batches that are on the device before the step that reads them, on an emulated device."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.training import Updater
from nn_core.utils.data_iterator import DevicePrefetcher, data_iterator_simple


def source(n=8, batch_size=2):
    """Images of bytes, numbers and labels, in the order of their numbers."""
    load = lambda i: (np.full((2, 3), i, np.uint8), np.full(4, i / 2), np.array([i]))  # noqa: E731
    return data_iterator_simple(load, n, batch_size, shuffle=False, with_memory_cache=False)


@pytest.fixture
def downloads(cuda, monkeypatch):
    """Counts copies to the host."""
    counted = []
    asnumpy = cuda.asnumpy
    monkeypatch.setattr(cuda, "asnumpy", lambda array: counted.append(array) or asnumpy(array))
    return counted


def test_batches_are_on_the_device_in_the_dtypes_of_the_context(cuda):
    first = DevicePrefetcher(source()).next()
    kinds = [array.synced.latest for array in first]
    assert [dtype for _, dtype in kinds] == ["float32", "float32", "int64"]
    assert len({space for space, _ in kinds}) == 1 and all(array.__dlpack_device__() == (2, 0) for array in first)
    assert [array.data.max() for array in first] == [1, 0.5, 1]


def test_the_next_batch_is_on_its_way_while_a_step_computes(cuda):
    data = source()
    ahead = DevicePrefetcher(data)
    for number in range(6):
        labels = ahead.next()[2].data.ravel().tolist()
        assert labels == [2 * number % 8, 2 * number % 8 + 1]
        assert data.position == (2 * number + 4) % 8 or data.position == 8


def test_a_variable_takes_a_batch_within_the_device(cuda, downloads):
    x, t = nn.Variable((2, 2, 3)), nn.Variable((2, 1))
    y = F.sum(x) + F.sum(t)
    ahead = DevicePrefetcher(source())
    found = []
    for _ in range(4):
        images, _, labels = ahead.next()
        downloads.clear()
        x.d, t.d = images, labels
        y.forward()
        assert not downloads
        found.append(float(y.d))
    np.testing.assert_allclose(found, [6 * (2 * k) + 6 * (2 * k + 1) + 4 * k + 1 for k in range(4)])


def test_a_batch_in_a_held_back_step_does_not_change_the_step_before(cuda):
    x = nn.Variable((2, 4))
    y = F.mul_scalar(x, 2)
    ahead = DevicePrefetcher(source())
    for k in range(4):
        _, values, _ = ahead.next()
        with nn.launch_together():
            x.d = values
            y.forward()
        assert y.d[:, 0].tolist() == [2.0 * k, 2.0 * k + 1]


def test_a_state_is_that_of_the_batches_that_were_given(cuda):
    data = source()
    ahead = DevicePrefetcher(data)
    ahead.next()
    state = ahead.get_state()
    following = ahead.next()[2].data.tolist()
    ahead.next()
    ahead.set_state(state)
    assert ahead.next()[2].data.tolist() == following
    assert ahead.size == 8


def test_an_updater_trains_on_batches_of_the_device(cuda):
    def trained(wrap, context):
        nn.clear_parameters()
        nn.seed(3)
        with nn.context_scope(context):
            x, t = nn.Variable((2, 4)), nn.Variable((2, 1))
            images = nn.Variable((2, 2, 3))
            loss = F.mean(F.squared_error(PF.affine(x, 1), t)) + 0 * F.sum(images)
            solver = S.Sgd(0.01)
            solver.set_parameters(nn.get_parameters())
            updater = Updater(wrap(source()), [images, x, t], loss, solver)
            for _ in range(5):
                updater.step()
            return [p.d.copy() for p in nn.get_parameters().values()]

    expected = trained(lambda data: data, nn.Context(["reference:float"]))
    found = trained(DevicePrefetcher, nn.get_current_context())
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
