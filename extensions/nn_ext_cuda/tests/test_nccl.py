"""The NCCL engine on an emulated library, whose ranks are threads: the admission test of engines, and what is refused."""

import contextlib
import json
import socket
import sys
import threading
import time

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.communicators import Buckets, Communicator, Launch
from nn_core.errors import CommunicationError
from nn_core.ext import ArgumentError, BackendUnavailableError
from nn_core.testing.engines import *  # noqa: F403
from nn_ext_cuda.nccl import plugin, rendezvous

SIZE = 3


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


def on_threads(program, size=SIZE):
    """Call ``program(rank)`` on threads; the results by rank."""
    results, failures = {}, []

    def run(rank):
        try:
            results[rank] = program(rank)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if failures:
        raise failures[0]
    return [results[rank] for rank in range(size)]


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


# -- how the ranks meet ----------------------------------------------------------------------------------------------


def launch_of(rank, size=SIZE):
    return Launch("torchrun", rank, size, rank)


def free_port(host, family):
    with socket.create_server((host, 0), family=family) as server:
        return server.getsockname()[1]


@pytest.fixture
def address(monkeypatch):
    port = free_port("127.0.0.1", socket.AF_INET)
    monkeypatch.setenv(rendezvous.ADDRESS, f"127.0.0.1:{port}")
    return "127.0.0.1", port


def test_ranks_meet_at_an_address_of_ipv6(monkeypatch):
    try:
        port = free_port("::1", socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    monkeypatch.setenv(rendezvous.ADDRESS, f"[::1]:{port}")
    assert on_threads(lambda rank: rendezvous.gather(launch_of(rank, 2), f"text {rank}"), 2) == [["text 0", "text 1"]] * 2


def test_ranks_meet_at_an_address(address):
    texts = on_threads(lambda rank: rendezvous.gather(launch_of(rank), f"text {rank}"))
    assert texts == [["text 0", "text 1", "text 2"]] * SIZE


def test_ranks_that_do_not_come_are_named(address):
    message = r"the 3 ranks must meet at 127.0.0.1:\d+ within 0.3 s, got: nothing from ranks \[1, 2\]\n  hint: set NN"
    with pytest.raises(CommunicationError, match=message):
        rendezvous.gather(launch_of(0), "text", timeout_s=0.3)
    with pytest.raises(CommunicationError, match=r"within 0.3 s, got: .*[Rr]efused"):
        rendezvous.gather(launch_of(1), "text", timeout_s=0.3)


def raw_connection(address):
    end = time.monotonic() + 5
    while True:
        try:
            return socket.create_connection(address, 5)
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_silent_and_foreign_connections_keep_nobody_waiting(address, monkeypatch):
    """One that says nothing, one that speaks HTTP, and ranks of another job."""
    monkeypatch.setenv("NN_CORE_JOB_TOKEN", "ours")

    def meet(rank):
        if rank:
            silent, foreign, other = (raw_connection(address) for _ in range(3))
            with silent, foreign, other:
                foreign.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(100))
                with pytest.raises(ValueError, match="something else than a rank of the job at the other end"):
                    rendezvous._exchanged(other, launch_of(1, 2), "false", b"theirs")
                return rendezvous.gather(launch_of(rank, 2), f"text {rank}")
        return rendezvous.gather(launch_of(rank, 2), f"text {rank}")

    assert on_threads(meet, 2) == [["text 0", "text 1"]] * 2


def line_of(*texts):
    return json.dumps(texts).encode() + b"\n"


#: Messages of connections that are not of the job, which are then silent, or close.
STRANGERS = {
    "nothing": b"",
    "HTTP": b"GET / HTTP/1.1\r\nHost: node1\r\n\r\n",
    "a line that does not end": b"x" * 5_000_000,
    "numbers drawn at random": np.random.default_rng(0).bytes(100_000),
    "half of a message": b'["1", "2", "thr',
    "lists inside each other": b"[" * 100_000 + b"\n",
    "a long integer": b"9" * 100_000 + b"\n",
    "the token itself": line_of("1", "own", "theirs", "ours"),
    "a proof with accents": line_of("1", "own", "theirs", "\u00e9" * 64),
    "a proof that is half a letter": line_of("1", "own", "theirs", "\ud800"),
    "too few texts": line_of("1", "own", "theirs"),
    "numbers": b"[1, 2, 3, 4]\n",
    "a rank that is none": line_of("-1", "own", "theirs", "0" * 64),
}


@pytest.fixture
def errors_of_threads(monkeypatch):
    """The exceptions by which threads end; nobody else would see them."""
    errors = []
    monkeypatch.setattr(threading, "excepthook", errors.append)
    return errors


@pytest.mark.parametrize("closes", [False, True])
@pytest.mark.parametrize("sent", STRANGERS.values(), ids=STRANGERS)
def test_rank_0_waits_on_whatever_strangers_send(address, monkeypatch, errors_of_threads, sent, closes):
    monkeypatch.setenv("NN_CORE_JOB_TOKEN", "ours")

    def meet(rank):
        if not rank:
            return rendezvous.gather(launch_of(rank, 2), "text 0")
        with raw_connection(address) as stranger:
            stranger.settimeout(0.2)
            with contextlib.suppress(OSError):  # rank 0 may have closed it
                stranger.sendall(sent)
                while not closes and stranger.recv(1 << 16):
                    pass
            if closes:
                stranger.close()
            return rendezvous.gather(launch_of(rank, 2), "text 1")

    assert on_threads(meet, 2) == [["text 0", "text 1"]] * 2
    assert not errors_of_threads


