"""Dynamic graphs whose calls are followed from step to step: they must give what they give when nothing is remembered."""

import asyncio
import contextvars
import functools
import gc
import sys
import threading
import weakref
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nn_core as nn
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.report import strict_dispatch
from nn_core.engine.graph import backward, direct, node, replay, trace
from nn_core.engine.graph.apply import apply, operator
from nn_core.engine.graph.node import Value, invalidate
from nn_core.errors import GraphError, ShapeError
from nn_core.settings import without

UNARY = [operator(name) for name in ("sin", "cos", "tanh", "sigmoid", "relu", "abs")]
BINARY = [operator(name) for name in ("add2", "sub2", "mul2", "maximum2", "minimum2")]
sin, cos, exp, mul2, add2, pow2 = (operator(name) for name in ("sin", "cos", "exp", "mul2", "add2", "pow2"))
reshape = operator("reshape")
total, affine, embed = (operator(name) for name in ("reduce_sum", "affine", "embed"))
mul_scalar, transpose, tanh_of, reduced = (operator(name) for name in ("mul_scalar", "transpose", "tanh", "sum"))


def viewed_twice(h):
    """`h` in its own shape again, by a view of a view."""
    return reshape(reshape(h, shape=(-1, *h.shape)), shape=h.shape)


UNARY.append(viewed_twice)


def variable(*values, need_grad=False):
    return nn.Variable.from_numpy_array(np.float32(values), need_grad=need_grad)


def parameter(*values):
    return variable(*values, need_grad=True)


def flat(values):
    if isinstance(values, (list, tuple)):
        return [array for value in values for array in flat(value)]
    return [np.array(values)]


@contextmanager
def off_the_tree():
    """Let each walk leave the tree with its first call."""
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(trace, "MANY_NODES", 0)
        patches.setattr(trace, "MAX_LEFT", 0)
        trace._forget()
        yield
    trace._forget()


