"""The walk along the priority list: who is asked, who wins, and what is said about it."""

import logging

import numpy as np
import pytest

from nn_core.context import Context
from nn_core.engine.dispatch.registry import Registry
from nn_core.engine.dispatch.report import fallback_report, forget_fallbacks, is_strict, strict_dispatch
from nn_core.engine.dispatch.resolve import resolve
from nn_core.errors import (
    BackendNotFoundError,
    BackendUnavailableError,
    FallbackError,
    KernelNotFoundError,
    PluginError,
)
from nn_core.operators.reference.plugin import ReferenceBackend
from nn_core.operators.spec.model import FunctionSpec, InputSpec, OutputSpec
from nn_core.typing import ArrayDesc, Call, Refusal

TANH = FunctionSpec("Tanh", "tanh", "activation", "", (InputSpec("x", ""),), (OutputSpec("y", ""),))
UNKNOWN = FunctionSpec("acme.Unknown", "acme_unknown", "activation", "", (InputSpec("x", ""),), (OutputSpec("y", ""),))


class FakeKernel:
    """A kernel that takes every call, or refuses every call for a reason."""

    def __init__(self, reason=""):
        self.reason = reason
        self.asked = []

    def refuse(self, call):
        self.asked.append(call.dtype)
        return Refusal(self.reason) if self.reason else None


class FakeBackend:
    """A backend over NumPy with the given kernels."""

    def __init__(self, name, kernels=(), array_class="Device"):
        self.name, self.array_class, self.kernels = name, array_class, dict(kernels)

    def namespace(self):
        return np


class FakePlugins:
    """Backends by name; an exception stands for a backend that cannot be used."""

    def __init__(self, **backends):
        self.backends = {"reference": ReferenceBackend(), **backends}
        self.registry = Registry()
        self.asked = []

    def backend(self, name):
        self.asked.append(name)
        found = self.backends.get(name, BackendNotFoundError(f"no {name}"))
        if isinstance(found, Exception):
            raise found
        return found

    def extra_kernels(self, backend, name):
        overlay, kernel = self.registry.overlay(backend, name), self.registry.kernel(backend, name)
        return [overlay] if overlay else [], [kernel] if kernel else []

    def array_class(self, name):
        return getattr(self.backends.get(name), "array_class", "")


@pytest.fixture(autouse=True)
def no_fallbacks_yet():
    forget_fallbacks()
    yield
    forget_fallbacks()


def resolved(plugins, backends, spec=TANH, args=None, array_class=""):
    """Resolve a call of `spec` on a vector."""

    def make_call(dtypes):
        arrays = (ArrayDesc((2,), dtypes.floating),), (ArrayDesc((2,), dtypes.parameter),)
        return Call(spec, args or {}, *arrays, dtypes.floating)

    return resolve(spec, args or {}, make_call, Context(backends, array_class), plugins)


def test_the_first_entry_wins_and_nobody_else_is_asked():
    kernel = FakeKernel()
    plugins = FakePlugins(fast=FakeBackend("fast", {"Tanh": kernel}), slow=FakeBackend("slow"))
    resolution = resolved(plugins, ["fast", "slow"])
    assert resolution.kernel is kernel
    assert resolution.backend is plugins.backends["fast"]
    assert resolution.refusals == ()
    assert plugins.asked == ["fast"]
    assert fallback_report() == ()


def test_each_entry_gets_the_call_in_its_own_dtype():
    fast, slow = FakeKernel("half is not for me"), FakeKernel()
    plugins = FakePlugins(fast=FakeBackend("fast", {"Tanh": fast}), slow=FakeBackend("slow", {"Tanh": slow}))
    resolution = resolved(plugins, ["fast:half", "slow:double"])
    assert (fast.asked, slow.asked) == (["float16"], ["float64"])
    assert resolution.call.dtype == "float64"
    assert resolution.refusals == (("fast:half", Refusal("half is not for me")),)


