"""Parameters that are exchanged while other threads predict."""

import os
import threading
import time

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, FileFormatError, ShapeError
from nn_core.io.exchange import Gate

N = 6


def network(x):
    for i in range(N):
        x = PF.affine(x, 4, name=f"layer{i}", with_bias=False, w_init=np.eye(4, dtype=np.float32))
    return x


@pytest.fixture
def files(tmp_path):
    """Two files whose predictions are 1 and 2**N; a mixture gives a power of two in between."""
    network(nn.Variable((1, 4)))
    paths = []
    for factor in (1, 2):
        for parameter in nn.get_parameters().values():
            parameter.d = factor * np.eye(4)
        paths.append(tmp_path / f"{factor}.npz")
        nn.save_parameters(paths[-1])
    return paths


def test_a_prediction_sees_one_file(files):
    seen, stop = set(), threading.Event()

    def predict():
        x = nn.Variable.from_numpy_array(np.ones((1, 4), np.float32))
        y = network(x)
        while not stop.is_set():
            with nn.hold_parameters():
                y.forward(clear_buffer=True)
                seen.add(float(y.d[0, 0]))

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(60):
        assert len(nn.swap_parameters(files[i % 2]).loaded) == N
    stop.set()
    for thread in threads:
        thread.join()
    assert seen <= {1.0, 2.0**N} and seen


def test_variables_may_be_the_source(files):
    new = {name: nn.Variable.from_numpy_array(3 * np.eye(4)) for name in nn.get_parameters()}
    nn.swap_parameters(new)
    assert all((p.d == 3 * np.eye(4)).all() for p in nn.get_parameters().values())
    chosen = {"w": nn.Variable((2,))}
    assert nn.swap_parameters({"w": nn.Variable.from_numpy_array(np.ones(2))}, chosen).is_exact
    assert chosen["w"].d.tolist() == [1, 1]


def test_nothing_changes_where_anything_is_wrong(files, tmp_path):
    before = {name: parameter.d.copy() for name, parameter in nn.get_parameters().items()}
    other = {name: nn.Variable((4, 4)) for name in before}
    first, *_, last = before
    with pytest.raises(ArgumentError, match="swap_parameters: source must have exactly the parameters that there are"):
        nn.swap_parameters({name: other[name] for name in list(other)[1:]})
    with pytest.raises(ShapeError, match="swap_parameters: source must have exactly"):
        nn.swap_parameters({**other, last: nn.Variable((4, 5))})
    with pytest.raises(ArgumentError, match="got 3 under"):
        nn.swap_parameters({first: 3})
    (tmp_path / "broken.npz").write_bytes(b"no file")
    with pytest.raises(FileFormatError):
        nn.swap_parameters(tmp_path / "broken.npz")
    assert all((nn.get_parameters()[name].d == values).all() for name, values in before.items())


def test_blocks_may_be_nested_and_no_thread_waits_for_itself(files):
    outside = pytest.raises(ArgumentError, match="must be called outside of hold_parameters")
    with nn.hold_parameters(), nn.hold_parameters(), outside:
        nn.swap_parameters(files[0])
    nn.swap_parameters(files[0])


def test_who_is_inside_may_nest_while_another_waits():
    gate, order = Gate(), []

    def change():
        with gate.alone("x"):
            order.append("alone")

    thread = threading.Thread(target=change)
    with gate.shared():
        thread.start()
        while not gate._waiting:
            time.sleep(0.001)
        with gate.shared():
            order.append("nested")
    thread.join()
    assert order == ["nested", "alone"]


def test_an_exception_lets_the_others_go_on(files):
    with pytest.raises(RuntimeError), nn.hold_parameters():
        raise RuntimeError
    nn.swap_parameters(files[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_waits_for_no_thread_of_its_parent(files):
    entered, leave = threading.Event(), threading.Event()

    def inside():
        with nn.hold_parameters():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=inside)
    thread.start()
    entered.wait()
    child = os.fork()
    if child == 0:
        nn.swap_parameters(files[1])
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    leave.set()
    thread.join()


def test_functions_of_a_block_are_as_before(files):
    x = nn.Variable.from_numpy_array(np.ones((1, 4), np.float32))
    with nn.hold_parameters(), nn.auto_forward():
        assert float(F.sum(network(x)).d) == 4 * 2.0**N
