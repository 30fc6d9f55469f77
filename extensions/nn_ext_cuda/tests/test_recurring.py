"""Dynamic graphs whose arrays come to lie in the same memory again: prepared once, and the same bits as without."""

import gc
import threading

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S

BATCH = 8


def mlp(x):
    h = F.relu(PF.affine(x, 16, name="first"))
    return F.mean(F.tanh(PF.affine(h, 4, name="second")) ** 2)


def images(x):
    h = F.reshape(x, (BATCH, 3, 2, 2))
    h = PF.batch_normalization(PF.convolution(h, 4, (2, 2), pad=(1, 1), name="filters"), name="norm")
    return F.mean(F.softmax(F.average_pooling(F.relu(h), (3, 3))) ** 2)


def dropped(x):
    return F.mean(F.dropout(PF.affine(x, 16), 0.4) ** 2)


def attention(x):
    h = PF.affine(F.reshape(x, (BATCH, 4, 3)), 24, base_axis=2, name="qkv")
    q, k, v = F.split(F.transpose(F.reshape(h, (BATCH, 4, 3, 2, 4)), (2, 0, 3, 1, 4)), axis=0)
    mixed = F.transpose(F.scaled_dot_product_attention(q, k, v, is_causal=True), (0, 2, 1, 3))
    h = PF.layer_normalization(F.reshape(mixed, (BATCH, 4, 8)) + PF.affine(h, 8, base_axis=2, name="rest"), batch_axis=(0, 1))
    return F.mean(F.gelu(h) ** 2)


NETS = {"mlp": mlp, "images": images, "dropped": dropped, "attention": attention}