def require_same(program):
    """Run `program` with and without a memory of earlier steps, and off the tree; it must return the same numbers."""
    with nn.auto_forward():
        followed = flat(program())
    with without("replay"), nn.auto_forward():
        plain = flat(program())
    with off_the_tree(), nn.auto_forward():
        irregular = flat(program())
    assert len(followed) == len(plain) == len(irregular)
    for one, two, other in zip(followed, irregular, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(two, other, rtol=1e-5, atol=1e-6)


def gradients(loss, *parameters, clear_buffer=True):
    """Values of the loss and of the gradients, which start at zero."""
    for one in parameters:
        one.grad.zero()
    loss.backward(clear_buffer=clear_buffer)
    return [loss.d.copy(), *[one.g.copy() for one in parameters]]


# -- single steps of a program in many variations ----------------------------------------------------------------------


def read_data_in_the_middle(h, w, step):
    assert np.isfinite(h.d).all()


def write_data_in_the_middle(h, w, step):
    h.d = h.d + 1


def read_gradient_in_the_middle(h, w, step):
    assert h.g.shape == h.shape


def stop_the_gradient(h, w, step):
    h.need_grad = False


def stop_the_gradient_now_and_then(h, w, step):
    if step % 2:
        h.need_grad = False


def keep_the_data(h, w, step):
    h.persistent = True


def compute_the_data_again(h, w, step):
    h.recompute = True


def assign_elements(h, w, step):
    h[0] = 2.0 * step


def add_in_place(h, w, step):
    h += 1


def count_readers(h, w, step):
    assert h.get_number_of_references == 0


def make_a_leaf_of_it(h, w, step):
    h.parent = None


def forget_what_was_before(h, w, step):
    h.clear_all_graph_links()


def replace_the_parameter(h, w, step):
    w.data = nn.NdArray.from_numpy_array(w.d + step)


def write_the_parameter(h, w, step):
    w.d = w.d * 1.5


def switch_an_optimization(h, w, step):
    with without("fuse"):
        cos(h)


def refresh_the_plugins(h, w, step):
    PLUGINS.refresh()


def be_strict_for_a_while(h, w, step):
    with strict_dispatch():
        cos(h)


def fail_in_the_middle(h, w, step):
    with pytest.raises(ShapeError):
        mul2(h, variable(1, 2, 3, 4, 5))


def compute_in_other_modes(h, w, step):
    with nn.no_grad():
        cos(h)
    with nn.auto_forward(False):
        cos(h).forward()
    with nn.context_scope(nn.Context(["reference:double"])):
        cos(h)


def drop_a_result(h, w, step):
    cos(h)
    cos(w)


def set_a_hook_for_a_while(h, w, step):
    nn.set_function_post_hook("test", lambda node: None)
    cos(h)
    nn.unset_function_post_hook("test")


def collect_garbage(h, w, step):
    gc.collect()


@pytest.mark.parametrize(
    "act",
    [
        read_data_in_the_middle,
        write_data_in_the_middle,
        read_gradient_in_the_middle,
        stop_the_gradient,
        stop_the_gradient_now_and_then,
        keep_the_data,
        compute_the_data_again,
        assign_elements,
        add_in_place,
        count_readers,
        make_a_leaf_of_it,
        forget_what_was_before,
        replace_the_parameter,
        write_the_parameter,
        switch_an_optimization,
        refresh_the_plugins,
        be_strict_for_a_while,
        fail_in_the_middle,
        compute_in_other_modes,
        drop_a_result,
        set_a_hook_for_a_while,
        collect_garbage,
    ],
    ids=lambda act: act.__name__,
)
@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("clear_buffer", [False, True])
def test_what_a_program_does_in_the_middle_of_a_graph(act, early, clear_buffer):
    def program():
        w, v = parameter(1, 2, 3), parameter(0.3, 0.2, 0.1)
        results = []
        for step in range(6):
            x = variable(0.1, 0.2, 0.3 + step)
            h = mul2(sin(mul2(x, w)), w)
            if step >= 3 and early:
                act(h, w, step)
            k = mul2(cos(h), v)
            if step >= 3 and not early:
                act(k, w, step)
            loss = total(mul2(k, tanh_of(k)))
            results.append(gradients(loss, w, v, clear_buffer=clear_buffer))
        return results

    require_same(program)


# -- what was given up -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_read", [False, True])
def test_values_that_were_given_up_are_refused_by_later_functions(is_read):
    w = parameter(1, 2)
    with nn.auto_forward():
        for _ in range(3):
            h = sin(w)
            loss = total(mul2(h, h))
            if is_read:
                loss.d.copy()
            loss.backward(clear_buffer=True)
        for function in (lambda: exp(h), lambda: mul2(h, w), lambda: h.d, lambda: total(h).backward()):
            with pytest.raises(GraphError, match="memory was reused"):
                function()
        with pytest.raises(GraphError, match="memory was reused"):
            loss.backward(clear_buffer=True)


def test_values_given_up_inside_a_block_are_refused_outside():
    w = parameter(1, 2)
    with nn.auto_forward():
        for _ in range(3):
            a = sin(w)
            b = cos(a)
            with nn.auto_forward():
                total(b).backward(clear_buffer=True)
            with pytest.raises(GraphError, match="memory was reused"):
                exp(a)


def test_backward_from_the_middle_and_then_from_the_end():
    def program():
        w, results = parameter(1, 2), []
        for step in range(4):
            h = sin(mul2(w, variable(1, step)))
            loss = total(mul2(h, cos(w)))
            results.append(gradients(h, w, clear_buffer=False))
            results.append(gradients(loss, w))
        return results

    require_same(program)


def test_two_losses_of_one_graph():
    def program():
        w, results = parameter(1, 2), []
        for step in range(4):
            h = sin(mul2(w, variable(1, step)))
            one, other = total(exp(h)), total(mul2(h, h))
            w.grad.zero()
            one.backward()
            other.backward(clear_buffer=True)
            results.append(w.g.copy())
        return results

    require_same(program)


# -- leaves ------------------------------------------------------------------------------------------------------------


def test_an_array_that_is_a_parameter_too_keeps_both_roles_apart():
    def program():
        w, results = parameter(1.5, 2), []
        for step in range(5):
            constant = variable(3, 4) if step % 2 else w.get_unlinked_variable(need_grad=False)
            results.append(gradients(total(pow2(w, constant)), w))
        return results

    require_same(program)


def test_a_leaf_that_became_a_result_is_no_leaf_any_more():
    def program():
        w, p, results = parameter(1, 2), parameter(0.5, 0.6), []
        for step in range(4):
            x = nn.Variable((2,))
            x.d = 3
            h = mul2(x, w)
            if step > 1:
                apply(nn.engine.dispatch.registry.spec_of_api("sin"), (p,), {}, [x])
            results.append(gradients(total(h), w, p))
        return results

    require_same(program)


@pytest.mark.parametrize("how", ["d", "view", "array", "fresh"])
def test_inputs_that_get_new_values(how):
    def program():
        w, x, results = parameter(1, 2), variable(0, 0), []
        view = x.d
        for step in range(6):
            values = np.float32([step, 1 + step])
            if how == "d":
                x.d = values
            elif how == "view":
                view[...] = values
            elif how == "array":
                x.data = nn.NdArray.from_numpy_array(values)
            else:
                x = variable(*values)
            results.append(gradients(total(mul2(sin(x), mul2(w, x))), w))
            view = x.d if how == "view" else None
        return results

    require_same(program)


def test_models_that_come_and_go():
    def program():
        results = []
        for number in range(30):
            w, v = parameter(1 + number, 2), parameter(0.1 * number, 1)
            losses = (total(mul2(sin(mul2(w, variable(step, 0.1))), v)) for step in range(2 + number % 2))
            results += [gradients(loss, w, v) for loss in losses]
            del w, v
            if number % 10 == 0:
                gc.collect()
        return results

    require_same(program)


def test_indices_and_mixed_dtypes():
    def program():
        w = nn.Variable.from_numpy_array(np.float32(np.arange(12).reshape(4, 3)) / 10, need_grad=True)
        results = []
        for step in range(4):
            x = nn.Variable.from_numpy_array(np.array([step, 1, 3], np.int32))
            with nn.context_scope(nn.Context(["reference:double" if step % 2 else "reference:float"])):
                h = tanh_of(embed(x, w))
            results.append(gradients(total(mul2(h, h)), w))
        return results

    require_same(program)


def test_functions_that_take_their_input_in_its_dtype():
    def program():
        w, results = parameter(0.5, -1, 2), []
        for step in range(6):
            with nn.context_scope(nn.Context(["reference:half" if step == 4 else "reference:float"])):
                h = sin(w)
                leaf = nn.Variable.from_numpy_array(np.array([1, 2, 3], [np.int32, np.float64][step % 2]))
                for cut in (h[:2], w[:2], leaf[1:]):
                    h = mul2(h[-2:], tanh_of(cut))
                best = operator("max")(h, only_index=True)  # whole numbers
                results.append(flat([best[None].d, *gradients(total(h[1:]), w)]))
        return results

    require_same(program)


@pytest.mark.parametrize("of", ["parameter", "data", "result", "another view"])
@pytest.mark.parametrize("act", ["", "write", "write source", "keep", "keep source", "read", "end"])
def test_views(of, act):
    def program():
        w, x, results = parameter(0.5, -1), variable(0.3, 0.2), []
        for step in range(6):
            source = {"parameter": w, "data": x, "result": sin(mul2(w, x))}.get(of) or reshape(cos(w), shape=(2, 1))
            if step == 3 and act == "keep source":
                source.persistent = True
            view = reshape(source, shape=(1, 2))
            if step == 3 and act in ("write", "write source"):
                changed = view if act == "write" else source
                changed.d = changed.d + 0.25
            if step == 3 and act == "keep":
                view.persistent = True
            if step == 3 and act == "read":
                results.append(view.d.copy())
            loss = total(mul2(sin(view), reshape(w, shape=(1, 2))))
            if act == "end":
                loss = reshape(loss, shape=(1, 1))
            results.append(gradients(loss, w))
            if step == 3 and "keep" in act:
                results.append((view if act == "keep" else source).d.copy())
            results += [w.d.copy(), x.d.copy()]
        return flat(results)

    require_same(program)


def test_a_pass_with_views_is_compiled_once(monkeypatch):
    compilations = []
    compiled = backward._compiled
    monkeypatch.setattr(backward, "_compiled", lambda *args: compilations.append(1) or compiled(*args))
    w, x = parameter(0.5, -1), variable(0.3, 0.2)
    with nn.auto_forward():
        for _ in range(5):
            h = reshape(sin(mul2(reshape(w, shape=(2, 1)), reshape(x, shape=(2, 1)))), shape=(2,))
            gradients(total(mul2(h, h)), w)
    assert len(compilations) == 1
    np.testing.assert_array_equal([*w.d, *x.d], np.float32([0.5, -1, 0.3, 0.2]))


def test_slices_of_results_are_followed():
    with nn.auto_forward():
        h = sin(parameter(0.5, -1, 2))[1:]
        assert h._storage is None
        assert h.shape == (2,)


# -- structures --------------------------------------------------------------------------------------------------------


def test_structures_that_alternate():
    def program():
        w, table = parameter(0.1, 0.2), nn.Variable.from_numpy_array(np.eye(5, 2, dtype=np.float32), need_grad=True)
        results = []
        for step in range(12):
            h = variable(0, 0.1)
            for time in range(1 + step % 4):  # a loop of another length, a branch, a residual, a sum of two towers
                index = nn.Variable.from_numpy_array(np.array([(step + time) % 5], np.int64))
                h = tanh_of(add2(mul2(h, w), reduced(embed(index, table), axes=[0])))
            if step % 3 == 0:
                h = add2(h, sin(h))
            towers = [cos(mul2(variable(step, number), w)) for number in (1, 2)]
            results.append(gradients(total(mul2(h, add2(*towers))), w, table))
        return results

    require_same(program)


def test_settings_that_are_lists_and_arrays():
    def program():
        w = parameter([1, 2], [3, 4])

        def loss(axes):
            return total(mul2(sin(transpose(w, axes=tuple(map(int, axes)))), transpose(w, axes=axes)))

        turns = ([1, 0], (1, 0), np.array([1, 0]), (0, 1), [0, 1], np.array([0, 1])) * 2
        return [gradients(loss(axes), w) for axes in turns]

    require_same(program)


def test_gradients_of_gradients():
    def program():
        w, results = parameter(1, 2), []
        for step in range(4):
            h = total(sin(mul2(w, variable(step, 1))))
            (first,) = nn.grad([h], [w])
            results.append(gradients(total(mul2(first, first)), w))
        return results

    require_same(program)


@pytest.mark.parametrize("length", [3, 7])
def test_walks_and_trees_that_are_too_long(monkeypatch, length):
    monkeypatch.setattr(trace, "MAX_LENGTH", length)
    monkeypatch.setattr(trace, "MAX_NODES", 2 * length)

    def program():
        w, results = parameter(1, 0.5), []
        for step in range(6):
            h = w
            for number in range(5 + step % 2):
                h = mul_scalar(sin(h), val=1 + step * number)
            results.append(gradients(total(h), w))
        return results

    require_same(program)


def test_irregular_programs_leave_few_nodes_in_the_tree(monkeypatch):
    monkeypatch.setattr(trace, "MANY_NODES", 8)
    monkeypatch.setattr(trace, "MAX_LEFT", 2)
    trace._forget()

    def program():
        w, results = parameter(1, 0.5), []
        for step in range(12):
            h = w
            for number in range(8):
                h = UNARY[step * number % 5](mul_scalar(h, val=1 + step % 5))
            results.append(gradients(total(h), w))
        return results

    with nn.auto_forward():
        program()
    (root,) = trace._TREES[0]._roots.values()
    n_places = trace._TREES[0].n_nodes - len(root.known)
    assert 8 < n_places <= 8 + 12 * 2
    # five functions of one shape and the sum, and five scalars by which it is multiplied, in the first call and later
    assert 0 < len(root.known) <= 6 + 5 * 2
    require_same(program)


def test_off_the_tree_calls_are_told_apart_by_all_that_counts():
    """The shape and the dtype of an input, whether it needs a gradient, whether it is there, and the settings."""

    def program():
        results = []
        for shape in ((2, 3), (3, 2), (6,)):
            for need_grad in (True, False):
                x = nn.Variable.from_numpy_array(np.arange(6, dtype=np.float32).reshape(shape), need_grad=need_grad)
                w = parameter(*np.ones(6)).reshape(shape)
                h = tanh_of(x * 0.1)
                places = operator("greater")(h, w * 0.3)  # of another dtype
                h = mul_scalar(h, val=2 if need_grad else 3) + w + places
                for bias in (None, parameter(*np.ones(4))):
                    rows = reshape(h, shape=(1, 6))
                    h = h + total(affine(rows, nn.Variable.from_numpy_array(np.ones((6, 4), np.float32)), bias))
                h = transpose(h, axes=[1, 0]) if len(shape) == 2 else transpose(h, axes=(0,))  # a list has no hash
                results.append(gradients(total(h), *([x] if need_grad else [])))
        return results

    require_same(program)


def test_off_the_tree_dtypes_are_told_apart():
    def program():
        results = []
        for dtype in (np.int32, np.int64, np.float32):
            places = nn.Variable.from_numpy_array(np.array([2, 0, 1], dtype))
            w = parameter(1, 2, 3)
            taken = operator("gather")(w, places) if dtype is not np.float32 else w
            results.append([gradients(total(mul2(taken, sin(taken))), w), sin(places).d.copy()])
        return results

    require_same(program)


def test_an_endless_loop_off_the_tree_ends_its_walks(monkeypatch):
    monkeypatch.setattr(trace, "MAX_LENGTH", 16)
    x = parameter(1, 2)
    with off_the_tree(), nn.auto_forward():
        h = x
        for _ in range(100):
            h = sin(h)
            assert h._trace is None or len(h._trace.results) <= 16
    np.testing.assert_allclose(h.d, functools.reduce(lambda values, _: np.sin(values), range(100), x.d), rtol=1e-5)


class Doubling(nn.PythonFunction):
    """Twice its input."""

    name = "Doubling"

    def min_outputs(self):
        return 1

    def setup_impl(self, inputs, outputs):
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs, outputs):
        outputs[0].data.data = 2 * inputs[0].data.data

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        inputs[0].grad.data = 2 * outputs[0].grad.data + (inputs[0].grad.data if accum[0] else 0)


