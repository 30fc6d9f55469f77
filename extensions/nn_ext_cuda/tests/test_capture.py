"""Plans as CUDA graphs, on an emulated device: what is recorded, what is replayed, and that the numbers are right."""

import contextlib
import functools
import itertools

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S

STEPS = 6


def net(x, t):
    """A small classifier with dropout, on what the backend has kernels for."""
    h = F.dropout(F.relu(PF.affine(x, 8, name="hidden")), 0.5)
    return F.mean(F.softmax_cross_entropy(PF.affine(h, 3, name="output"), t))


def train(context, solver, *, together=False, steps=STEPS, schedule=None, build=net):
    """Losses and parameters of a short training."""
    nn.clear_parameters()
    nn.seed(5)
    rng = np.random.default_rng(0)
    with nn.context_scope(context):
        x, t = nn.Variable((16, 4)), nn.Variable((16, 1))
        loss = build(x, t)
        solver = solver()
        solver.set_parameters(nn.get_parameters())
        losses = []
        for step in range(steps):
            x.d, t.d = rng.normal(size=(16, 4)), rng.integers(0, 3, (16, 1))
            if schedule is not None:
                solver.set_learning_rate(schedule(step))
            if together:
                with nn.launch_together():
                    one_step(loss, solver)
            else:
                one_step(loss, solver)
            losses.append(float(loss.d))
    return losses, {name: p.d.copy() for name, p in nn.get_parameters().items()}


def one_step(loss, solver):
    loss.forward(clear_no_need_grad=True)
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    solver.weight_decay(1e-3)
    solver.update()


@pytest.fixture
def launches(cuda, monkeypatch):
    """Counts launches of graphs and of kernels outside of them."""
    import fake_cupy

    counts = {"graph": 0, "kernel": 0}
    launch, note = fake_cupy.Graph.launch, fake_cupy.Graph.note.__func__

    def counted_launch(self, stream=None):
        counts["graph"] += 1
        launch(self, stream)

    def counted_note(cls, call):
        counts["kernel"] += cls.recording is None
        note(cls, call)

    monkeypatch.setattr(fake_cupy.Graph, "launch", counted_launch)
    monkeypatch.setattr(fake_cupy.Graph, "note", classmethod(counted_note))
    return counts


def after(counts, run):
    """The numbers of launches by `run`, by kind."""
    counts.update(graph=0, kernel=0)
    run()
    return dict(counts)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("name", ["Sgd", "Adam", "AdamW", "Momentum"])
def test_training_on_graphs_is_training_on_the_reference(cuda, name, together):
    schedule = lambda step: 0.05 / (step + 1)  # noqa: E731
    expected = train(nn.Context(["reference:float"]), getattr(S, name), schedule=schedule)
    found = train(nn.get_current_context(), getattr(S, name), together=together, schedule=schedule)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4)
    for key, values in expected[1].items():
        np.testing.assert_allclose(found[1][key], values, rtol=2e-3, atol=1e-5)


def test_a_pass_is_one_launch(cuda, launches):
    x, t = nn.Variable((16, 4)), nn.Variable((16, 1))
    loss = F.mean(F.softmax_cross_entropy(PF.affine(F.tanh(PF.affine(x, 8, name="a")), 3, name="b"), t))
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())

    def forward():
        x.d, t.d = np.ones((16, 4)), np.zeros((16, 1))
        loss.forward(clear_no_need_grad=True)

    def backward():
        solver.zero_grad()
        loss.backward(clear_buffer=True)

    for _ in range(3):
        forward(), backward(), solver.update()
    for _ in range(3):
        assert after(launches, forward) == {"graph": 1, "kernel": 0}
        assert after(launches, backward) == {"graph": 1, "kernel": 0}
        assert after(launches, solver.update) == {"graph": 0, "kernel": 1}


def test_a_step_is_one_launch(cuda, launches):
    x, t = nn.Variable((16, 4)), nn.Variable((16, 1))
    loss = net(x, t)
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())

    def step(rate):
        x.d, t.d = np.ones((16, 4)), np.zeros((16, 1))
        solver.set_learning_rate(rate)
        with nn.launch_together():
            one_step(loss, solver)

    for rate in (0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1):
        step(rate)
    for rate in (0.1, 0.05):  # one more writes the key of dropout and the numbers of the solver
        assert after(launches, functools.partial(step, rate)) == {"graph": 1, "kernel": 1}


