"""Gradients that are sent while the backward pass goes on: as steps of plans and templates, with the same bits."""

import threading

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.communicators import Buckets, Communicator, LocalCommunicator
from nn_core.communicators.callback import PassSums
from nn_core.communicators.threads import ThreadEngine, run_threads
from nn_core.engine.graph import replay

#: Graphs are built by one thread after the other: what runs at once are the collectives.
WORK = threading.Lock()
SHAPES = {"a": (5, 4), "b": (4, 4), "c": (4, 3), "unused": (2,)}


class OverlappingEngine(ThreadEngine):
    """Threads that go on while the others have not come yet."""

    overlaps = True


def parameters_of(seed=0):
    rng = np.random.default_rng(seed)
    return {name: nn.Variable.from_numpy_array(rng.standard_normal(shape).astype(np.float32), need_grad=True)
            for name, shape in SHAPES.items()}  # fmt: skip


def net(parameters, x):
    """A network that uses the middle parameter twice."""
    h = F.tanh(F.affine(x, parameters["a"]))
    h = F.tanh(F.affine(h, parameters["b"]))
    h = F.tanh(F.affine(h, parameters["b"]))
    return F.sum(F.affine(h, parameters["c"]) ** 2)


def inputs(rank, step):
    return np.random.default_rng([rank, step]).standard_normal((6, 5)).astype(np.float32)


def callback_of(comm, parameters, how):
    if how == "buckets":
        return Buckets(comm, parameters, bucket_mb=1e-5, first_mb=1e-5).callback(division=True)
    return comm.all_reduce_callback([v.grad for v in parameters.values()], 1, division=True)


def gradients(engine, *, how, kind, steps=5, accumulate=1, **options):
    """The gradients of each step, and how many groups each pass has sent by itself."""
    comm = Communicator(engine=engine, **options)
    comm.init()
    found, sent = [], []
    with WORK:
        parameters = parameters_of()
        callback = callback_of(comm, parameters, how)
        x = nn.Variable((6, 5))
        loss = net(parameters, x) if kind == "static" else None
    original = PassSums.on_finish_backward

    def finish():
        sent.append(callback._n_sent)
        original(callback)

    callback.on_finish_backward = finish
    for step in range(steps):
        for v in parameters.values():
            v.grad.zero()
        for part in range(accumulate):
            values = inputs(comm.rank, step * accumulate + part)
            if kind == "static":
                x.d = values
                loss.forward(clear_no_need_grad=True)
                result = loss
            else:
                with nn.auto_forward():
                    result = net(parameters, nn.Variable.from_numpy_array(values))
            if part < accumulate - 1:
                with comm.no_sync():
                    result.backward(clear_buffer=True, communicator_callbacks=callback)
            else:
                result.backward(clear_buffer=kind != "kept", communicator_callbacks=callback)
        assert parameters["unused"].grad.zeroing  # no rank has written it
        found.append({name: v.g.copy() for name, v in parameters.items()})
    is_template = any(completions is callback for (_, completions), _ in replay._TEMPLATES)
    assert is_template == (kind == "dynamic")
    return found, sent


def expected(size, options, steps=5, accumulate=1):
    """The same by plain passes and one sum at their end."""

    def program(engine):
        comm = Communicator(engine=engine, **options)
        comm.init()
        found = []
        for step in range(steps):
            with WORK:
                parameters = parameters_of()
                grads = [v.grad for v in parameters.values()]
                for grad in grads:
                    grad.zero()
                for part in range(accumulate):
                    x = nn.Variable.from_numpy_array(inputs(comm.rank, step * accumulate + part))
                    loss = net(parameters, x)
                    loss.forward()
                    loss.backward()
            comm.all_reduce(grads, division=True)
            found.append({name: v.g.copy() for name, v in parameters.items()})
        return found

    return run_threads(size, program)


def run_overlapping(size, program):
    def on_engine(engine):
        return program(OverlappingEngine(engine.world, engine.rank))

    return run_threads(size, on_engine)


