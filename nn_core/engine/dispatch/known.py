"""Operators that grow: what a table that was written before knows of them, and the part of a call that it sees.

A later version may give an operator arguments with defaults and optional inputs; `since` in its specification says which one.
A table of kernels, exporters or fusions knows those of one version (`KnownOperators`). Where a call sets nothing else, the
table gets the call as it was in that version; any other call it refuses.
"""

import dataclasses
import functools
from collections.abc import Collection, Mapping, Sequence
from types import ModuleType
from typing import Any, Final, Protocol

from nn_core.engine.error_messages.refusal import fitted_constructor
from nn_core.errors import PluginError
from nn_core.operators.rules.arguments import resolve_args
from nn_core.operators.spec.model import ArgSpec, ArgValue, FunctionSpec, InputSpec
from nn_core.typing import Array, Call, Kernel, KernelExtras, Refusal, Runner, Shape


class _HasShape(Protocol):
    """A description of an array, a Variable or an array."""

    @property
    def shape(self) -> Shape: ...


@fitted_constructor
@dataclasses.dataclass(frozen=True, slots=True)
class KnownOperators:
    """The arguments and optional inputs of operators that a table reads; the others it refuses where a call sets them.

    Attributes:
        version: The version of nn_core up to which it knows everything. Empty: it knows what operators had from the beginning.
        also: Names of arguments and inputs of later versions that it reads as well, by the name of the operator; for operators
            of other plugins, all that came after the operator.

    Example:
        >>> from nn_core.ext import KnownOperators, function_spec
        >>> KnownOperators("0.1").unknown(function_spec("Tanh"))
        ()
    """

    version: str = ""
    also: Mapping[str, Collection[str]] = dataclasses.field(default_factory=dict)

    def unknown(self, spec: FunctionSpec) -> tuple[str, ...]:
        """Return the names of the arguments and inputs of `spec` that a table does not read."""
        later = spec.later
        if not later:
            return ()
        known, also = max(_numbers(self.version), _numbers(spec.since)), self.also.get(spec.name, ())
        return tuple(entry.name for entry in later if _numbers(entry.since) > known and entry.name not in also)

    def refusal(self, spec: FunctionSpec, args: Mapping[str, Any], inputs: Sequence[_HasShape | None]) -> Refusal | None:
        """Refuse a call that sets what a table does not read to something else than its default.

        Args:
            spec: The operator.
            args: All arguments of the call.
            inputs: Its inputs, None where one is not given; only their shapes are read.
        """
        asked = _asked(spec, self.unknown(spec), args, inputs)
        if not asked:
            return None
        reads = f"the {spec.name} of version {self.version}" if self.version else f"{spec.name} as it was at first"
        return Refusal(f"reads {reads}, which has no {' and no '.join(asked)}")

    def narrowed(
        self, spec: FunctionSpec, args: Mapping[str, Any], inputs: Sequence[Any]
    ) -> tuple[FunctionSpec, dict[str, Any], tuple[Any, ...]]:
        """Return the operator, arguments and inputs of a call without those that a table does not read."""
        unknown = self.unknown(spec)
        places = _places_left(spec, unknown, len(inputs))
        kept = {name: value for name, value in args.items() if name not in unknown}
        return without(spec, unknown), kept, tuple(inputs[place] for place in places)


#: The knowledge that the core has of its own operators, and a plugin of its own.
EVERYTHING: Final = KnownOperators("999999")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _asked(
    spec: FunctionSpec, unknown: Collection[str], args: Mapping[str, Any], inputs: Sequence[_HasShape | None]
) -> list[str]:
    """Those of the `unknown` arguments and inputs that a call sets, in words."""
    asked = [f"input {name}" for name in _given(spec, inputs) if name in unknown]
    new = {name: _plain(value) for name, value in args.items() if name in unknown}
    if not new:
        return asked
    shapes = [None if value is None else tuple(value.shape) for value in inputs]
    # a default may follow from the shapes
    defaults = resolve_args(spec, {name: value for name, value in args.items() if name not in new}, shapes)
    return [f"argument {name}" for name, value in new.items() if value != _plain(defaults[name])] + asked


def _given(spec: FunctionSpec, inputs: Sequence[object]) -> list[str]:
    return [entry.name for entry, value in zip(spec.inputs, inputs, strict=False) if value is not None]


def _plain(value: Any) -> ArgValue:
    """Return a setting as it is compared: functions of graphs show tuples as lists."""
    return tuple(value) if isinstance(value, list) else value


