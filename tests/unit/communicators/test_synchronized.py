"""Batch normalization over the batches of several ranks equals that over one batch of all samples."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.communicators import LocalCommunicator

RNG = np.random.default_rng(5)


def variable(values, need_grad=True):
    return nn.Variable.from_numpy_array(np.asarray(values, np.float32), need_grad=need_grad)


def parameters(shape):
    rng = np.random.default_rng(1)
    drawn = [rng.random(shape) for _ in range(4)]  # beta, gamma, mean, variance
    return [variable(values, need_grad=place < 2) for place, values in enumerate(drawn)]


@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("batches", [(2, 2), (3, 1), (1, 4, 2)])
def test_ranks_normalize_as_one(batches, axis):
    shape = [1, 1, 1, 1]
    shape[axis] = 3
    sample = [2, 2, 2]
    sample[axis - 1] = 3
    x_all, g_all = (RNG.standard_normal((sum(batches), *sample)) for _ in range(2))
    ends = np.cumsum(batches)[:-1]
    x, whole = variable(x_all), parameters(shape)
    y = F.batch_normalization(x, *whole, axes=[axis], decay_rate=0.7)
    for v in (x, *whole[:2]):
        v.grad.zero()
    y.forward()
    y.backward(g_all)

    def program(comm):
        own = variable(np.split(x_all, ends)[comm.rank])
        shared = parameters(shape)
        out, mean, variance = F.sync_batch_normalization(own, *shared, comm, axes=[axis], decay_rate=0.7, output_stat=True)
        for v in (own, *shared[:2]):
            v.grad.zero()
        out.forward()
        out.backward(np.split(g_all, ends)[comm.rank])
        comm.all_reduce([v.grad for v in shared[:2]])
        F.sink(mean, variance).forward()
        return [out.d, own.g, shared[0].g, shared[1].g, shared[2].d, shared[3].d]

    results = LocalCommunicator.run(len(batches), program)
    for rank, (out, gx, *rest) in enumerate(results):
        np.testing.assert_allclose(out, np.split(y.d, ends)[rank], 1e-4, 1e-5)
        np.testing.assert_allclose(gx, np.split(x.g, ends)[rank], 1e-3, 1e-4)
        expected = [whole[0].g, whole[1].g]
        for found, true in zip(rest[:2], expected, strict=True):
            np.testing.assert_allclose(found, true, 1e-4, 1e-4)


def test_running_statistics_follow_all_samples():
    x_all = RNG.standard_normal((4, 3))
    whole = parameters((1, 3))
    F.batch_normalization(variable(x_all), *whole, decay_rate=0.7).forward()

    def program(comm):
        shared = parameters((1, 3))
        F.sync_batch_normalization(variable(x_all[:3] if comm.rank else x_all[3:]), *shared, comm, decay_rate=0.7).forward()
        return [v.d for v in shared[2:]]

    for found in LocalCommunicator.run(2, program):
        np.testing.assert_allclose(found, [v.d for v in whole[2:]], 1e-5, 1e-6)


def test_another_batch_size_counts_anew():
    x_all = RNG.standard_normal((6, 3))

    def program(comm):
        x = variable(x_all[:2])
        y = F.sync_batch_normalization(x, *parameters((1, 3)), comm)
        y.forward()
        x.reset_shape((3, 3), True)
        x.d = np.split(x_all, 2)[comm.rank]
        y.forward()
        return y.d

    found = np.concatenate(LocalCommunicator.run(2, program))
    beta, gamma = (v.d for v in parameters((1, 3))[:2])
    standard = (x_all - x_all.mean(0)) / np.sqrt(x_all.var(0) + 1e-5)
    np.testing.assert_allclose(found, gamma * standard + beta, 1e-4, 1e-4)