def test_functions_written_in_python_in_between():
    def program():
        w, results = parameter(1, 2), []
        for step in range(4):
            h = Doubling()(sin(mul2(w, variable(step, 1))))
            results.append(gradients(total(mul2(cos(h), w)), w))
        return results

    require_same(program)


# -- random programs ---------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_programs(data):
    acts = st.sampled_from(["", "", "", "d", "no_grad", "stop"])
    calls = st.tuples(st.integers(0, len(UNARY) + len(BINARY) - 1), st.integers(0, 7), st.integers(0, 7), acts)
    structures = data.draw(st.lists(st.lists(calls, min_size=1, max_size=8), min_size=1, max_size=3))
    steps = data.draw(st.lists(st.tuples(st.integers(0, len(structures) - 1), st.booleans()), min_size=2, max_size=7))

    def program():
        w, v, c = parameter(0.3, -0.2), parameter(0.1, 0.7), variable(1, 2)
        results = []
        for number, (which, clear_buffer) in enumerate(steps):
            values = [w, v, c, variable(number, 0.5)]
            for function, one, other, act in structures[which]:
                a, b = values[-1 - one % len(values)], values[-1 - other % len(values)]
                with nn.no_grad(act == "no_grad"):
                    h = UNARY[function](a) if function < len(UNARY) else BINARY[function - len(UNARY)](a, b)
                if act == "d":
                    results.append(h.d.copy())
                elif act == "stop":
                    h.need_grad = False
                values.append(h)
            results.append(gradients(total(add2(values[-1], mul2(w, v))), w, v, clear_buffer=clear_buffer))
        return results

    require_same(program)


