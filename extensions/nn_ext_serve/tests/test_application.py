"""The application: every path, bodies in three formats, and requests that are wrong in many ways."""

import asyncio
import io
import json

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from extensions.nn_ext_serve.tests.networks import Client, scaled, weights
from extensions.nn_ext_serve.tests.test_batching import Stopped
from nn_core.ext import ArgumentError, Entry, read_entries, write_entries
from nn_ext_serve import Application, Batcher, Graph, Predictor

JSON, NPY, SAFETENSORS = "application/json", "application/x-npy", "application/x-safetensors"


@pytest.fixture
def batcher():
    with Batcher(Predictor(scaled(weights(2.0)), max_batch=4), max_wait=0) as batcher:
        yield batcher


@pytest.fixture
def client(batcher):
    return Client(Application(batcher, name="digits", hosts=["LOCALHOST"]))


def npy(values):
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def tensors(**arrays):
    file = io.BytesIO()
    write_entries(file, {name: Entry(values) for name, values in arrays.items()}, ".safetensors")
    return file.getvalue()


def test_json(client):
    assert client.json({"inputs": {"x": [[1, 2, 3]]}}) == (200, {"outputs": {"y": [[16.0, 32.0, 48.0]]}})
    assert client.json({"inputs": [[1, 2, 3.5]]}) == (200, {"outputs": {"y": [[16.0, 32.0, 56.0]]}})


def test_arrays(client):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    for order in "CF":
        status, headers, body = client("/predict", npy(np.asarray(values, order=order)), content_type=NPY)
        assert (status, headers["content-type"]) == (200, NPY)
        np.testing.assert_array_equal(np.load(io.BytesIO(body)), values * 16)
    status, headers, body = client("/predict", tensors(x=values), content_type=SAFETENSORS)
    assert (status, headers["content-type"]) == (200, SAFETENSORS)
    np.testing.assert_array_equal(read_entries(io.BytesIO(body), ".safetensors")["y"].values, values * 16)
    status, headers, body = client("/predict", npy(values), content_type=NPY, accept="text/html, application/json;q=0.9")
    assert headers["content-type"] == JSON and json.loads(body)["outputs"]["y"] == (values * 16).tolist()


def test_large_bodies_are_converted_beside_the_event_loop():
    def build(n):
        x = nn.Variable((n, 9000))
        return Graph({"x": x}, {"y": x * 2})

    with Batcher(Predictor(build, max_batch=1)) as batcher:
        status, content = Client(Application(batcher)).json({"inputs": np.ones((1, 9000)).tolist()})
    assert status == 200 and content["outputs"]["y"] == [[2.0] * 9000]


def test_the_other_paths(client):
    status, _, body = client("/")
    assert status == 200 and json.loads(body) == {
        "name": "digits",
        "inputs": {"x": {"shape": ["n", 3], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["n", 3], "dtype": "float32"}},
        "max_samples": 4,
        "media_types": [JSON, NPY, SAFETENSORS],
    }
    for path in ("/health/live", "/health/ready"):
        assert client(path)[0] == client(path, method="HEAD")[0] == 200
    assert client("/reload", b"")[0] == 404  # nothing was said about it


def test_the_metrics_count_requests_samples_and_batches(client):
    client.json({"inputs": [[1, 2, 3]] * 3})
    client.json({"inputs": [[1, 2]]})
    status, headers, body = client("/metrics")
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    lines = body.decode().splitlines()
    assert {
        'nn_core_serve_requests_total{status="200"} 1',
        'nn_core_serve_requests_total{status="400"} 1',
        "nn_core_serve_samples_total 3",
        "nn_core_serve_waiting_samples 0",
        'nn_core_serve_batch_samples_bucket{le="2"} 0',
        'nn_core_serve_batch_samples_bucket{le="4"} 1',
        'nn_core_serve_batch_samples_bucket{le="+Inf"} 1',
        "nn_core_serve_batch_samples_sum 3",
        "nn_core_serve_request_seconds_count 2",
    } <= set(lines)
    for line in lines:  # the grammar of the text format
        assert line.startswith(("# HELP ", "# TYPE ")) or float(line.rsplit(" ", 1)[1]) >= 0


