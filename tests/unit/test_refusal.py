"""Messages about wrong arguments that nobody has checked, and exceptions that pass as the caller raised them."""

from inspect import signature

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.initializer as I
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import ArgumentError, DTypeError, NNCoreError, ShapeError, SignatureError

X = (2, 3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: PF.affine([1, 2], 3), r"affine: inp must be Variable or NdArray, got \[1, 2\]"),
        (lambda: PF.depthwise_convolution("x", (3,)), "depthwise_convolution: inp must be Variable or NdArray, got 'x'"),
        (lambda: PF.convolution(nn.Variable((1, 2, 4, 4)), 2, (3, 3), group=0), "convolution: the arguments must fit"),
        (lambda: PF.multi_head_attention(1.0, 2.0, 3.0, 1), "multi_head_attention: .* got 1.0"),
        (lambda: F.layer_normalization(1.5, None, None), "layer_normalization: input x must be"),
        (lambda: F.relu(nn.Variable(X), outputs=["y"]), "relu: outputs must be a list of Variables or NdArrays, got"),
        (lambda: F.relu(nn.NdArray(X), outputs={0: 1}), "relu: outputs must be a list of Variables or NdArrays, got"),
        (lambda: S.Sgd().set_parameters(nn.Variable(X)), "set_parameters: param_dict must be Variables by name, a module"),
        (lambda: S.Sgd(10**400), "lr must be a number"),
        (lambda: nn.Variable(X) * 10**400, "mul: a number must fit into 64 bits"),
        (lambda: I.UniformInitializer(lim=np.zeros((2, 3))), "lim must hold two numbers"),
        (lambda: nn.Sequential((1,)), r"Sequential: args\[0\] must be a module, a function or \(name, layer\)"),
        (lambda: nn.forward_all("ab"), "forward_all: variables must be a sequence of Variables, got one with"),
        (lambda: nn.Variable(X)[::0], "the step of a slice must not be zero"),
        (lambda: nn.ModuleDict(np.ones(3)), "modules must be"),
        (lambda: PF.sync_batch_normalization(nn.Variable((2, 4)), 3), "comm must be Communicator or None, got 3"),
        (lambda: nn.NdArray(X) >= 10**400, "ge: a number must fit into 64 bits"),
        (lambda: nn.Variable(X) // 10**400, "a number must fit into 64 bits"),
        (lambda: nn.NdArray(X).fill(10**400), "fill: a number must fit into 64 bits"),
        (lambda: nn.Variable(X, need_grad=True).apply(need_grad=np.zeros(2)), "need_grad: must be True or False"),
        (lambda: nn.set_auto_forward(np.zeros(2)), "auto_forward: must be True or False"),
        (lambda: nn.forward_all([[1]]), r"forward_all: variables must be a sequence of Variables, got one with \[1\]"),
        (lambda: F.exp(nn.Variable(X)).forward(clear_buffer=np.zeros(2)), "forward: clear_buffer must be of the type bool"),
        (lambda: F.exp(nn.Variable(X)).forward(function_pre_hook=3), "hook: must be callable or None, got 3"),
        (lambda: nn.set_function_post_hook("k", 1), "hook: must be callable or None, got 1"),
        (lambda: nn.Variable(X).apply(parent=(1,)), "parent: must be a Function or None"),
        (lambda: nn.Variable(X).backward(communicator_callbacks=3), "communicator_callbacks must have"),
        (lambda: I.calc_normal_std_he_forward(-3, 2), "calc_normal_std_he_forward: the arguments must fit each other"),
        (lambda: nn.ModuleDict(modules=("a",)), "update: modules must be"),
        (lambda: nn.NdArray(X).bool_fill(nn.Variable(X), 1), "bool_fill: mask must be of the type NdArray"),
    ],
)
def test_what_nobody_checked_is_an_argument_error_that_names_the_argument(call, text):
    with pytest.raises(ArgumentError, match=text):
        call()


def test_comparisons_with_arrays_of_other_shapes_are_shape_errors():
    with pytest.raises(ShapeError, match=r"equal: arrays must fit each other, got shapes .* broadcast together"):
        nn.NdArray(X) == np.zeros(2)  # noqa: B015


def test_indices_that_do_not_fit_are_shape_errors():
    x, i, j = nn.Variable((4, 4)), nn.Variable((2,)), nn.Variable((3,))
    with pytest.raises(ShapeError, match="getitem: indices must be broadcast to one shape"):
        x[i, j]


def test_exceptions_of_the_caller_stay_what_they_are():
    def fail(*_):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        PF.affine(nn.Variable(X), 3, w_init=fail)
    y = F.exp(nn.Variable(X))
    with pytest.raises(KeyError, match="mine"):
        y.forward(function_pre_hook=fail)


def computed():
    y = F.sum(nn.Variable(X, need_grad=True))
    y.forward()
    return y


@pytest.mark.parametrize("error", [KeyError, TypeError, ArgumentError])
@pytest.mark.parametrize(
    "call",
    [
        lambda fail: PF.affine(nn.Variable(X), 3, w_init=fail),
        lambda fail: F.exp(nn.Variable(X)).forward(function_pre_hook=fail),
        lambda fail: computed().backward(function_pre_hook=fail),
        lambda fail: F.exp(nn.Variable(X)).visit(fail),
    ],
)
def test_exceptions_of_the_caller_keep_their_cause(call, error):
    cause = OSError("the disk")

    def fail(*_):
        raise error("mine") from cause

    with pytest.raises(error, match="mine") as caught:
        call(fail)
    assert caught.value.__cause__ is cause


