"""Update kernels of plugins: what they raise names the plugin, and they cannot write the gradients that they only read."""

from collections.abc import Sequence
from typing import Any

from nn_core.engine.dispatch.blame import PluginCall, named
from nn_core.engine.error_messages.refusal import described
from nn_core.engine.graph.sandboxed_kernel import read_only
from nn_core.engine.runtime.installed import OWN_PACKAGES
from nn_core.errors import PluginError
from nn_core.typing import Array, Refusal, Step


class ForeignUpdate:
    """An update kernel of a plugin, for `nn_core.solvers.update`.

    Args:
        kernel: The kernel.
        plugin: The plugin that brings it.
        rule: Name of the rule.
        changes_grads: Whether the rule changes gradients.
    """

    def __init__(self, kernel: Any, plugin: str, rule: str, *, changes_grads: bool) -> None:
        self._kernel, self._plugin, self._changes_grads = kernel, plugin, changes_grads
        self._what = f"the update kernel of {rule}"

    def prepare(self, sizes: Sequence[int], dtype: str) -> Any:
        """Return the runner of the kernel, guarded, or its refusal."""
        with PluginCall(self._plugin, f"prepare() of {self._what}"):
            runner = self._kernel.prepare(sizes, dtype)
        if isinstance(runner, Refusal):
            return runner
        if not callable(getattr(runner, "bind", None)):
            raise PluginError(self._refusal("prepare() must return a Refusal or an object with bind()", runner))
        return _ForeignRunner(runner, self)

    def bound(self, runner: Any, params: Any, grads: Sequence[Array], *rest: Any, **guard: Any) -> Step:
        """Return the step of a runner, guarded."""
        given = grads if self._changes_grads else [read_only(array) for array in grads]
        with PluginCall(self._plugin, f"bind() of {self._what}"):
            step = runner.bind(params, given, *rest, **guard)
        if not callable(step):
            raise PluginError(self._refusal("bind() must return a function without arguments", step))
        guarded = named(step, self._plugin, self._what)
        if hasattr(step, "verdict"):
            guarded.verdict = step.verdict
        return guarded

    def _refusal(self, wanted: str, found: object) -> str:
        return f"{self._what} of plugin {self._plugin!r}: {wanted}, got {described(found)}"


class _ForeignRunner:
    def __init__(self, runner: Any, update: ForeignUpdate) -> None:
        self._runner, self._update = runner, update
        self.guards = bool(getattr(runner, "guards", False))

    def bind(self, params: Any, grads: Any, states: Any, hyper: Any, **guard: Any) -> Step:
        """Return the step of the runner, guarded."""
        return self._update.bound(self._runner, params, grads, states, hyper, **guard)


def guarded_update(kernel: Any, plugin: str, rule: str, *, changes_grads: bool) -> Any:
    """Return an update kernel, guarded where it is that of a plugin of somebody else."""
    return kernel if plugin in OWN_PACKAGES else ForeignUpdate(kernel, plugin, rule, changes_grads=changes_grads)
