"""The native library as Python sees it: its types, its refusals, its settings, threads and updates."""

import sys
import threading
from typing import Any

import numpy as np
import pytest

from nn_core.ext import ArgumentError, ArrayDesc
from nn_ext_cpu import _native, set_num_threads
from nn_ext_cpu.backend import CpuBackend
from nn_ext_cpu.updates import UPDATES


def desc(array: Any) -> ArrayDesc | None:
    return None if array is None else ArrayDesc(array.shape, array.dtype.name, array.strides)


def run(name: str, *arrays: Any, **settings: Any) -> None:
    _native.prepare(name, [desc(array) for array in arrays], **settings)(*arrays)


def negation(x: Any, y: Any) -> _native.Op:
    return _native.prepare("pointwise", [desc(x), desc(y)], program=[("negative", 1, [0], [])])


def test_bound_steps_read_their_arrays_each_time() -> None:
    x, y = np.ones(5, np.float32), np.zeros(5, np.float32)
    step = negation(x, y).bind(x, y)
    for value in (1.0, 2.0):
        x[:] = value
        step()
        np.testing.assert_array_equal(y, -value)


def test_a_step_keeps_its_arrays_alive() -> None:
    x, y = np.ones(5, np.float32), np.zeros(5, np.float32)
    step = negation(x, y).bind(x, y)
    del x
    step()
    np.testing.assert_array_equal(y, -1)


def test_a_sequence_runs_its_steps_in_order() -> None:
    x, y, z = np.ones(5, np.float32), np.zeros(5, np.float32), np.zeros(5, np.float32)
    steps = [negation(x, y).bind(x, y), negation(y, z).bind(y, z)]
    _native.sequence([_native.sequence(steps), negation(z, x).bind(z, x)])()
    np.testing.assert_array_equal(x, -1)


def test_fuse_merges_neighbouring_native_steps_only() -> None:
    x, y = np.ones(5, np.float32), np.zeros(5, np.float32)
    native = negation(x, y).bind(x, y)

    def other() -> None:
        y[:] = 7

    fused = CpuBackend().fuse([native, native, other, native])
    assert [type(step) for step in fused] == [_native.Step, type(other), _native.Step]


def test_a_program_runs_on_the_arrays_it_is_given() -> None:
    x, y, z = (np.full(5, value, np.float32) for value in (1, 0, 0))
    program = _native.program([negation(x, y).bind(x, y), negation(y, z).bind(y, z)], [x, z])
    inputs, outputs = np.full(5, 3, np.float32), np.zeros(5, np.float32)
    program(inputs, outputs)
    np.testing.assert_array_equal(outputs, 3)
    np.testing.assert_array_equal(z, 0)
    np.testing.assert_array_equal(y, -3)


def test_a_program_does_not_keep_what_it_is_given() -> None:
    x, y = np.ones(5, np.float32), np.zeros(5, np.float32)
    references = sys.getrefcount(x), sys.getrefcount(y)
    program = _native.program([negation(x, y).bind(x, y)], [x])
    assert (sys.getrefcount(x), sys.getrefcount(y)) == (references[0], references[1] + 1)
    with pytest.raises(ValueError, match="number of arrays must be 1, got 2"):
        program(x, x)
    with pytest.raises(ValueError, match="array 0 must have the dtype that was prepared"):
        program(np.ones(4, np.float32))


WRONG = [
    (np.ones(5, np.float64), "shape \\(5,\\)"),
    (np.ones(6, np.float32), "got float32, shape \\(6,\\)"),
    (np.ones((5, 1), np.float32), "got float32, shape \\(5, 1\\)"),
    (np.ones(10, np.float32)[::2], "strides \\(8,\\)"),
    ([1.0] * 5, "must be a numpy.ndarray, got list"),
    (None, "must be a numpy.ndarray, got NoneType"),
    (np.ones(5, ">f4"), "got >f4"),
]


@pytest.mark.parametrize(("array", "text"), WRONG)
def test_arrays_must_match_what_was_prepared(array: Any, text: str) -> None:
    x = np.ones(5, np.float32)
    with pytest.raises(ValueError, match=text):
        negation(x, x)(array, x)
    with pytest.raises(ValueError, match=text):
        negation(x, x).bind(x, array)


def test_calls_must_have_the_right_number_of_arrays() -> None:
    x = np.ones(5, np.float32)
    with pytest.raises(ValueError, match="number of arrays must be 2, got 1"):
        negation(x, x)(x)
    with pytest.raises(TypeError, match="a step takes one argument at most"):
        negation(x, x).bind(x, x)(True, x)  # type: ignore[call-arg]  # the error is what is tested