def test_numbers_that_stay_are_not_sent_again(cuda, launches):
    x = nn.Variable((16, 4))
    loss = F.mean(F.tanh(PF.affine(x, 8)))
    solver = S.Sgd(0.1)
    solver.set_parameters(nn.get_parameters())

    def step():
        x.d = np.ones((16, 4))
        with nn.launch_together():
            loss.forward(clear_no_need_grad=True)
            solver.zero_grad()
            loss.backward(clear_buffer=True)
            solver.update()

    for _ in range(8):
        step()
    assert after(launches, step) == {"graph": 1, "kernel": 0}


def test_dropout_draws_new_numbers_at_each_replay_and_those_of_the_reference(cuda):
    def draw(context):
        nn.seed(9)
        with nn.context_scope(context):
            y = F.dropout(nn.Variable.from_numpy_array(np.ones((5, 7), np.float32)), 0.5)
            results = []
            for _ in range(STEPS):
                y.forward()
                results.append(y.d.copy())
        return results

    found = draw(nn.get_current_context())
    for one, other in itertools.pairwise(found):
        assert (one != other).any()
    for one, other in zip(found, draw(nn.Context(["reference:float"])), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_read_in_the_block_is_there(cuda):
    x = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32))
    y = F.tanh(F.exp(PF.affine(x, 2)))
    for step in range(STEPS):
        x.d = np.full((2, 3), step, np.float32)
        y.forward()
        expected = y.d.copy()
        with nn.launch_together():
            y.forward()
            np.testing.assert_array_equal(y.d, expected)


def test_an_update_twice_in_a_block_is_two_updates(cuda):
    x = nn.Variable((2, 3))
    loss = F.mean(PF.affine(x, 2))
    solver = S.Sgd(1.0)
    solver.set_parameters(nn.get_parameters())
    for _ in range(STEPS):
        x.d = np.ones((2, 3))
        before = {name: p.d.copy() for name, p in nn.get_parameters().items()}
        with nn.launch_together():
            loss.forward(clear_no_need_grad=True)
            solver.zero_grad()
            loss.backward(clear_buffer=True)
            solver.set_learning_rate(1.0)
            solver.update()
            solver.set_learning_rate(0.5)
            solver.update()
        for name, p in nn.get_parameters().items():
            np.testing.assert_allclose(p.d, before[name] - 1.5 * p.g, rtol=1e-5, atol=1e-6)


def test_half_precision_is_cast_and_computed_in_a_graph(cuda, launches):
    from nn_ext_cuda import plugin

    with nn.context_scope(plugin.context(type_config="half")):
        x = nn.Variable((16, 4))
        y = F.tanh(PF.affine(x, 8))
        for _ in range(3):
            x.d = np.ones((16, 4))
            y.forward()
        x.d = np.ones((16, 4))
        assert after(launches, y.forward) == {"graph": 1, "kernel": 0}


def test_a_step_in_half_precision_is_one_launch_too(cuda, launches):
    from nn_ext_cuda import plugin

    def one():
        x.d, t.d = np.ones((16, 4)), np.zeros((16, 1))
        with nn.launch_together():
            one_step(loss, solver)

    with nn.context_scope(plugin.context(type_config="half")):
        x, t = nn.Variable((16, 4)), nn.Variable((16, 1))
        loss = F.mean(F.softmax_cross_entropy(PF.affine(F.tanh(PF.affine(x, 8, name="a")), 3, name="b"), t))
        solver = S.Momentum(0.1)
        solver.set_parameters(nn.get_parameters())
        for _ in range(8):
            one()
        assert after(launches, one) == {"graph": 1, "kernel": 0}
    assert all(p.grad.dtype == np.float32 and p.data.dtype == np.float32 for p in nn.get_parameters().values())


def test_the_report_says_what_runs_apart_and_why(cuda):
    from nn_ext_cuda.launch import capture_report

    x = nn.Variable((4, 3))
    y = F.tanh(F.random_choice(F.exp(x), F.exp(x), (3,)))
    for _ in range(4):
        x.d = np.ones((4, 3))
        y.forward()
    found = capture_report.graph_report()
    assert found.n_graphs >= 2  # before and after it
    assert found.apart[capture_report.Apart("random_choice", "it reads an array of the host")] == 1
    assert "1 random_choice  it reads an array of the host" in str(found)
    assert "runs apart from CUDA graphs: it reads an array of the host" in nn.explain("random_choice").notes
    assert nn.explain("tanh").notes == ()


