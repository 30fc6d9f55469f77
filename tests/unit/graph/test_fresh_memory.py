"""Nobody reads memory before it is written: whatever new memory holds, every function gives the same bits."""

import functools

import numpy as np
import pytest

import nn_core as nn
from nn_core.engine.arrays import synced
from nn_core.engine.dispatch.plugin_manager import get_backend
from nn_core.engine.graph.apply import operator_of
from nn_core.engine.graph.call import forget
from nn_core.testing.cases import Case, cases, installed_backends
from nn_core.testing.expected import truth_of

BACKENDS = [name for name in installed_backends() if name in ("cpu", "reference")]
#: what bytes of new memory hold: NaN in every floating type, and -1 elsewhere; numbers of moderate size
PATTERNS = (0xFF, 0x3B)


@pytest.fixture
def fill(monkeypatch):
    """Sets the byte with which new memory is filled from now on."""
    byte = [0]

    def filled(make, *args):
        array = make(*args)
        array.reshape(-1).view(np.uint8)[...] = byte[0]
        return array

    host_empty = functools.partial(filled, synced.host_empty)
    before = synced.HOST.empty
    monkeypatch.setattr(synced, "host_empty", host_empty)
    object.__setattr__(synced.HOST, "empty", host_empty)
    for name in BACKENDS:
        kind = type(get_backend(name))
        own = kind.empty

        def empty(self, shape, dtype, own=own):
            return filled(own, self, shape, dtype)

        monkeypatch.setattr(kind, "empty", empty)
        if hasattr(kind, "maker"):
            monkeypatch.setattr(kind, "maker", lambda self, shape, dtype: functools.partial(self.empty, shape, dtype))
    forget()
    yield lambda value: byte.__setitem__(0, value)
    object.__setattr__(synced.HOST, "empty", before)
    forget()


def float_cases() -> list[Case]:
    return [case for case in cases(BACKENDS, True) if case.dtype == "float32"]


@pytest.mark.parametrize("case", float_cases(), ids=str)
def test_results_do_not_depend_on_what_new_memory_holds(case: Case, fill) -> None:
    runs = []
    for pattern in PATTERNS:
        fill(pattern)
        nn.seed(1)
        runs.append([*results(case, False), *results(case, True)])
    for first, second in zip(*runs, strict=True):
        np.testing.assert_array_equal(first, second)


def results(case: Case, auto: bool) -> list[np.ndarray]:
    """Values and gradients of one call."""
    with nn.context_scope(case.context), nn.auto_forward(auto):
        inputs = [
            None if array is None else nn.Variable.from_numpy_array(array, need_grad=True)
            for array in truth_of(case.spec, case.sample, case.dtype, (1, 2)).inputs
        ]
        made = operator_of(case.spec)(*inputs, **case.sample.args)
        made = list(made) if isinstance(made, (tuple, list)) else [made]
        if not auto:
            nn.forward_all(made)
        if made[0].need_grad and made[0].size:
            made[0].backward(np.ones(made[0].shape, np.float32))
        values = [y.d.copy() for y in made]
        return values + [x.g.copy() for x in inputs if x is not None]


def test_the_memory_is_filled(fill) -> None:
    fill(0xFF)
    for name in BACKENDS:
        assert np.isnan(get_backend(name).empty((3,), "float32")).all()
    assert np.isnan(synced.HOST.empty((3,), "float32")).all()
