"""Buckets, and training that does not depend on the number of ranks."""

import threading

import numpy as np
import pytest

import nn_core as nn
import nn_core.communicators as C
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.communicators import Buckets, LocalCommunicator, Shards, share_parameters
from nn_core.communicators.buckets import in_order_of_completion
from nn_core.errors import ArgumentError, CommunicationError

#: Graphs are built and run by one thread after the other: what runs at once are the collectives.
WORK = threading.Lock()


def variable(values, need_grad=True):
    return nn.Variable.from_numpy_array(np.asarray(values, np.float32), need_grad=need_grad)


def alone():
    comm = C.Communicator(engine="alone")
    comm.init()
    return comm


# -- buckets ---------------------------------------------------------------------------------------------------------


def test_gradients_are_parts_of_flat_arrays():
    parameters = {name: variable(np.ones(shape)) for name, shape in {"w": (3, 5), "b": (5,), "v": (1,)}.items()}
    buckets = Buckets(alone(), parameters, bucket_mb=1, first_mb=1e-6)
    assert [[grad.shape for grad in bucket.grads] for bucket in buckets.buckets] == [[(1,)], [(5,), (3, 5)]]
    x = variable(np.ones((2, 3)), need_grad=False)
    loss = F.sum(F.affine(x, parameters["w"], parameters["b"]))
    flat = buckets.buckets[1].flat
    for _ in range(2):
        buckets.zero()
        loss.forward()
        loss.backward(clear_buffer=True)
        assert buckets.written() == [False, True, True]
        assert buckets.buckets[1].gather() is flat
        # The passes write into the flat array, and nothing is copied.
        assert np.shares_memory(parameters["w"].g, flat) and np.shares_memory(parameters["b"].g, flat)
        assert flat[:5].tolist() == [2] * 5 and flat[16:31].tolist() == [2] * 15


def test_what_is_finished_first_comes_first():
    a, b, c = (variable(np.ones((2, 2))) for _ in range(3))
    h = F.affine(F.affine(variable(np.ones((1, 2)), False), b), a)
    loss = F.sum(F.affine(F.affine(h, c), b))  # b is used first and last: it is complete last
    assert in_order_of_completion([a, b, c], loss) == [c, a, b]
    assert in_order_of_completion([a, b, c], None) == [c, b, a]


def test_buckets_have_a_size():
    with pytest.raises(ArgumentError, match="Buckets: bucket_mb and first_mb must be positive, got 0 and 1"):
        Buckets(alone(), [], bucket_mb=0)


@pytest.mark.parametrize("size", [2, 3])
def test_buckets_give_what_all_reduce_gives(size):
    def program(comm):
        parameters = [variable(np.zeros(shape)) for shape in ((3,), (2, 2), (4000, 2), (1,))]
        plain = [nn.NdArray(v.shape) for v in parameters]
        buckets = Buckets(comm, parameters, bucket_mb=0.01, first_mb=0.001)
        rng = np.random.default_rng(comm.rank)
        for v, array in zip(parameters[:3], plain, strict=False):
            v.g = array.data = rng.standard_normal(v.shape).astype(np.float32)
        comm.all_reduce(plain[:3], division=True)
        with comm.no_sync():
            before = parameters[0].g.copy()
            buckets.all_reduce(division=True)
            assert (parameters[0].g == before).all()
        buckets.all_reduce(division=True)
        for v, array in zip(parameters[:3], plain, strict=False):
            np.testing.assert_array_equal(v.g, array.data)
        assert parameters[3].grad.zeroing  # no rank has written it
        assert len(buckets.buckets) == 3

    LocalCommunicator.run(size, program)


def test_gradients_that_were_cleared_are_packed_again():
    def program(comm):
        v = variable(np.zeros(3))
        buckets = Buckets(comm, [v])
        v.grad.clear()
        v.g = np.full(3, comm.rank + 1)
        buckets.all_reduce()
        return v.g.tolist()

    assert LocalCommunicator.run(2, program) == [[3, 3, 3]] * 2


