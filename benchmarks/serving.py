"""Requests a second and latencies of `nn-core serve`, and its processor time for each request.

    OMP_NUM_THREADS=1 python -m benchmarks.serving [--clients 64] [--requests 4000]

The network is a perceptron, 64 numbers to 10 by two layers of 256, in an ONNX file that nn-ext-onnx writes. The clients are
coroutines of this process, each with a connection of its own that it keeps; they send one sample as the bytes of a .npy file
and wait for the answer. The server is a process of its own, whose processor time the system counts; it does not depend on what
else the machine does, as the clock does.
"""

import argparse
import asyncio
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PORT, ROUNDS = 18765, 5


def _write(path: Path) -> None:
    import nn_core as nn
    import nn_core.functions as F
    import nn_core.parametric_functions as PF
    from nn_ext_onnx import export

    x = nn.Variable((1, 64))
    h = F.relu(PF.affine(x, 256, name="first"))
    h = F.relu(PF.affine(h, 256, name="second"))
    export(str(path), PF.affine(h, 10, name="scores"), {"x": x})


def _request() -> bytes:
    body = io.BytesIO()
    np.save(body, np.ones((1, 64), np.float32))
    lines = "POST /predict HTTP/1.1", "Host: localhost", "Content-Type: application/x-npy", f"Content-Length: {body.tell()}"
    return "\r\n".join([*lines, "", ""]).encode() + body.getvalue()


def _seconds(process: int) -> float:
    """Return the processor time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _client(count: int, request: bytes, times: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    for _ in range(count):
        begun = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        times.append(time.perf_counter() - begun)
    writer.close()


async def _round(clients: int, requests: int) -> list[float]:
    times: list[float] = []
    request = _request()
    await asyncio.gather(*(_client(requests // clients, request, times) for _ in range(clients)))
    return times


def _wait(process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        try:
            asyncio.run(_round(1, 1))
        except OSError:
            if process.poll() is not None:
                sys.exit("serving: the server must start, got its end")
            time.sleep(0.1)
        else:
            return
    sys.exit("serving: the server must start within a minute, got no answer")


def main() -> None:
    """Measure in rounds, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=4000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "network.onnx")
        _write(path)
        command = [sys.executable, "-m", "nn_core", "serve", str(path), "--port", str(PORT)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
            try:
                _wait(server)
                asyncio.run(_round(given.clients, given.requests))  # what is set up once
                for number in range(ROUNDS):
                    before, begun = _seconds(server.pid), time.perf_counter()
                    times = asyncio.run(_round(given.clients, given.requests))
                    took, used = time.perf_counter() - begun, _seconds(server.pid) - before
                    p99 = statistics.quantiles(times, n=100)[98]
                    row = f"{len(times) / used:.0f} requests a second of processor time, {1e6 * used / len(times):.0f} us each"
                    clock = f"{len(times) / took:.0f} a second by the clock, median {1e3 * statistics.median(times):.1f} ms"
                    sys.stdout.write(f"round {number}: {row}; {clock}, p99 {1e3 * p99:.1f} ms\n")
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
