"""Gradients divided among ranks: the bits of undivided ones for all solvers, in the pass, and the memory of a part."""

import copy
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.communicators import Communicator, LocalCommunicator, Shards, shard_states
from nn_core.communicators.sharded_gradients import GradientBucket, Pages
from nn_core.errors import ArgumentError, GraphError
from tests.unit.communicators.test_sharded_states import SOLVERS, parameters, same

#: All solvers, and those of the tests of divided states.
ALL = {**{name: getattr(S, name) for name in S.__all__ if name not in ("SAM", "LBFGS", "Lookahead")}, **SOLVERS}

#: Parameter scopes of threads are opened one after the other.
WORK = threading.Lock()


def step(comm, solver, found, number, shards, clip=True):
    """Return a step from gradients that differ between ranks; one is written by one rank alone, one late, one is frozen."""
    solver.zero_grad()
    found["frozen"].need_grad = number not in (2, 3)
    rng = np.random.default_rng([number, comm.rank])
    for name, variable in found.items():
        values = rng.standard_normal(variable.shape).astype(np.float32)
        if (name != "late" or number >= 3) and (name != "tiny" or comm.rank == 0):
            variable.g = values
    if shards is None:
        comm.all_reduce([v.grad for v in found.values()], division=True)
    else:
        shards.reduce_scatter(division=True)
    solver.set_learning_rate(0.01 / (1 + number))
    assert not solver.check_inf_or_nan_grad()
    solver.scale_grad(0.5)
    solver.weight_decay(1e-3)
    if clip:
        solver.clip_grad_by_global_norm(3.0)
        solver.update()
    else:
        assert solver.update_if_finite(2.0, 3.0, 1e-3) > 0


def trained(comm, make, *, divides, n_steps=5, **options):
    found, solver = parameters(), make()
    solver.set_parameters(found)
    shards = shard_states(comm, solver, gradients=True, **options) if divides else None
    for number in range(n_steps):
        step(comm, solver, found, number, shards, clip=number % 2)
    if shards is not None:
        shards.gather_states(to_all=True)
    return {"values": {name: v.d.copy() for name, v in found.items()}, "solver": copy.deepcopy(solver.get_state())}


@pytest.mark.parametrize("name", ALL)
def test_the_bits_are_those_of_undivided_gradients(name):
    for size, bucket_mb in ((1, 25), (2, 0.001), (3, 25)) if name != "Adam" else ((1, 25), (2, 25), (4, 0.001), (8, 25)):
        expected = LocalCommunicator.run(size, lambda comm: trained(comm, ALL[name], divides=False))
        found = LocalCommunicator.run(size, lambda comm, mb=bucket_mb: trained(comm, ALL[name], divides=True, bucket_mb=mb))
        assert all(same(one, expected[0]) for one in found), size


def network(seed=0):
    x = nn.Variable((4, 6))
    h = x
    for number in range(3):
        h = F.tanh(PF.affine(h, 7, rng=np.random.RandomState(seed + number), name=f"layer{number}"))
    return x, F.mean(PF.affine(h, 1, rng=np.random.RandomState(9), name="last") ** 2)


def test_gradients_are_sent_while_the_pass_goes_on(monkeypatch):
    """When those of the last layer are sent, nothing has touched the memory of the first one."""
    with nn.parameter_scope("", {}):
        x, loss = network()
        solver = S.Momentum(0.1)
        solver.set_parameters(nn.get_parameters())
    shards = shard_states(started(), solver, gradients=True, bucket_mb=1e-4)
    buckets, untouched = solver._groups.gradients, []
    release = GradientBucket.release

    def look(bucket):
        untouched.append([bool((other._pages.array == 0).all()) for other in buckets])
        release(bucket)

    monkeypatch.setattr(GradientBucket, "release", look)
    for _ in range(3):
        x.d = 1
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True, communicator_callbacks=shards.callback())
        assert all(v.grad.is_unwritten for v in solver.get_parameters().values())
    last = untouched[-len(buckets) :]
    assert len(buckets) == 6 and last[0][:4] == [True] * 4 and not last[0][5]
    assert last[-1] == [False] + [True] * 5


@pytest.mark.parametrize("with_callback", [True, False])
def test_accumulated_passes_give_the_same_bits(with_callback):

    def program(comm, divides):
        with WORK, nn.parameter_scope("", {}):
            x, loss = network()
            found = nn.get_parameters()
        solver = S.Momentum(0.1)
        solver.set_parameters(found)
        shards = shard_states(comm, solver, gradients=True, bucket_mb=1e-4) if divides else None
        rng = np.random.default_rng(comm.rank)
        for number in range(3):
            solver.zero_grad()
            for is_last in (False, True):
                x.d = rng.standard_normal(x.shape)
                loss.forward(clear_no_need_grad=True)
                callback = shards.callback(division=True) if divides and with_callback else None
                if is_last:
                    loss.backward(clear_buffer=True, communicator_callbacks=callback)
                else:
                    with comm.no_sync():
                        loss.backward(clear_buffer=True, communicator_callbacks=callback)
            if shards is None:
                comm.all_reduce([v.grad for v in found.values()], division=True)
            elif not with_callback:
                shards.reduce_scatter(division=True)
            assert number or shards is None or all(v.grad.is_unwritten for v in found.values())
            solver.update()
        return {name: v.d.copy() for name, v in found.items()}

    for size in (1, 2, 4):
        expected = LocalCommunicator.run(size, lambda comm: program(comm, divides=False))[0]
        for found in LocalCommunicator.run(size, lambda comm: program(comm, divides=True)):
            assert all((found[name] == expected[name]).all() for name in expected), size


def started():
    comm = Communicator(engine="alone")
    comm.init()
    return comm


