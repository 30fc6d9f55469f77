"""Each fault that a kernel can have is found by the check that is there for it."""

import itertools
import threading
from dataclasses import replace

import numpy as np
import pytest

from nn_core.engine.dispatch.known import KnownOperators
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.registry import spec_of
from nn_core.engine.graph import gradient_compiler
from nn_core.errors import ArgumentError
from nn_core.operators.reference.adapter import ReferenceKernel
from nn_core.operators.reference.registry import KERNELS
from nn_core.testing.cases import SolverCase, solver_cases
from nn_core.testing.checks.backward import check_backward, check_replaced_inputs, compare_gradients
from nn_core.testing.checks.forward import check_determinism, check_forward
from nn_core.testing.checks.graph import check_graph
from nn_core.testing.checks.growth import check_growth
from nn_core.testing.checks.layouts import check_layouts
from nn_core.testing.checks.refusal import check_error, check_refusal
from nn_core.testing.checks.reuse import check_reuse, check_threads
from nn_core.testing.checks.solvers import check_solver
from nn_core.testing.drawing import values
from nn_core.testing.growth import LATER
from nn_core.testing.kernels import KernelRun
from nn_core.testing.operators import run_gradient
from nn_core.testing.perturbed_inputs import other_numbers
from nn_core.testing.samples.registry import Sample
from nn_core.typing import Refusal


def planted(tanh, **methods):
    return type("Planted", (tanh,), {name: staticmethod(method) for name, method in methods.items()})()


CHECKS = [
    check_forward,
    check_backward,
    check_replaced_inputs,
    check_determinism,
    check_layouts,
    check_graph,
    check_reuse,
    check_threads,
]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("sample", ["matrix", "scalar", "empty", "long", "image"])
def test_a_kernel_without_fault_passes(bed, tanh, check, sample):
    bed.plant("Tanh", tanh())
    assert bed.case("Tanh").native
    check(bed.case("Tanh", sample))


def slightly_wrong(x, y):
    y[...] = np.tanh(x) * 1.001


def accumulating(x, y):
    y += np.tanh(x)


def incomplete(x, y):
    y.reshape(-1)[:-1] = np.tanh(x).reshape(-1)[:-1]


def writing_inputs(x, y):
    y[...] = np.tanh(x)
    x[...] = 0


def writing_beyond(x, y):
    y[...] = np.tanh(x)
    np.lib.stride_tricks.as_strided(y, (y.size + 1,), (y.itemsize,))[-1] = 0


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (slightly_wrong, "output 0: .* elements differ"),
        (accumulating, "output 0: 12 of 12 elements differ"),
        (incomplete, "output 0: 1 of 12 elements differ"),
        (writing_inputs, "wrote to an input"),
        (writing_beyond, "wrote beside an array"),
    ],
)
def test_forward(bed, tanh, kernel, text):
    bed.plant("Tanh", planted(tanh, compute=kernel))
    with pytest.raises(AssertionError, match=text):
        check_forward(bed.case("Tanh"))


class Bindable:
    def __call__(self, x, y):
        y[...] = np.tanh(x)

    def bind(self, x, y):
        return lambda: y.__setitem__(..., np.tanh(x) + np.float32(1e-7))


def test_forward_of_a_bound_kernel(bed, tanh):
    bed.plant("Tanh", planted(tanh, forward=lambda call: Bindable()))
    with pytest.raises(AssertionError, match="result 0 of the bound kernel"):
        check_forward(bed.case("Tanh"))


def test_forward_updates(bed):
    class Forgetful(ReferenceKernel):
        def forward(self, call):
            run = super().forward(call)
            return lambda *arrays: run(*[a.copy() if n in (3, 4) else a for n, a in enumerate(arrays)])

    bed.plant("BatchNormalization", Forgetful(KERNELS["BatchNormalization"], np))
    with pytest.raises(AssertionError, match="new mean"):
        check_forward(bed.case("BatchNormalization"))


def test_forward_draws_from_the_key(bed):
    class Deaf(ReferenceKernel):
        def forward(self, call):
            run = super().forward(call)
            return lambda *arrays: run(*arrays[:-1], np.array([1, 1], np.uint64))

    bed.plant("Rand", Deaf(KERNELS["Rand"], np))
    with pytest.raises(AssertionError, match="output 0"):
        check_forward(bed.case("Rand"))


def test_forward_of_dynamic_shape_makes_new_memory(bed, tanh):
    bed.plant("BoolGather", planted(tanh, compute=lambda x, mask: (x,)))
    everything = Sample("everything", (values([1.0, 2.0]), values([1, 1])))
    with pytest.raises(AssertionError, match="an output of dynamic shape is memory of an input"):
        check_forward(bed.case_of("BoolGather", everything))


