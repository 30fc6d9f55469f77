"""The choice of a kernel along the priority list of a context, once for each function that is set up."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

from nn_core.context import TYPE_CONFIGS, Context
from nn_core.engine.dispatch.admission import check_kernel, check_refusal
from nn_core.engine.dispatch.blame import PluginCall
from nn_core.engine.dispatch.known import narrowed_kernel, table_kernel
from nn_core.engine.dispatch.plugin_manager import PLUGINS, REFERENCE, Plugins
from nn_core.engine.dispatch.report import record
from nn_core.engine.runtime.installed import OWN_PACKAGES
from nn_core.errors import BackendNotFoundError, BackendUnavailableError, KernelNotFoundError, NNCoreError, PluginError
from nn_core.operators.spec.model import WHOLE_DTYPES, ArgValue, FunctionSpec
from nn_core.typing import Backend, Call, Kernel, Refusal, extra

_TYPE_NAMES = {dtype: name for name, dtype in TYPE_CONFIGS.items()}


@dataclass(frozen=True, slots=True)
class Resolution:
    """The kernel that runs a call, and the candidates that refused it.

    Attributes:
        kernel: The kernel that takes the call.
        backend: The backend whose arrays the kernel works on.
        call: The call, in the dtype of the entry that took it.
        refusals: (entry of the priority list, reason) of everyone asked before, in order.
    """

    kernel: Kernel
    backend: Backend
    call: Call
    refusals: tuple[tuple[str, Refusal], ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One place where a function could run; `kernel` and `backend` are None where there is a `reason` against it."""

    entry: str
    dtype: str
    array_class: str
    backend: Backend | None = None
    kernel: Kernel | None = None
    reason: str = ""
    error: NNCoreError | None = None


class OverBackends(Protocol):
    """The methods of the reference backend beyond the protocol of backends."""

    def over(self, backend: Backend) -> Mapping[str, Kernel]:
        """Return the reference kernels on the arrays of `backend`, by name of the function."""
        ...


def resolve(
    spec: FunctionSpec,
    args: Mapping[str, ArgValue],
    make_call: "Callable[[Dtypes], Call]",
    context: Context,
    plugins: Plugins = PLUGINS,
) -> Resolution:
    """Find the kernel that runs a function in `context`.

    The backends are asked in the order of the list, then the reference kernels over the arrays of each available one;
    those over a backend that says `reference_first` before the list goes on to another device family.

    Args:
        spec: The function.
        args: Its settings, for messages.
        make_call: Makes the call for the dtypes of its arrays; entries of the list may differ in them.
        context: The priority list.
        plugins: The source of backends.

    Raises:
        BackendNotFoundError, BackendUnavailableError, PluginError: when no backend of the list can be used; this is
            the exception of the first one.
        KernelNotFoundError: when everyone refuses.
        FallbackError: in strict mode, when the device family of the first entry is left.
    """
    refusals: list[tuple[str, Refusal]] = []
    first: Candidate | None = None
    for candidate in candidates(spec, context, plugins):
        first = first or candidate
        if candidate.kernel is None or candidate.backend is None:
            refusals.append((candidate.entry, Refusal(candidate.reason)))
            continue
        # anew for each candidate: the entry says the dtype, and the backend those that go with it
        call = make_call(dtypes_of(candidate.backend, candidate.dtype))
        refusal = refusal_of(candidate, call, context.device_id, plugins)
        if refusal is not None:
            check_refusal(f"{spec.api}: refuse() of the kernel of {candidate.entry}", refusal)
            refusals.append((candidate.entry, refusal))
            continue
        if candidate is not first:  # never silently: a report, and a refusal in strict mode
            left_family = candidate.array_class != first.array_class
            record(spec.name, first.entry, candidate.entry, refusals[0][1].reason, left_family=left_family)
        return Resolution(candidate.kernel, candidate.backend, call, tuple(refusals))
    raise KernelNotFoundError(_all_refused(spec, args, refusals))


def refusal_of(candidate: Candidate, call: Call, device_id: str, plugins: Plugins = PLUGINS) -> Refusal | None:
    """Return the answer of a candidate to a call; what the kernel raises in place of one names its plugin."""
    assert candidate.backend is not None and candidate.kernel is not None
    use_device = extra(candidate.backend, "use_device")
    plugin = candidate.backend.name.partition(".")[0]
    if use_device is not None:
        with PluginCall(plugin, f"use_device() of backend {candidate.backend.name!r}"):
            use_device(device_id)  # what a kernel takes may depend on the device
    owner = plugins.registry.owner_of_kernel(table_kernel(candidate.kernel)) or plugin
    if owner in OWN_PACKAGES:
        return candidate.kernel.refuse(call)
    check_kernel(f"backend {candidate.backend.name!r}: the kernel of F.{call.spec.api}", candidate.kernel)
    with PluginCall(owner, f"refuse() of the kernel of F.{call.spec.api} for backend {candidate.backend.name!r}"):
        return candidate.kernel.refuse(call)