# -- interruptions, threads, tasks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", range(45))
def test_calls_that_are_interrupted(line):
    def interrupt(frame, event, argument):
        if frame.f_code not in (trace.Trace.follow.__code__, Value.__init__.__code__):
            return None
        counter[0] += event == "line"
        if counter[0] == line + 1:
            counter[0] += 1
            raise KeyboardInterrupt
        return interrupt

    w, results = parameter(1, 2), []
    with nn.auto_forward():
        for step in range(5):
            counter = [0]
            h = sin(mul2(variable(step, 1), w))
            before = sys.gettrace()
            sys.settrace(interrupt if step == 3 else before)
            try:
                cos(h)
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(before)
            k = cos(h)  # follows the call before, or the one that had been made only in part
            results.append(gradients(total(mul2(k, exp(k))), w)[1])
    for step, result in enumerate(results):
        x = np.float32([step, 1])
        s = np.sin(x * w.d)
        c = np.cos(s)
        expected = np.exp(c) * (1 + c) * -np.sin(s) * np.cos(x * w.d) * x
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def train(seed, n_steps=30):
    w, v = parameter(0.1 * seed, 1), parameter(1, 0.1 * seed)
    for step in range(n_steps):
        x = variable(step % 3, seed)
        h = tanh_of(mul2(x, w))
        if step % 5 == 0:
            h.persistent = True
        w.grad.zero()
        v.grad.zero()
        total(mul2(mul2(h, v), h)).backward(clear_buffer=True)
        w.d -= 0.1 * w.g
        v.d -= 0.1 * v.g
    return [w.d.copy(), v.d.copy()]


