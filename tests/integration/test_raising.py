"""An exception from code of the user at any call of a step leaves everything as before the call, or as after it."""

from contextlib import nullcontext

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.engine.graph.call import PreparedKernel, forget
from nn_core.engine.graph.gradient_rule import RuleRunner
from nn_core.ext_utils import list_extensions


class OddError(Exception):
    """An exception that nobody expects."""


class Fuse:
    """Counts calls of hooks and functions, and raises at one of them."""

    def __init__(self):
        self.burns_at, self.count = -1, 0

    def __call__(self, *_):
        self.count += 1
        if self.count - 1 == self.burns_at:
            raise OddError


class Halved(nn.PythonFunction):
    """A function of the user that may raise in both directions."""

    def __init__(self, fuse):
        super().__init__()
        self.fuse = fuse

    @property
    def name(self):
        return "Halved"

    def min_outputs(self):
        return 1

    def setup_impl(self, inputs, outputs):
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs, outputs):
        self.fuse()
        outputs[0].d = inputs[0].d / 2

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        self.fuse()
        if propagate_down[0]:
            inputs[0].g = outputs[0].g / 2 + (inputs[0].g if accum[0] else 0)


@pytest.fixture(params=["reference", "cpu"])
def backend(request):
    if request.param not in list_extensions():
        pytest.skip(f"no package brings the backend {request.param}")
    with nn.context_scope(nn.Context([request.param])):
        yield


class Training:
    """A step with hooks around functions and updates."""

    def __init__(self, dynamic):
        self.fuse, self.dynamic = Fuse(), dynamic
        self.x = nn.Variable.from_numpy_array(np.arange(6, dtype=np.float32).reshape(2, 3) / 6)
        self.scope = {}
        loss = self.loss()
        self.static = None if dynamic else loss
        with nn.parameter_scope("net", self.scope):
            self.parameters = nn.get_parameters()
        self.solver = S.Adam(0.1)
        self.solver.set_parameters(self.parameters)

    def loss(self):
        with nn.parameter_scope("net", self.scope):
            h = F.tanh(PF.affine(self.x, 4, w_init=np.ones((3, 4), np.float32) / 4, name="a"))
            return F.mean(PF.affine(Halved(self.fuse)(h), 2, w_init=np.ones((4, 2), np.float32) / 4, name="b") ** 2)

    def gradients(self):
        self.solver.zero_grad()
        if self.dynamic:
            with nn.auto_forward():
                loss = self.loss()
        else:
            loss = self.static
            loss.forward(clear_no_need_grad=True, function_pre_hook=self.fuse, function_post_hook=self.fuse)
        loss.backward(clear_buffer=True, function_pre_hook=self.fuse, function_post_hook=self.fuse)

    def update(self):
        self.solver.update(update_pre_hook=self.fuse, update_post_hook=self.fuse)

    def burn(self, call, at):
        """Return whether `call` was ended by the fuse."""
        self.fuse.count, self.fuse.burns_at = 0, at
        try:
            call()
        except OddError:
            return True
        finally:
            self.fuse.burns_at = -1
        return False

    def values(self):
        return [parameter.d.tobytes() for parameter in self.parameters.values()]

    def computed(self):
        self.gradients()
        return [parameter.g.tobytes() for parameter in self.parameters.values()]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_passes_that_are_ended_by_a_hook_or_a_function(backend, dynamic):
    training = Training(dynamic)
    for _ in range(3):
        expected = training.computed()
    at = 0
    while training.burn(training.gradients, at):
        assert training.computed() == expected
        assert not nn.get_auto_forward()
        at += 1
    assert at > 10


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_gradients_of_a_pass_that_was_ended_are_zero_or_those_of_the_whole_pass(backend, dynamic):
    training, inputs, expected = Training(dynamic), [], []
    for number in range(2):  # what is left of an earlier pass belongs to the other input
        inputs.append(training.x.d * 0.5 + number)
        training.x.d = inputs[number]
        expected.append(training.computed())
    at, burnt = 0, True
    while burnt:
        training.x.d = inputs[0]
        assert training.computed() == expected[0]
        training.x.d = inputs[1]
        burnt = training.burn(training.gradients, at)
        for parameter, whole in zip(training.parameters.values(), expected[1], strict=True):
            assert parameter.g.tobytes() == whole or not parameter.g.any()
        at += 1
    assert at > 10