def test_ranks_start_alike():
    def program(comm):
        parameters = {"w": variable([comm.rank]), "m": variable([comm.rank], need_grad=False)}
        share_parameters(comm, parameters)
        name = "b" if comm.rank == 1 else "c"
        with pytest.raises(CommunicationError, match="all ranks must have the same parameters in the same order") as caught:
            share_parameters(comm, {"w": variable([0]), name: variable([0])})
        return [v.d.item() for v in parameters.values()], str(caught.value).partition("got ")[2]

    (first, _), (second, text) = LocalCommunicator.run(2, program)
    assert first == second == [0, 0] and text == "b (1,) float32 here, and c (1,) float32 on rank 0"
    share_parameters(alone(), {})


# -- shards ----------------------------------------------------------------------------------------------------------

N_STEPS, N_CLASSES = 4, 3


def network(batch, ratio):
    """A network with batch normalization, and its loss; built alike by every thread."""
    x, t = nn.Variable((batch, 2, 4, 4)), nn.Variable((batch, 1))
    h = PF.batch_normalization(PF.convolution(x, 3, (3, 3), rng=np.random.RandomState(0)))
    h = F.dropout(F.relu(h), ratio) if ratio else F.relu(h)
    y = PF.affine(h, N_CLASSES, rng=np.random.RandomState(1))
    return x, t, F.mean(F.softmax_cross_entropy(y, t))


def data(step, shard, batch):
    rng = np.random.default_rng([step, shard])
    return rng.standard_normal((batch, 2, 4, 4)), rng.integers(0, N_CLASSES, (batch, 1))


def trained(comm, count, steps=range(N_STEPS), start=None, batch=3, ratio=0.0):
    """Parameters and solver states after some steps.

    Threads do without dropout: they share the source of seeds. nn-ext-mpi tests it on processes.
    """
    with WORK, nn.parameter_scope("", {}):
        x, t, loss = network(batch, ratio)
        parameters = nn.get_parameters(grad_only=False)
    solver = S.Adam(0.01)
    trainable = {name: v for name, v in parameters.items() if v.need_grad}
    solver.set_parameters(trainable)
    if start is not None:
        for name, values in start[0].items():
            parameters[name].d = values
        solver.set_states(start[1])
    shards = Shards(comm, parameters, count, seed=7, loss=loss, bucket_mb=1e-4)
    for step in steps:
        for shard in shards.step(step):
            x.d, t.d = data(step, shard, batch)
            loss.forward(clear_no_need_grad=True)
            loss.backward(clear_buffer=True)
        solver.update()
    return {name: v.d.copy() for name, v in parameters.items()}, solver.get_states()


def same(a, b):
    return a.keys() == b.keys() and all((a[name] == b[name]).all() for name in a)


@pytest.mark.parametrize("count", [4, 6])
def test_numbers_do_not_depend_on_the_number_of_ranks(count):
    expected = trained(alone(), count)[0]
    assert any(name.endswith("mean") and (values != 0).any() for name, values in expected.items())
    for size in (2, 4 if count == 4 else 3):
        for found, _ in LocalCommunicator.run(size, lambda comm: trained(comm, count)):
            assert same(found, expected)
    assert not same(trained(alone(), count // 2)[0], expected)


def test_training_goes_on_with_other_numbers_of_ranks():
    expected = trained(alone(), 4, range(6))[0]
    state = None
    for size, steps in ((4, range(2)), (2, range(2, 3)), (1, range(3, 5)), (4, range(5, 6))):
        state = LocalCommunicator.run(size, lambda comm, steps=steps, state=state: trained(comm, 4, steps, state))[-1]
    assert same(state[0], expected)


def test_seeds_belong_to_step_and_shard():
    once, again = (trained(alone(), 2, ratio=0.5)[0] for _ in range(2))
    assert same(once, again)


def test_shards_give_the_mean_gradient():
    def program(comm):
        v = variable([0])
        shards = Shards(comm, {"v": v}, 4)
        for shard in shards.step(0):
            v.g = shard
        return v.g.item()

    assert LocalCommunicator.run(2, program) == [1.5, 1.5]


def test_ranks_share_the_shards_evenly():
    def program(comm):
        with pytest.raises(ArgumentError, match=r"count must be a multiple of the 3 ranks, got 4\n  hint: start 2 processes"):
            Shards(comm, {}, 4)

    LocalCommunicator.run(3, program)
    comm = C.Communicator(engine="alone", wire_dtype="bfloat16")
    comm.init()
    with pytest.raises(ArgumentError, match="Shards: the communicator must have no wire_dtype, got 'bfloat16'"):
        Shards(comm, {})