@pytest.fixture
def without_garbage():
    """Nothing but the program gives memory back, as what the collector of earlier tests finds would."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def counted(monkeypatch):
    """Return how often runners were bound, and recorded graphs replayed."""
    import fake_cupy

    from nn_ext_cuda.launch import program

    counts = {"bound": 0, "replayed": 0}
    bind, replay = program.Program.bind, fake_cupy.Graph.launch

    def binding(self, *arrays):
        counts["bound"] += 1
        return bind(self, *arrays)

    def replaying(self, stream=None):
        counts["replayed"] += 1
        replay(self, stream)

    monkeypatch.setattr(program.Program, "bind", binding)
    monkeypatch.setattr(fake_cupy.Graph, "launch", replaying)
    return counts


def trained(build, steps=10, batches=(BATCH,), changed=None):
    """Losses, parameters and gradients of a training with dynamic graphs."""
    nn.clear_parameters()
    nn.seed(3)
    rng = np.random.default_rng(0)
    solver, losses = S.Momentum(lr=0.1), []
    with nn.auto_forward():
        for step in range(steps):
            x = nn.Variable.from_numpy_array(rng.normal(size=(batches[step % len(batches)], 12)).astype("float32"))
            loss = build(x)
            if step == 0:
                solver.set_parameters(nn.get_parameters())
            solver.zero_grad()
            loss.backward(clear_buffer=True)
            solver.update()
            losses.append(float(loss.d))
            if changed is not None:
                changed(step)
    parameters = nn.get_parameters(grad_only=False)
    return losses, [p.d.copy() for p in parameters.values()], [p.g.copy() for p in parameters.values() if p.need_grad]


def assert_same(one, other):
    for given, expected in zip(one, other, strict=True):
        for a, b in zip(given, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def without(build, monkeypatch, **options):
    """The same training, each call bound anew."""
    from nn_ext_cuda.launch import recurring

    with monkeypatch.context() as patch:
        patch.setattr(recurring._ByAddress, "found", lambda self, arrays: None)
        return trained(build, **options)


@pytest.mark.parametrize("name", NETS)
def test_training_gives_the_bits_of_calls_that_are_bound_anew(cuda, name, monkeypatch):
    assert_same(trained(NETS[name]), without(NETS[name], monkeypatch))


@pytest.mark.parametrize("name", NETS)
def test_training_gives_the_numbers_of_the_reference(cuda, name):
    losses, parameters, gradients = trained(NETS[name])
    with nn.context_scope(nn.Context(["reference:float"])):
        expected = trained(NETS[name])
    np.testing.assert_allclose(losses, expected[0], rtol=1e-4)
    for given, wanted in zip((*parameters, *gradients), (*expected[1], *expected[2]), strict=True):
        np.testing.assert_allclose(given, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max() + 1e-7)


@pytest.mark.parametrize("name", ["mlp", "images", "attention"])
def test_nothing_is_bound_once_the_memory_is_known(cuda, counted, without_garbage, name):
    seen = []
    trained(NETS[name], steps=24, changed=lambda step: seen.append(dict(counted)))
    assert seen[-1]["bound"] == seen[-3]["bound"]
    assert seen[-1]["replayed"] == seen[-3]["replayed"] + 2


def test_graphs_are_in_the_report(cuda):
    from nn_ext_cuda import graph_report

    trained(mlp)  # perhaps by graphs of earlier tests that come again
    report = graph_report()
    assert report.n_recorded > report.n_graphs > 0


def test_other_shapes_in_between_and_memory_in_which_others_were(cuda, monkeypatch):
    from nn_ext_cuda.memory.small_blocks import RECYCLED

    held = []

    def changed(step):  # other arrays now and then, so that results move
        held.append(RECYCLED.empty((step % 3 + 1, 700), "float32"))
        del held[: -(step % 2 + 1)]

    options = {"steps": 24, "batches": (8, 8, 3, 8, 5)}
    assert_same(trained(mlp, changed=changed, **options), without(mlp, monkeypatch, changed=changed, **options))


def test_results_are_not_kept(cuda, without_garbage, monkeypatch):
    from nn_ext_cuda.memory.small_blocks import RECYCLED

    made, free = [], []
    fresh = cuda.empty
    monkeypatch.setattr(cuda, "empty", lambda *args, **options: made.append(args) or fresh(*args, **options))
    trained(mlp, steps=12, changed=lambda step: free.append((len(made), len(RECYCLED.sizes(0)))))
    assert free[-1] == free[-5]


def test_inputs_that_are_set_again_and_results_that_are_kept(cuda, monkeypatch):
    def run():
        nn.clear_parameters()
        nn.seed(3)
        rng, kept, found = np.random.default_rng(1), [], []
        x = nn.Variable((BATCH, 12))
        with nn.auto_forward():
            for step in range(12):
                x.d = rng.normal(size=x.shape)
                y = F.tanh(PF.affine(x, 6))
                kept.append(y)
                if step % 3 == 2:
                    found += [y.d.copy() for y in kept]
                    kept.clear()
        return [found]

    from nn_ext_cuda.launch import recurring

    given = run()
    monkeypatch.setattr(recurring._ByAddress, "found", lambda self, arrays: None)
    assert_same(given, run())


def test_a_sum_over_several_backward_passes(cuda, monkeypatch):
    def run():
        nn.clear_parameters()
        nn.seed(3)
        rng, found = np.random.default_rng(1), []
        with nn.auto_forward():
            for step in range(12):
                x = nn.Variable.from_numpy_array(rng.normal(size=(BATCH, 12)).astype("float32"))
                loss = mlp(x)
                if step % 4 == 0:
                    for p in nn.get_parameters().values():
                        p.grad.zero()
                loss.backward(clear_buffer=True)
                found += [p.g.copy() for p in nn.get_parameters().values()]
        return [found]

    from nn_ext_cuda.launch import recurring

    given = run()
    monkeypatch.setattr(recurring._ByAddress, "found", lambda self, arrays: None)
    assert_same(given, run())


def test_launched_together(cuda, monkeypatch):
    def together(x):
        with nn.launch_together():
            return mlp(x)

    assert_same(trained(together), without(together, monkeypatch))


def test_without_graphs_the_pass_runs_launch_by_launch(cuda, counted, monkeypatch):
    import nn_ext_cuda

    nn_ext_cuda.use_graphs(False)
    try:
        given = trained(mlp)
        assert counted["replayed"] == 0
    finally:
        nn_ext_cuda.use_graphs(True)
    assert_same(given, without(mlp, monkeypatch))


def test_the_oldest_entries_are_dropped(cuda, monkeypatch):
    from nn_ext_cuda.launch import recurring

    monkeypatch.setattr(recurring, "MAX_STEPS", 2)
    monkeypatch.setattr(recurring, "MAX_PASSES", 1)
    given = trained(mlp, batches=(8, 3), steps=20)
    assert_same(given, without(mlp, monkeypatch, batches=(8, 3), steps=20))


def test_steps_with_much_memory_of_their_own_are_not_kept(device):
    from nn_ext_cuda.launch import recurring
    from nn_ext_cuda.launch.program import Program

    x = device.empty((10,), "float32")
    for n_bytes, kept in ((recurring.MAX_STEP_BYTES, True), (recurring.MAX_STEP_BYTES + 1, False)):
        runner = recurring.Recurring(Program([], 1, [((n_bytes,), "uint8")]))
        runner(x)
        runner(x)
        assert (list(runner._steps._entries.values()) != [None]) is kept and runner._recurs is kept


def test_threads_have_steps_of_their_own(device):
    from nn_ext_cuda.launch import recurring
    from nn_ext_cuda.launch.program import Program

    x, runner = device.empty((10,), "float32"), recurring.Recurring(Program([], 1))
    for _ in range(2):
        thread = threading.Thread(target=runner, args=(x,))
        thread.start()
        runner(x)
        thread.join()
    assert len({key[0] for key in runner._steps._entries}) > 1


def test_steps_with_numbers_of_the_host_are_bound_in_each_call(device):
    from nn_ext_cuda.launch import recurring
    from nn_ext_cuda.launch.program import ChainStep, Step
    from nn_ext_cuda.memory.derived_weights import DerivingStep, Making

    plain, worded = Step([], []), Step([], [], ["words"])
    assert recurring._recurs(plain) and recurring._recurs(ChainStep([plain, plain]))
    assert not recurring._recurs(worded) and not recurring._recurs(ChainStep([plain, worded]))
    assert not recurring._recurs(DerivingStep(Making(None), plain))


def test_arrays_of_the_host_have_no_address(device):
    from nn_ext_cuda.launch import recurring

    calls = []

    class Runner:
        def __call__(self, *arrays):
            calls.append("called")

        def bind(self, *arrays):
            raise AssertionError("bound to an array of the host")

    runner = recurring.Recurring(Runner())
    for _ in range(3):
        runner(device.empty((3,)), np.zeros(2, "uint64"))
    assert calls == ["called"] * 3