def huge_npy():
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 3), }".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(12)


BAD = [
    (JSON, b"", 400, "the body must be JSON"),
    (JSON, b'{"inputs": [[1, 2, 3]]', 400, "the body must be JSON"),
    (JSON, b"\xff\xfe", 400, "the body must be JSON"),
    (JSON, b'{"inputs": [[1, 2, NaN]]}', 400, "NaN, which JSON does not have"),
    (JSON, b'{"inputs": [[1, 2, -Infinity]]}', 400, "-Infinity, which JSON does not have"),
    (JSON, b'{"inputs": [[1, 2, 1e999]]}', 400, "'x' must hold numbers below 1e308"),
    (JSON, b'{"inputs": [[1, 2, 1e300]]}', 400, "'x' must hold numbers that float32 represents"),
    (JSON, b'{"inputs": [[1, 2, 1' + b"0" * 5000 + b"]]}", 400, "the body must be JSON"),
    (JSON, b'{"inputs": [[1, 2, 1' + b"0" * 30 + b"]]}", 400, "'x' must hold numbers, got null or large integers"),
    (JSON, b"[" * 100_000, 400, "the body must be JSON"),
    (JSON, b'{"inputs": ' + b"[" * 200 + b"]" * 200 + b"}", 400, "'x' must"),
    (JSON, b'{"inputs": {"x": [[1,2,3]]}, "inputs": {"x": [[1,2,3]]}}', 400, "a key twice"),
    (JSON, b'{"inputs": {"x": [[1,2,3]]}, "model": 1}', 400, "JSON must be"),
    (JSON, b"[[1, 2, 3]]", 400, "got list"),
    (JSON, b'{"inputs": {"z": [[1, 2, 3]]}}', 400, "inputs must be ['x'], got ['z']"),
    (JSON, b'{"inputs": {}}', 400, "inputs must be ['x'], got []"),
    (JSON, b'{"inputs": null}', 400, "'x' must hold numbers, got null"),
    (JSON, b'{"inputs": [[1, null, 3]]}', 400, "'x' must hold numbers, got null"),
    (JSON, b'{"inputs": [["1", "2", "3"]]}', 400, "'x' must hold numbers, got text"),
    (JSON, b'{"inputs": [[true, false, true]]}', 400, "'x' must hold numbers that fit float32, got bool"),
    (JSON, b'{"inputs": [[1, 2, 3], [1, 2]]}', 400, "'x' must be nested lists of equal lengths"),
    (JSON, b'{"inputs": [1, 2, 3]}', 400, "'x' must have shape (n, 3) with n >= 1 samples, got (3,)"),
    (JSON, b'{"inputs": [[[1, 2, 3]]]}', 400, "got (1, 1, 3)"),
    (JSON, b'{"inputs": [[1]]}', 400, "got (1, 1)"),
    (JSON, b'{"inputs": []}', 400, "got (0,)"),
    (JSON, b'{"inputs": ' + json.dumps([[1, 2, 3]] * 5).encode() + b"}", 400, "at most 4 samples, got 5"),
    (NPY, b"", 400, "must be a .npy file"),
    (NPY, npy(np.ones((1, 3)))[:-1], 400, "must be a .npy file of numbers"),
    (NPY, npy(np.array([[object()]], dtype=object)), 400, "must be a .npy file of numbers"),
    (NPY, npy(np.array([["a", "b", "c"]])), 400, "must be a .npy file of numbers"),
    (NPY, huge_npy(), 400, "must be a .npy file of numbers, got array inputs of shape (1000000000000, 3) must be stored"),
    (NPY, b"\x93NUMPY\x09\x00", 400, "must be a .npy file"),
    (SAFETENSORS, b"", 400, ""),
    (SAFETENSORS, b"\xff" * 20, 400, ""),
    (SAFETENSORS, tensors(z=np.ones((1, 3))), 400, "inputs must be ['x'], got ['z']"),
    ("text/plain", b'{"inputs": [[1, 2, 3]]}', 415, "Content-Type must be one of"),
    ("", b'{"inputs": [[1, 2, 3]]}', 415, "got ''"),
]


