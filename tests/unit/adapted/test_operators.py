"""Every operator over array_api_strict, which has the standard and nothing else; a training over that and the examples."""

import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import ArgumentError
from nn_core.ext import AdaptedBackend, BackendInfo, hookimpl, register, unregister
from nn_core.operators.reference.registry import KERNELS
from nn_core.operators.spec.builtin import SPECS
from nn_core.operators.spec.model import FunctionSpec
from nn_core.testing.cases import Case, has_kernel
from nn_core.testing.checks.backward import check_backward
from nn_core.testing.checks.forward import check_forward
from nn_core.testing.checks.graph import check_graph
from nn_core.testing.samples.registry import samples_of
from tests.markdown import ROOT


class Strict:
    """A plugin that brings array_api_strict."""

    PLUGIN_API = 1
    REQUIRES_CORE = ">=0.1"

    @staticmethod
    @hookimpl
    def nn_core_backends() -> list[BackendInfo]:
        import array_api_strict

        def load() -> AdaptedBackend:
            return AdaptedBackend("strict", "StrictArray", array_api_strict)

        return [BackendInfo(name="strict", array_class="StrictArray", load=load)]


def plugin_of(name: str) -> Any:
    """The plugin over a library, or a skip where the library is not installed."""
    if name == "strict":
        return vars_of(Strict, name)
    pytest.importorskip(name, reason=f"{name} is not installed: an example of a backend runs where it is")
    if name == "torch":
        pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    path = ROOT / "examples" / f"plugin_{name}" / f"nn_ext_{name}.py"
    spec = importlib.util.spec_from_file_location(f"nn_ext_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def vars_of(plugin: type, name: str) -> ModuleType:
    module = ModuleType(name)
    vars(module).update({key: getattr(plugin, key) for key in vars(plugin) if not key.startswith("__")})
    return module


@pytest.fixture(scope="module", params=["strict", "torch", "jax"])
def library(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "strict":
        yield request.getfixturevalue("strict")
        return
    register(plugin_of(request.param), request.param)
    yield request.param
    unregister(request.param)


@pytest.fixture(scope="module")
def strict() -> Iterator[str]:
    register(plugin_of("strict"), "strict")
    yield "strict"
    unregister("strict")


def check(backend: str, spec: FunctionSpec) -> None:
    case = Case(backend, spec, "float32", samples_of(spec)[0])
    check_graph(case)
    if has_kernel(spec):
        check_forward(case)
        if spec.differentiable and case.sample.gradient:
            check_backward(case)


OPERATORS = [spec for spec in SPECS if not spec.has("composite")]
SOME = [spec for spec in SPECS if spec.name in ("Add2", "Affine", "BatchNormalization", "Convolution", "MaxPooling", "Slice")]


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_every_operator_runs_over_the_standard(strict: str, spec: FunctionSpec) -> None:
    check(strict, spec)


@pytest.mark.parametrize("spec", SOME, ids=lambda spec: spec.name)
def test_operators_run_over_libraries(library: str, spec: FunctionSpec) -> None:
    check(library, spec)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["torch", "jax"], indirect=True)
def test_every_operator_runs_over_the_examples(library: str) -> None:
    failures = []
    for spec in OPERATORS:
        try:
            check(library, spec)
        except (Exception, pytest.fail.Exception) as error:  # all of them are listed
            failures.append(f"{spec.name}: {error}")
    assert not failures, "\n".join(failures)


@pytest.fixture
def dask() -> Iterator[str]:
    """A backend over dask's arrays, which are neither mutable nor computed at once."""
    xp = pytest.importorskip("array_api_compat.dask.array", reason="dask or array-api-compat is not installed")

    def update(x: Any, key: Any, values: Any, add: bool) -> Any:
        result = np.array(x)
        if not isinstance(key, tuple):
            key = np.asarray(key)
        if add:
            np.add.at(result, key, np.asarray(values))
        else:
            result[key] = np.asarray(values)
        return xp.asarray(result)

    functions = {"fmod": xp.fmod, "einsum": xp.einsum}
    backend = AdaptedBackend("dask", "DaskArray", xp, update=update, functions=functions)
    plugin = ModuleType("dask")
    info = BackendInfo(name="dask", array_class="DaskArray", load=lambda: backend)
    plugin.nn_core_backends = hookimpl(lambda: [info], specname="nn_core_backends")  # type: ignore[attr-defined]
    register(plugin, "dask")
    yield "dask"
    unregister("dask")


@pytest.mark.slow
def test_operators_run_over_dask(dask: str) -> None:
    plain = {"Add2", "Affine", "Slice", "Tanh", "Transpose"}
    by_the_host = {"BatchInv", "BoolGather", "ConfusionMatrix", "DepthwiseConvolution", "NonZero", "PadPackedSequence"}
    for spec in OPERATORS:
        if spec.name in plain | by_the_host:
            check(dask, spec)


def test_arrays_without_elements_are_transformed_on_the_host_which_some_libraries_refuse() -> None:
    def refuse(x: Any, **_: Any) -> Any:
        raise RuntimeError("no elements")

    picky = SimpleNamespace(**{**vars(np), "fft": SimpleNamespace(fftn=refuse)})
    backend = AdaptedBackend("picky", "Picky", picky)
    x = backend.from_numpy(np.zeros((0, 4), np.complex64))
    assert backend.namespace().fft.fftn(x, axes=(1,)).shape == (0, 4)
    with pytest.raises(RuntimeError, match="no elements"):
        backend.namespace().fft.fftn(backend.from_numpy(np.zeros((1, 4), np.complex64)), axes=(1,))


@pytest.mark.parametrize(
    ("name", "standard", "arrays"), [("atan", "atan", 1), ("atan2", "atan2", 2), ("cumsum", "cumulative_sum", 1)]
)
def test_a_function_that_a_library_has_not_implemented_runs_on_the_host(name: str, standard: str, arrays: int) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(standard)

    backend = AdaptedBackend("partial", "Partial", SimpleNamespace(**{**vars(np), standard: refuse}))
    assert name not in backend.host_functions()
    values = np.linspace(-1, 1, 5, dtype=np.float32)
    keywords = {"axis": 0} if name == "cumsum" else {}
    result = getattr(backend.namespace(), name)(*[backend.from_numpy(values)] * arrays, **keywords)
    expected = getattr(np, name)(*[values] * arrays, **keywords)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(backend.to_numpy(result), expected)
    assert name in backend.host_functions()


@pytest.mark.parametrize("name", ["BatchCholesky", "BatchDet", "BatchInv", "BatchLogdet"])
def test_stacks_of_matrices_that_a_library_refuses_are_computed_on_the_host(name: str) -> None:
    def single(function: Any) -> Any:
        def call(x: Any) -> Any:
            if x.ndim != 2:
                raise ValueError("one matrix only")
            return function(x)

        return call

    matrices = {key: single(getattr(np.linalg, key)) for key in ("cholesky", "det", "inv", "slogdet")}
    backend = AdaptedBackend("flat", "Flat", SimpleNamespace(**{**vars(np), "linalg": SimpleNamespace(**matrices)}))
    stack = np.stack([np.eye(2), np.diag([2.0, 4.0])]).astype(np.float32)
    call: Any = KERNELS[name]
    settings = {"upper": False} if name == "BatchCholesky" else {}
    (expected,), (given,) = ((np.asarray(call(xp, x, **settings)),) for xp, x in [
        (np, stack), (backend.namespace(), backend.from_numpy(stack))
    ])  # fmt: skip
    np.testing.assert_array_equal(given, expected)
    assert {"linalg.cholesky", "linalg.det", "linalg.inv", "linalg.slogdet"} & set(backend.host_functions())
    if name in ("BatchCholesky", "BatchInv"):
        with pytest.raises(ArgumentError, match=r"invertible|positive definite"):
            call(backend.namespace(), backend.from_numpy(np.zeros((2, 2, 2), np.float32)), **settings)


def test_a_reshape_that_a_library_has_not_implemented_is_made_on_the_host() -> None:
    def refuse(x: Any, shape: Any) -> Any:
        raise NotImplementedError("merges of axes")

    backend = AdaptedBackend("lazy", "Lazy", SimpleNamespace(**{**vars(np), "reshape": refuse}))
    assert "reshape" not in backend.host_functions()
    x = backend.from_numpy(np.arange(6.0).reshape(2, 3))
    assert x.reshape((3, 2)).tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert "reshape" in backend.host_functions()


@pytest.mark.parametrize("unknown", [None, np.nan])
def test_places_of_elements_are_found_on_the_host_where_a_library_does_not_know_how_many_there_are(unknown: Any) -> None:
    def lazy(x: Any) -> Any:
        return tuple(SimpleNamespace(shape=(unknown,)) for _ in range(x.ndim))

    backend = AdaptedBackend("lazy", "Lazy", SimpleNamespace(**{**vars(np), "nonzero": lazy}))
    x = backend.from_numpy(np.array([[0.0, 1.0], [2.0, 0.0]]))
    assert [place.tolist() for place in backend.namespace().nonzero(x)] == [[0, 1], [1, 0]]
    assert x[x > 0].tolist() == [1.0, 2.0]
    assert "nonzero" in backend.host_functions()


@pytest.mark.parametrize("name", ["linalg.inv", "fft.rfft", "searchsorted"])
def test_functions_that_are_given_are_used(name: str) -> None:
    def given(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError(name)

    namespace: Any = AdaptedBackend("own", "Own", np, functions={name: given}).namespace()
    module, _, function = name.rpartition(".")
    call = getattr(getattr(namespace, module) if module else namespace, function)
    arrays = [namespace.asarray(np.eye(2))] * (2 if name == "searchsorted" else 1)
    with pytest.raises(ZeroDivisionError, match=name):
        call(*arrays)


def losses(context: nn.Context, dynamic: bool) -> list[float]:
    """Losses of a small network while it is trained."""
    rng = np.random.default_rng(3)
    images, labels = rng.normal(size=(8, 1, 6, 6)), rng.integers(0, 3, (8, 1))
    found = []
    nn.clear_parameters()
    nn.seed(5)
    with nn.context_scope(context):
        x, t = nn.Variable.from_numpy_array(images), nn.Variable.from_numpy_array(labels)

        def build() -> nn.Variable:
            h = F.relu(PF.batch_normalization(PF.convolution(x, 4, (3, 3), name="c"), name="b"))
            return F.mean(F.softmax_cross_entropy(PF.affine(F.max_pooling(h, (2, 2)), 3, name="a"), t))

        solver = S.Momentum(lr=0.1)
        loss = build()
        solver.set_parameters(nn.get_parameters())
        for _ in range(6):
            with nn.auto_forward(dynamic):
                loss = build() if dynamic else loss
            if not dynamic:
                loss.forward(clear_no_need_grad=True)
            solver.zero_grad()
            loss.backward(clear_buffer=True)
            solver.update()
            found.append(float(loss.d))
    nn.clear_parameters()
    return found


@pytest.mark.parametrize("dynamic", [False, True])
def test_training_over_libraries_follows_the_reference(library: str, dynamic: bool) -> None:
    given = losses(nn.Context([f"{library}:float"]), dynamic)
    np.testing.assert_allclose(given, losses(nn.Context(["reference:float"]), dynamic), rtol=2e-4)
    assert given[-1] < given[0]


def test_the_library_says_what_it_leaves_to_the_host() -> None:
    bare = AdaptedBackend("bare", "Bare", SimpleNamespace(asarray=np.asarray, __name__="bare"))
    assert {"exp", "matmul", "linalg.det", "take"} <= set(bare.host_functions())
    assert AdaptedBackend("whole", "Whole", np).host_functions() == ("diagonal", "einsum", "tile", "unique")
