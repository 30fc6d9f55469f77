"""The NCCL engine on an emulated library, whose ranks are threads: the admission test of engines, and what is refused."""

import contextlib
import socket
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.communicators import Buckets, Communicator
from nn_core.errors import CommunicationError
from nn_core.ext import ArgumentError, BackendUnavailableError
from nn_core.testing.engines import *  # noqa: F403
from nn_ext_cuda.nccl import plugin, rendezvous

sys.path.insert(0, str(Path(__file__).parent))

from rank_threads import SIZE, launch_of, on_threads


@pytest.fixture(autouse=True)
def emulated(device, monkeypatch):
    """NCCL, and events that know of its calls."""
    import fake_nccl

    assert not hasattr(device.cuda, "nccl"), "CuPy does not import it"
    monkeypatch.setitem(sys.modules, "cupy.cuda.nccl", fake_nccl.module())
    monkeypatch.setattr(device.cuda, "Event", fake_nccl.Event)
    monkeypatch.setattr(device.cuda.runtime, "deviceGetPCIBusId", lambda number: f"0000:0{number}:00.0", raising=False)
    sys.modules.pop("nn_ext_cuda.nccl.engine", None)
    yield fake_nccl
    sys.modules.pop("nn_ext_cuda.nccl.engine", None)


def run_ranks(program, size=SIZE):
    """The ranks of the admission test."""

    from nn_ext_cuda.nccl import engine

    name = engine.library().get_unique_id()
    hosts = ["here"] * size
    return on_threads(lambda rank: program(engine.NcclEngine(engine._connected(size, name, rank), rank, hosts)), size)


# -- arrays of the device --------------------------------------------------------------------------------------------


def test_arrays_of_the_device_are_sent_from_where_they_are(device, emulated):
    """One call of NCCL on the current stream, and nothing that waits or allocates: a recorded graph may hold it."""

    def program(engine):
        array = device.asarray(np.full(5, engine.rank + 1, np.float32))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(emulated.Event, "record", None)  # events that are looked at cannot be recorded in a graph
            assert engine.all_reduce(array) is None
        ((name, stream, handle),) = emulated.launched()
        assert handle.wait(10)
        return name, stream, array.get().tolist()

    stream = device.cuda.get_current_stream().ptr
    assert run_ranks(program) == [("allReduce", stream, [6.0] * 5)] * SIZE


def test_communicators_work_on_it_from_the_host():
    def program(engine):
        comm = Communicator(engine=engine)
        comm.init()
        x = nn.NdArray.from_numpy_array(np.full(7, comm.rank + 1, np.float32))
        comm.all_reduce(x, division=True)
        return x.data.tolist()

    assert run_ranks(program) == [[2.0] * 7] * SIZE


def test_errors_in_the_background_are_told():
    def program(engine):
        engine._comm.broken = RuntimeError("NCCL_ERROR_REMOTE_ERROR")
        handle = engine.all_reduce(np.ones(1, np.float32)) if engine.rank == 0 else None
        if handle is not None:
            with pytest.raises(CommunicationError, match="nccl: every rank must be reached, got: NCCL_ERROR_REMOTE_ERROR"):
                handle.wait(10)

    run_ranks(program, 2)


def test_what_it_does_not_add_up_is_refused(device):
    def program(engine):
        with pytest.raises(ArgumentError, match="nccl: op must be one of sum, max, got 'min'"):
            engine.all_reduce(np.ones(2, np.float32), "min")
        for array in (np.ones(2, bool), device.asarray(np.ones(2, np.int16))):
            with pytest.raises(ArgumentError, match=r"nccl: arrays that are added up must be of int8, .*, got (bool|int16)"):
                engine.all_reduce(array)

    run_ranks(program, 1)


# -- steps of passes -------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(cuda, monkeypatch):
    """The kinds of steps of each recorded graph, by thread."""
    from nn_ext_cuda.launch import capture

    found = {}
    record = capture.Recorded.__init__

    def noted(self, steps, **options):
        record(self, steps, **options)
        found.setdefault(threading.get_ident(), []).append([type(step).__name__ for step in steps])

    monkeypatch.setattr(capture.Recorded, "__init__", noted)
    return found


BUILDING = threading.Lock()


def network():
    """Parameters, input and loss of a network: a parameter that is used twice, and one that is not used."""
    rng = np.random.default_rng(3)
    parameters = {
        name: nn.Variable.from_numpy_array(rng.standard_normal(shape).astype(np.float32), need_grad=True)
        for name, shape in {"a": (4, 4), "b": (4, 3), "unused": (2,)}.items()
    }
    x = nn.Variable((5, 4))
    h = F.tanh(F.affine(F.tanh(F.affine(x, parameters["a"])), parameters["a"]))
    return parameters, x, F.sum(F.tanh(F.affine(h, parameters["b"])))


def values(rank, step):
    return np.random.default_rng([rank, step]).standard_normal((5, 4)).astype(np.float32)


