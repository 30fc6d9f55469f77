"""NNabla's methods, between threads and alone."""

import threading
import time
import types

import ml_dtypes
import numpy as np
import pytest

import nn_core as nn
import nn_core.communicators as C
import nn_core.functions as F
from nn_core.communicators import LocalCommunicator, group
from nn_core.errors import ArgumentError, CommunicationError, DTypeError, ShapeError
from nn_core.utils import communicator_util


def array(values, dtype=np.float32):
    return nn.NdArray.from_numpy_array(np.asarray(values, dtype))


def alone(**options):
    comm = C.MultiProcessDataParalellCommunicator(nn.Context(), **options)
    comm.init()
    return comm


def test_one_process_is_a_world_without_an_engine():
    comm = alone()
    comm.init()
    x, y = array([1, 2]), nn.NdArray((2,))
    comm.all_reduce([x], division=True)
    comm.reduce(x, dst=0)
    comm.bcast(x, src=0)
    comm.all_gather(x, [y])
    comm.reduce_scatter([x], x)
    comm.barrier()
    assert (comm.rank, comm.size, comm.local_rank, comm.name) == (0, 1, 0, "MultiProcessDataParallelCommunicator")
    assert x.data.tolist() == y.data.tolist() == [1, 2]
    with pytest.raises(SystemExit):
        comm.abort()


def test_nothing_works_before_init():
    with pytest.raises(CommunicationError, match=r"Communicator: init\(\) must be called first, got a communicator"):
        _ = C.MultiProcessCommunicator(nn.Context()).rank


def test_threads_with_devices_are_refused():
    with pytest.raises(ArgumentError, match="DataParallelCommunicator: devices must belong to processes of their own"):
        C.DataParallelCommunicator(nn.Context())


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("division", [False, True])
@pytest.mark.parametrize("size", [2, 3])
def test_all_reduce_keeps_dtypes(size, division, inplace):
    dtypes = [np.float32, np.float16, ml_dtypes.bfloat16, np.float64]

    def program(comm):
        arrays = [array(np.full((2, 3), comm.rank + 1), dtype) for dtype in dtypes]
        comm.all_reduce(arrays, division=division, inplace=inplace)
        for each, dtype in zip(arrays, dtypes, strict=True):
            assert each.dtype == dtype
            assert (each.data == size * (size + 1) / 2 / (size if division else 1)).all()

    LocalCommunicator.run(size, program)


def test_halves_are_added_up_in_float32():
    def program(comm):
        x = array([2048 if comm.rank == 0 else 1], np.float16)
        comm.all_reduce(x)
        return x.data.item()

    assert LocalCommunicator.run(3, program) == [2050] * 3  # in halves 2048 + 1 is 2048


def test_whole_numbers_are_exact_and_have_no_mean():
    def program(comm):
        x = array([2**62 - comm.rank], np.int64)
        with pytest.raises(DTypeError, match="all_reduce: division needs floating-point arrays, got int64"):
            comm.all_reduce(x, division=True)
        comm.all_reduce(y := array([2**60 + comm.rank], np.int64))
        with pytest.raises(DTypeError, match="all_reduce: arrays must hold numbers, got bool"):
            comm.all_reduce(array([True], np.bool_))
        return y.data.item()

    assert LocalCommunicator.run(2, program) == [2**61 + 1] * 2


def test_what_no_rank_has_written_stays_so():
    def program(comm):
        never, once, always = nn.NdArray((2,)), nn.NdArray((2,)), array([1, 1])
        for each in (never, once):
            each.zero()
        if comm.rank == 1:
            once.data = np.full(2, 5, np.float64)
        comm.all_reduce([never, once, always])
        assert never.zeroing and not once.zeroing
        return once.data.tolist(), always.data.tolist()

    assert LocalCommunicator.run(3, program) == [([5, 5], [3, 3])] * 3


def test_one_array_that_some_ranks_have_not_written():
    """It takes the shorter way on those that have, which agrees with the longer one of the others."""

    def program(comm):
        x = nn.NdArray((3,))
        if comm.rank != 1:
            x.data = comm.rank + 1
        comm.all_reduce(x, division=comm.size == 3)
        nobody = nn.NdArray((2,))
        comm.all_reduce(nobody)
        narrow = nn.NdArray.from_numpy_array(np.arange(6.0).reshape(2, 3)).narrow(1, 0, 2)
        comm.all_reduce(narrow)
        with pytest.raises(CommunicationError, match="an array must have one dtype on all ranks"):
            comm.all_reduce(nn.NdArray.from_numpy_array(np.ones(2, "float32" if comm.rank else "int32")))
        return x.data.tolist(), nobody.is_unwritten, narrow.data.tolist()

    for size, total in ((2, 1.0), (3, 4 / 3)):
        expected = [[0, size], [3 * size, 4 * size]]
        for found, is_unwritten, narrow in LocalCommunicator.run(size, program):
            assert found == pytest.approx([total] * 3) and is_unwritten and narrow == expected