def test_updates_that_are_ended_by_a_hook(backend):
    training = Training(dynamic=False)
    training.computed()
    at = 0
    while True:
        before = training.values(), [state.t for state in training.solver.get_states().values()]
        burnt = training.burn(training.update, at)
        after = training.values(), [state.t for state in training.solver.get_states().values()]
        if not burnt:
            break
        # each parameter has its old value and its old count of steps, or new ones
        for old, new, old_t, new_t in zip(before[0], after[0], before[1], after[1], strict=True):
            assert (new != old) == (new_t == old_t + 1)
        at += 1
    assert at >= 2
    assert all(new != old for old, new in zip(before[0], after[0], strict=True))


def test_passes_that_are_ended_by_a_kernel(backend):
    table = nn.Variable.from_numpy_array(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), need_grad=True)
    places = nn.Variable((5,))

    def step(loss, of):
        places.d = of
        table.grad.zero()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        return loss.d.tobytes(), table.g.tobytes()

    def built():
        return F.sum(F.tanh(F.embed(places, F.sin(table))) ** 2)

    good, bad = [0, 1, 1, 3, 2], [0, 1, 1, 4, 2]
    static = built()
    expected = step(static, good)
    for _ in range(3):
        with pytest.raises(nn.errors.ArgumentError):
            step(static, bad)
        assert step(static, good) == expected
    for _ in range(3):
        for of, error in ((good, False), (bad, True), (good, False)):
            places.d = of
            with nn.auto_forward(), pytest.raises(nn.errors.ArgumentError) if error else nullcontext():
                loss = built()
            table.grad.zero()
            if not error:
                loss.backward()
                assert (loss.d.tobytes(), table.g.tobytes()) == expected
            assert not nn.get_auto_forward()


class Stumbling:
    """A kernel of a backward pass that fails while `fails` is set."""

    fails = False

    def __init__(self, runner):
        self.runner = runner

    def __call__(self, *arrays):
        if Stumbling.fails:
            raise OddError
        return self.runner(*arrays)


@pytest.fixture
def stumbling(monkeypatch):
    """Let the gradient of `sinh` fail while `Stumbling.fails` is set."""
    backward_for = PreparedKernel.backward_for

    def found(kernel, wanted, flags):
        runner = backward_for(kernel, wanted, flags)
        if kernel.spec.name != "Sinh":
            return runner
        return Stumbling(runner or RuleRunner(kernel, [x.shape for x in kernel.call.inputs], kernel.output_shapes, wanted))

    forget()
    monkeypatch.setattr(PreparedKernel, "backward_for", found)
    monkeypatch.setattr(Stumbling, "fails", False)
    yield
    forget()


def passes(dynamic, *leaves):
    """Yield four backward passes: of a graph, or of graphs of one structure, the first of which nothing is compiled for."""
    a, b, c = leaves
    for number in range(4):
        if dynamic or number == 0:
            with nn.auto_forward(dynamic):
                loss = F.sum(a * (b * F.sinh(c)))
        if not dynamic:
            loss.forward(clear_no_need_grad=True)
        yield loss


@pytest.mark.usefixtures("stumbling")
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("held", [0.0, 5.0])
def test_a_failed_pass_gives_zeros_back_and_names_the_gradients_it_added_to(backend, dynamic, held):
    leaves = [nn.Variable.from_numpy_array(np.full((2, 3), n, np.float32), need_grad=True) for n in (1, 2, 3)]
    for number, loss in enumerate(passes(dynamic, *leaves)):
        for x in leaves:
            x.grad.zero()
        leaves[0].grad.fill(held)
        Stumbling.fails = number != 1
        if not Stumbling.fails:
            loss.backward(clear_buffer=True)
            assert leaves[1].g.any()
            continue
        with pytest.raises(OddError) as caught:
            loss.backward(clear_buffer=True)
        assert not any(x.g.any() for x in leaves[held != 0 :])
        notes = "\n".join(getattr(caught.value, "__notes__", ()))
        assert ("gradients that were not zero" in notes) == (held != 0)