class Dtypes(NamedTuple):
    """The dtypes of the arrays of a call by their kind; see `nn_core.operators.spec.model.DTYPE_KINDS`."""

    floating: str
    parameter: str
    statistic: str

    def by_kind(self) -> dict[str, str]:
        """Return the dtype of each kind but "same"."""
        return {"float": self.floating, "parameter": self.parameter, "statistic": self.statistic, **WHOLE_DTYPES}


def dtypes_of(backend: Backend | None, dtype: str) -> Dtypes:
    """Return the dtypes of arrays while `backend` computes in `dtype`."""
    # half precision is too coarse for statistics, and for small updates of parameters
    of_parameters: Mapping[str, str] = extra(backend, "parameter_dtypes")
    of_statistics: Mapping[str, str] = extra(backend, "statistic_dtypes")
    parameter = of_parameters.get(dtype, dtype)
    return Dtypes(dtype, parameter, of_statistics.get(dtype, parameter))


def candidates(spec: FunctionSpec, context: Context, plugins: Plugins = PLUGINS) -> Iterator[Candidate]:
    """Everyone who could run a function, best first; a plugin is loaded when its turn comes."""
    name = spec.name
    available: list[tuple[str, str, Backend]] = []
    staying: list[tuple[str, str, Backend]] = []
    first_error: NNCoreError | None = None
    is_one_available = False
    for backend_name, dtype in context.entries:
        entry = f"{backend_name}:{_TYPE_NAMES[dtype]}"
        try:
            backend = plugins.backend(backend_name)
        except (BackendNotFoundError, BackendUnavailableError, PluginError) as error:
            first_error = first_error or error  # the user's first wish is what the message is about
            yield _unusable(entry, dtype, plugins.array_class(backend_name) or context.array_class, error)
            continue
        left = [one for one in staying if one[2].array_class != backend.array_class]
        staying = [one for one in staying if one not in left]
        yield from _reference_candidates(name, left, plugins)
        (staying if extra(backend, "reference_first") else available).append((entry, dtype, backend))
        yield from _own_candidates(spec, backend_name, (entry, dtype, backend), plugins)
        is_one_available = True
    if not is_one_available and first_error is not None:
        raise first_error
    yield from _reference_candidates(name, [*staying, *available], plugins)


def _unusable(entry: str, dtype: str, family: str, error: NNCoreError) -> Candidate:
    return Candidate(entry, dtype, family, reason=str(error).partition("\n")[0], error=error)


def _own_candidates(
    spec: FunctionSpec, backend_name: str, place: tuple[str, str, Backend], plugins: Plugins
) -> Iterator[Candidate]:
    """Yield the kernels of a backend: overlays of other plugins before its own, kernels for functions of plugins after it."""
    entry, dtype, backend = place
    before, after = plugins.extra_kernels(backend_name, spec.name)
    own = backend.kernels.get(spec.name)
    found = [*before, *([] if own is None else [own]), *after]
    for kernel in found:
        owner = plugins.registry.owner_of_overlay(backend_name, spec.name) if kernel in before else ""
        at = f"{entry}, overlay of {owner!r}" if owner else entry
        shown = _as_its_table_knows(kernel, spec, backend_name, plugins) if spec.later else kernel
        yield Candidate(at, dtype, backend.array_class, backend, shown)
    if not found:
        yield Candidate(entry, dtype, backend.array_class, reason=f"has no kernel for {spec.name}")


def _as_its_table_knows(kernel: Kernel, spec: FunctionSpec, backend: str, plugins: Plugins) -> Kernel:
    """Return a kernel for an operator that has grown; a plugin that overlays it, or the backend, says what its table knows."""
    owner = plugins.registry.owner_of_kernel(kernel) or backend.partition(".")[0]
    return narrowed_kernel(kernel, spec, plugins.known_operators(owner, spec.name))


def _reference_candidates(name: str, available: list[tuple[str, str, Backend]], plugins: Plugins) -> Iterator[Candidate]:
    if not available:
        return
    reference = plugins.backend(REFERENCE)
    for entry, dtype, backend in available:
        if backend is reference:  # it is in the list itself, and was asked in its turn
            continue
        # slow, but on the device: values stay where they are
        kernel = cast(OverBackends, reference).over(backend).get(name)
        reason = "" if kernel else f"has no kernel for {name}"
        yield Candidate(f"{REFERENCE} over {entry}", dtype, backend.array_class, backend, kernel, reason)


def _all_refused(spec: FunctionSpec, args: Mapping[str, ArgValue], refusals: Sequence[tuple[str, Refusal]]) -> str:
    entries = ", ".join(entry for entry, _ in refusals)
    lines = [f"{spec.api}: a backend of the context must run it, got refusals of {entries}"]
    if args:
        # refusals are often about a setting
        lines.append("  ".join(["", *(f"{name} {value}" for name, value in args.items())]))
    return "\n".join([*lines, *(f"  {entry}: {refusal.reason}" for entry, refusal in refusals)])