def test_a_backend_says_what_wide_arrays_hold():
    fast = FakeBackend("fast", {"Tanh": FakeKernel()})
    fast.parameter_dtypes = {"float16": "float32"}
    plugins = FakePlugins(fast=fast)
    found = [resolved(plugins, [f"fast:{name}"]).call.outputs[0].dtype for name in ("half", "double")]
    assert found == ["float32", "float64"]


def test_a_backend_may_be_listed_in_two_dtypes():
    class OnlySingle(FakeKernel):
        def refuse(self, call):
            return None if call.dtype == "float32" else Refusal("only float")

    plugins = FakePlugins(fast=FakeBackend("fast", {"Tanh": OnlySingle()}))
    assert resolved(plugins, ["fast:half", "fast:float"]).call.dtype == "float32"


def test_the_reference_runs_over_the_arrays_of_the_first_available_backend():
    plugins = FakePlugins(fast=FakeBackend("fast"), slow=FakeBackend("slow"))
    resolution = resolved(plugins, ["gone", "fast:double", "slow"])
    assert resolution.backend is plugins.backends["fast"]
    assert resolution.call.dtype == "float64"
    assert [entry for entry, _ in resolution.refusals] == ["gone:float", "fast:double", "slow:float"]
    y = np.empty(2)
    resolution.kernel.forward(resolution.call)(np.array([0.0, 1.0]), y)
    np.testing.assert_array_equal(y, np.tanh([0.0, 1.0]))


def test_a_kernel_that_a_plugin_brought_for_the_backend_serves():
    kernel = FakeKernel()
    plugins = FakePlugins(fast=FakeBackend("fast"))
    plugins.registry.add("acme", [UNKNOWN], {"fast": {"acme.Unknown": kernel}})
    assert resolved(plugins, ["fast"], UNKNOWN).kernel is kernel


def test_the_reference_named_in_the_list_is_a_choice_like_any_other():
    plugins = FakePlugins(fast=FakeBackend("fast", {"Tanh": FakeKernel()}))
    assert resolved(plugins, ["reference", "fast"]).backend is plugins.backends["reference"]
    assert fallback_report() == ()


@pytest.mark.parametrize(
    "error", [BackendNotFoundError("absent"), BackendUnavailableError("no device"), PluginError("broken")]
)
def test_a_backend_that_cannot_be_used_is_passed_over_with_its_reason(error):
    plugins = FakePlugins(fast=error, slow=FakeBackend("slow", {"Tanh": FakeKernel()}))
    assert resolved(plugins, ["fast", "slow"]).refusals == (("fast:float", Refusal(str(error))),)


def test_when_no_backend_can_be_used_the_error_of_the_first_is_raised():
    plugins = FakePlugins(fast=BackendUnavailableError("no device"), slow=PluginError("broken"))
    with pytest.raises(BackendUnavailableError, match="no device"):
        resolved(plugins, ["fast", "slow"])


def test_when_everyone_refuses_all_reasons_are_listed():
    plugins = FakePlugins(fast=FakeBackend("fast", {"acme.Unknown": FakeKernel("not today")}))
    with pytest.raises(KernelNotFoundError) as caught:
        resolved(plugins, ["fast:half", "reference"], UNKNOWN, {"axis": 1})
    entries = "fast:half, reference:float, reference over fast:half"
    assert str(caught.value).splitlines() == [
        f"acme_unknown: a backend of the context must run it, got refusals of {entries}",
        "  axis 1",
        "  fast:half: not today",
        "  reference:float: has no kernel for acme.Unknown",
        "  reference over fast:half: has no kernel for acme.Unknown",
    ]


def test_a_message_without_settings_has_no_line_for_them():
    with pytest.raises(KernelNotFoundError, match=r"got refusals of reference:float\n  reference:float: has no kernel"):
        resolved(FakePlugins(), ["reference"], UNKNOWN)


# The messages about it.


