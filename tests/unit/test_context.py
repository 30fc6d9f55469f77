"""Contexts: what they accept, and who sees which."""

import copy
import pickle
import threading

import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core import context
from nn_core.communicators.communicator import Communicator
from nn_core.context import Context, context_scope, get_current_context, set_default_context
from nn_core.engine.runtime import installed
from nn_core.engine.runtime.context_values import Ambient
from nn_core.errors import ArgumentError, BackendNotFoundError, UnknownAttributeError
from nn_core.ext_utils import get_extension_context
from nn_core.settings import Settings


@pytest.fixture
def no_context(monkeypatch):
    monkeypatch.setattr(context, "_current", Ambient("context", None))


def test_a_context_shows_what_it_was_made_of():
    ctx = Context(["fast:half", "cpu"], array_class="Fast", device_id=1)
    assert ctx.backend == ["fast:half", "cpu:float"]
    assert (ctx.array_class, ctx.device_id) == ("Fast", "1")
    assert repr(ctx) == "Context(backend=['fast:half', 'cpu:float'], array_class='Fast', device_id='1')"


@pytest.mark.parametrize(
    ("type_config", "dtype"),
    [("float", "float32"), ("half", "float16"), ("bfloat16", "bfloat16"), ("double", "float64")],
)
def test_entries_name_the_dtype(type_config, dtype):
    ctx = Context([f"fast:{type_config}", "cpu"])
    assert ctx.entries == (("fast", dtype), ("cpu", "float32"))
    assert ctx.dtype == dtype


def test_contexts_are_equal_by_value():
    assert Context(["cpu"]) == Context(["cpu:float"])
    assert hash(Context(["cpu"])) == hash(Context(["cpu:float"]))
    assert Context(["cpu"]) != Context(["cpu:half"])
    assert Context(["cpu"]) != Context(["cpu"], device_id=1)
    assert Context(["cpu"]) != "cpu"
    ctx = Context(["cpu"])
    assert ctx == ctx


def test_changing_the_list_that_is_shown_changes_nothing():
    ctx = Context(["cpu"])
    ctx.backend.append("other:float")
    assert ctx.backend == ["cpu:float"]


def test_contexts_can_be_copied_and_pickled():
    ctx = Context(["fast:half"], "Fast", "3")
    assert pickle.loads(pickle.dumps(ctx)) == copy.deepcopy(ctx) == ctx


def test_replace_changes_what_is_given():
    ctx = Context(["fast:half"], "Fast", "3")
    assert ctx.replace(device_id=1) == Context(["fast:half"], "Fast", "1")
    assert ctx.replace(backend=["cpu"], array_class="") == Context(["cpu"], "", "3")


@pytest.mark.parametrize("entry", ["", ":float", "cpu:", "cpu:single", "cpu:float:1", 3])
def test_an_entry_of_another_form_is_refused(entry):
    with pytest.raises(ArgumentError, match=r"a backend must read '<name>:<float\|half\|bfloat16\|double>', got "):
        Context([entry])


def test_a_single_string_is_refused():
    with pytest.raises(ArgumentError, match="backend must be a list of strings, got 'cpu:float'"):
        Context("cpu:float")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("device_id", 1, Context(["cpu"], "Host", "1")),
        ("backend", ["fast:half", "cpu"], Context(["fast:half", "cpu"], "Host")),
        ("array_class", "Other", Context(["cpu"], "Other")),
    ],
)
def test_settings_of_a_context_that_the_program_made_are_assignable(name, value, expected):
    ctx = Context(["cpu"], "Host")
    setattr(ctx, name, value)
    assert ctx == expected and hash(ctx) == hash(expected)
    assert (ctx.entries, ctx.dtype, ctx.key) == (expected.entries, expected.dtype, expected.key)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("device_id", None, "device_id must be a whole number of at least 0"),
        ("backend", None, "backend must be a list of strings, got None"),
        ("backend", "cpu", "backend must be a list of strings, got 'cpu'"),
        ("array_class", None, "array_class must be a string, got None"),
    ],
)
def test_a_wrong_assignment_is_refused_and_changes_nothing(name, value, message):
    ctx = Context(["cpu"], "Host", 1)
    with pytest.raises(ArgumentError, match=message):
        setattr(ctx, name, value)
    assert ctx == Context(["cpu"], "Host", 1)


def test_an_unknown_setting_cannot_be_assigned():
    with pytest.raises(UnknownAttributeError, match=r"has no attribute 'device' to assign; did you mean 'device_id'\?"):
        Context(["cpu"]).device = "1"


