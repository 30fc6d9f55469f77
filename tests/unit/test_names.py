"""Names that programs expect in the package, and the modules that NNabla's names lead to."""

import difflib
import inspect
import pkgutil
import re
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core import backward_functions, function_bases
from nn_core.compat import host
from nn_core.errors import ArgumentError, GraphError, UnknownAttributeError

#: Names of the package that are a function, or the logger, and a submodule; the former is what programs want.
FUNCTIONS = {"auto_forward", "grad", "logger", "recompute"}


def leaf(values: object) -> nn.Variable:
    return nn.Variable.from_numpy_array(np.array(values, np.float32), need_grad=True)


# -- the package -------------------------------------------------------------------------------------------------------


def test_submodules_are_attributes_of_the_package() -> None:
    names = {module.name for module in pkgutil.iter_modules(nn.__path__) if not module.name.startswith("_")}
    assert {"functions", "monitor", "parameter", "solvers", "utils"} <= names
    for name in names - FUNCTIONS:
        assert isinstance(getattr(nn, name), ModuleType), name
    for name in FUNCTIONS:
        assert not isinstance(getattr(nn, name), ModuleType), name


@pytest.mark.parametrize("package", ["utils", "experimental"])
def test_submodules_of_packages_are_attributes(package: str) -> None:
    names = [module.name for module in pkgutil.iter_modules(getattr(nn, package).__path__)]
    assert names
    for name in names:
        assert getattr(getattr(nn, package), name).__name__ == f"nn_core.{package}.{name}"
    with pytest.raises(UnknownAttributeError, match=f"module 'nn_core.{package}' has no attribute 'cats'"):
        _ = getattr(nn, package).cats


