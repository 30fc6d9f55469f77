"""A solver says at its first update that parameters were made after it had chosen its own."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import layers
from nn_core.parametric_functions import freezing


@pytest.fixture
def x() -> nn.Variable:
    return nn.Variable.from_numpy_array(np.ones((2, 3), np.float32))


def update(solver: Any, loss: nn.Variable, *, is_finite_only: bool = False) -> None:
    loss.forward()
    solver.zero_grad()
    loss.backward()
    solver.update_if_finite() if is_finite_only else solver.update()


@pytest.mark.parametrize("is_finite_only", [False, True])
def test_layers_of_the_scope_that_come_late_are_named_once(
    x: nn.Variable, caplog: pytest.LogCaptureFixture, is_finite_only: bool
) -> None:
    h = PF.affine(x, 2, name="early")
    solver = S.Sgd(0.1)
    solver.set_parameters(nn.get_parameters())
    loss = F.mean(PF.affine(h, 2, name="late"))
    for _ in range(2):
        update(solver, loss, is_finite_only=is_finite_only)
    (message,) = caplog.messages
    assert message.startswith("Sgd.update: the solver must have all parameters to train, ")
    assert "late/affine/W, late/affine/b\n  hint: call set_parameters()" in message


def test_layers_of_modules_that_come_late_are_named(x: nn.Variable, caplog: pytest.LogCaptureFixture) -> None:
    encoder, decoder = nn.Sequential(layers.Affine(4)), nn.Sequential(layers.Affine(3))
    h = encoder(x)
    solver = S.Adam()
    solver.set_parameters({**encoder.get_parameters(), **decoder.get_parameters()})
    update(solver, F.mean(decoder(h)))
    assert "@affine_0/affine/W, @affine_0/affine/b\n" in caplog.text


def test_what_is_left_out_on_purpose_is_not_named(x: nn.Variable, caplog: pytest.LogCaptureFixture) -> None:
    h = PF.affine(x, 2, name="body")
    loss = F.mean(PF.affine(h, 2, name="head"))
    solver = S.Sgd(0.1)
    with nn.parameter_scope("head"):
        solver.set_parameters(nn.get_parameters())
    update(solver, loss)
    # one solver each, the second one made later
    critic = F.mean(PF.affine(h, 1, name="critic"))
    other = S.Sgd(0.1)
    with nn.parameter_scope("critic"):
        other.set_parameters(nn.get_parameters())
    update(solver, loss)
    update(other, critic)
    # frozen, or without a gradient
    PF.affine(x, 2, name="unused")
    nn.freeze_parameters("body")
    update(solver, loss)
    assert not caplog.messages


def test_copies_of_a_solver_look_for_nothing(x: nn.Variable, caplog: pytest.LogCaptureFixture) -> None:
    solver = S.Momentum(0.1)
    solver.set_parameters({})
    caplog.clear()
    for copied in (copy.deepcopy(solver), pickle.loads(pickle.dumps(solver))):
        loss = F.mean(PF.affine(x, 2, name="made"))
        copied.set_parameters(nn.get_parameters(), reset=False)
        update(copied, loss)
    assert not caplog.messages


def test_a_layer_that_is_called_again_says_that_it_trains_what_was_frozen_by_hand(
    x: nn.Variable, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freezing, "_HAS_TOLD", [])
    for _ in range(3):
        PF.affine(x, 2)
        nn.get_parameters(grad_only=False)["affine/W"].need_grad = False
    (message,) = caplog.messages
    assert "for 'affine/W', which is trained" in message and "hint: nn.freeze_parameters(" in message
    caplog.clear()
    nn.freeze_parameters("affine")
    PF.affine(x, 2)
    assert not caplog.messages and not nn.get_parameters()
