"""A self-test of a backend: ten functions and their gradients, compared with the reference in seconds.

``nn-core doctor --test NAME`` prints a line for each of them.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import nn_core.functions as F
from nn_core.context import Context, context_scope
from nn_core.engine.dispatch.explain import explain
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.errors import NNCoreError
from nn_core.ext_utils import get_extension_context
from nn_core.variable import Variable

#: The largest difference, as a part of the largest magnitude; both sides compute in float32.
TOLERANCE: Final = 1e-4

Compute = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A function, and shapes of the inputs that have gradients."""

    name: str
    compute: Compute
    shapes: Sequence[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one case.

    Attributes:
        name: Name of the function.
        backend: The entry of the context that ran it.
        error: The largest difference of results and gradients, as a part of the largest magnitude.
        seconds: Time of the first run, with compilation.
        reason: The exception, if there was one.
    """

    name: str
    backend: str
    error: float
    seconds: float
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Whether it agrees with the reference."""
        return not self.reason and self.error <= TOLERANCE


def _embedded(w: Any) -> Any:
    return F.embed(Variable.from_numpy_array(np.arange(40).reshape(5, 8) % 30), w)


def _added(x0: Any, x1: Any) -> Any:
    return F.scatter_add(x0, Variable.from_numpy_array(np.arange(64 * 8).reshape(64, 8) % 16), x1, axis=0)


CASES: Final = (
    Case("affine", F.affine, [(32, 64), (64, 48), (48,)]),
    Case("convolution", lambda x, w, b: F.convolution(x, w, b, pad=(1, 1)), [(4, 8, 14, 14), (16, 8, 3, 3), (16,)]),
    Case("max_pooling", lambda x: F.max_pooling(x, (2, 2)), [(4, 8, 14, 14)]),
    Case("layer_normalization", F.layer_normalization, [(16, 64), (1, 64), (1, 64)]),
    Case("softmax", F.softmax, [(32, 100)]),
    Case("gelu", F.gelu, [(1000,)]),
    Case("sum", lambda x: F.sum(x, axis=1), [(50, 70, 3)]),
    Case("transpose", lambda x: F.transpose(x, (2, 0, 1)), [(17, 33, 9)]),
    Case("embed", _embedded, [(30, 16)]),
    Case("scatter_add", _added, [(16, 8), (64, 8)]),
)


def self_test(context: Context, cases: Sequence[Case] = CASES) -> Iterator[Outcome]:
    """Run each case in `context` and on the reference, forward and backward, and compare.

    Args:
        context: Where to run; without the CPU in its list nothing leaves the device.
        cases: The cases.
    """
    for case in cases:
        rng = np.random.default_rng(313)
        inputs = [rng.normal(size=shape).astype(np.float32) for shape in case.shapes]
        started = time.perf_counter()
        try:
            found, backend = _run(case, inputs, context)
        except NNCoreError as error:
            yield Outcome(case.name, "", float("nan"), time.perf_counter() - started, str(error).partition("\n")[0])
            continue
        seconds = time.perf_counter() - started
        expected, _ = _run(case, inputs, Context(["reference:float"]))
        yield Outcome(case.name, backend, max(map(_difference, found, expected)), seconds)


def _run(case: Case, inputs: Sequence[Any], context: Context) -> tuple[list[Any], str]:
    """Return the result and the gradients, and the entry of the context that ran the function."""
    with context_scope(context):
        variables = [Variable.from_numpy_array(values, need_grad=True) for values in inputs]
        y = case.compute(*variables)
        for variable in variables:
            variable.grad.zero()
        y.forward()
        y.backward(np.cos(np.arange(y.size, dtype=np.float32)).reshape(y.shape))
        backend = explain(y, context).winner or ""
        return [y.d.copy(), *(variable.g.copy() for variable in variables)], backend


def _difference(found: Any, expected: Any) -> float:
    scale = max(float(np.abs(expected).max(initial=0)), 1e-30)
    return float(np.abs(found.astype(np.float64) - expected).max(initial=0)) / scale


def context_of(name: str, device_id: str = "0") -> Context:
    """Return the recommended context of a backend without what leaves the family of its arrays, such as the CPU after a
    device.

    Raises:
        BackendNotFoundError: when no installed package brings the backend.
        BackendUnavailableError: when there is no device for it.
    """
    context = get_extension_context(name, device_id=device_id)
    family, installed = PLUGINS.info(name).array_class, set(PLUGINS.names())
    named = [(entry, entry.partition(":")[0]) for entry in context.backend]
    entries = [entry for entry, other in named if other in installed and PLUGINS.info(other).array_class == family]
    return Context(entries, context.array_class, context.device_id)


def report(name: str, device_id: str = "0") -> tuple[list[str], bool]:
    """Return the lines that the doctor prints about a backend, and whether all functions agree with the reference."""
    outcomes = list(self_test(context_of(name, device_id)))
    lines = [
        f"{'ok    ' if outcome.passed else 'FAILED'} {outcome.name:<20} "
        + (outcome.reason or f"{outcome.backend}, difference {outcome.error:.1e}, {outcome.seconds:.2f} s")
        for outcome in outcomes
    ]
    n_passed = sum(outcome.passed for outcome in outcomes)
    return [*lines, f"{name}: {n_passed} of {len(outcomes)} functions agree with the reference"], n_passed == len(outcomes)