def test_determinism(bed, tanh):
    noise = itertools.count()

    def compute(x, y):
        y[...] = np.tanh(x) + np.float32(1e-7) * (next(noise) % 2)

    bed.plant("Tanh", planted(tanh, compute=compute))
    with pytest.raises(AssertionError, match="output 0 of the second run"):
        check_determinism(bed.case("Tanh"))


def test_determinism_of_gradients(bed, tanh):
    noise = itertools.count()

    def differentiate(x, y, dy, dx):
        dx[...] = dy * (1 - y * y) + np.float32(1e-7) * (next(noise) % 2)

    bed.plant("Tanh", planted(tanh, differentiate=differentiate))
    with pytest.raises(AssertionError, match="gradient 0 of the second run"):
        check_determinism(bed.case("Tanh"))


class Keeping:
    """A runner of tanh that keeps its arrays; `how` says what it does with them."""

    def __init__(self, how):
        self.how, self.kept = how, []

    def __call__(self, x, y):
        getattr(self, self.how)(x, y)
        self.kept.append((x, y))

    def writes_the_last_output(self, x, y):
        y[...] = np.tanh(x)
        for _, last in self.kept:
            last[...] = 0

    def writes_the_last_input(self, x, y):
        y[...] = np.tanh(x)
        for last, _ in self.kept:
            last[...] = 0

    def gives_the_first_result_again(self, x, y):
        y[...] = self.kept[0][1] if self.kept else np.tanh(x)

    def knows_arrays_again(self, x, y):
        y[...] = next((last for first, last in self.kept if first is x), np.tanh(x))


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("writes_the_last_output", "an array of the first call after the second"),
        ("writes_the_last_input", "an array of the first call after the second"),
        ("gives_the_first_result_again", "output 0: 12 of 12 elements differ"),
        ("knows_arrays_again", "a second call with other numbers in the same arrays"),
    ],
)
def test_reuse(bed, tanh, how, text):
    bed.plant("Tanh", planted(tanh, forward=lambda call: Keeping(how)))
    with pytest.raises(AssertionError, match=text):
        check_reuse(bed.case("Tanh"))


def test_reuse_on_numbers_that_are_always_the_same(bed, tanh):
    bed.plant("Tanh", planted(tanh, forward=lambda call: Keeping("gives_the_first_result_again")))
    with pytest.raises(AssertionError, match="output 0: 6 of 6 elements differ"):
        check_reuse(bed.case("Tanh", "far"))


class Scratch:
    """Computes in memory that all calls share; other threads come in between as soon as there are any."""

    def __init__(self, shape):
        self.memory = np.empty(shape, np.float32)
        self.both = threading.Barrier(2)

    def __call__(self, x, y):
        np.tanh(x, out=self.memory)
        if threading.current_thread() is not threading.main_thread():
            self.both.wait(60)
        y[...] = self.memory


@pytest.mark.parametrize("sample", ["matrix", "far"])  # drawn anew in each call, and always the same
def test_threads(bed, tanh, sample):
    bed.plant("Tanh", planted(tanh, forward=lambda call: Scratch(call.inputs[0].shape)))
    case = bed.case("Tanh", sample)
    check_forward(case)
    with pytest.raises(AssertionError, match="output 0 beside a call in another thread"):
        check_threads(case)


def test_what_a_thread_raises_is_raised(bed, tanh):
    def fail(x, y):
        if threading.current_thread() is not threading.main_thread():
            raise ZeroDivisionError
        np.tanh(x, out=y)

    bed.plant("Tanh", planted(tanh, compute=fail))
    with pytest.raises(ZeroDivisionError):
        check_threads(bed.case("Tanh"))


def wrong_gradient(x, y, dy, dx):
    dx[...] = dy * (1 - y)


def accumulating_gradient(x, y, dy, dx):
    dx += dy * (1 - y * y)


def writing_dy(x, y, dy, dx):
    dx[...] = dy * (1 - y * y)
    dy[...] = 0


def writing_y(x, y, dy, dx):
    dx[...] = dy * (1 - y * y)
    y[...] = 0


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (wrong_gradient, "gradient 0 by the kernel"),
        (accumulating_gradient, "gradient 0 by the kernel"),
        (writing_dy, "wrote to the gradient of an output"),
        (writing_y, "wrote to an output"),
    ],
)
def test_backward(bed, tanh, kernel, text):
    bed.plant("Tanh", planted(tanh, differentiate=kernel))
    with pytest.raises(AssertionError, match=text):
        check_backward(bed.case("Tanh"))


