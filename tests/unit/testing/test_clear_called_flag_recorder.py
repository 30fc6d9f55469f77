"""The recorder of cleared arrays; the flags are those that NNabla records for the same graph."""

from collections.abc import Iterator

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.testing import clear_called_flag_recorder as recorder

KEPT, DATA, GRAD = (False, False), (True, False), (False, True)


@pytest.fixture
def w() -> Iterator[nn.Variable]:
    x = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32), need_grad=True)
    y = F.sin(x)
    recorder.activate_clear_called_flag_recorder()
    yield F.add2(F.tanh(y), y)
    recorder.deactivate_clear_called_flag_recorder()


def test_clear_buffer_frees_inputs_after_their_last_use(w):
    w.forward(clear_buffer=True)
    assert recorder.get_input_clear_called_flags() == [[KEPT], [KEPT], [DATA, DATA]]
    assert recorder.get_output_clear_called_flags() == [[KEPT], [KEPT], [KEPT]]


def test_clear_no_need_grad_keeps_what_the_gradient_reads(w):
    w.forward(clear_no_need_grad=True)
    assert recorder.get_input_clear_called_flags() == [[KEPT], [KEPT], [KEPT, DATA]]


def test_nothing_is_freed_without_flags(w):
    w.forward()
    w.backward()
    assert all(flags == KEPT for function in recorder.get_input_clear_called_flags() for flags in function)


def test_backward_passes_are_recorded_behind_forward_passes(w):
    w.forward(clear_no_need_grad=True)
    w.backward(clear_buffer=True)
    assert len(recorder.get_input_clear_called_flags()) == 6


def test_deactivating_forgets(w):
    w.forward()
    recorder.deactivate_clear_called_flag_recorder()
    w.forward(clear_buffer=True)
    assert recorder.get_input_clear_called_flags() == []
    assert recorder.get_output_clear_called_flags() == []