@functools.lru_cache(maxsize=1024)
def without(spec: FunctionSpec, names: tuple[str, ...]) -> FunctionSpec:
    """`spec` without the arguments and inputs of these names: the operator as it was before they were added."""
    if not names:
        return spec
    backward = dataclasses.replace(
        spec.backward,
        needs=_less(spec.backward.needs, names),
        needs_if_negative=tuple(
            (name, _less(needs, names)) for name, needs in spec.backward.needs_if_negative if name not in names
        ),
    )
    return dataclasses.replace(
        spec,
        inputs=tuple(entry for entry in spec.inputs if entry.name not in names),
        args=tuple(entry for entry in spec.args if entry.name not in names),
        updates=_less(spec.updates, names),
        backward=backward,
    )


def _less(names: Sequence[str], unknown: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in unknown)


def _places_left(spec: FunctionSpec, unknown: Collection[str], count: int) -> list[int]:
    """Return the places of the inputs of a call that are left when the `unknown` ones are not shown."""
    names: list[ArgSpec | InputSpec] = [*spec.inputs, *spec.inputs[-1:] * (count - len(spec.inputs))]
    return [place for place in range(count) if names[place].name not in unknown]


def known_by(module: ModuleType | None) -> KnownOperators:
    """Return what the tables of the plugin in `module` know: as it states, or the operators of the oldest core that it takes.

    Raises:
        PluginError: when it states something else.
    """
    stated = getattr(module, "KNOWN_OPERATORS", None)
    if stated is None:
        return KnownOperators(_oldest(getattr(module, "REQUIRES_CORE", "")))
    if not isinstance(stated, KnownOperators):
        raise PluginError(f"KNOWN_OPERATORS must be a KnownOperators, got {stated!r}")
    return stated


@functools.cache
def _oldest(required: str) -> str:
    """Return the lower bound of a range of versions, empty where there is none."""
    if not required:
        return ""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # needed when an operator has grown only

    try:
        bounds = [part.version for part in SpecifierSet(required) if part.operator in (">=", "==", "~=", ">", "===")]
    except InvalidSpecifier:  # which is refused elsewhere
        return ""
    return max(bounds, key=_numbers, default="")


_OPTIONAL: Final = ("layout", "strided", "private_shapes")


class NarrowedKernel:
    """A kernel whose table does not know all arguments and inputs of its operator.

    It refuses the calls that set one of them; of others, the kernel sees what the operator was before.

    Args:
        inner: The kernel of the table.
        known: What the table knows.
    """

    def __init__(self, inner: Kernel, known: KnownOperators) -> None:
        self.inner = inner
        self._known = known

    def __getattr__(self, name: str) -> Any:
        if name not in _OPTIONAL:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        given = getattr(self.inner, name, getattr(KernelExtras, name))
        return None if given is None else lambda call: given(self._narrowed(call))

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what the table does not know, and what the kernel refuses."""
        return self._known.refusal(call.spec, call.args, call.inputs) or self.inner.refuse(self._narrowed(call))

    def forward(self, call: Call) -> Runner:
        """Return the runner of the kernel, which gets the arrays that it knows."""
        return _without_arrays(self.inner.forward(self._narrowed(call)), self._hidden(call), 0)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """As `forward`; the gradients of inputs that it does not know are not wanted, since these are not given."""
        hidden, n_inputs = self._hidden(call), len(call.inputs)
        seen = [want for place, want in enumerate(wanted) if place not in hidden]
        runner = self.inner.backward(self._narrowed(call), seen)
        return None if runner is None else _without_arrays(runner, hidden, n_inputs)

    def _narrowed(self, call: Call) -> Call:
        spec, args, inputs = self._known.narrowed(call.spec, call.args, call.inputs)
        return dataclasses.replace(call, spec=spec, args=args, inputs=inputs)

    def _hidden(self, call: Call) -> frozenset[int]:
        """Return the places of the inputs that the kernel does not know."""
        seen = _places_left(call.spec, self._known.unknown(call.spec), len(call.inputs))
        return frozenset(range(len(call.inputs))) - frozenset(seen)


def _without_arrays(runner: Runner, hidden: Collection[int], n_gradients: int) -> Runner:
    """Return a runner without the optional parts of `runner`, which name arrays by their places, where some arrays are
    `hidden`.

    Args:
        runner: The runner of the kernel.
        hidden: The places of inputs that it does not know.
        n_gradients: How many of the last arrays are gradients of the inputs.
    """
    if not hidden:
        return runner

    def run(*arrays: Array) -> object:
        first = len(arrays) - n_gradients if n_gradients else len(arrays)
        return runner(*[array for place, array in enumerate(arrays) if place not in hidden and place - first not in hidden])

    return run


def table_kernel(kernel: Kernel | None) -> Kernel | None:
    """Return the kernel as its table has it."""
    return kernel.inner if isinstance(kernel, NarrowedKernel) else kernel


def narrowed_kernel(kernel: Kernel, spec: FunctionSpec, known: KnownOperators) -> Kernel:
    """`kernel`, or what shows it the part of calls that its table knows, where that is not all."""
    return NarrowedKernel(kernel, known) if known.unknown(spec) else kernel