@pytest.mark.parametrize("flag", [1, np.bool_(True), np.int64(1), True])
def test_flags_take_what_stands_for_a_boolean(flag):
    x = nn.Variable(X)
    x.need_grad = x.persistent = x.recompute = flag
    assert (x.need_grad, x.persistent, x.recompute) == (True, True, True)


@pytest.mark.parametrize("run", [nn.Variable.forward, lambda y: nn.forward_all([y]), lambda y: (y.forward(), y.backward())])
def test_a_fault_of_a_pass_is_not_called_a_wrong_argument(run, monkeypatch):
    def fail(*_):
        raise ValueError("cannot reshape array of size 1 into shape (2,2)")

    y = F.exp(nn.Variable(X, need_grad=True))
    monkeypatch.setattr("nn_core.engine.graph.compile.Builder.finish", fail)
    with pytest.raises(ValueError, match=r"^cannot reshape array") as caught:
        run(y)
    assert not isinstance(caught.value, ArgumentError)
    monkeypatch.undo()
    with pytest.raises(ArgumentError, match="forward: clear_buffer must be of the type bool"):
        y.forward(clear_buffer=np.zeros(2))


ODD = [np.array([1, 2]), np.zeros((2, 0)), np.array(["a", "b"]), np.array([None, 1]), np.zeros(2, [("a", "f4")])]
ARGUMENTS = [
    (name, argument)
    for name in sorted(dir(F))
    if callable(getattr(F, name)) and getattr(getattr(F, name), "__module__", "").startswith("nn_core.functions")
    for argument, parameter in signature(getattr(F, name)).parameters.items()
    if parameter.default is not parameter.empty
]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: f"{odd.dtype.str}{odd.shape}")
def test_arrays_in_the_place_of_settings_are_taken_or_refused(odd):
    """No truth value and no comparison is asked of a value before its kind is known."""
    x = nn.Variable.from_numpy_array(np.ones((2, 3, 4, 4), np.float32))
    for name, argument in ARGUMENTS:
        function = getattr(F, name)
        required = [p for p in signature(function).parameters.values() if p.default is p.empty and "VAR" not in p.kind.name]
        given = {p.name: x if n == 0 or p.name[0] in "xwbgm" else 1 for n, p in enumerate(required)}
        try:
            function(**given, **{argument: odd})
        except (NNCoreError, TypeError):
            continue
        except Exception as error:
            raise AssertionError(f"{name}({argument}={odd!r})") from error


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.shift(nn.Variable(X), border_mode=np.array([1, 2])), "border_mode must be one of 'nearest', "),
        (lambda: F.max(nn.Variable(X), only_index=np.zeros(2)), "only_index: must be True or False"),
        (lambda: F.randn(shape=X, outputs=np.array(1)), "randn: outputs must be a list of Variables or NdArrays, got"),
        (lambda: F.relu(nn.Variable(X), outputs=[]), r"relu: outputs must be a list of Variables or NdArrays, got \[\]"),
        (lambda: nn.NdArray(X)[[[1, 2], [3]], nn.NdArray(X)], "getitem: an index must be an array or a number, got"),
        (lambda: S.Sgd().set_state({"name": np.zeros(2)}), "Sgd.set_state: the state, at 'name', must be a text, got"),
        (lambda: nn.Variable(X) < 10**400, "lt: a number must fit into 64 bits"),
        (lambda: nn.get_parameters(path=np.zeros(2)), "get_parameters: path must be of the type str, got ndarray"),
        (lambda: nn.Variable(X).unlinked(need_grad=np.zeros(2)), "need_grad: must be True or False"),
        (lambda: S.Adam().clip_grad_by_global_norm(-2), "clip_grad_by_global_norm: clip_norm must be at least 0, got -2"),
        (lambda: S.Sgd().set_state({}), r"Sgd.set_state: the state must be what get_state\(\) gives, got one with KeyError"),
    ],
)
def test_arrays_where_a_setting_belongs_are_refused_by_name(call, text):
    with pytest.raises(ArgumentError, match=text):
        call()


def test_values_that_are_no_numbers_are_refused_by_dlpack():
    with pytest.raises(DTypeError, match=r"from_dlpack: numbers must be such as NumPy has, got array\('2020-01-01'"):
        nn.NdArray.from_dlpack(np.array("2020-01-01", "datetime64[D]"))


def test_a_number_beyond_the_dtype_fills_with_infinity():
    x = nn.NdArray((2,))
    x.cast("float16")
    x.fill(1e308)
    assert (x * 1).data.tolist() == [np.inf, np.inf]


def test_matrices_whose_leading_axes_do_not_fit_are_refused_by_their_shapes():
    with pytest.raises(ShapeError, match=r"matmul: leading axes must fit by broadcasting, got \(2, 3, 4\) and \(5, 4, 2\)"):
        nn.Variable((2, 3, 4)) @ nn.Variable((5, 4, 2))


def test_arrays_that_no_memory_holds_are_refused_by_their_shape():
    with pytest.raises(ShapeError, match=r"shape: an array must have at most 2\*\*48 elements, got \(4611686018427387904,\)"):
        nn.NdArray((2**62,))


def test_a_variable_shows_itself_whatever_its_name_and_values_are():
    v = nn.Variable((2,))
    v.name = v
    v.data.fill(1e308)
    assert "inf" in repr(v)


def test_the_object_of_a_method_is_not_counted():
    with pytest.raises(SignatureError, match=r"^Variable: must get at most 3 positional arguments, got 4"):
        nn.Variable((2,), None, "x", 4)