BAD_PREPARATIONS = [
    ("nothing", {}, "operation must be one of"),
    ("pointwise", {}, "argument must be given, got no program"),
    ("pointwise", {"program": [("nothing", 1, [0], [])]}, "must name an element-wise function, got nothing"),
    ("pointwise", {"program": [("add", 1, [0], [])]}, "add must have 2 sources and 0 parameters, got 1 and 0"),
    ("pointwise", {"program": [("copy", 1, [9], [])]}, "register must exist, got 9"),
    ("softmax", {"axis": 0}, "argument must be given, got no log"),
    ("softmax", {"axis": 0.5, "log": False}, "argument must have the type of the operation"),
]


@pytest.mark.parametrize(("name", "settings", "text"), BAD_PREPARATIONS)
def test_wrong_preparations_are_refused(name: str, settings: dict[str, Any], text: str) -> None:
    x = np.ones(5, np.float32)
    with pytest.raises((ValueError, TypeError), match=text):
        _native.prepare(name, [desc(x), desc(x)], **settings)


def test_views_must_have_the_elements_of_their_arrays() -> None:
    x = np.ones(6, np.float32)
    program = [("negative", 1, [0], [])]
    _native.prepare("pointwise", [desc(x)] * 2, views=[ArrayDesc((2, 3), "float32")] * 2, program=program)(x, x)
    text = "view 0 must have the elements of its array, got shapes \\(2, 2\\) and \\(6,\\)"
    with pytest.raises(ValueError, match=text):
        _native.prepare("pointwise", [desc(x)] * 2, views=[ArrayDesc((2, 2), "float32")] * 2, program=program)


def test_labels_outside_of_the_classes_raise_an_argument_error() -> None:
    x, y = np.zeros((3, 4), np.float32), np.zeros((3, 1), np.float32)
    with pytest.raises(ArgumentError, match="must hold numbers below that of the classes, 4, got 4"):
        run("softmax_cross_entropy", x, np.array([[0], [4], [1]]), y, axis=1)


def test_rows_outside_of_a_table_raise_an_argument_error() -> None:
    with pytest.raises(ArgumentError, match="must be in \\[-3, 3\\), got 3"):
        run("embed", np.array([0, 3]), np.zeros((3, 2), np.float32), np.zeros((2, 2), np.float32))


def test_an_unknown_instruction_set_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one that this machine runs, got mmx"):
        _native.select_isa("mmx")


# Threads and updates -------------------------------------------------------------------------------------------------


def test_the_number_of_threads_must_be_positive() -> None:
    with pytest.raises(ValueError, match="must be an integer of at least 1, got 0"):
        set_num_threads(0)


def test_results_repeat_bit_for_bit(two_threads: None, rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(500, 400)).astype(np.float32), np.empty((1, 400), np.float32)
    op = _native.prepare("pointwise", [desc(x), desc(y)], program=[("tanh", 1, [0], [])])
    op(x, y)
    first = y.copy()
    for _ in range(20):
        op(x, y)
        np.testing.assert_array_equal(y, first)


def test_one_operation_serves_several_python_threads(rng: np.random.Generator) -> None:
    x, weight = rng.normal(size=(8, 300)).astype(np.float32), rng.normal(size=(300, 200)).astype(np.float32)
    outputs = [np.empty((8, 200), np.float32) for _ in range(4)]
    op = _native.prepare("affine", [desc(x), desc(weight), None, desc(outputs[0])])

    def work(y: Any) -> None:
        for _ in range(50):
            op(x, weight, None, y)

    threads = [threading.Thread(target=work, args=(y,)) for y in outputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for y in outputs:
        np.testing.assert_array_equal(y, outputs[0])


def test_an_update_reads_its_numbers_each_time(isa: str) -> None:
    w, g = ([np.full(size, value, np.float32) for size in (5, 0)] for value in (0, 1))
    hyper = np.array([0.5, 1.0])
    runner = UPDATES["Sgd"].prepare([5, 0], "float32")
    step = runner.bind(w, g, [], hyper)
    step()
    hyper[0] = 0.25
    step()
    np.testing.assert_array_equal(w[0], -0.75)


def test_updates_of_other_dtypes_are_refused() -> None:
    assert UPDATES["Adam"].prepare([5], "float16").reason == "computes in float32 or float64, got float16"
    assert UPDATES["Lamb"].prepare([5], "float64").reason == "computes in float32, got float64"
