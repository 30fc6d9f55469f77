"""How ranks of NCCL meet at an address, and what they do about connections of strangers."""

import contextlib
import json
import socket
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from nn_core.errors import CommunicationError
from nn_core.ext import BackendUnavailableError
from nn_ext_cuda.nccl import rendezvous

sys.path.insert(0, str(Path(__file__).parent))

from rank_threads import SIZE, launch_of, on_threads


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
    """Collect the exceptions by which threads end; nobody else would see them."""
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
            with pytest.raises(
                CommunicationError, match=r"within 0.4 s, got: (something else than a rank of the job|timed out)"
            ):
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
