"""States of solvers divided among ranks: the bits of an undivided solver, a part of its memory, any number of ranks."""

import copy

import numpy as np
import pytest

import nn_core as nn
import nn_core.solvers as S
from nn_core.communicators import Communicator, LocalCommunicator, shard_states
from nn_core.errors import ArgumentError, CommunicationError
from nn_core.solver import Solver

SHAPES = {"w": (37, 5), "b": (5,), "tiny": (1,), "large": (64, 41), "late": (3, 7), "frozen": (4,)}
SIZES = [1, 2, 3, 4]


class Norms(Solver):
    """A rule of a program that depends on the norm of the parameter."""

    hyper_names = ("lr",)
    state_names = ("m",)

    def __init__(self, lr=0.1):
        super().__init__(lr)

    @staticmethod
    def step(xp, w, g, states, hyper):
        lr, _ = hyper
        states[0][...] = 0.5 * states[0] + g
        w -= lr * states[0] * xp.sqrt(xp.sum(w * w))


SOLVERS = {
    "Adam": lambda: S.Adam(0.01),
    "AdamW": lambda: S.AdamW(0.01, wd=0.1),
    "AMSGRAD": lambda: S.AMSGRAD(0.01),
    "Momentum": lambda: S.Momentum(0.1),
    "Lion": lambda: S.Lion(0.01),
    "Sgd": lambda: S.Sgd(0.1),
    "Lamb": lambda: S.Lamb(0.01),
    "Lars": lambda: S.Lars(0.1),
    "Adafactor": lambda: S.Adafactor(0.1),
    "Muon": lambda: S.Muon(0.01),
    "ScheduleFreeAdamW": lambda: S.ScheduleFreeAdamW(0.01),
    "Lookahead": lambda: S.Lookahead(S.Adam(0.01), interval=2),
    "Lookahead of Muon": lambda: S.Lookahead(S.Muon(0.01), interval=2),
    "own": Norms,
}


def parameters():
    rng = np.random.default_rng(5)
    return {
        name: nn.Variable.from_numpy_array(rng.standard_normal(shape).astype(np.float32), need_grad=True)
        for name, shape in SHAPES.items()
    }


def step(solver, found, number):
    """Return a step in which one parameter has no gradient at first, another one is frozen for a while, and the rate
    changes.
    """
    rng = np.random.default_rng(number)
    solver.zero_grad()
    found["frozen"].need_grad = number not in (2, 3)
    for name, variable in found.items():
        values = rng.standard_normal(variable.shape).astype(np.float32)
        if name != "late" or number >= 3:
            variable.g = values
    solver.set_learning_rate(0.01 / (1 + number))
    solver.weight_decay(1e-3)
    solver.clip_grad_by_global_norm(3.0)
    solver.update()


def trained(comm, make, n_steps=6, start=0, state=None, **options):
    """Return the parameters and the state after some steps."""
    found, solver = parameters(), make()
    solver.set_parameters(found)
    shards = None if comm is None else shard_states(comm, solver, **options)
    if state is not None:
        solver.set_state(copy.deepcopy(state["solver"]))
        for name, variable in found.items():
            variable.d = state["values"][name]
    for number in range(start, n_steps):
        step(solver, found, number)
    if shards is not None:
        shards.gather_states(to_all=True)
    return {"values": {name: v.d.copy() for name, v in found.items()}, "solver": copy.deepcopy(solver.get_state())}


def same(a, b):
    values = all((a["values"][name] == b["values"][name]).all() for name in SHAPES)
    states, others = a["solver"]["states"], b["solver"]["states"]
    return values and all(
        np.array_equal(states[name][key], others[name][key]) for name in SHAPES for key in states[name]
    )  # fmt: skip


@pytest.mark.parametrize("name", SOLVERS)
def test_any_number_of_ranks_gives_the_bits_of_an_undivided_solver(name):
    expected = trained(None, SOLVERS[name])
    for size in SIZES:
        for bucket_mb in (25, 0.001):
            run = LocalCommunicator.run(size, lambda comm, mb=bucket_mb: trained(comm, SOLVERS[name], bucket_mb=mb))
            assert all(same(found, expected) for found in run), (size, bucket_mb)


def test_states_of_any_number_of_ranks_are_loaded_by_any_other():
    expected = trained(None, SOLVERS["Adam"], 8)
    state = trained(None, SOLVERS["Adam"], 1)
    for size, end in ((4, 3), (1, 4), (3, 6), (2, 8)):
        run = LocalCommunicator.run(
            size, lambda comm, start=state, end=end: trained(comm, SOLVERS["Adam"], end, end_of(start), start)
        )
        state = run[-1]
    assert same(state, expected)
    assert same(trained(None, SOLVERS["Adam"], 10, 8, state), trained(None, SOLVERS["Adam"], 10))


