"""States of solvers in files of each kind."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.solvers as S
from nn_core.errors import DTypeError


@pytest.mark.parametrize("extension", [".nnp", ".h5", ".protobuf", ".nntxt"])
def test_states_are_kept(extension, tmp_path):
    solver = S.Adam()
    w = nn.Variable((2,), need_grad=True)
    w.g = 1
    solver.set_parameters({"w": w})
    solver.update()
    path = tmp_path / f"s{extension}"
    solver.save_states(path)
    again = S.Adam()
    again.set_parameters({"w": nn.Variable((2,), need_grad=True)})
    again.load_states(path)
    states = again.get_states()["w"]
    assert states.t == 1
    np.testing.assert_allclose(states.pstate["mean"].d, solver.get_states()["w"].pstate["mean"].d)


def test_whole_numbers_that_messages_do_not_hold_are_refused(tmp_path):
    solver = S.Adam()
    solver.set_parameters({"w": nn.Variable((2,), need_grad=True)})
    states = solver.get_states()
    states["w"].t = 2**24 + 1
    solver.set_states(states)
    with pytest.raises(DTypeError, match=r"array w/t must hold floating-point numbers to be in an NNP message, got int64"):
        solver.save_states(tmp_path / "s.protobuf")