def test_backward_gets_only_what_is_declared(bed, tanh):
    bed.plant("Tanh", planted(tanh, differentiate=lambda x, y, dy, dx: np.copyto(dx, dy / np.cosh(x) ** 2)))
    with pytest.raises(TypeError, match="NoneType"):
        check_backward(bed.case("Tanh"))


def test_backward_of_each_input_alone(bed):
    class Product(ReferenceKernel):
        def backward(self, call, wanted):
            def differentiate(x0, x1, y, dy, dx0, dx1):
                if dx0 is not None:
                    dx0[...] = dy * x1
                if dx1 is not None:
                    dx1[...] = dy * x0 if dx0 is not None else dy

            return differentiate

    bed.plant("Mul2", Product(KERNELS["Mul2"], np))
    with pytest.raises(AssertionError, match="gradient 1 by the kernel"):
        check_backward(bed.case("Mul2"))


def test_backward_reads_what_the_forward_pass_has_kept(bed):
    class Forgetful(ReferenceKernel):
        """Takes the statistics anew from the input, which may have been replaced."""

        def backward(self, call, wanted):
            def differentiate(x, beta, gamma, mean, variance, *others):
                dy, dx = others[3], others[4]
                axes, count = (0, *range(2, x.ndim)), x.size / x.shape[1]
                scale = np.sqrt(x.var(axes, keepdims=True) + call.args["eps"])
                standard = (x - x.mean(axes, keepdims=True)) / scale
                through = dy * gamma
                sums = [part.sum(axes, keepdims=True) / count for part in (through, through * standard)]
                dx[...] = (through - sums[0] - standard * sums[1]) / scale

            return differentiate if wanted == (True, False, False, False, False) else None

    bed.plant("BatchNormalization", Forgetful(KERNELS["BatchNormalization"], np))
    check_backward(bed.case("BatchNormalization"))
    with pytest.raises(AssertionError, match="gradient 0 by the kernel after its inputs were replaced"):
        check_replaced_inputs(bed.case("BatchNormalization"))


def test_statistics_that_were_kept_in_sixteen_bits_are_taken_anew(bed):
    bed.plant("BatchNormalization", ReferenceKernel(KERNELS["BatchNormalization"], np))
    case = bed.case("BatchNormalization", dtype="float16")
    assert set(case.prepared.output_dtypes) == {"float16"}
    run, (inputs, _) = KernelRun(case), other_numbers(case.spec, case.sample, "float16")
    outputs, _ = run.forward()
    gradients = run_gradient(case.spec.name, *inputs, grads=run.truth.grads, **case.sample.args)
    run.truth = replace(run.truth, after=inputs, gradients=gradients)
    wanted = (True, True, True, False, False)
    compare_gradients(run, run.rule_backward(outputs, wanted), wanted, "by the rule")


def in_order_of_memory(x, y):
    y.reshape(-1)[...] = np.tanh(x).ravel(order="K")


def aligned_only(x, y):
    if x.ctypes.data % 64:
        raise ValueError("x must be aligned")
    y[...] = np.tanh(x)


def test_layouts_channels_last(bed, tanh):
    def compute(x, y):
        y[...] = np.tanh(x).transpose(0, 2, 3, 1).reshape(y.shape) if not x.flags.c_contiguous else np.tanh(x)

    bed.plant("Tanh", planted(tanh, compute=compute, layout=lambda call: "any"))
    check_forward(bed.case("Tanh", "image"))
    with pytest.raises(AssertionError, match="output 0"):
        check_layouts(bed.case("Tanh", "image"))


def test_layouts_of_gradients(bed, tanh):
    def differentiate(x, y, dy, dx):
        plain = dy * (1 - y * y)
        dx[...] = plain if dy.flags.c_contiguous else plain.transpose(0, 2, 3, 1).reshape(dx.shape)

    bed.plant("Tanh", planted(tanh, differentiate=differentiate, layout=lambda call: "channels_last"))
    with pytest.raises(AssertionError, match="gradient 0 by the kernel, channels-last"):
        check_layouts(bed.case("Tanh", "image"))


def test_layouts_off_the_alignment(bed, tanh):
    bed.plant("Tanh", planted(tanh, compute=aligned_only))
    with pytest.raises(ValueError, match="x must be aligned"):
        check_layouts(bed.case("Tanh"))


def test_graph_reads_what_is_declared(bed, tanh, monkeypatch):
    def everything(node):
        return [True] * len(node.inputs), [True] * len(node.storages)

    monkeypatch.setattr(gradient_compiler, "needed_data", everything)
    bed.plant("Tanh", planted(tanh, differentiate=lambda x, y, dy, dx: np.copyto(dx, dy / np.cosh(x) ** 2)))
    with pytest.raises(AssertionError, match="after what the gradient must not read became NaN"):
        check_graph(bed.case("Tanh"))