def end_of(state):
    return int(state["solver"]["states"]["w"]["t"])


def bytes_of(solver):
    """Return the memory of the states in a solver, and in the parts of this rank."""
    pieces = getattr(solver._groups, "_own", [])
    whole = [array for slot in solver._slots.values() for array in slot.member.states]
    parts = [array for piece in pieces for array in piece.own.member.states]
    return [sum(values.nbytes for array in arrays for values in array.synced.copies.values()) for arrays in (whole, parts)]


def test_each_rank_has_its_part_of_the_states_alone():
    def program(comm):
        found, solver = parameters(), S.Adam()
        solver.set_parameters(found)
        shards = shard_states(comm, solver)
        for number in range(4):
            step(solver, found, number)
        before = bytes_of(solver)
        shards.gather_states()
        gathered = bytes_of(solver)
        step(solver, found, 5)
        after = bytes_of(solver)
        shards.gather_states()
        shards.drop_states()
        return before, gathered, after, bytes_of(solver)

    whole = 2 * 4 * sum(int(np.prod(shape)) for shape in SHAPES.values())
    for size in (1, 2, 4):
        for rank, (before, gathered, _, dropped) in enumerate(LocalCommunicator.run(size, program)):
            assert before == dropped and before[0] == 0 and before[1] <= whole / size + 2 * 64 * len(SHAPES)
            assert gathered[0] == (whole if rank == 0 else 0)


def test_states_that_are_elsewhere_are_not_read_as_zeros(tmp_path):
    def program(comm):
        found, solver = parameters(), S.Adam()
        solver.set_parameters(found)
        shards = shard_states(comm, solver)
        step(solver, found, 5)
        save = lambda: solver.save_states(tmp_path / "a.npz")  # noqa: E731
        calls = (solver.get_state, solver.get_states, save, lambda: copy.copy(solver))
        for call in calls:
            with pytest.raises(ArgumentError, match="states that are divided among ranks must be gathered first"):
                call()
        with pytest.raises(ArgumentError, match="the states of a solver must be divided once"):
            shard_states(comm, solver)
        with pytest.raises(ArgumentError, match="there must be no hooks where the states are divided among ranks"):
            solver.update(update_pre_hook=lambda: None)
        solver.set_parameters({"more": nn.Variable((3,), need_grad=True)}, reset=False)
        with pytest.raises(ArgumentError, match="the parameters of divided states must stay the same after the first update"):
            solver.update()
        solver.remove_parameters(["more"])
        shards.gather_states()
        if comm.rank == 0:
            solver.save_states(tmp_path / "b.npz")
        comm.barrier()
        other = S.Adam()
        other.set_parameters(found)
        other.load_states(tmp_path / "b.npz")
        return float(np.abs(other.get_states()["w"].pstate["mean"].d).min())

    assert all(value > 0 for value in LocalCommunicator.run(2, program))
    with pytest.raises(ArgumentError, match="bucket_mb must be positive, got 0"):
        shard_states(Communicator(engine="alone"), S.Adam(), bucket_mb=0)


def test_parameters_may_be_added_while_the_states_are_gathered():
    def program(comm):
        found, solver = parameters(), S.Adam(0.01)
        solver.set_parameters({"w": found["w"]})
        shards = None if comm is None else shard_states(comm, solver)
        for number in range(4):
            found["w"].g = number + 1
            if number == 2:
                if shards is not None:
                    shards.gather_states(to_all=True)
                solver.set_parameters({"large": found["large"]}, reset=False)
            found["large"].g = 1 - number
            solver.update()
        return found["w"].d.copy(), found["large"].d.copy()

    expected = program(None)
    for found in LocalCommunicator.run(3, program):
        assert all((a == b).all() for a, b in zip(found, expected, strict=True))


def test_the_loss_of_a_rank_loses_its_states():
    def program(comm):
        found, solver = parameters(), S.Adam()
        solver.set_parameters(found)
        shard_states(comm, solver)
        step(solver, found, 5)
        if comm.rank == 1:
            comm.engine.die()
            return None
        comm.repeated(comm.barrier)
        with pytest.raises(CommunicationError, match="the ranks that have the states must live, got 1 of 2"):
            solver.update()
        return True

    assert LocalCommunicator.run(2, program) == [True, None]
