"""Many clients at once over sockets, with wrong requests and reloads: no wrong answer, and none that is missing."""

import io
import json
import random
import re
import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.client import HTTPConnection

import numpy as np
import pytest
import uvicorn

from extensions.nn_ext_serve.tests.networks import DEPTH, scaled, weights
from nn_ext_serve import Application, Batcher, Predictor

#: Bodies that are refused, whoever sends them.
WRONG = [b"", b"{", b'{"inputs": [[1, 2]]}', b'{"inputs": [[1, 2, NaN]]}', b'{"inputs": {"z": [[1, 2, 3]]}}', b"[" * 5000]
CLIENTS = 64


@contextmanager
def served(application):
    """Yield the port of an application that a thread serves."""
    config = uvicorn.Config(application, port=0, http="h11", loop="asyncio", ws="none", lifespan="off", log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


class Caller(threading.Thread):
    """A client that sends right and wrong requests over one connection, and tries again when the server is busy."""

    def __init__(self, port, number, n_requests):
        super().__init__()
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)
        self._draw = random.Random(number)
        self._n_requests = n_requests
        self.faults, self.statuses = [], Counter()

    def run(self):
        try:
            for _ in range(self._n_requests):
                self._wrong() if self._draw.random() < 0.2 else self._right()
        except Exception as error:
            self.faults.append(repr(error))
        finally:
            self._connection.close()

    def _wrong(self):
        status, _ = self._sent(self._draw.choice(WRONG), "application/json")
        if status != 400:
            self.faults.append(status)

    def _right(self):
        values = np.array(
            [[self._draw.randrange(1000) for _ in range(3)] for _ in range(self._draw.randint(1, 4))], np.float32
        )
        if self._draw.random() < 0.5:
            status, body = self._sent(json.dumps({"inputs": values.tolist()}).encode(), "application/json")
            answer = json.loads(body)["outputs"]["y"]
        else:
            file = io.BytesIO()
            np.save(file, values)
            status, body = self._sent(file.getvalue(), "application/x-npy")
            answer = np.load(io.BytesIO(body))
        if status != 200 or not any(np.array_equal(answer, values * factor) for factor in (1.0, 2.0**DEPTH)):
            self.faults.append((status, values.tolist(), np.asarray(answer).tolist()))

    def _sent(self, body, kind):
        while True:
            self._connection.request("POST", "/predict", body, {"Content-Type": kind})
            reply = self._connection.getresponse()
            content = reply.read()
            self.statuses[reply.status] += 1
            if reply.status != 503:
                return reply.status, content
            assert int(reply.headers["Retry-After"]) >= 1
            time.sleep(self._draw.uniform(0.005, 0.02))


def run_load(n_requests, **settings):
    """Return the statuses that clients saw, those that the metrics counted, and how many reloads there were."""
    shared, one, two = weights(1.0), weights(1.0), weights(2.0)
    predictor = Predictor(scaled(shared, pauses=True), graphs=2, max_batch=16, parameters=shared)
    with Batcher(predictor, workers=2, **settings) as batcher, served(Application(batcher)) as port:
        callers = [Caller(port, number, n_requests) for number in range(CLIENTS)]
        for caller in callers:
            caller.start()
        n_reloads = 0
        while any(caller.is_alive() for caller in callers):
            if n_reloads % 3 == 2:  # graphs and all
                predictor.replace(scaled(shared, pauses=True))
            else:
                predictor.swap_parameters((two, one)[n_reloads % 2])
            n_reloads += 1
            time.sleep(0.005)
        for caller in callers:
            caller.join()
        counted = re.findall(r'requests_total\{status="(\d+)"\} (\d+)', batcher.metrics.text())
    assert [fault for caller in callers for fault in caller.faults] == []
    seen = sum((caller.statuses for caller in callers), Counter())
    assert {int(status): int(n) for status, n in counted} == dict(seen)
    assert seen[200] + seen[400] == CLIENTS * n_requests
    assert n_reloads > 5
    return seen


def test_64_clients_reloads_and_wrong_requests():
    seen = run_load(6)
    assert seen[400] > 30 and seen[200] > 200


def test_64_clients_and_a_queue_that_is_too_short():
    assert run_load(2, capacity=4)[503] > 0


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"capacity": 8}, {"max_wait": 0}], ids=str)
def test_the_load_for_longer(settings):
    run_load(100, **settings)