def test_leaving_the_device_family_is_logged_once_and_counted(caplog):
    plugins = FakePlugins(
        fast=FakeBackend("fast", {"Tanh": FakeKernel("no")}), slow=FakeBackend("slow", {"Tanh": FakeKernel()}, "Host")
    )
    with caplog.at_level(logging.DEBUG, "nn_core"):
        for _ in range(3):
            resolved(plugins, ["fast", "slow"])
    assert [record.getMessage() for record in caplog.records] == ["Tanh runs on slow:float instead of fast:float: no"]
    assert caplog.records[0].levelname == "WARNING"
    (fallback,) = fallback_report()
    assert (fallback.count, fallback.left_family, fallback.reason) == (3, True, "no")
    assert str(fallback_report()) == "Tanh: fast:float -> slow:float (another device family), 3 x: no"


def test_staying_in_the_device_family_is_counted_quietly(caplog):
    plugins = FakePlugins(fast=FakeBackend("fast"))
    with caplog.at_level(logging.DEBUG, "nn_core"):
        resolved(plugins, ["fast"])
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
    (fallback,) = fallback_report()
    assert (fallback.ran_on, fallback.left_family) == ("reference over fast:float", False)
    assert "(the same device family)" in str(fallback)


def test_an_unknown_device_family_counts_as_left():
    resolved(FakePlugins(slow=FakeBackend("slow")), ["gone", "slow"])
    assert fallback_report()[0].left_family


def test_the_array_class_of_the_context_stands_in_for_an_unknown_family():
    resolved(FakePlugins(slow=FakeBackend("slow")), ["gone", "slow"], array_class="Device")
    assert not fallback_report()[0].left_family


def test_strict_mode_refuses_to_leave_the_device_family():
    plugins = FakePlugins(slow=FakeBackend("slow"))
    message = r"(?s)Tanh: strict mode requires the device family of the first choice gone:float, got .*slow.*no gone"
    with strict_dispatch(), pytest.raises(FallbackError, match=message):
        resolved(plugins, ["gone", "slow"])
    with strict_dispatch(False):
        resolved(plugins, ["gone", "slow"])


def test_strict_mode_allows_the_reference_on_the_same_arrays():
    with strict_dispatch():
        resolved(FakePlugins(fast=FakeBackend("fast")), ["fast"])


def test_strict_mode_is_a_scope():
    with strict_dispatch(True):
        assert is_strict()
        with strict_dispatch(False):
            assert not is_strict()
        assert is_strict()
    assert not is_strict()


def test_an_empty_report_says_so():
    assert str(fallback_report()) == "every function ran on the first choice of its context"


@pytest.mark.parametrize("has_kernel", [True, False])
def test_the_reference_is_asked_before_a_device_is_left_where_a_backend_wants_that(has_kernel):
    first, second = FakeBackend("first"), FakeBackend("second", {"Tanh": FakeKernel()} if has_kernel else {})
    host = FakeBackend("host", {"Tanh": FakeKernel()}, "Host")
    first.reference_first = second.reference_first = True
    plugins = FakePlugins(first=first, second=second, host=host)
    found = resolved(plugins, ["first:float", "second:float", "host:float"])
    assert found.backend is (second if has_kernel else first)
    (fallback,) = fallback_report()
    assert fallback.ran_on == ("second:float" if has_kernel else "reference over first:float")
    assert not fallback.left_family


def test_without_that_wish_or_a_reference_kernel_the_device_is_left():
    device, host = FakeBackend("device"), FakeBackend("host", {"Tanh": FakeKernel(), "acme.Unknown": FakeKernel()}, "Host")
    plugins = FakePlugins(device=device, host=host)
    assert resolved(plugins, ["device:float", "host:float"]).backend is host
    device.reference_first = True
    assert resolved(plugins, ["device:float", "host:float"], UNKNOWN).backend is host
    assert resolved(plugins, ["host:float", "device:float"]).backend is host
