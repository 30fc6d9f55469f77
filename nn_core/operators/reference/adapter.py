"""The pure functions of this package as kernels over the arrays of any backend."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from nn_core.engine.dispatch.blame import require_real
from nn_core.errors import PluginError, ShapeError
from nn_core.operators.reference import registry
from nn_core.typing import Array, Call, Kernel, Namespace, Refusal, Runner

_BFLOAT16 = "bfloat16"


class ReferenceKernel:
    """A pure function as a kernel: its results are copied into the outputs, new values of `updates` into the inputs.

    Inputs in half precision are computed in float32: each result is rounded once, and the functions need not know bfloat16.

    Args:
        function: See docs/design/0001-operator-contract.md.
        namespace: The array namespace that it runs over.
    """

    __slots__ = ("_function", "_namespace", "runs_foreign_code")

    def __init__(self, function: registry.ReferenceKernel, namespace: Namespace) -> None:
        self._function = function
        self._namespace = namespace
        #: whether it is a function of a plugin; those of the core are tested for what is checked of these
        self.runs_foreign_code = (getattr(function, "__module__", None) or "").partition(".")[0] != "nn_core"

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that the array library lacks, and bfloat16 where nothing knows it; take everything else."""
        dtypes = {desc.dtype for desc in (*call.inputs, *call.outputs) if desc is not None}
        missing = dtypes & getattr(self._namespace, "missing_dtypes", frozenset())
        if missing:
            return Refusal(f"the array library has no {', '.join(sorted(missing))}")
        if _BFLOAT16 in dtypes and not hasattr(self._namespace, _BFLOAT16) and find_spec("ml_dtypes") is None:
            return Refusal("bfloat16 needs the package ml_dtypes: pip install ml-dtypes")
        return None

    def forward(self, call: Call) -> Runner:
        """Prepare the call; with the tag `dynamic_shape` the runner returns the results as new arrays."""
        xp, function, args = self._namespace, self._function, dict(call.args)
        n_inputs = len(call.inputs)
        n_outputs = len(call.outputs)
        updated = _updated_positions(call)
        widened = [position for position, desc in enumerate(call.inputs) if desc and desc.dtype in ("float16", _BFLOAT16)]
        seeded = call.spec.has("seeded")
        dynamic = call.spec.has("dynamic_shape")
        name, runs_foreign_code = call.spec.api, self.runs_foreign_code
        n_results = n_outputs + (0 if dynamic else len(updated))

        def run(*arrays: Array) -> object:
            inputs = [_read_only(array) for array in arrays[:n_inputs]] if runs_foreign_code else list(arrays[:n_inputs])
            for position in widened:
                inputs[position] = xp.asarray(inputs[position], dtype=xp.float32)
            settings = {**args, "key": xp.asarray(arrays[-1])} if seeded else args
            with np.errstate(all="ignore"):  # nan and inf are values like any other
                results = (
                    _computed(name, function, xp, inputs, settings) if runs_foreign_code else function(xp, *inputs, **settings)
                )
                results = _checked(name, results, n_results)
                if dynamic:
                    pairs = zip(results, call.outputs, strict=True)
                    return tuple(xp.asarray(result, dtype=_dtype(xp, desc.dtype)) for result, desc in pairs)
                for output, result in zip(arrays[n_inputs : n_inputs + n_outputs], results, strict=False):
                    _copy(name, output, result)
                for position, result in zip(updated, results[n_outputs:], strict=True):
                    if result is not None:
                        _copy(name, arrays[position], result)
            return None

        return run

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None


def _read_only(array: Array) -> Array:
    if type(array) is not np.ndarray:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def _computed(
    name: str, function: registry.ReferenceKernel, xp: Namespace, inputs: list[Array], settings: Mapping[str, Any]
) -> Any:
    """Return the results of a function of a plugin, which must be real arrays and leave its inputs alone."""
    try:
        results = function(xp, *inputs, **settings)
    except ValueError as error:
        if "read-only" in str(error):
            raise PluginError(f"{name}: a reference kernel must not change its inputs, got: {error}") from error
        raise
    for result in results if isinstance(results, tuple) else (results,):
        require_real(f"{name}: a reference kernel", result)
        if _is_own_class(result) and type(result) is not type(xp.asarray(0.0)):
            raise PluginError(f"{name}: a reference kernel must return arrays, got {type(result).__name__}")
    return results


def _is_own_class(result: Any) -> bool:
    """Return whether a result is of a class of nn_core: NumPy copies a Variable like an array."""
    return type(result).__module__.partition(".")[0] == "nn_core"


def _checked(name: str, results: Any, n_results: int) -> tuple[Any, ...]:
    found: tuple[Any, ...] = results if isinstance(results, tuple) else (results,)
    if len(found) != n_results:
        raise ShapeError(f"{name}: the reference kernel must return {n_results} results, got {len(found)}")
    return found


class ReferenceKernels(Mapping[str, Kernel]):
    """Every reference kernel over one namespace, by name of the function; later registrations show up too."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    def __getitem__(self, name: str) -> Kernel:
        return ReferenceKernel(registry.KERNELS[name], self._namespace)

    def __iter__(self) -> Iterator[str]:
        return iter(registry.KERNELS)

    def __len__(self) -> int:
        return len(registry.KERNELS)


def _dtype(xp: Namespace, name: str) -> Any:
    if hasattr(xp, name):
        return getattr(xp, name)
    import ml_dtypes  # type: ignore[import-not-found, unused-ignore]  # optional; see refuse()

    return getattr(ml_dtypes, name)


def _updated_positions(call: Call) -> list[int]:
    names = [entry.name for entry in call.spec.inputs]
    return [names.index(name) for name in call.spec.updates]


def _copy(name: str, target: Array, result: Any) -> None:
    shape = getattr(result, "shape", ())
    if shape != target.shape:
        raise ShapeError(f"{name}: the reference kernel must return the shape {target.shape} of the rule, got {shape}")
    target[...] = result