def test_dtypes_must_agree():
    def program(comm):
        with pytest.raises(CommunicationError, match="all_reduce: an array must have one dtype on all ranks, got float"):
            comm.all_reduce(array([1], np.float32 if comm.rank else np.float64))
        arrays = [nn.NdArray((1,)), array([1], np.float32 if comm.rank else np.float64)]
        with pytest.raises(CommunicationError, match="all_reduce: an array must have one dtype on all ranks, got float"):
            comm.all_reduce(arrays)

    LocalCommunicator.run(2, program)


def test_sizes_and_calls_must_agree():
    def program(comm):
        with pytest.raises(CommunicationError, match="all ranks of group 'world' must make the same call, got\n"):
            comm.all_reduce(nn.NdArray((2 + comm.rank,)))

    LocalCommunicator.run(2, program)


def test_the_wrong_kind_of_data_is_refused():
    def program(comm):
        with pytest.raises(ArgumentError, match=r"all_reduce: data must be NdArrays, got Variable\n  hint: pass variable"):
            comm.all_reduce([nn.Variable((1,))])
        with pytest.raises(ArgumentError, match="bcast: src must be a rank within group 'world', 0 to 1, got 2"):
            comm.bcast(array([1]), src=2)
        with pytest.raises(ArgumentError, match="all_gather: ndarray_list must have one array for each of the 2 ranks"):
            comm.all_gather(array([1]), [array([1])])
        with pytest.raises(ShapeError, match=r"reduce_scatter: all arrays must have one size, got 1 and a list of \[1, 2\]"):
            comm.reduce_scatter([array([1]), array([1, 2])], array([1]))
        with pytest.raises(ArgumentError, match="all_reduce: group must be one of world, got 'me'"):
            comm.all_reduce(array([1]), group="me")

    LocalCommunicator.run(2, program)


@pytest.mark.parametrize("inplace", [False, True])
def test_reduce_leaves_the_others_alone(inplace):
    def program(comm):
        arrays = [array([comm.rank]), array([10.0 * comm.rank, 1])]
        comm.reduce(arrays, dst=1, division=True, inplace=inplace)
        return [each.data.tolist() for each in arrays]

    assert LocalCommunicator.run(3, program) == [[[0], [0, 1]], [[1], [10, 1]], [[2], [20, 1]]]


def test_bcast_gives_values_and_dtypes():
    def program(comm):
        arrays = [array([comm.rank], np.int32 if comm.rank == 1 else np.float32), array([comm.rank]), array([7, 7])]
        if comm.rank == 1:
            arrays[2].zero()
        comm.bcast(arrays, src=1)
        assert arrays[0].dtype == np.int32 and arrays[2].zeroing
        return [each.data.tolist() for each in arrays]

    assert LocalCommunicator.run(3, program) == [[[1], [1], [0, 0]]] * 3


@pytest.mark.parametrize("size", [2, 3])
def test_scatter_and_gather(size):
    def program(comm):
        parts, mine = [array([[comm.rank, 10 * to]]) for to in range(size)], nn.NdArray((1, 2))
        comm.reduce_scatter(parts, mine, division=True)
        gathered = [nn.NdArray((2,)) for _ in range(size)]
        comm.all_gather(mine, gathered)
        return [each.data.tolist() for each in gathered]

    assert LocalCommunicator.run(size, program) == [[[(size - 1) / 2, 10 * to] for to in range(size)]] * size


def test_groups_number_their_ranks_anew():
    def program(comm):
        assert comm.new_group(("pair", [2, 0])) == "pair"
        assert comm.find_group("pair") == [2, 0] and comm.find_group("none") == []
        assert comm.list_groups() == {"world": [0, 1, 2], "pair": [2, 0]}
        x = array([comm.rank])
        if comm.rank == 1:
            with pytest.raises(ArgumentError, match=r"the calling rank must be in group 'pair' \(\[2, 0\]\), got rank 1"):
                comm.bcast(x, src=0, group="pair")
        else:
            comm.bcast(x, src=0, group="pair")
            comm.reduce([x, array([1])], dst=1, inplace=True, group="pair")
            comm.barrier("pair")
        with pytest.raises(ArgumentError, match="new_group: the name must be new, got 'pair'"):
            comm.new_group(("pair", [0]))
        with pytest.raises(ArgumentError, match=r"new_group: ranks must be different and from 0 to 2, got \[0, 0\]"):
            comm.new_group(("twice", [0, 0]))
        return x.data.item()

    assert LocalCommunicator.run(3, program) == [4, 1, 2]


