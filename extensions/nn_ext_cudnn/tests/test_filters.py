"""Filters that are laid out for channels-last images: how often that is done, and that it is never too rarely."""

import contextlib

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.parameter import set_parameter
from nn_core.settings import without

IMAGE, FILTERS = (2, 4, 6, 5), (4, 4, 3, 3)


def convolved(x, w):
    """A convolution by definition, with a border of one."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], axis=(2, 3))
    return np.einsum("ncijrs,kcrs->nkij", windows, w.astype(np.float64))


def drawn(seed, shape=FILTERS):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def net(x, *weights):
    """Convolutions with activations between them, so that images are channels-last there."""
    for w in weights:
        x = F.tanh(F.convolution(x, w, pad=(1, 1)))
    return x


def by_definition(x, *weights):
    for w in weights:
        x = np.tanh(convolved(x, w))
    return x


def test_inference_lays_out_filters_once(layouts):
    x = nn.Variable.from_numpy_array(drawn(0, IMAGE))
    weights = [nn.Variable.from_numpy_array(drawn(k) / 4) for k in (1, 2)]
    y = net(x, *weights)
    n_layouts = []
    for k in range(6):
        x.d = drawn(k, IMAGE)
        n_layouts.append(layouts(lambda: y.forward(clear_buffer=True)))
        expected = by_definition(drawn(k, IMAGE), *[drawn(k) / 4 for k in (1, 2)])
        np.testing.assert_allclose(y.d, expected, rtol=2e-2, atol=2e-2)
    assert n_layouts[-3:] == [0, 0, 0]
    from nn_ext_cuda.memory.usage import memory_report

    report = {arena.name: arena for arena in memory_report()}["laid-out weights, among the arrays"]
    assert (report.count, report.used_bytes) == (2, 2 * 2 * int(np.prod(FILTERS)))


def test_without_the_optimization_each_pass_lays_out_filters(layouts):
    x, w = nn.Variable.from_numpy_array(drawn(0, IMAGE)), nn.Variable.from_numpy_array(drawn(1) / 4)
    y = net(x, w)
    with without("pack"):
        for _ in range(3):
            y.forward()
        assert [layouts(y.forward) for _ in range(2)] == [1, 1]
    for _ in range(3):
        y.forward()
    assert layouts(y.forward) == 0
    np.testing.assert_allclose(y.d, by_definition(x.d, w.d), rtol=0, atol=2e-2)


def test_weights_are_converted_once_for_inference_too(layouts, monkeypatch):
    import fake_cupy

    x, w = nn.Variable.from_numpy_array(drawn(0, IMAGE)), nn.Variable.from_numpy_array(drawn(1), need_grad=True)
    solver = S.Sgd(1e-3)
    solver.set_parameters({"w": w})
    w.grad.fill(1)
    solver.update()  # now the values are on the device
    y = net(x, w)
    launches = []
    launch = fake_cupy.Graph.launch
    monkeypatch.setattr(
        fake_cupy.Graph, "launch", lambda graph, stream=None: (launches.append(len(graph.calls)), launch(graph))
    )
    for _ in range(4):
        y.forward()
    w.grad.fill(1)
    solver.update()
    y.forward()
    least, most = launches[-2:]
    assert most - least == 3  # one that converts the weight, one that lays it out, and the note of it here


@pytest.mark.parametrize("together", [False, True])
def test_training_lays_out_filters_once_for_each_update(layouts, together):
    x = nn.Variable.from_numpy_array(drawn(0, IMAGE), need_grad=True)
    first, second = (nn.Variable.from_numpy_array(drawn(k) / 4, need_grad=True) for k in (1, 2))
    loss = F.mean(net(x, first, second, first) ** 2)  # two functions share one weight
    solver = S.Sgd(0.1)
    solver.set_parameters({"first": first, "second": second})

    def step():
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        x.grad.zero()
        loss.backward(clear_buffer=True)
        solver.update()

    def whole():
        with nn.launch_together() if together else contextlib.nullcontext():
            step()

    for _ in range(3):
        whole()
    for _ in range(3):
        assert layouts(whole) == 2

    def evaluate():
        for _ in range(3):
            loss.forward(clear_buffer=True)

    evaluate()
    assert layouts(evaluate) == 0


def test_statistics_are_folded_into_filters_once(layouts):
    import nn_core.parametric_functions as PF

    x = nn.Variable.from_numpy_array(drawn(0, IMAGE))
    h = PF.batch_normalization(PF.convolution(x, 4, (3, 3), pad=(1, 1), name="c"), batch_stat=False)
    y = F.relu(PF.convolution(F.relu(h), 4, (3, 3), pad=(1, 1), name="d"))
    parameters = nn.get_parameters(grad_only=False)
    mean = next(p for name, p in parameters.items() if name.endswith("mean"))
    results = []
    for value in (0.0, 0.0, 0.0, 0.0, 0.75, 0.75, 0.75):
        mean.d = value
        y.forward(clear_buffer=True)
        results.append(y.d.copy())
    np.testing.assert_array_equal(results[0], results[3])
    np.testing.assert_array_equal(results[4], results[6])
    assert np.abs(results[4] - results[0]).max() > 0.05
    for _ in range(3):
        assert layouts(lambda: y.forward(clear_buffer=True)) == 0
    with nn.context_scope(nn.Context(["reference:float"])):
        expected = F.relu(
            F.convolution(
                F.relu(
                    F.batch_normalization(
                        F.convolution(x, parameters["c/conv/W"], parameters["c/conv/b"], pad=(1, 1)),
                        *[parameters[f"bn/{name}"] for name in ("beta", "gamma", "mean", "var")],
                        batch_stat=False,
                    )
                ),
                parameters["d/conv/W"],
                parameters["d/conv/b"],
                pad=(1, 1),
            )
        )
        expected.forward()
    np.testing.assert_allclose(results[-1], expected.d, rtol=2e-2, atol=2e-2)


class Weight:
    """A weight of a program, and what it has to hold, as only NumPy has seen it."""

    def __init__(self, tmp_path):
        self.values = drawn(1)
        self.variable = nn.Variable.from_numpy_array(self.values.copy(), need_grad=True)
        set_parameter("w", self.variable)
        self.file = str(tmp_path / "weights.npz")
        self.source = nn.Variable(FILTERS)
        self.assigned = F.assign(self.variable, self.source)
        self.views = []
        self.solver = S.Sgd(0.5)
        self.solver.set_parameters({"w": self.variable})

    def set(self, values):
        self.values = values.astype("float32")
        return self.values.copy()


def write(weight, values):
    weight.variable.d = weight.set(values)


def write_into_a_view(weight, values):
    weight.variable.d[...] = weight.set(values)


def write_into_a_kept_view(weight, values):
    weight.views.append(weight.variable.d)
    weight.views[-1][...] = weight.set(values)


def write_into_a_view_of_before(weight, values):
    """A view that was taken before the last pass, and is given up now."""
    view = weight.variable.d
    weight.pass_between()
    view[...] = weight.set(values)


def fill(weight, values):
    weight.variable.data.fill(float(values.flat[0]))
    weight.set(np.full_like(values, values.flat[0]))


def zero(weight, values):
    weight.variable.data.zero()
    weight.set(np.zeros_like(values))


def copy_from(weight, values):
    weight.variable.data.copy_from(nn.NdArray.from_numpy_array(weight.set(values)))


def replace_the_array(weight, values):
    weight.variable.data = nn.NdArray.from_numpy_array(weight.set(values))


def cast_and_write(weight, values):
    weight.variable.data.cast("float32")[...] = weight.set(values)


def add_in_place(weight, values):
    weight.variable.data += float(values.flat[0])
    weight.set(weight.values + values.flat[0])


def update(weight, values):
    weight.variable.g = values
    weight.solver.update()
    weight.set(weight.values - np.float32(0.5) * values)


def update_together(weight, values):
    with nn.launch_together():
        update(weight, values)


def load(weight, values):
    nn.save_parameters(weight.file, {"w": nn.Variable.from_numpy_array(weight.set(values), need_grad=True)})
    nn.load_parameters(weight.file)


def assign_in_a_graph(weight, values):
    weight.source.d = weight.set(values)
    weight.assigned.forward()


def assign_at_once(weight, values):
    source = nn.Variable.from_numpy_array(weight.set(values))
    with nn.auto_forward():
        F.assign(weight.variable, source)


def write_on_the_device(weight, values):
    """Through memory that another library shares."""
    from nn_ext_cuda.device.runtime import cupy

    weight.solver.set_learning_rate(0.0)
    weight.variable.g = values
    weight.solver.update()  # brings the values there
    weight.solver.set_learning_rate(0.5)
    shared = cupy.from_dlpack(weight.variable.data)
    shared[...] = cupy.asarray(weight.set(values))
    weight.views.append(shared)


WRITERS = [
    write, write_into_a_view, write_into_a_kept_view, write_into_a_view_of_before, fill, zero, copy_from, replace_the_array,
    cast_and_write, add_in_place, update, update_together, load, assign_in_a_graph, assign_at_once, write_on_the_device,
]  # fmt: skip


class Passes:
    """Several graphs of one weight, and what they have to give."""

    def __init__(self, weight):
        self.weight = weight
        self.image = drawn(7, IMAGE) / 8
        w, self.x = weight.variable, nn.Variable.from_numpy_array(self.image, need_grad=True)
        self.other = nn.Variable.from_numpy_array(drawn(9, (3, *IMAGE[1:])) / 8)
        self.once, self.twice, self.elsewhere = net(self.x, w), net(self.x, w, w), net(self.other, w)
        with nn.recompute():
            self.again = net(self.x, w, w)
        self.fused = F.relu(F.convolution(F.relu(F.convolution(self.x, w, pad=(1, 1))), w, pad=(1, 1)))

    def infer(self):
        self.once.forward(clear_buffer=True)
        return self.once.d, by_definition(self.image, self.weight.values)

    def infer_on_other_images(self):
        self.elsewhere.forward(clear_buffer=True)
        return self.elsewhere.d, by_definition(self.other.d, self.weight.values)

    def infer_fused(self):
        self.fused.forward(clear_buffer=True)
        w = self.weight.values
        return self.fused.d, np.maximum(convolved(np.maximum(convolved(self.image, w), 0), w), 0)

    def keep_all(self):
        self.twice.forward()
        return self.twice.d, by_definition(self.image, *[self.weight.values] * 2)

    def train(self):
        return self._gradient(self.twice)

    def train_with_recomputation(self):
        return self._gradient(self.again)

    def train_together(self):
        with nn.launch_together():
            return self._gradient(self.twice)

    def _gradient(self, y):
        y.forward(clear_no_need_grad=True)
        self.x.grad.zero()
        y.backward(1.0, clear_buffer=True)
        first = by_definition(self.image, self.weight.values)
        second = by_definition(first, self.weight.values)
        turned = self.weight.values.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1]
        inner = convolved(1 - second**2, turned) * (1 - first**2)
        return self.x.g, convolved(inner, turned)

    def step_by_step(self):
        with without("fuse"):
            return self.infer()


PASSES = [
    Passes.infer, Passes.infer_on_other_images, Passes.infer_fused, Passes.keep_all, Passes.train,
    Passes.train_with_recomputation, Passes.train_together, Passes.step_by_step,
]  # fmt: skip


def check(given, name):
    found, expected = given
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-2 * max(1, np.abs(expected).max()), err_msg=name)


@pytest.mark.parametrize("write", WRITERS)
def test_no_pass_uses_filters_of_before(backend, tmp_path, write):
    """Each way of writing after each kind of pass, and between two of them."""
    weight = Weight(tmp_path)
    passes = Passes(weight)
    weight.pass_between = passes.infer
    for number, run in enumerate(PASSES):
        for k in range(4):  # by single calls, bound, recorded, replayed
            check(run(passes), f"{run.__name__}, run {k}")
        for k in range(3):
            write(weight, drawn([number, k]) / 3)
            check(run(passes), f"{run.__name__} after {write.__name__} {k}")


@pytest.mark.parametrize("seed", range(8))
def test_programs_of_random_writes_and_passes(backend, tmp_path, seed):
    rng = np.random.default_rng(seed)
    weight = Weight(tmp_path)
    passes = Passes(weight)
    weight.pass_between = passes.keep_all
    history = []
    for number in range(60):
        if rng.random() < 0.4:
            write = WRITERS[rng.integers(len(WRITERS))]
            write(weight, drawn([seed, number]) / 3)
            if rng.random() < 0.5:
                weight.views.clear()
            history.append(write.__name__)
        run = PASSES[rng.integers(len(PASSES))]
        history.append(run.__name__)
        check(run(passes), ", ".join(history))


def test_filters_that_a_graph_computes(layouts):
    """By another graph, by the graph itself, and by a function that writes to a leaf before the convolution reads it."""
    x, source, weight = nn.Variable.from_numpy_array(drawn(0, IMAGE)), nn.Variable(FILTERS), nn.Variable(FILTERS)
    doubled = source * 2
    elsewhere, within = net(x, doubled.get_unlinked_variable()), net(x, source * 2)
    before, assigned, after = net(x, weight), F.assign(weight, source * 2), net(x, weight)
    for k in range(8):
        source.d = drawn([1, k]) / 4
        expected = by_definition(drawn(0, IMAGE), drawn([1, k]) / 2)
        doubled.forward()
        within.forward(clear_buffer=True)
        elsewhere.forward()
        nn.forward_all([before, assigned, after])
        old = drawn([1, k - 1]) / 2 if k else np.zeros(FILTERS)
        np.testing.assert_allclose(before.d, by_definition(drawn(0, IMAGE), old), rtol=0, atol=2e-2)
        for y in (elsewhere, within, after):
            np.testing.assert_allclose(y.d, expected, rtol=0, atol=2e-2)


def test_another_stream_lays_out_for_itself(layouts, monkeypatch):
    # what was launched in one stream may not be there yet when another one reads it
    import fake_cupy

    x, w = nn.Variable.from_numpy_array(drawn(0, IMAGE)), nn.Variable.from_numpy_array(drawn(1) / 4)
    y = net(x, w)
    for _ in range(4):
        y.forward()
    assert layouts(y.forward) == 0
    monkeypatch.setattr(fake_cupy.Stream, "current", fake_cupy.Stream(ptr=77))
    assert [layouts(y.forward) for _ in range(2)] == [1, 0]


def test_filters_are_laid_out_anew_after_held_launches_have_failed(layouts, monkeypatch):
    import fake_cupy

    x, w = nn.Variable.from_numpy_array(drawn(0, IMAGE)), nn.Variable.from_numpy_array(drawn(1) / 4, need_grad=True)
    y = net(x, w)
    solver = S.Sgd(0.5)
    solver.set_parameters({"w": w})
    for _ in range(5):
        w.g = drawn(2)
        solver.update()
        y.forward()

    def fail(graph, stream=None):
        raise fake_cupy.CUDARuntimeError("out of memory")

    w.g = drawn(3) / 8
    solver.update()
    with monkeypatch.context() as patched, pytest.raises(fake_cupy.CUDARuntimeError), nn.launch_together():
        patched.setattr(fake_cupy.Graph, "launch", fail)
        y.forward()
    y.forward()
    np.testing.assert_allclose(y.d, by_definition(x.d, w.d), rtol=0, atol=2e-2)
