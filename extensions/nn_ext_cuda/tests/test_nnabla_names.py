"""Names of NNabla's package for CUDA: profiler ranges, the size of the memory, and the refused iterator of DALI."""

import pytest

from nn_core.ext import ArgumentError


def test_an_iterator_of_dali_is_refused_when_it_is_made():
    from nn_ext_cuda.experimental.dali_iterator import DaliIterator

    with pytest.raises(ArgumentError, match=r"(?s)DaliIterator: batches must come from a data iterator.*hint: a data"):
        DaliIterator(None)


def test_ranges_are_those_of_the_profiler(monkeypatch):
    from nn_ext_cuda import nvtx

    calls = []

    class Recorder:
        RangePush = staticmethod(calls.append)
        RangePop = staticmethod(lambda: calls.append(None))

    monkeypatch.setattr(nvtx, "_nvtx", lambda: Recorder)
    nvtx.range_push("train")
    nvtx.range_pop()
    assert calls == ["train", None]


def test_the_size_of_the_memory(cuda):
    from nn_ext_cuda.device.devices import memory_info
    from nn_ext_cuda.init import get_device_memory_size

    assert get_device_memory_size("0") == memory_info(0).total_bytes > 0