def test_graph_gives_the_true_results(bed, tanh):
    bed.plant("Tanh", planted(tanh, compute=slightly_wrong))
    with pytest.raises(AssertionError, match="result 0 in a graph"):
        check_graph(bed.case("Tanh"))


@pytest.mark.parametrize(
    ("refuse", "text"),
    [
        (lambda call: True, "returns a Refusal or None, got True"),
        (lambda call: Refusal(" "), "a refusal must have a reason"),
        (lambda call: PLUGINS.backend("planted").empty((1,), "float32") and None, "must not allocate"),
    ],
)
def test_refusal(bed, tanh, refuse, text):
    bed.plant("Tanh", planted(tanh, refuse=refuse))
    with pytest.raises(AssertionError, match=text):
        check_refusal(bed.function("Tanh"))


def test_refusal_is_constant(bed, tanh):
    answers = itertools.cycle([None, Refusal("not now")])
    bed.plant("Tanh", planted(tanh, refuse=lambda call: next(answers)))
    with pytest.raises(AssertionError, match="the same call must get one answer"):
        check_refusal(bed.function("Tanh"))


def test_what_is_taken_can_be_prepared(bed, tanh):
    bed.plant("Tanh", planted(tanh, forward=lambda call: None))
    with pytest.raises(AssertionError, match="takes the call, and prepares nothing"):
        check_refusal(bed.function("Tanh"))


def embed(x0, w, y):
    y[...] = w[np.clip(x0, 0, len(w) - 1)]


def embed_with_another_error(x0, w, y):
    raise ArgumentError("embed: the wrong text")


def test_error_must_be_raised(bed, tanh):
    bed.plant("Embed", planted(tanh, compute=embed))
    with pytest.raises(AssertionError, match="must raise ArgumentError, and it ran"):
        check_error(bed.error("Embed", "outside"))


def test_error_must_say_what_is_wrong(bed, tanh):
    bed.plant("Embed", planted(tanh, compute=embed_with_another_error))
    with pytest.raises(AssertionError, match="the text must match"):
        check_error(bed.error("Embed", "outside"))


def test_error_must_be_of_the_class_of_the_reference(bed, tanh):
    def compute(x0, w, y):
        raise IndexError("index 4 is out of bounds")

    bed.plant("Embed", planted(tanh, compute=compute))
    with pytest.raises((AssertionError, IndexError)):
        check_error(bed.error("Embed", "outside"))


class Sgd:
    """A kernel for updates without fault; tests change one thing."""

    def prepare(self, sizes, dtype):
        return self if dtype == "float32" else Refusal("takes float32 only")

    def bind(self, params, grads, states, hyper):
        def step():
            for param, grad in zip(params, grads, strict=True):
                param[...] = param - np.float32(hyper[0]) * grad * self.factor(len(params))

        return step

    def factor(self, count):
        return 1


def solver_case(name="defaults", **settings):
    return SolverCase("planted", "Sgd", name, settings)


def test_solver(bed):
    bed.plant_update("Sgd", Sgd())
    assert [str(case) for case in solver_cases(["planted"], False)] == ["planted-Sgd-defaults", "planted-Sgd-settings"]
    check_solver(solver_case(lr=0.3))


@pytest.mark.parametrize("factor", [lambda self, count: np.float32(1.001), lambda self, count: count == 1])
def test_a_wrong_update_of_a_solver_is_found(bed, factor):
    bed.plant_update("Sgd", type("Wrong", (Sgd,), {"factor": factor})())
    with pytest.raises(AssertionError, match=r"w0\.data after 4 steps"):
        check_solver(solver_case(lr=0.3))


def test_the_reference_wins_where_the_kernel_refuses(bed, tanh):
    bed.plant("Tanh", planted(tanh, refuse=lambda call: Refusal("takes nothing")))
    assert not bed.case("Tanh").native
    assert spec_of("Tanh").name == "Tanh"


@pytest.mark.parametrize("version", ["0.1", LATER])
def test_growth(bed, tanh, version, monkeypatch):
    bed.plant("Tanh", tanh())
    monkeypatch.setattr(PLUGINS.module("planted"), "KNOWN_OPERATORS", KnownOperators(version), raising=False)
    if version == "0.1":
        check_growth(bed.function("Tanh"))
        return
    with pytest.raises(AssertionError, match="the kernel must refuse a call with argument later_argument"):
        check_growth(bed.function("Tanh"))