def own_gradients(rank, steps, accumulate):
    """The gradients of a rank in each step, without those of others."""
    parameters, x, loss = network()
    for step in range(steps):
        for v in parameters.values():
            v.grad.zero()
        for part in range(accumulate):
            x.d = values(rank, step * accumulate + part)
            loss.forward()
            loss.backward()
        yield [v.g.copy() for v in parameters.values()]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_sums_are_parts_of_the_recorded_pass(recorded, accumulate, together):
    """On each rank all gradients are added up within one graph, which gives the bits of sums after the pass."""

    from nn_ext_cuda.nccl import engine

    name, steps = engine.library().get_unique_id(), 5
    context = nn.get_current_context()
    alone = {}

    def program(rank):
        comm = Communicator(context, engine=engine.NcclEngine(engine._connected(2, name, rank), rank, ["here"] * 2))
        comm.init()
        found = []
        with nn.context_scope(context):
            with BUILDING:
                alone[rank] = list(own_gradients(rank, steps, accumulate))
                parameters, x, loss = network()
                buckets = Buckets(comm, parameters, loss=loss, bucket_mb=1e-5, first_mb=1e-5, on_device=True)
            callback = buckets.callback(division=True)
            for step in range(steps):
                buckets.zero()
                with nn.launch_together() if together else contextlib.nullcontext():
                    for part in range(accumulate):
                        x.d = values(rank, step * accumulate + part)
                        loss.forward(clear_no_need_grad=True)
                        with comm.no_sync() if part < accumulate - 1 else contextlib.nullcontext():
                            loss.backward(clear_buffer=True, communicator_callbacks=callback)
                assert parameters["unused"].grad.zeroing
                found.append([v.g.copy() for v in parameters.values()])
            own = recorded[threading.get_ident()]
            assert max(kinds.count("SumStep") for kinds in own) == 3, own
        return found

    for found in on_threads(program, 2):
        for own, *both in zip(found, alone[0], alone[1], strict=True):
            for grad, first, second in zip(own, *both, strict=True):
                np.testing.assert_array_equal(grad, (first + second) / 2)


def test_buckets_of_a_device_are_added_up_after_the_pass_as_well(cuda):

    from nn_ext_cuda.nccl import engine

    name, context = engine.library().get_unique_id(), nn.get_current_context()

    def program(rank):
        comm = Communicator(context, engine=engine.NcclEngine(engine._connected(2, name, rank), rank, ["here"] * 2))
        comm.init()
        with nn.context_scope(context):
            w, unused = (nn.Variable((3,), need_grad=True) for _ in range(2))
            buckets = Buckets(comm, [w, unused], on_device=True)
            w.g = np.full(3, rank + 1)
            buckets.all_reduce(division=True)
            return w.g.tolist(), unused.grad.zeroing

    assert on_threads(program, 2) == [([1.5] * 3, True)] * 2


def test_buckets_of_a_device_need_one():
    comm = Communicator(nn.Context(), engine="alone")
    comm.init()
    with pytest.raises(ArgumentError, match="on_device needs a context of a device and an engine between devices, got host"):
        Buckets(comm, [], on_device=True)


class World:
    """A stand-in for mpi4py in one of two processes."""

    class MPI:
        class COMM_WORLD:
            Get_size = staticmethod(lambda: 2)
            allgather = staticmethod(lambda text: [text, "other"])


def test_ranks_meet_by_mpi(monkeypatch):
    monkeypatch.delenv(rendezvous.ADDRESS, raising=False)
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    monkeypatch.setitem(sys.modules, "mpi4py", World)
    assert rendezvous.gather(launch_of(0, 2), "text") == ["text", "other"]
    with pytest.raises(BackendUnavailableError, match="MPI must connect the 3 processes that torchrun has started, got 2"):
        rendezvous.gather(launch_of(0, 3), "text")
    monkeypatch.delitem(sys.modules, "mpi4py")
    monkeypatch.setattr(rendezvous, "find_spec", lambda name: None)
    with pytest.raises(BackendUnavailableError, match="find each other by MPI or by an address, got neither\n  hint: pip"):
        rendezvous.gather(launch_of(0, 3), "text")


# -- registration ----------------------------------------------------------------------------------------------------


def made(monkeypatch, places):
    from nn_ext_cuda.nccl import engine

    monkeypatch.setattr(engine, "find_launch", lambda: launch_of(0, len(places)))
    monkeypatch.setattr(engine.rendezvous, "gather", lambda launch, text: [text, *places[1:]])
    return engine.make(nn.Context())


def test_the_engine_is_made_of_what_the_ranks_say(monkeypatch):
    other = '{"host": "elsewhere", "device": "0000:00:00.0"}'
    engine = made(monkeypatch, ["", other])
    assert (engine.rank, engine.size, engine.local_rank) == (0, 2, 0)
    assert engine.hosts == (socket.gethostname(), "elsewhere")


def test_two_ranks_on_one_device_are_refused(monkeypatch):
    place = f'{{"host": "{socket.gethostname()}", "device": "0000:00:00.0"}}'
    with pytest.raises(ArgumentError, match=r"a device of its own, got 0000:00:00.0 of .* for ranks 0 and 1\n  hint: get_ext"):
        made(monkeypatch, ["", place])


def test_a_missing_library_is_told(monkeypatch, device):
    from nn_ext_cuda.nccl import engine

    monkeypatch.setattr(engine.library(), "available", False)
    with pytest.raises(BackendUnavailableError, match="nccl: the library must be installed, got none\n  hint: pip install"):
        engine.make()
    monkeypatch.setattr(plugin, "probe_cuda", lambda: None)
    monkeypatch.setattr(plugin, "has_nccl", lambda: False)
    assert plugin.probe().reason.startswith("NCCL is not installed: pip install nvidia-nccl-cu13")
    monkeypatch.setattr(plugin, "has_nccl", lambda: True)
    assert plugin.probe() is None


def test_the_engine_is_registered():
    (info,) = plugin.nn_core_communicators()
    assert (info.name, info.target, info.families) == ("nccl", "nn_ext_cuda.nccl.engine:make", ())