@pytest.mark.parametrize("repeat", range(4))
def test_threads_train_models_of_their_own(repeat):
    with without("replay"), nn.auto_forward():
        expected = [train(seed) for seed in range(4)]
    found = {}

    def work(seed):
        with nn.auto_forward():
            found[seed] = train(seed)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    for seed in range(4):
        np.testing.assert_allclose(found[seed], expected[seed], rtol=1e-5)


def test_another_thread_changes_a_flag_while_a_graph_is_looked_at(monkeypatch):
    walked = replay._walked

    def disturbed(root):
        invalidate()
        return walked(root)

    def program():
        w, results = parameter(1, 2), []
        for step in range(4):
            loss = total(mul2(sin(w), variable(step, 1)))
            with monkeypatch.context() as patches:
                if step == 0:
                    patches.setattr(replay, "_walked", disturbed)
                results.append(gradients(loss, w))
        return results

    require_same(program)


WHERE_FLAGS_ARE_READ = tuple(module.__file__ for module in (backward, direct, node, replay))


@pytest.mark.parametrize("stride", [71, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("compiled", [False, True])
def test_another_thread_changes_a_flag_at_any_line(compiled, stride, monkeypatch):
    """A training, disturbed at one line after the other as a thread with a graph of its own may."""
    monkeypatch.setattr(direct, "is_new", lambda structure: not compiled)
    n_lines = 0

    def trained(disturbed):
        nonlocal n_lines
        n_lines = 0

        def watch(frame, event, _):
            nonlocal n_lines
            if event == "line":
                n_lines += 1
                if n_lines == disturbed:
                    invalidate()
            return watch if frame.f_code.co_filename in WHERE_FLAGS_ARE_READ else None

        before = sys.gettrace()
        sys.settrace(watch)
        try:
            return train(1, n_steps=3)
        finally:
            sys.settrace(before)

    with without("replay"), nn.auto_forward():
        expected = train(1, n_steps=3)
    with nn.auto_forward():
        trained(disturbed=0)
        assert n_lines > 500
        for disturbed in range(1, n_lines, stride):
            np.testing.assert_allclose(trained(disturbed), expected, rtol=1e-5, err_msg=f"disturbed at line {disturbed}")


def test_a_graph_of_one_thread_is_used_in_others():
    found = []
    with nn.auto_forward():
        for _ in range(5):
            w = parameter(1, 2)
            h = sin(w)
            g = cos(h)

            def work(h=h, g=g):
                found.append(mul2(h, g).d.copy())

            contexts = [contextvars.copy_context() for _ in range(4)]
            threads = [threading.Thread(target=context.run, args=(work,)) for context in contexts]
            for thread in threads:
                thread.start()
            found.append(mul2(h, g).d.copy())
            for thread in threads:
                thread.join()
    assert len(found) == 25
    np.testing.assert_allclose(found, np.broadcast_to(np.sin([1, 2]) * np.cos(np.sin([1, 2])), (25, 2)), rtol=1e-5)


def test_tasks_that_take_turns():
    async def one(seed):
        w, results = parameter(seed, 1), []
        for step in range(5):
            h = sin(mul2(variable(step, seed), w))
            await asyncio.sleep(0)
            k = cos(h)
            await asyncio.sleep(0)
            results.append(gradients(total(mul2(h, k)), w))
            results.append(await asyncio.to_thread(lambda: gradients(total(sin(mul2(w, w))), w)))
        return results

    async def all_of_them():
        return await asyncio.gather(*[one(seed) for seed in range(3)])

    require_same(lambda: asyncio.run(all_of_them()))


# -- memory ------------------------------------------------------------------------------------------------------------


def test_arrays_are_freed_with_the_last_result():
    w = parameter(*range(4))
    gc.collect()
    gc.disable()
    try:
        with nn.auto_forward():
            for _ in range(3):
                h = sin(w)
                values = [weakref.ref(h)]
                for _ in range(5):
                    h = mul2(h, cos(h))
                    values.append(weakref.ref(h))
                loss = total(h)
                values.append(weakref.ref(loss))
                loss.backward(clear_buffer=True)
                del h, loss
                assert all(value() is None for value in values)
    finally:
        gc.enable()


def test_long_chains_are_dropped_without_recursion():
    with nn.auto_forward(), nn.no_grad():
        h = variable(0.5)
        for _ in range(20000):
            h = sin(h)
        assert np.isfinite(h.d).all()
        del h


@pytest.mark.parametrize("kept", [False, True])
def test_loops_without_backward_do_not_grow(kept):
    w = parameter(1, 2)
    results = []
    with nn.auto_forward(), nn.no_grad():
        for step in range(3000):
            if step == 1000:
                gc.collect()
                before = len(gc.get_objects())
            results.append(sin(mul2(w, variable(step, 1))))
            if not kept or len(results) > 100:
                results.clear()
        gc.collect()
        assert len(gc.get_objects()) < before + 12 * 2048


def test_a_finalizer_may_read_what_is_being_made():
    class Reads:
        def __init__(self, value):
            self.value = value

        def __del__(self):
            self.value.d.copy()

    w = parameter(1, 2)
    with nn.auto_forward():
        threshold = gc.get_threshold()
        gc.set_threshold(1)
        try:
            for _ in range(20):
                h = sin(w)
                circle = Reads(cos(w))
                circle.itself = circle
                del circle
                k = exp(h)
                np.testing.assert_allclose(k.d, np.exp(np.sin(w.d)), rtol=1e-5)
        finally:
            gc.set_threshold(*threshold)