def test_submodules_are_imported_when_they_are_used() -> None:
    program = (
        "import sys, nn_core as nn; late = {'functions', 'initializer', 'monitor', 'parametric_functions', 'solvers'};"
        "assert not late & {name.split('.')[1] for name in sys.modules if name.startswith('nn_core.')};"
        "nn.solvers.Sgd; assert 'nn_core.solvers' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_short_names_of_modules() -> None:
    from nn_core import PF, F, S

    assert [module.__name__ for module in (F, PF, S)] == [
        "nn_core.functions",
        "nn_core.parametric_functions",
        "nn_core.solvers",
    ]
    assert {"F", "PF", "S"} <= set(dir(nn))


def test_names_that_do_not_exist_are_refused() -> None:
    assert not hasattr(nn, "nothing")
    with pytest.raises(AttributeError, match="module 'nn_core' has no attribute 'nothing'") as caught:
        _ = nn.nothing
    assert caught.value.name == "nothing" and caught.value.obj is nn
    with pytest.raises(AttributeError, match=r"module 'nn_core.random' has no attribute 'nothing'"):
        _ = nn.random.nothing


def test_no_suggestion_is_looked_for_where_none_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools ask every object for names of protocols, thousands of times while tests are collected."""

    def refuse(*arguments: object) -> None:
        raise AssertionError("a suggestion was looked for")

    monkeypatch.setattr(difflib, "get_close_matches", refuse)
    assert "Variable" in dir(nn)
    assert not [module for module in (nn, F, nn.parameter) if hasattr(module, "__wrapped__")]
    with pytest.raises(AssertionError, match="a suggestion"):
        hasattr(nn, "Variabel")


# -- backward functions ------------------------------------------------------------------------------------------------


def test_the_registry_builds_gradients() -> None:
    x, w = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf(np.eye(2, 3))
    y, dy = F.affine(x, w), leaf(np.ones((2, 3)))
    shapes = [x.shape, w.shape], [y.shape]
    gradients = backward_functions.registry["Affine"]([dy], [x, w], shapes[0], [None], shapes[1], base_axis=1)
    assert isinstance(gradients, tuple)
    nn.forward_all(gradients)
    assert [g.d.tolist() for g in gradients] == [[[1.0, 1.0]] * 2, [[4.0] * 3, [6.0] * 3]]
    with pytest.raises(ArgumentError, match="affine_backward: inputs must be Variables, got NdArray"):
        backward_functions.registry["Affine"]([dy], [x.data, w], shapes[0], [y], shapes[1])


def test_a_single_gradient_is_given_alone_and_absent_data_is_none() -> None:
    x, dy = leaf([0.5, 1.0]), leaf([1.0, 2.0])
    y = F.tanh(x)
    dx = backward_functions.registry["Tanh"]([dy], [None], [x.shape], [y], [y.shape])
    dx.forward()
    assert dx.d == pytest.approx((1 - np.tanh(x.d) ** 2) * dy.d)


def test_gradients_that_read_what_the_function_has_kept_take_it_from_the_graph() -> None:
    x, dy = leaf(np.ones(64)), leaf(np.ones(64))
    y = F.dropout(x, 0.5)
    dx = backward_functions.registry["Dropout"]([dy], [x], [x.shape], [y], [y.shape], p=0.5)
    nn.forward_all([y, dx])
    assert dx.d.tolist() == y.d.tolist() and set(y.d.tolist()) == {0.0, 2.0}
    with pytest.raises(GraphError, match="dropout_backward: outputs must be those of a function Dropout in a graph"):
        backward_functions.registry["Dropout"]([dy], [x], [x.shape], [leaf(np.ones(64))], [y.shape], p=0.5)


def test_gradients_of_the_registry_are_those_of_grad() -> None:
    rng = np.random.RandomState(0)
    x, beta, gamma = leaf(rng.normal(size=(4, 3))), leaf(np.zeros((1, 3))), leaf(np.ones((1, 3)))
    labels = nn.Variable.from_numpy_array(np.array([[0], [2], [1], [1]]))
    statistics = [nn.Variable.from_numpy_array(np.full((1, 3), v)) for v in (0.0, 1.0)]
    for y in (
        F.softmax_cross_entropy(x, labels),
        F.batch_normalization(x, beta, gamma, *statistics),
        F.batch_normalization(x, None, gamma, *statistics),
        F.affine(x, leaf(np.ones((3, 2)))),
        F.concatenate(x, gamma, axis=0),
        F.max_pooling(F.reshape(x, (1, 1, 4, 3)), (2, 3)),
        F.div2(x, gamma),
    ):
        parent, dy = y.parent, leaf(rng.normal(size=y.shape))
        inputs = parent.inputs
        function = backward_functions.registry[parent.name]
        given = function([dy], inputs, [v.shape for v in inputs], [y], [y.shape], **parent.args)
        given = given if isinstance(given, tuple) else (given,)
        wanted = [place for place, v in enumerate(inputs) if v.need_grad]
        expected = nn.grad(y, [inputs[place] for place in wanted], dy)
        nn.forward_all([y, *[given[place] for place in wanted], *expected])
        for place, other in zip(wanted, expected, strict=True):
            np.testing.assert_allclose(given[place].d, other.d, rtol=1e-5, atol=1e-6)


def test_inputs_that_are_left_out_are_known_from_the_graph() -> None:
    x, gamma, dy = leaf([[1.0, 2.0, 4.0]]), leaf([[2.0, 1.0, 3.0]]), leaf([[1.0, 2.0, 0.0]])
    y = F.layer_normalization(x, None, gamma)
    function, shapes = backward_functions.registry["LayerNormalization"], [x.shape, gamma.shape]
    gradients = function([dy], [x, gamma], shapes, [y], [y.shape], batch_axis=[0])
    nn.forward_all([y, *gradients])
    y.backward(dy.data)
    assert [g.d for g in gradients] == [pytest.approx(x.g), pytest.approx(gamma.g)]
    with pytest.raises(ArgumentError, match="layer_normalization_backward: inputs must be x, beta, gamma, got 2 values"):
        function([dy], [x, gamma], shapes, [nn.Variable(y.shape)], [y.shape], batch_axis=[0])


def test_the_registry_is_a_mapping() -> None:
    registry = backward_functions.registry
    assert "Affine" in registry and "Arange" not in registry and len(list(registry)) == len(registry)
    assert list(inspect.signature(registry["ReLU"]).parameters)[:5] == [
        "grad_inputs",
        "inputs",
        "input_shapes",
        "outputs",
        "output_shapes",
    ]
    with pytest.raises(KeyError, match="Nothing"):
        registry["Nothing"]
    with pytest.raises(KeyError):
        del registry["ReLU"]  # there is no other gradient to go back to
    own = lambda grads, *_, **settings: [grads[0] * 5]  # noqa: E731
    x = leaf([1.0])
    registry["ReLU"] = own
    try:
        assert registry["ReLU"] is own
        (dx,) = nn.grad(F.relu(x), x)
        dx.forward()
        assert dx.d.tolist() == [5.0]
    finally:
        del registry["ReLU"]
    assert registry["ReLU"] is not own


# -- function_bases ----------------------------------------------------------------------------------------------------


def test_function_bases_have_the_arguments_of_the_specification() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = function_bases.sum(x, axes=[1], keep_dims=True, n_outputs=-1)
    y.forward()
    assert y.d.tolist() == [[3.0], [7.0]]
    out = nn.NdArray((2, 2))
    function_bases.relu(x.data, outputs=[out])
    assert out.data.tolist() == x.d.tolist()
    assert str(inspect.signature(function_bases.sum)) == "(x, axes=None, keep_dims=None, *, n_outputs=-1, outputs=None)"
    assert function_bases.concatenate(x, x, axis=0).shape == (4, 2)
    assert "relu" in dir(function_bases)
    with pytest.raises(AttributeError, match=r"module 'nn_core.function_bases' has no operator 'nothing'"):
        _ = function_bases.nothing


def test_function_api_gives_the_current_context() -> None:
    context = nn.Context(["reference:half"])
    with nn.context_scope(context):
        assert function_bases.function_api(lambda ctx, value: (ctx, value))(3) == (context, 3)


# -- random numbers ----------------------------------------------------------------------------------------------------


def test_pseed_is_the_latest_seed_of_parameters() -> None:
    state, before = nn.random.prng.get_state(), nn.random.pseed
    try:
        nn.seed(5, set_function_seed=False)
        assert nn.random.pseed == 5
        nn.seed(4, set_parameter_seed=False)
        nn.random.set_function_seed(9)
        assert nn.random.pseed == 5
        nn.random.set_parameter_seed(7)
        assert nn.random.pseed == 7
    finally:
        nn.random.set_parameter_seed(before)
        nn.random.prng.set_state(state)


# -- the host as a device ----------------------------------------------------------------------------------------------


def test_the_order_of_array_classes_can_be_changed() -> None:
    assert nn.array_classes() == ["CpuCachedArray", "CpuArray"]
    nn.prefer_cached_array(False)
    assert nn.array_classes() == ["CpuArray", "CpuCachedArray"]
    nn.reset_array_preference()
    assert nn.array_classes() == ["CpuCachedArray", "CpuArray"]


def test_the_host_is_one_device() -> None:
    assert host.get_devices() == ["0"] and host.get_device_count() == 1
    host.device_synchronize(0)
    host.clear_memory_cache()
    with pytest.raises(ArgumentError, match=r"device_synchronize: device must be one of \['0'\], got 1"):
        host.device_synchronize(1)


def test_contexts_can_be_announced() -> None:
    known = list(nn.available_contexts)
    assert "reference" in known
    try:
        nn.add_available_context("acme")
        nn.add_available_context("acme")
        assert nn.available_contexts == [*known, "acme"]
    finally:
        nn.available_contexts[:] = known
    with pytest.raises(ArgumentError, match="add_available_context: ctx must be the name of a backend, got 3"):
        nn.add_available_context(3)


# -- dir() -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["functions", "parametric_functions", "solvers"])
def test_dir_lists_the_functions_and_nothing_else(module: str) -> None:
    listed = getattr(nn, module)
    names = [name for name in dir(listed) if "." not in name]
    assert set(listed.__all__) <= set(names)
    assert [name for name in names if name.startswith("_") or isinstance(getattr(listed, name), ModuleType)] == []


def test_dir_of_the_package_has_no_engine() -> None:
    names = set(dir(nn))
    assert {"Variable", "NdArray", "Module", "summary", "seed", "grad", "forward_all"} <= names
    modules = {name for name in names if isinstance(getattr(nn, name), ModuleType)}
    assert modules == {"F", "PF", "S"}
    assert names.isdisjoint({"TYPE_CHECKING", "import_module", "pkgutil", "sys", "util", "graph", "dispatch", "synced"})
    for name in names:
        assert hasattr(nn, name), name


def test_help_of_the_package_is_a_map() -> None:
    words = set(re.findall(r"\w+", nn.__doc__ or ""))
    assert set(nn._MODULES) <= words
    assert {"F", "PF", "S", "Variable", "NdArray", "Module", "training"} <= words


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        ("functions", "mse_loss", "squared_error"),
        ("functions", "linear", "affine"),
        ("functions", "conv2d", "convolution"),
        ("functions", "cross_entropy", "softmax_cross_entropy"),
        ("functions", "unsqueeze", "expand_dims"),
        ("functions", "reluu", "relu"),
        ("parametric_functions", "dense", "affine"),
        ("parametric_functions", "BatchNorm2d", "batch_normalization"),
        ("parametric_functions", "convoluton", "convolution"),
        ("solvers", "SGD", "Sgd"),
        ("solvers", "adam", "Adam"),
        ("initializer", "UniformInitialiser", "UniformInitializer"),
    ],
)
def test_other_words_of_the_field_are_hints(module: str, name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"{name}.*did you mean {meant!r}\\?"):
        getattr(getattr(nn, module), name)


def test_functions_looked_for_in_the_package_are_hints() -> None:
    for name, meant in (("Linear", "nn_core.layers.Linear"), ("Varable", "Variable"), ("Tensor", "Variable")):
        with pytest.raises(AttributeError, match=f"did you mean '{meant}'\\?"):
            getattr(nn, name)
