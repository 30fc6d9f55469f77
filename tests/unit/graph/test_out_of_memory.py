"""Arrays that do not fit into memory: the error names the function, shapes and a remedy, and leaves everything as it was."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.engine.arrays import synced
from nn_core.engine.dispatch.registry import GRADIENTS, spec_of
from nn_core.engine.graph.call import PreparedKernel, forget
from nn_core.engine.graph.plan import Plan
from nn_core.engine.graph.replay import Template
from nn_core.errors import HostMemoryError
from nn_core.operators.reference.registry import KERNELS

#: More bytes than a process can address.
_LONG = 2**23


@pytest.fixture(params=["cpu", "reference"], autouse=True)
def backend(request):
    with nn.context_scope(nn.Context([request.param])):
        yield


def _require_named(error):
    text = str(error.value)
    assert text.startswith("broadcast: its results must fit into the memory of the host, got inputs of shape (1, 8388608)")
    assert "hint: take a smaller batch" in text
    assert isinstance(error.value, MemoryError)


def test_a_graph_is_as_before():
    x = nn.Variable((1, _LONG))
    y = F.broadcast(x, (_LONG, _LONG))
    z = x * 2
    x.d = 3
    z.forward()
    with pytest.raises(HostMemoryError) as error:
        y.forward()
    _require_named(error)
    assert "results (8388608, 8388608)" in str(error.value)
    assert z.d[0, 0] == 6
    assert x.d[0, -1] == 3
    with pytest.raises(HostMemoryError):
        nn.forward_all([z, y])
    z.forward()
    assert z.d[0, -1] == 6


@pytest.mark.parametrize("dynamic", [False, True])
def test_calls_that_compute_at_once(dynamic):
    x = nn.Variable((1, _LONG)) if dynamic else nn.NdArray((1, _LONG))
    with nn.auto_forward(dynamic), pytest.raises(HostMemoryError) as error:
        F.broadcast(x, (_LONG, _LONG))
    _require_named(error)
    with nn.auto_forward(dynamic):
        small = F.broadcast(x, (2, _LONG))
    assert small.shape == (2, _LONG)


def _fail(*_, **__):
    raise MemoryError("Unable to allocate 748. MiB for an array with shape (14000, 14000) and data type float32")


def _require_named_tanh(error, what):
    text = str(error.value)
    assert text.startswith(f"tanh: {what} must fit into the memory of the host, got inputs of shape (2, 3)")
    assert "Unable to allocate 748. MiB" in text
    assert "hint: take a smaller batch" in text


@pytest.mark.parametrize("mode", ["static", "merged", "hooks", "dynamic", "compiled"])
def test_gradients_that_do_not_fit_are_named_and_leave_the_others_as_they_were(mode, monkeypatch):
    x = nn.Variable.from_numpy_array(np.ones((2, 3)), need_grad=True)
    w = nn.Variable.from_numpy_array(np.ones((3, 2)), need_grad=True)
    hooks = {"function_pre_hook": lambda node: None} if mode == "hooks" else {}
    with nn.context_scope(nn.Context(["reference"])):
        for _ in range({"merged": 3, "compiled": 4}.get(mode, 0)):
            _step(x, w, mode in ("dynamic", "compiled"), hooks)
        monkeypatch.setitem(GRADIENTS, "Tanh", _fail)
        forget()
        with pytest.raises(HostMemoryError) as error:
            _step(x, w, mode in ("dynamic", "compiled"), hooks)
    _require_named_tanh(error, "its gradients")
    assert not x.g.any()


def _step(x, w, dynamic, hooks):
    x.grad.zero()
    w.grad.zero()
    with nn.auto_forward(dynamic):
        y = F.sum(F.affine(F.tanh(x), w))
    y.forward()
    y.backward(clear_buffer=dynamic, **hooks)


@pytest.mark.parametrize("hooks", [{}, {"function_post_hook": lambda node: None}], ids=["plain", "hooks"])
@pytest.mark.parametrize("runs", [0, 2])
def test_kernels_that_find_no_memory_are_named(runs, hooks, monkeypatch):
    fails = []
    monkeypatch.setitem(KERNELS, "Tanh", lambda xp, x: _fail() if fails else xp.tanh(x))
    forget()
    with nn.context_scope(nn.Context(["reference"])):
        x = nn.Variable((2, 3))
        y = F.tanh(x) * 2
        for _ in range(runs):
            y.forward()
        fails.append(True)
        with pytest.raises(HostMemoryError) as error:
            y.forward(**hooks)
        _require_named_tanh(error, "its results")
        fails.clear()
        y.forward()
    assert not y.d.any()
    forget()


def test_gradient_kernels_of_a_dynamic_graph_are_named(monkeypatch):
    monkeypatch.setattr(PreparedKernel, "backward_for", lambda *_: _fail)
    forget()
    x = nn.Variable.from_numpy_array(np.ones((2, 3)), need_grad=True)
    with nn.auto_forward():
        y = F.tanh(x)
    with pytest.raises(HostMemoryError) as error:
        y.backward(clear_buffer=True)
    _require_named_tanh(error, "its gradients")
    forget()


def test_steps_that_were_merged_name_the_functions_of_the_pass(monkeypatch):
    y = F.tanh(nn.Variable((2, 3))) * 2
    for _ in range(2):
        y.forward()
    monkeypatch.setattr(Plan, "_steps_now", lambda plan: [_fail])
    message = (
        "^forward: what functions work with must fit into the memory of the host, got a pass of tanh, mul_scalar\n  Unable"
    )
    with pytest.raises(HostMemoryError, match=message):
        y.forward()


def test_compiled_passes_of_dynamic_graphs_name_their_functions(monkeypatch):
    x = nn.Variable.from_numpy_array(np.ones((2, 3)), need_grad=True)
    for step in range(5):
        if step == 4:
            monkeypatch.setattr(Template, "run", _fail)
        x.grad.zero()
        with nn.auto_forward():
            y = F.tanh(x) * 2
        with pytest.raises(HostMemoryError, match=r"backward: what .* got a pass of ") if step == 4 else nullcontext():
            y.backward(clear_buffer=True)
    assert not x.g.any()


def test_parameters_are_named_and_not_made():
    message = r"the new parameter 'long/affine/W' must fit into the memory of the host, got the shape \(8388608, 8388608\)\n  "
    with nn.parameter_scope("", {}):
        with nn.parameter_scope("long"), pytest.raises(HostMemoryError, match=message):
            PF.affine(nn.Variable((1, _LONG)), _LONG)
        assert not nn.get_parameters(grad_only=False)


def test_arrays_name_their_shape():
    x = nn.NdArray((_LONG, _LONG))
    with pytest.raises(HostMemoryError, match=r"memory: .* got 262144.0 GiB for \(8388608, 8388608\) of float32"):
        x.data  # noqa: B018
    x.fill(2)
    with pytest.raises(HostMemoryError):
        x.data = np.ones(1)
    assert x.shape == (_LONG, _LONG)


@pytest.fixture
def little_memory(monkeypatch):
    """Let no array of a megabyte be made any more, from the call of what it returns on."""

    def empty(length, dtype):
        if length > 2**20:
            raise MemoryError
        return np.empty(length, dtype)

    return lambda: monkeypatch.setattr(synced, "np", SimpleNamespace(**{**vars(np), "empty": empty}))


def test_passes_that_find_no_memory_for_gradients_of_leaves_are_named(little_memory):
    x = nn.Variable.from_numpy_array(np.ones((600, 600)), need_grad=True)
    y = F.sum(x * x)
    y.forward()
    little_memory()
    message = (
        r"mul2: its gradients must fit .* got inputs .*\n  memory: .* for \(600, 600\) of float32\n  hint: take a smaller"
    )
    with pytest.raises(HostMemoryError, match=message):
        y.backward()
    assert y.d == 360_000


@pytest.mark.parametrize("hooks", [{}, {"update_pre_hook": lambda: None}], ids=["plain", "hooks"])
def test_updates_that_find_no_memory_for_their_states_change_nothing(hooks, little_memory):
    parameters = {
        name: nn.Variable.from_numpy_array(np.ones(size), need_grad=True) for name, size in (("a", 3), ("b", 360_000))
    }
    for parameter in parameters.values():
        parameter.g = 1
    solver = S.Adam()
    solver.set_parameters(parameters)
    little_memory()
    with pytest.raises(HostMemoryError, match=r"update: the arrays .*\n  memory: .* for \(360000,\) of float32\n  hint: "):
        solver.update(**hooks)
    if not hooks:
        assert all((parameter.d == 1).all() for parameter in parameters.values())
        assert [state.t for state in solver.get_states().values()] == [0, 0]


def test_files_that_do_not_fit_are_refused_by_name(tmp_path):
    with (tmp_path / "long.safetensors").open("wb") as file:
        header = b'{"a":{"dtype":"F32","shape":[2097152,1048576],"data_offsets":[0,8796093022208]}}'
        file.write(len(header).to_bytes(8, "little") + header)
        try:
            file.truncate(8 + len(header) + 2**43)
        except OSError:
            pytest.skip("this file system has no file of 8 TiB with nothing in it")
    with (
        nn.parameter_scope("", {}),
        pytest.raises(HostMemoryError, match=r"long\.safetensors: the file must fit .*, got \d+ bytes\n  hint: free"),
    ):
        nn.load_parameters(str(tmp_path / "long.safetensors"))


class _Scarce:
    """The allocator of arrays, of which one call can fail."""

    def __init__(self):
        self.calls, self.fails_at = 0, 0

    def empty(self, length, dtype):
        self.calls += 1
        if self.calls == self.fails_at:
            raise MemoryError
        return np.empty(length, dtype)

    def during(self, work, fails_at=0):
        """Count the calls that some work makes, of which one may fail."""
        self.calls, self.fails_at = 0, fails_at
        try:
            work()
        finally:
            self.fails_at = 0
        return self.calls


def _joined(arrange):
    def build(x):
        h = F.tanh(x)
        return arrange(h, x)

    return build


_GRAPHS = {
    "concatenate": _joined(lambda h, x: F.concatenate(h, x, axis=0)),
    "concatenate leaves": _joined(lambda h, x: F.concatenate(x, x, axis=1)),
    "stack": _joined(lambda h, x: F.stack(h, x, h)),
    "broadcast": _joined(lambda h, x: F.broadcast(F.reshape(x, (1, 3, 4)), (5, 3, 4))),
    "tile": _joined(lambda h, x: F.tile(x, (2, 3)) * 2),
    "pad": _joined(lambda h, x: F.pad(F.transpose(x, (1, 0)), (1, 1, 2, 2))),
    "split": _joined(lambda h, x: F.add_n(*F.split(h, axis=1), F.sum(x, axis=1))),
    "affine": _joined(lambda h, x: F.affine(x, F.transpose(h, (1, 0)))),
    "normalization": _joined(lambda h, x: F.layer_normalization(x, None, None) + h),
    "one hot": _joined(lambda h, x: F.sum(F.one_hot(F.reshape(F.argmax(x, axis=1), (3, 1)), (4,)) * x)),
    "recompute": _joined(lambda h, x: F.relu(F.reshape(h, (4, 3))) * 3),
}


@pytest.mark.parametrize("flags", [{}, {"clear_no_need_grad": True}, {"clear_buffer": True}], ids=str)
@pytest.mark.parametrize("name", _GRAPHS)
def test_each_array_of_a_static_graph_that_does_not_fit_is_named(name, flags, monkeypatch):
    """Let each allocation of a pass fail, of results, copies of inputs or gradients; afterwards the graph computes."""
    scarce = _Scarce()
    monkeypatch.setattr(synced, "np", SimpleNamespace(**{**vars(np), "empty": scarce.empty}))
    values = np.linspace(-1, 1, 12).reshape(3, 4)  # float64, which backends copy

    def made():
        x = nn.Variable((3, 4), need_grad=True)
        x.d = values
        x.grad.zero()
        return x, _GRAPHS[name](x)

    def forward(y):
        y.forward(**flags)

    def backward(y):
        y.backward(clear_buffer="clear_buffer" in flags)

    passes = [forward] if flags.get("clear_buffer") else [forward, backward]
    n_failed = 0
    for done, failing in enumerate(passes):
        x, expected = made()
        for step in passes[:done]:
            step(expected)
        count = scarce.during(lambda: failing(expected))  # noqa: B023  # called at once
        for fails_at in range(1, count + 1):
            x, y = made()
            functions = set()
            y.visit(lambda function: functions.add(function.info.type_name))  # noqa: B023  # called at once
            for step in passes[:done]:
                step(y)
            with pytest.raises(HostMemoryError) as error:
                scarce.during(lambda: failing(y), fails_at)  # noqa: B023  # called at once
            _require_function_named(error, functions)
            assert (x.d.astype(np.float32) == values.astype(np.float32)).all()
            assert not x.g.any()
            for step in passes[done:]:
                step(y)
            assert (y.d == expected.d).all()
            n_failed += 1
    assert n_failed


def _require_function_named(error, functions):
    name, _, text = str(error.value).partition(": ")
    assert name in {spec_of(function).api for function in functions}, error.value
    assert " must fit into the memory of the host, got inputs of shape (" in text
    assert "memory: an array must fit into what the host has left" in text
    assert "hint: take a smaller batch" in text


def test_values_of_another_type_that_do_not_fit_are_named_by_their_reader(monkeypatch):
    """Read the number in a leaf, which is written down when a pass of a graph that has run reads it."""
    scarce = _Scarce()
    monkeypatch.setattr(synced, "np", SimpleNamespace(**{**vars(np), "empty": scarce.empty}))
    x = nn.Variable((3, 4))
    x.d = 1
    y = F.concatenate(F.tanh(x), x)
    y.forward()
    x.data = nn.NdArray((3, 4))
    x.d = np.ones((3, 4))
    with pytest.raises(HostMemoryError, match=r"^(tanh|concatenate): copies of its inputs must fit"):
        scarce.during(y.forward, 1)
    y.forward()
    assert (y.d[:, 4:] == 1).all()