def test_a_late_rank_is_named(monkeypatch):
    """The time of this test is over when both other ranks have told that they wait."""
    failures, both_have_failed = [], threading.Event()
    started, boards, both_have_posted = threading.local(), [], threading.Event()

    def monotonic():
        if not hasattr(started, "at"):
            started.at = 0.0
            return started.at
        if all(boards[0].get(rank, "").endswith("all_reduce") for rank in (0, 2)):
            both_have_posted.set()
        return 1000.0 if both_have_posted.is_set() else 20.0

    def program(comm):
        boards.append(comm.engine.world.board)
        if comm.rank == 1:
            assert both_have_failed.wait(10)
            return
        with pytest.raises(CommunicationError) as caught:
            comm.all_reduce(array([1]))
        failures.append((comm.rank, str(caught.value)))
        if len(failures) == 2:
            both_have_failed.set()

    monkeypatch.setattr(group, "time", types.SimpleNamespace(monotonic=monotonic))
    monkeypatch.setattr(group, "_LOOK_S", 0.01)
    LocalCommunicator.run(3, program, timeout_s=100)
    text = "all_reduce: every rank must take part in collective 1 of group 'world' within 100 s, got nothing from rank 1 on"
    assert sorted(failures) == [(0, f"{text} localhost"), (2, f"{text} localhost")]


def test_ranks_compute_in_the_context_of_the_caller():
    with nn.context_scope(nn.Context(["reference:half"])):
        found = LocalCommunicator.run(2, lambda comm: nn.get_current_context())
    assert found == [nn.Context(["reference:half"])] * 2


def test_a_failure_of_one_rank_is_that_of_all():
    def program(comm):
        if comm.rank == 1:
            raise ZeroDivisionError("rank 1 divides")
        comm.barrier()

    with pytest.raises(ZeroDivisionError, match="rank 1 divides"):
        LocalCommunicator.run(2, program)


def network(rank):
    w = nn.Variable.from_numpy_array(np.full((2, 2), 2.0, np.float32), need_grad=True)
    b = nn.Variable.from_numpy_array(np.ones((1, 2), np.float32), need_grad=True)
    x = nn.Variable.from_numpy_array(np.full((1, 2), rank + 1.0, np.float32))
    y = F.affine(F.affine(x, w) + b, w)  # w is used twice
    return w, b, F.sum(y)


@pytest.mark.parametrize("overlaps", [False, True])
@pytest.mark.parametrize("pack_size", [1, 3, 1000])
def test_gradients_are_added_up_during_backward(overlaps, pack_size):
    # Graphs are built by one thread after the other; the collectives are what runs at once.
    building = threading.Lock()

    def program(comm):
        comm.engine.overlaps = overlaps
        with building:
            w, b, loss = network(comm.rank)
            for v in (w, b):
                v.grad.zero()
            loss.forward()
            loss.backward()
            expected = array(w.g), array(b.g)
            for v in (w, b):
                v.grad.zero()
            loss.forward()
        comm.all_reduce(expected, division=True)
        callback = comm.all_reduce_callback([w.grad, b.grad, w.grad], pack_size, division=True, scale_grad=0.5)
        assert not callback.observes_functions
        for _ in range(2):
            for v in (w, b):
                v.grad.zero()
            loss.backward(communicator_callbacks=callback)
            np.testing.assert_array_equal(w.g, expected[0].data / 2)
            np.testing.assert_array_equal(b.g, expected[1].data / 2)
        with comm.no_sync():
            loss.backward(communicator_callbacks=[callback])
        assert (w.g != expected[0].data).any()

    LocalCommunicator.run(2, program)


@pytest.mark.parametrize(("scale", "expected"), [(1, 6), (0.5, 3)])
def test_alone_gradients_are_only_scaled(scale, expected):
    w = nn.Variable.from_numpy_array(np.ones((1,), np.float32), need_grad=True)
    y = F.sum(w * 6)
    y.forward()
    y.backward(communicator_callbacks=alone().all_reduce_callback([w.grad], 1, scale_grad=scale))
    assert w.g.item() == expected


def test_packs_have_a_size():
    with pytest.raises(ArgumentError, match="all_reduce_callback: pack_size must be at least 1, got 0"):
        alone().all_reduce_callback([], 0)


def test_registered_parameters():
    def program(comm):
        v = nn.Variable.from_numpy_array(np.zeros(1, np.float32), need_grad=True)
        v.g = comm.rank + 1
        comm.add_context_and_parameters((nn.Context(), {"v": v}))
        comm.allreduce(division=True)
        comm.clear_context_parameters()
        comm.allreduce()
        return v.g.item()

    assert LocalCommunicator.run(2, program) == [1.5, 1.5]


