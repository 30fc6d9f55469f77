"""The command ``nn-core bench``."""

from collections.abc import Sequence

from nn_core.cli.bench.measure import FULL, QUICK, measure
from nn_core.cli.bench.table import report
from nn_core.cli.bench.workloads import FRAMEWORKS, OURS, Sizes, quick_sizes
from nn_core.engine.runtime.machine import allowed_processors
from nn_core.errors import ArgumentError

_QUICK_NOTE = "--quick: sizes are tiny; the figures do not tell how fast a framework is"


def run_bench(peers: Sequence[str] = (), threads: int | None = None, *, is_quick: bool = False) -> str:
    """Measure, and lay out the table.

    Args:
        peers: Frameworks to compare with; by default those that are installed.
        threads: Threads of each framework; by default as many as the process may use.
        is_quick: Take tiny sizes and few steps.

    Raises:
        ArgumentError: for a peer that is unknown or not installed.
    """
    known = [name for name in FRAMEWORKS if name != OURS]
    for name in peers:
        _require_peer(name, known)
    chosen = list(dict.fromkeys(peers)) or [name for name in known if FRAMEWORKS[name].is_installed()]
    count = threads or len(allowed_processors())
    sizes = quick_sizes(count) if is_quick else Sizes(count)
    table = report(measure([OURS, *chosen], count, QUICK if is_quick else FULL), sizes)
    return f"{table}\n{_QUICK_NOTE}" if is_quick else table


def _require_peer(name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise ArgumentError(f"bench: --peer must be one of {', '.join(known)}, got {name!r}")
    if not FRAMEWORKS[name].is_installed():
        packages = " ".join(FRAMEWORKS[name].packages)
        raise ArgumentError(f"bench: --peer must be installed, got {name!r}\n  hint: pip install {packages}")