def test_a_rank_does_not_wait_longer_for_one_that_sends_slowly(address, monkeypatch):
    monkeypatch.setenv("NN_CORE_JOB_TOKEN", "ours")
    ended = threading.Event()

    def drip(server):
        with contextlib.suppress(OSError), server.accept()[0] as connection:
            while not ended.wait(0.05):
                connection.sendall(b" ")

    with socket.create_server(address) as server:
        threading.Thread(target=drip, args=(server,), daemon=True).start()
        try:
            with pytest.raises(CommunicationError, match=r"within 0.4 s, got: something else than a rank of the job"):
                on_threads(lambda _: rendezvous.gather(launch_of(1, 2), "text", timeout_s=0.4), 1)
        finally:
            ended.set()


def test_strangers_are_closed_beyond_a_number(address, monkeypatch, errors_of_threads):
    """However many come, no more than so many are listened to at a time, and ranks still find a place."""
    monkeypatch.setenv("NN_CORE_JOB_TOKEN", "ours")
    monkeypatch.setattr(rendezvous, "_STRANGERS", 4)

    def meet(rank):
        if not rank:
            return rendezvous.gather(launch_of(rank, 2), "text 0")
        with contextlib.ExitStack() as stack:
            strangers = [stack.enter_context(raw_connection(address)) for _ in range(40)]
            for stranger in strangers[: 40 - 2 - 4]:  # the oldest: their challenge, and the end
                while stranger.recv(100):
                    pass
            return rendezvous.gather(launch_of(rank, 2), "text 1")

    assert on_threads(meet, 2) == [["text 0", "text 1"]] * 2
    assert not errors_of_threads


@pytest.mark.parametrize("greeting", [b"220 mail\r\n", *STRANGERS.values()], ids=["mail", *STRANGERS])
def test_a_rank_waits_for_its_own_job_where_another_process_listens(address, monkeypatch, greeting):
    monkeypatch.setenv("NN_CORE_JOB_TOKEN", "ours")

    def greet(server):
        with contextlib.suppress(OSError):
            while True:
                with server.accept()[0] as connection:
                    connection.sendall(greeting)

    with socket.create_server(address) as server:
        thread = threading.Thread(target=greet, args=(server,), daemon=True)
        thread.start()
        with pytest.raises(CommunicationError, match=r"must meet at 127.0.0.1:\d+ within 0.4 s, got: "):
            rendezvous.gather(launch_of(1, 2), "text", timeout_s=0.4)


@pytest.mark.parametrize("proof", ["\u00e9" * 64, "\ud800", "0" * 64], ids=["accents", "half a letter", "wrong"])
def test_a_rank_0_that_does_not_know_the_token_is_not_believed(address, monkeypatch, proof):
    monkeypatch.setenv("NN_CORE_JOB_TOKEN", "ours")

    def pose_as_rank_0(server):
        with contextlib.suppress(OSError):
            while True:
                with server.accept()[0] as connection, connection.makefile("rwb") as lines:
                    connection.sendall(line_of("challenge"))
                    lines.readline()
                    connection.sendall(line_of("forged", "forged", proof))

    with socket.create_server(address) as server:
        threading.Thread(target=pose_as_rank_0, args=(server,), daemon=True).start()
        with pytest.raises(CommunicationError, match=r"within 0.4 s, got: a process that does not know the token of the job"):
            rendezvous.gather(launch_of(1, 2), "text", timeout_s=0.4)


def test_several_machines_need_a_token(monkeypatch):
    monkeypatch.delenv("NN_CORE_JOB_TOKEN", raising=False)
    assert rendezvous.token_of({}, ("127.0.0.1", 80)) == b""
    assert rendezvous.token_of({"NN_CORE_JOB_TOKEN": "secret"}, ("192.0.2.1", 80)) == b"secret"
    message = r"ranks of several machines must have a secret in common, got none in NN_CORE_JOB_TOKEN\n  hint: set"
    with pytest.raises(BackendUnavailableError, match=message):
        rendezvous.token_of({}, ("192.0.2.1", 80))


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"MASTER_ADDR": "node1", "MASTER_PORT": "29500"}, ("node1", 29501)),
        ({"NN_CORE_NCCL_ADDRESS": "node2:80", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"}, ("node2", 80)),
        ({"NN_CORE_NCCL_ADDRESS": "[::1]:80"}, ("::1", 80)),
        ({"MASTER_ADDR": "node1"}, None),
    ],
)
def test_addresses_are_read(environment, expected):
    assert rendezvous.address_in(environment) == expected


@pytest.mark.parametrize("given", ["node1", "node1:", ":80", "node1:99999", "node1:x"])
def test_bad_addresses_are_refused(given):
    with pytest.raises(BackendUnavailableError, match="nccl: NN_CORE_NCCL_ADDRESS must be a host and a port, such as"):
        rendezvous.address_in({"NN_CORE_NCCL_ADDRESS": given})


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