@pytest.mark.parametrize("with_callback", [True, False])
@pytest.mark.parametrize("count", [6, 8])
def test_shards_give_the_same_bits_on_any_number_of_ranks(count, with_callback):
    def program(comm, divides):
        with WORK, nn.parameter_scope("", {}):
            x, t = nn.Variable((4, 6)), nn.Variable((4, 1))
            h = PF.batch_normalization(PF.affine(x, 5, rng=np.random.RandomState(1), name="a"))
            loss = F.mean(F.softmax_cross_entropy(PF.affine(h, 3, rng=np.random.RandomState(2), name="b"), t))
            found = nn.get_parameters(grad_only=False)
        solver = S.Adam(0.05)
        solver.set_parameters({name: v for name, v in found.items() if v.need_grad})
        states = [shard_states(comm, solver, gradients=True)] if divides else []
        shards = Shards(comm, found, count, seed=2, loss=loss, state_shards=states)
        for number in range(4):
            solver.zero_grad()
            for shard in shards.step(number):
                rng = np.random.default_rng([number, shard])
                x.d, t.d = rng.standard_normal(x.shape), rng.integers(0, 3, t.shape)
                loss.forward(clear_no_need_grad=True)
                loss.backward(clear_buffer=True, communicator_callbacks=shards.callback if with_callback else None)
            assert solver.clip_grad_by_global_norm(0.1) > 0
            solver.update()
        return {name: v.d.copy() for name, v in found.items()}

    expected = program(started(), divides=False)
    for size in (1, 2, 3) if count == 6 else (1, 2, 4, 8):
        run = LocalCommunicator.run(size, lambda comm: program(comm, divides=True))
        assert all((found[name] == expected[name]).all() for found in run for name in expected), size


def test_each_rank_has_the_gradients_of_its_part_alone():
    def program(comm):
        found, solver = parameters(), S.Adam()
        solver.set_parameters(found)
        shards = shard_states(comm, solver, gradients=True)
        for variable in found.values():
            variable.g = 1
        shards.reduce_scatter()
        own = [piece.gradient for piece in solver._groups._own]
        assert all(v.grad.is_unwritten and (v.g == 0).all() for v in found.values())
        assert all((gradient.data == comm.size).all() for gradient in own)
        return sum(gradient.size for gradient in own)

    n_elements = sum(v.size for v in parameters().values())
    for size in (1, 2, 4):
        sizes = LocalCommunicator.run(size, program)
        assert sum(sizes) == n_elements and max(sizes) <= n_elements / size + 16 * 6


def test_large_parameters_are_divided_by_whole_ones_evenly():
    """Buckets of one parameter each: ranks take them in turns."""

    def program(comm):
        solver = S.Lamb()
        solver.set_parameters({f"w{n}": nn.Variable((40, 40), need_grad=True) for n in range(6)})
        shard_states(comm, solver, bucket_mb=0.001)
        return sum(piece.size for piece in solver._groups._own)

    assert LocalCommunicator.run(3, program) == [2 * 1600] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="memory is given back on Linux")
def test_memory_is_given_back_and_comes_again():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    pages = Pages(1 << 23, "float32")
    before, array = resident(), pages.array
    for _ in range(2):
        array[...] = 1
        assert resident() - before > 30 << 20
        pages.release()
        assert resident() - before < 8 << 20
        assert (array[:: 1 << 20] == 0).all()


def test_gradients_that_are_not_finite_are_named_on_all_ranks():
    def program(comm, value):
        found, solver = parameters(), S.Adam()
        solver.set_parameters(found)
        shards = shard_states(comm, solver, gradients=True)
        for variable in found.values():
            variable.g = 1
        found["large"].g = value if comm.rank else 1
        shards.reduce_scatter()
        if np.isfinite(value):
            return solver.grad_norm()
        assert solver.check_inf_or_nan_grad()
        before = found["w"].d.copy()
        assert not np.isfinite(solver.update_if_finite())
        assert (found["w"].d == before).all()
        with pytest.raises(GraphError, match="got NaN or infinity in those of large"):
            solver.clip_grad_by_global_norm(1.0, error_if_nonfinite=True)
        return None

    assert LocalCommunicator.run(2, lambda comm: program(comm, np.inf)) == [None, None]
    one, other = LocalCommunicator.run(2, lambda comm: program(comm, 3e38))
    assert one == other and 1e40 < one < 3e40  # whose squares overflow in float32


def test_what_cannot_be_divided_is_refused():
    def program(comm):
        found, solver = parameters(), S.Adam()
        solver.set_parameters(found)
        states = shard_states(comm, solver)
        with pytest.raises(ArgumentError, match="callback: the gradients must be divided, got states alone"):
            states.callback()
        solver = S.Adam()
        solver.set_parameters(found)
        shards = shard_states(comm, solver, gradients=True)
        found["large"].g = 1
        shards.reduce_scatter()
        with pytest.raises(ArgumentError, match="clip_grad_by_norm: gradients must be divided by whole parameters"):
            solver.clip_grad_by_norm(1.0)
        with pytest.raises(ArgumentError, match="weight_decay: there must be no hooks where gradients are divided"):
            solver.weight_decay(0.1, pre_hook=lambda: None)
        with pytest.raises(ArgumentError, match="check_inf_or_nan_grad: there must be no hooks where gradients are divided"):
            solver.check_inf_grad(pre_hook=lambda: None)
        wide = S.Adam()
        wide.set_parameters(found)
        comm.wire_dtype = "bfloat16"
        with pytest.raises(ArgumentError, match="must have no wire_dtype with gradients, got 'bfloat16'"):
            shard_states(comm, wide, gradients=True)
        return True

    assert LocalCommunicator.run(2, program) == [True, True]