def test_the_wire_may_be_narrower():
    def program(comm):
        x = array([1 + 2.0**-20] * 5000 + [0.5])
        comm.all_reduce(x)
        return x.data[0].item(), x.data[-1].item()

    assert LocalCommunicator.run(2, program, wire_dtype="bfloat16") == [(2, 1)] * 2
    with pytest.raises(ArgumentError, match="wire_dtype must be None when deterministic, got 'bfloat16'"):
        C.Communicator(wire_dtype="bfloat16", deterministic=True)
    with pytest.raises(ArgumentError, match="wire_dtype must be 'bfloat16', 'float16' or None, got 'int8'"):
        C.Communicator(wire_dtype="int8")


# -- launchers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, (3, 4, 1)),
        ({"PMI_SIZE": "2", "PMI_RANK": "1", "MPI_LOCALRANKID": "1"}, (1, 2, 1)),
        ({"SLURM_NTASKS": "2", "SLURM_PROCID": "0"}, None),
        ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1", "SLURM_LOCALID": "0"}, (1, 2, 0)),
        ({"WORLD_SIZE": "8", "RANK": "7"}, (7, 8, None)),
        ({"WORLD_SIZE": "8"}, None),
    ],
)
def test_launchers_are_recognized(environment, expected):
    launch = C.find_launch(environment)
    assert (launch and launch[1:]) == expected


@pytest.mark.parametrize(
    ("marks", "name"),
    [({"TORCHELASTIC_RUN_ID": "x"}, "torchrun"), ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "Kubernetes"), ({}, "a launcher")],
)
def test_launchers_have_names(marks, name):
    assert C.find_launch({"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "0", **marks}).launcher.startswith(name)


def test_several_processes_need_an_engine(monkeypatch):
    monkeypatch.setattr("nn_core.communicators.engine_choice.PLUGINS.offered", lambda kind: [])
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(nn.errors.BackendNotFoundError, match=r"(?s)an engine must be installed.*pip install 'nn-ext-mpi"):
        alone()
    with pytest.raises(ArgumentError, match=r"communicator: must be one of alone.*, got 'none'"):
        alone(engine="none")
    assert alone(engine="alone").size == 1
    with pytest.raises(nn.errors.BackendNotFoundError, match="an engine must be installed"):
        communicator_util.create_communicator(extension_module="reference")
    assert communicator_util.create_communicator(ignore_error=True, extension_module="reference") is None


def test_a_program_alone_has_no_communicator():
    assert communicator_util.create_communicator() is None
    assert communicator_util.current_communicator() is None
    assert communicator_util.single_or_rankzero()


def test_engines_that_cannot_work_say_why(monkeypatch):
    from types import ModuleType

    from nn_core import ext

    module = ModuleType("nn_ext_line")
    module.PLUGIN_API, module.REQUIRES_CORE = 1, ">=0.1,<0.2"
    info = ext.CommunicatorInfo(name="line", target=print, probe=lambda: ext.Refusal("no dialling tone"))
    module.nn_core_communicators = ext.hookimpl(lambda: [info])
    ext.register(module)
    offers = nn.communicators.engine_choice.PLUGINS.offers.of("communicators", "line")
    monkeypatch.setattr("nn_core.communicators.engine_choice.PLUGINS.offered", lambda kind: offers)
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("PMI_RANK", "0")
    try:
        with pytest.raises(nn.errors.BackendUnavailableError, match=r"(?s)started, got\n  line: no dialling.*hint"):
            alone()
    finally:
        ext.unregister("line")


def test_a_rank_that_ends_early_is_noticed_at_once():
    def program(comm):
        comm.all_reduce(array([1]))
        if comm.rank != 2:
            comm.barrier()

    start = time.monotonic()
    message = "barrier: every rank must take part in collective 2 of group 'world', got the end of the program on rank 2"
    with pytest.raises(CommunicationError, match=message):
        LocalCommunicator.run(3, program, timeout_s=100)
    assert time.monotonic() - start < 10


def test_a_rank_that_ends_after_its_last_call_is_not_missed(monkeypatch):
    """Rank 0 has ended when rank 1 looks for it, and rank 2 is late."""
    monkeypatch.setattr(group, "_LOOK_S", 0.01)
    has_ended = threading.Event()

    def program(comm):
        own = comm.circle("test", "world")
        own.number += 1
        if comm.rank == 2:
            assert has_ended.wait(10)
            time.sleep(0.1)
        handle = comm.engine.barrier()
        if comm.rank == 0:
            comm.leave()
            has_ended.set()
        else:
            own.wait(handle)
        return comm.rank

    assert LocalCommunicator.run(3, program, timeout_s=100) == [0, 1, 2]