def test_a_snapshot_refuses_assignment_with_a_hint():
    ctx = Context(["cpu"])
    held = ctx.snapshot()
    with pytest.raises(ArgumentError, match=r"(?s)assignment to device_id.*hint: set_default_context\(ctx.replace\(dev"):
        held.device_id = "1"
    ctx.device_id = "1"
    assert held == Context(["cpu"]) and held.snapshot() is held
    copied = copy.copy(held)
    copied.device_id = "2"
    assert (held.device_id, copied.device_id) == ("0", "2")


@pytest.mark.usefixtures("no_context")
def test_scopes_and_the_default_keep_snapshots():
    default, scoped = Context(["one"]), Context(["two"])
    set_default_context(default)
    with context_scope(scoped):
        default.device_id = scoped.device_id = 1
        assert get_current_context() == Context(["two"])
        with pytest.raises(ArgumentError, match="must not be assigned"):
            get_current_context().device_id = "1"
    assert get_current_context() == Context(["one"])


def test_whoever_keeps_a_context_keeps_a_snapshot():
    ctx = Context(["reference"])
    function, made = _Copy(ctx), nn.function.Affine(ctx, 1)
    with context_scope(ctx):
        computed = F.relu(nn.Variable((2,))).parent
    holders = [function.ctx, made.context, computed.context, Communicator(ctx).ctx, nn.explain("relu", ctx).context]
    ctx.device_id = 1
    assert holders == [Context(["reference"])] * len(holders)
    for held in holders:
        with pytest.raises(ArgumentError, match="must not be assigned"):
            held.device_id = 1


def test_the_context_of_an_extension_is_assignable_each_time():
    ctx = get_extension_context("reference")
    ctx.device_id = 1
    assert get_extension_context("reference").device_id == "0"


class _Copy(nn.PythonFunction):
    def forward_impl(self, inputs, outputs):
        outputs[0].d = inputs[0].d

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        pass


@pytest.mark.usefixtures("no_context")
def test_scopes_and_the_default():
    default, scoped = Context(["one"]), Context(["two"])
    set_default_context(default)
    with context_scope(scoped):
        assert get_current_context() is scoped.snapshot()
    assert get_current_context() is default.snapshot()


@pytest.mark.usefixtures("no_context")
def test_a_thread_sees_the_default_and_not_the_scope_of_another():
    set_default_context(Context(["one"]))
    seen = []
    with context_scope(Context(["two"])):
        thread = threading.Thread(target=lambda: seen.append(get_current_context()))
        thread.start()
        thread.join()
    assert seen == [Context(["one"])]


@pytest.mark.usefixtures("no_context")
def test_the_default_cannot_be_set_inside_a_scope():
    with (
        context_scope(Context(["cpu"])),
        pytest.raises(ArgumentError, match="must be called outside every context_scope"),
    ):
        set_default_context(Context(["cpu"]))


@pytest.mark.parametrize("function", [context_scope, set_default_context])
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (3, ArgumentError, "ctx must be a Context, or the name of a backend, got int"),
        ("referense", BackendNotFoundError, "did you mean 'reference'"),
        ("reference:floot", ArgumentError, "type_config: must be one of .*, got 'floot'"),
        ("reference:", ArgumentError, "type_config: must be one of .*, got ''"),
    ],
)
def test_only_contexts_and_names_of_backends_are_taken(function, given, error, message):
    with pytest.raises(error, match=message):
        function(given)


@pytest.mark.usefixtures("no_context")
def test_a_name_stands_for_the_context_that_the_backend_recommends():
    with context_scope("reference:bfloat16"):
        assert get_current_context() == get_extension_context("reference", type_config="bfloat16")
    set_default_context("reference")
    assert get_current_context() == get_extension_context("reference")


@pytest.mark.usefixtures("no_context")
@pytest.mark.parametrize(
    ("names", "backend"),
    [
        ((), ["reference:float"]),
        (("cpu", "other"), ["cpu:float", "reference:float"]),
        (("other",), ["reference:float"]),
    ],
)
def test_without_a_context_the_installed_names_decide(monkeypatch, names, backend):
    monkeypatch.setattr(installed, "entry_points", lambda: dict.fromkeys(names, ()))
    assert get_current_context().backend == backend
    assert Context().backend == backend


def test_without_autoload_the_reference_is_the_default(monkeypatch):
    monkeypatch.setattr(installed, "entry_points", lambda: {"cpu": ()})
    monkeypatch.setattr(installed, "settings", lambda: Settings(plugin_autoload=False))
    assert Context().backend == ["reference:float"]