def test_array_code_is_recorded_where_that_is_possible(cuda, launches):
    x, divisor = nn.Variable((4, 3), need_grad=True), nn.Variable.from_numpy_array(np.full((4, 3), 0.7, "float32"))
    y = F.tanh(F.mod2(F.exp(x), divisor))  # there is no kernel for mod2: the reference runs on arrays of the device
    for step in range(5):
        x.d = np.random.default_rng(step).normal(size=(4, 3))
        y.forward()
        x.grad.zero()
        y.backward()
        rest = np.fmod(np.exp(x.d), 0.7)
        np.testing.assert_allclose(y.d, np.tanh(rest), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(x.g, np.exp(x.d) / np.cosh(rest) ** 2, rtol=1e-3, atol=1e-6)
    assert "Mod2" in {row.function for row in nn.fallback_report()}
    x.d = np.ones((4, 3))
    assert after(launches, y.forward)["graph"] == 1


def test_a_step_that_cannot_be_recorded_runs_apart_between_two_graphs(cuda):
    from nn_ext_cuda.launch.capture import Apart, Recorded, Section

    events = []

    class Launching:
        capturable = True
        words = ()

        def __init__(self, name):
            self.name = name

        def run(self):
            import fake_cupy

            fake_cupy.Graph.note(lambda: events.append(self.name))

        __call__ = run

    class Waiting(Launching):
        def run(self):
            import fake_cupy

            if fake_cupy.Graph.recording is not None:
                raise fake_cupy.CUDARuntimeError("it waits\nfor something")
            super().run()

        __call__ = run

    class Refusing(Launching):
        capturable = False
        why_apart = "it counts"

    section = Section([Launching("a"), Launching("b"), Waiting("c"), Launching("d"), Refusing("e"), Launching("f")])
    for _ in range(4):
        events.clear()
        section()
        assert events == list("abcdef")
    assert [type(part) for part in section.parts] == [Recorded, Apart, Recorded, Apart, Recorded]
    assert [tuple(row) for row in section.apart()] == [("c", "CUDARuntimeError: it waits"), ("e", "it counts")]
    assert section.graph_sizes() == [2, 1, 1]


def test_a_capture_that_fails_at_its_end_leaves_the_steps_as_they_were(cuda, monkeypatch):
    import fake_cupy

    def end_capture(self):
        fake_cupy.Graph.recording = None
        raise fake_cupy.CUDARuntimeError("cudaErrorStreamCaptureInvalidated")

    monkeypatch.setattr(fake_cupy.Stream, "end_capture", end_capture)
    x = nn.Variable((4, 3))
    y = F.exp(F.tanh(x))
    for step in range(4):
        x.d = np.full((4, 3), step)
        y.forward()
        np.testing.assert_allclose(y.d, np.exp(np.tanh(x.d)), rtol=1e-6)
    from nn_ext_cuda.launch import capture_report

    rows = capture_report.graph_report().apart
    assert {row.reason for row in rows} >= {"CUDARuntimeError: cudaErrorStreamCaptureInvalidated"}


def test_a_plan_that_is_compiled_anew_is_recorded_anew(cuda, launches):
    x = nn.Variable((4, 3))
    y = F.exp(F.tanh(x))
    for _ in range(4):
        x.d = np.ones((4, 3))
        y.forward()
    x.data = nn.NdArray.from_numpy_array(np.full((4, 3), 2, np.float32))
    for _ in range(4):
        y.forward()
        np.testing.assert_allclose(y.d, np.exp(np.tanh(2)), rtol=1e-6)
    assert after(launches, y.forward) == {"graph": 1, "kernel": 0}


def test_graphs_can_be_switched_off(cuda, launches):
    from nn_ext_cuda.launch import capture

    capture.use_graphs(False)
    try:
        y = F.exp(F.tanh(nn.Variable((4, 3))))
        for _ in range(4):
            y.forward()
        assert after(launches, y.forward) == {"graph": 0, "kernel": 2}
    finally:
        capture.use_graphs(True)


@pytest.mark.parametrize("together", [False, True])
def test_a_plan_on_another_stream_waits_for_the_one_it_was_bound_on(cuda, monkeypatch, together):
    """Plans that were bound on one stream share scratch memory."""
    import fake_cupy

    x = nn.Variable.from_numpy_array(np.arange(6.0).reshape(2, 3))
    y = F.sort(x, axis=1, reverse=True)
    for _ in range(3):
        y.forward()
    bound = fake_cupy.Stream.current
    other = fake_cupy.Stream(non_blocking=True)
    events = []
    monkeypatch.setattr(fake_cupy.Stream, "wait_event", lambda stream, event: events.append((stream, event.stream)))
    launch = fake_cupy.Graph.launch
    monkeypatch.setattr(fake_cupy.Graph, "launch", lambda graph: events.append("launch") or launch(graph))
    y.forward()
    assert events == ["launch"]
    with other, nn.launch_together() if together else contextlib.nullcontext():
        y.forward()
        assert events[1:] == [(other, bound), "launch", (bound, other)]
    np.testing.assert_array_equal(y.d, [[2, 1, 0], [5, 4, 3]])