@pytest.mark.parametrize(("kind", "body", "status", "text"), BAD, ids=[f"{i}" for i in range(len(BAD))])
def test_wrong_bodies_get_a_reply_that_says_why(client, kind, body, status, text):
    found, headers, answer = client("/predict", body, content_type=kind)
    assert (found, headers["content-type"]) == (status, JSON)
    assert text in json.loads(answer)["error"]
    assert client.json({"inputs": [[1, 2, 3]]})[0] == 200  # nothing has broken


def test_wrong_paths_methods_and_hosts(client):
    assert client("/predictions")[0] == 404
    status, headers, _ = client("/predict")
    assert (status, headers["allow"]) == (405, "POST")
    assert client("/metrics", b"")[0] == 405
    assert client("/predict", b"[]", content_type=JSON, accept="image/png")[0] == 406
    assert client("/health/live", host="localhost")[0] == 200
    status, _, body = client("/health/live", host="evil.example:8000")
    assert (status, json.loads(body)["error"]) == (421, "the header Host must be one of ['localhost'], got 'evil.example'")


def test_bodies_are_limited_before_and_while_they_arrive(batcher):
    client = Client(Application(batcher, body_limit=100, bodies_limit=150))
    status, headers, _ = client("/predict", b"", content_type=JSON, content_length="101")
    assert (status, headers["connection"]) == (413, "close")

    def sent(*parts):
        return asyncio.run(client.call("/predict", parts=parts, content_type=JSON))[0]

    assert sent(b'{"inputs":', b" [[1, 2, 3]]}") == 200
    assert sent(b" " * 60, b" " * 60) == 413
    assert sent(b"x" * 100) == 400  # what was refused does not count any more


def test_a_body_that_does_not_arrive(batcher):
    client = Client(Application(batcher, body_timeout=0.01))
    status, headers, _ = asyncio.run(client.call("/predict", parts=[b"{"], is_cut=True, content_type=JSON))
    assert (status, headers["connection"]) == (408, "close")

    async def leave():
        gone = asyncio.Event()
        gone.set()
        return await client.call("/predict", parts=[b"{"], is_cut=True, gone=gone, content_type=JSON)

    assert asyncio.run(leave()) == (0, {}, b"")


@pytest.fixture
def stopped():
    predictor = Stopped(scaled(weights(2.0)), max_batch=4)
    with Batcher(predictor, max_wait=0, capacity=1, deadline=0.05) as batcher:
        yield predictor, batcher
        predictor.may_run.set()


def test_overload_is_answered_with_a_time_and_late_requests_are_given_up(stopped):
    predictor, batcher = stopped
    client = Client(Application(batcher))
    first = batcher.submit({"x": np.ones((1, 3))})
    assert predictor.is_running.wait(10)
    status, headers, body = client("/predict", b'{"inputs": [[1, 2, 3]]}', content_type=JSON)
    assert (status, headers["retry-after"]) == (503, "1")
    assert "predict: must begin within 0.05 s, got no free worker" in json.loads(body)["error"]
    status, headers, body = client("/predict", b'{"inputs": [[1, 2, 3]]}', content_type=JSON)
    assert (status, headers["retry-after"]) == (503, "1") and "at most 1 samples may wait" in json.loads(body)["error"]
    predictor.may_run.set()
    first.result(10)
    assert client.json({"inputs": [[1, 2, 3]]})[0] == 200


def test_all_bodies_together_are_limited(stopped):
    predictor, batcher = stopped
    client = Client(Application(batcher, bodies_limit=60))
    body = b'{"inputs": [[1, 2, 3]]}'.ljust(40)
    batcher.deadline = 10

    async def two():
        first = asyncio.ensure_future(client.call("/predict", body, content_type=JSON))
        while not predictor.is_running.is_set():
            await asyncio.sleep(0.001)
        second = await client.call("/predict", body, content_type=JSON)
        predictor.may_run.set()
        return await first, second

    (status, _, _), (other, headers, answer) = asyncio.run(two())
    assert (status, other, headers["retry-after"]) == (200, 503, "1")
    assert json.loads(answer)["error"] == "all requests together must have at most 60 bytes, got 80"
    assert client("/predict", body, content_type=JSON)[0] == 200