@pytest.mark.parametrize("options", [{}, {"deterministic": False}, {"wire_dtype": "bfloat16"}], ids=str)
@pytest.mark.parametrize("kind", ["static", "dynamic", "kept"])
@pytest.mark.parametrize("how", ["buckets", "callback"])
def test_every_kind_of_pass_gives_the_same_bits(how, kind, options):
    size = 2 if options == {"deterministic": False} else 3  # what threads add up by themselves has their order
    reference = expected(size, options)
    for rank, (found, sent) in enumerate(run_overlapping(size, lambda e: gradients(e, how=how, kind=kind, **options))):
        for step, (own, wanted) in enumerate(zip(found, reference[rank], strict=True)):
            for name in SHAPES:
                np.testing.assert_array_equal(own[name], wanted[name], f"{name} in step {step}")
        # the first passes of a dynamic graph are not compiled: these send everything at their end
        assert sent[-1] == 4 and (kind != "static" or sent == [4] * 5), sent


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_only_the_last_of_several_passes_sends(kind):
    reference = expected(2, {}, accumulate=3)
    for rank, (found, sent) in enumerate(run_overlapping(2, lambda e: gradients(e, how="buckets", kind=kind, accumulate=3))):
        for own, wanted in zip(found, reference[rank], strict=True):
            for name in SHAPES:
                np.testing.assert_array_equal(own[name], wanted[name])
        assert sent[0::3] == sent[1::3] == [0] * 5
        assert sent[-1] == 4


def test_groups_are_sent_while_the_pass_goes_on():
    """A group is on its way before the function before it has computed its gradient."""
    log = []

    def program(engine):
        comm = Communicator(engine=OverlappingEngine(engine.world, engine.rank))
        comm.init()
        with WORK:
            parameters = parameters_of()
            x = nn.Variable.from_numpy_array(inputs(comm.rank, 0))
            loss = net(parameters, x)
            loss.forward()
            loss.backward()  # what the pass computes, by groups: the last layer first
            for v in parameters.values():
                v.grad.zero()
            buckets = Buckets(comm, [parameters[name] for name in "abc"], loss=loss, bucket_mb=1e-5, first_mb=1e-5)
            loss.forward()
        callback = buckets.callback()
        send = callback.send

        def noted(number):
            if comm.rank == 0:
                a = parameters["a"].grad
                log.append((number, [grad.shape for grad in callback.groups[number]], bool(a.read(*a.synced.latest).any())))
            send(number)

        callback.send = noted
        loss.backward(communicator_callbacks=callback)
        assert not callback._on_way

    run_threads(2, program)
    # the gradient of `a` is written last: it is still zero when the others are sent
    assert log == [(0, [(4, 3)], False), (1, [(4, 4)], False), (2, [(5, 4)], True)]


def test_hooks_see_gradients_that_are_not_on_their_way():
    def program(engine):
        comm = Communicator(engine=OverlappingEngine(engine.world, engine.rank))
        comm.init()
        with WORK:
            parameters = parameters_of()
            callback = callback_of(comm, parameters, "buckets")
            loss = net(parameters, nn.Variable.from_numpy_array(inputs(comm.rank, 0)))
            loss.forward()
        seen = []
        loss.backward(communicator_callbacks=callback, function_post_hook=lambda f: seen.append(callback._n_sent))
        return set(seen), parameters["a"].g.tolist()

    first, second = run_threads(2, program)
    assert first == second and first[0] == {0}


def test_a_pass_that_fails_leaves_nothing_behind():
    def program(engine):
        comm = Communicator(engine=OverlappingEngine(engine.world, engine.rank))
        comm.init()
        with WORK:
            parameters = parameters_of()
            callback = callback_of(comm, parameters, "buckets")
            loss = net(parameters, nn.Variable.from_numpy_array(inputs(comm.rank, 0)))
            loss.forward()
        send = callback.send

        def fail(number):
            send(number)
            if number == 1:
                raise InterruptedError("stop")

        callback.send = fail
        with pytest.raises(InterruptedError):
            loss.backward(communicator_callbacks=callback)
        callback.send = send
        for v in parameters.values():
            v.grad.zero()
        loss.backward(communicator_callbacks=callback)
        return parameters["a"].g.tolist()

    first, second = run_threads(2, program)
    assert first == second


def test_the_same_callback_serves_every_step():
    def program(comm):
        grads = [nn.Variable((3,), need_grad=True).grad]
        return comm.all_reduce_callback(grads, 1) is comm.all_reduce_callback(grads, 1)

    assert LocalCommunicator.run(2, program) == [True] * 2
