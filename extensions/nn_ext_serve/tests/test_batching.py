"""The queue: batches, deadlines, overload, requests that fail or are given up, the end."""

import threading
import time

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from extensions.nn_ext_serve.tests.networks import scaled, weights
from nn_core.ext import ArgumentError, ShapeError
from nn_ext_serve import Batcher, DeadlineError, Graph, NonFiniteError, OverloadError, Predictor


class Stopped(Predictor):
    """A predictor that waits before it computes, until it may go on."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.may_run, self.runs, self.is_running = threading.Event(), [], threading.Event()

    def predict(self, inputs):
        self.is_running.set()
        assert self.may_run.wait(10)
        self.runs.append(len(next(iter(inputs.values()))))
        return super().predict(inputs)


@pytest.fixture
def predictor():
    return Stopped(scaled(weights(2.0)), max_batch=4)


def ones(n=1):
    return {"x": np.ones((n, 3), np.float32)}


def test_requests_that_wait_are_put_into_batches(predictor):
    with Batcher(predictor, max_wait=0) as batcher:
        first = batcher.submit(ones())
        assert predictor.is_running.wait(10)
        others = [batcher.submit({"x": np.full((n, 3), i)}) for i, n in enumerate((2, 1, 3, 1, 4))]
        predictor.may_run.set()
        found = [future.result(10)["y"] for future in others]
        first.result(10)
    assert predictor.runs == [1, 3, 4, 4]  # 2 + 1, 3 + 1, 4: requests are not cut
    for i, (answer, n) in enumerate(zip(found, (2, 1, 3, 1, 4), strict=True)):
        np.testing.assert_array_equal(answer, np.full((n, 3), 16.0 * i))
    assert "nn_core_serve_samples_total 12\n" in batcher.metrics.text()


def test_a_batch_waits_for_others_but_not_longer_than_it_may(predictor):
    predictor.may_run.set()
    with Batcher(predictor, max_wait=60) as batcher:
        futures = [batcher.submit(ones(2)) for _ in range(2)]  # a full batch does not wait
        assert [len(future.result(10)["y"]) for future in futures] == [2, 2]
    with Batcher(predictor, max_wait=0.02) as batcher:
        began = time.monotonic()
        batcher.submit(ones()).result(10)
        assert time.monotonic() - began >= 0.02
    assert predictor.runs == [4, 1]


def test_what_does_not_fit_into_the_queue_is_refused_with_a_time(predictor):
    with Batcher(predictor, max_wait=0, capacity=3) as batcher:
        batcher.submit(ones())
        assert predictor.is_running.wait(10)
        batcher.require_room()
        waiting = batcher.submit(ones(3))
        with pytest.raises(OverloadError, match="at most 3 samples may wait, got 1 more than 3") as caught:
            batcher.submit(ones())
        assert caught.value.retry_after >= 1
        with pytest.raises(OverloadError):
            batcher.require_room()
        predictor.may_run.set()
        waiting.result(10)
        batcher.submit(ones()).result(10)


def test_requests_past_their_deadline_and_cancelled_ones_are_not_computed(predictor):
    with Batcher(predictor, max_wait=0) as batcher:
        batcher.submit(ones())
        assert predictor.is_running.wait(10)
        late, cancelled, wanted = batcher.submit(ones(), deadline=0.001), batcher.submit(ones()), batcher.submit(ones(2))
        assert cancelled.cancel()
        time.sleep(0.01)
        predictor.may_run.set()
        wanted.result(10)
        with pytest.raises(DeadlineError, match=r"a request must be computed before its deadline, got one that is 0\."):
            late.result(10)
    assert predictor.runs == [1, 2]


def test_one_request_that_fails_does_not_fail_the_others_of_its_batch():
    def build(n):
        x = nn.Variable((n, 3))
        return Graph({"x": x}, {"y": F.log(x)})

    predictor = Stopped(build, max_batch=4, check_finite=True, check_samples=False)
    with Batcher(predictor, max_wait=0) as batcher:
        first = batcher.submit(ones())
        assert predictor.is_running.wait(10)
        futures = [batcher.submit({"x": np.full((1, 3), value)}) for value in (1, 0, 1)]
        predictor.may_run.set()
        for future in (first, futures[0], futures[2]):
            np.testing.assert_array_equal(future.result(10)["y"], np.zeros((1, 3)))
        with pytest.raises(NonFiniteError, match="output 'y' must be finite, got 3 of 3"):
            futures[1].result(10)
    assert predictor.runs == [1, 3, 1, 1, 1]


def test_closing_answers_what_waits_and_refuses_the_rest(predictor):
    batcher = Batcher(predictor, max_wait=60, workers=2)
    futures = [batcher.submit(ones()) for _ in range(3)]
    predictor.may_run.set()
    batcher.close()
    assert all(future.done() and len(future.result()["y"]) == 1 for future in futures)
    with pytest.raises(OverloadError, match="the batcher must be open"):
        batcher.submit(ones())
    assert not any(thread.name.startswith("serve-") for thread in threading.enumerate())


def test_wrong_requests_and_settings_are_refused(predictor):
    with Batcher(predictor) as batcher, pytest.raises(ShapeError, match="'x' must have shape"):
        batcher.submit({"x": np.ones((1, 4))})
    for settings in ({"workers": 0}, {"max_wait": -1}, {"capacity": 0}, {"deadline": 0}, {"max_wait": float("nan")}):
        with pytest.raises(ArgumentError, match=f"Batcher: {next(iter(settings))} must be"):
            Batcher(predictor, **settings)