def test_a_request_whose_client_is_gone_is_not_computed(stopped):
    predictor, batcher = stopped
    client = Client(Application(batcher))
    batcher.submit({"x": np.ones((1, 3))})
    assert predictor.is_running.wait(10)

    async def leave():
        gone = asyncio.Event()
        gone.set()
        return await client.call("/predict", b'{"inputs": [[1, 2, 3]]}', content_type=JSON, gone=gone)

    assert asyncio.run(leave()) == (0, {}, b"")
    predictor.may_run.set()
    batcher.close()
    assert predictor.runs == [1]


def test_answers_that_json_cannot_say():
    def build(n):
        x = nn.Variable((n, 1))
        return Graph({"x": x}, {"y": F.log(x)})

    with Batcher(Predictor(build, max_batch=1)) as batcher:
        client = Client(Application(batcher))
        status, content = client.json({"inputs": [[0]]})
        assert status == 500 and "outputs must be finite in JSON" in content["error"]
        assert client("/predict", npy(np.zeros((1, 1))), content_type=NPY)[0] == 200
    with Batcher(Predictor(build, max_batch=1, check_finite=True)) as batcher:
        assert Client(Application(batcher))("/predict", npy(np.zeros((1, 1))), content_type=NPY)[0] == 500


def test_several_outputs_and_inputs_need_names():
    def build(n):
        a, b = nn.Variable((n, 1)), nn.Variable((n, 1))
        return Graph({"a": a, "b": b}, {"sum": a + b, "product": a * b})

    with Batcher(Predictor(build, max_batch=1)) as batcher:
        client = Client(Application(batcher))
        assert client.json({"inputs": {"a": [[2]], "b": [[3]]}}) == (200, {"outputs": {"sum": [[5.0]], "product": [[6.0]]}})
        status, content = client.json({"inputs": [[2]]})
        assert status == 400 and "inputs must be given by name, ['a', 'b'], got one array" in content["error"]
        body = b'{"inputs": {"a": [[2]], "b": [[3]]}}'
        status, _, answer = client("/predict", body, content_type=JSON, accept=NPY)
        assert status == 400 and "must hold one output" in json.loads(answer)["error"]


def test_reloads_are_counted_and_a_failing_one_changes_nothing(batcher):
    def reload():
        if not found:
            raise ArgumentError("load: the file must be there, got none")
        batcher.predictor.replace(scaled(weights(1.0)))

    found = []
    client = Client(Application(batcher, reload=reload, has_reload_endpoint=True))
    status, _, body = client("/reload", b"")
    assert (status, json.loads(body)["error"]) == (500, "reload: load: the file must be there, got none")
    assert client.json({"inputs": [[1, 1, 1]]})[1] == {"outputs": {"y": [[16.0, 16.0, 16.0]]}}
    found.append(True)
    assert client("/reload", b"")[0] == 200
    assert client.json({"inputs": [[1, 1, 1]]})[1] == {"outputs": {"y": [[1.0, 1.0, 1.0]]}}
    text = batcher.metrics.text()
    assert 'reloads_total{result="success"} 1' in text and 'reloads_total{result="failure"} 1' in text
    asyncio.run(Application(batcher).reload())  # nothing to do


def test_a_fault_of_ours_is_logged_and_not_told(client, monkeypatch, caplog):
    monkeypatch.setattr(Batcher, "submit", lambda *args: 1 / 0)
    assert client.json({"inputs": [[1, 2, 3]]}) == (500, {"error": "an error of the server, which its log has"})
    assert "ZeroDivisionError" in caplog.text


def test_the_rest_of_asgi(client):
    sent = []

    async def run(scope, *messages):
        waiting = iter(messages)

        async def receive():
            return next(waiting)

        async def send(message):
            sent.append(message["type"])

        await client._application(scope, receive, send)

    asyncio.run(run({"type": "lifespan"}, {"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}))
    asyncio.run(run({"type": "websocket"}))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete", "websocket.close"]
