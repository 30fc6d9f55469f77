"""The pytest plugin of the conformance kit: ``pytest -p nn_core.testing.pytest_plugin --backend=acme``.

Options choose the backends. All samples run; where time is short, ``--tier`` or the setting `nn_core_tier` chooses how
many, and ``--shard=2/5`` the second of five parts of them.
"""

import argparse
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import pytest

from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.testing.assertions import comparisons
from nn_core.testing.cases import DTYPES, installed_backends, unavailable
from nn_core.testing.report import Report
from nn_core.testing.xfails import chosen_cases, test_id, xfails_of

_REPORT = pytest.StashKey[Report]()
#: How many cases run, from few to all.
TIERS = ("smoke", "core", "full")


def _shard(text: str) -> tuple[int, int]:
    part, _, n_parts = text.partition("/")
    if not (part.isdecimal() and n_parts.isdecimal() and 1 <= int(part) <= int(n_parts)):
        raise argparse.ArgumentTypeError(f"a shard must be I/N with 1 <= I <= N, such as 2/5, got {text!r}")
    return int(part), int(n_parts)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the kit."""
    group = parser.getgroup("nn_core", "conformance of nn_core backends")
    group.addoption(
        "--backend",
        metavar="NAMES",
        default="",
        help="run the conformance tests on these backends (comma separated, or 'all'); default: those of the file",
    )
    group.addoption(
        "--require-backend",
        metavar="NAMES",
        default="",
        help="fail, instead of skipping, where one of these backends is not available",
    )
    group.addoption(
        "--tier",
        choices=TIERS,
        help="smoke: one sample of each function in float32; core: all samples in float32; full: all samples and dtypes "
        "(default: full with --backend, else nn_core_tier)",
    )
    parser.addini("nn_core_tier", "how many conformance cases run where neither --tier nor --backend is given", default="full")
    group.addoption(
        "--shard",
        metavar="I/N",
        type=_shard,
        default=(1, 1),
        help="run the I-th of N parts of the tests; the conformance checks of one case stay together",
    )
    group.addoption(
        "--engine",
        metavar="NAME",
        default="",
        help="run the tests of engines (nn_core.testing.engines) on this one; start pytest by its launcher on several ranks",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and start to count."""
    config.addinivalue_line("markers", "conformance: a check of a function on a backend (nn_core.testing)")
    config.stash[_REPORT] = Report()
    for name in _names(config.getoption("--backend")):
        if name != "all" and name.partition(".")[0] not in PLUGINS.names():
            known = ", ".join(PLUGINS.names())
            raise pytest.UsageError(f"--backend: a backend must be installed ({known}), got {name!r}")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what is under test."""
    names = config.getoption("--backend")
    return f"conformance: {names} in {', '.join(DTYPES)}" if names else None


def backends_of(config: pytest.Config, module: ModuleType) -> list[str]:
    """Return the backends under test in a module that can run here: those of the option among those of the module."""
    return [name for name in _selected(config, module) if not unavailable(name)]


def missing_backends(config: pytest.Config, module: ModuleType) -> list[str]:
    """Return the backends under test in a module that cannot run here."""
    return [name for name in _selected(config, module) if unavailable(name)]


def _selected(config: pytest.Config, module: ModuleType) -> list[str]:
    wanted = _names(config.getoption("--backend"))
    own = list(getattr(module, "BACKENDS", ()) or installed_backends())
    return own if not wanted or "all" in wanted else [name for name in own if name in wanted]


def _names(option: str) -> list[str]:
    return [name.strip() for name in option.split(",") if name.strip()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make the cases of the conformance tests."""
    if not hasattr(metafunc.function, "conformance_cases"):
        return
    config, module = metafunc.config, metafunc.module
    tier = config.getoption("--tier") or ("full" if config.getoption("--backend") else config.getini("nn_core_tier"))
    known = xfails_of(module)
    parameters = [_unavailable(config, name) for name in missing_backends(config, module)]
    for case in chosen_cases(metafunc.function, module, backends_of(config, module), fast=tier == "smoke"):
        if tier == "core" and getattr(case, "dtype", DTYPES[0]) != DTYPES[0]:
            continue
        failure = known.get(test_id(metafunc.function.__name__, case))
        marks = [] if failure is None else [pytest.mark.xfail(strict=True, reason=f"{failure.date}: {failure.reason}")]
        parameters.append(pytest.param(case, id=str(case), marks=marks))
    metafunc.parametrize("case", parameters)


def _unavailable(config: pytest.Config, backend: str) -> Any:
    reason = unavailable(backend)
    required = backend in _names(config.getoption("--require-backend"))
    marks = [] if required else [pytest.mark.skip(reason=reason)]
    return pytest.param(_Missing(reason), id=f"{backend}-unavailable", marks=marks)


class _Missing:
    """A placeholder for the cases of a backend that was required and is not available."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail where a backend is required and not available; load the plugin of the function, if a test has unloaded it."""
    case = _case_of(item)
    if hasattr(case, "spec"):
        PLUGINS.function_named(case.spec.name)
    if isinstance(case, _Missing) and item.get_closest_marker("skip") is None:
        pytest.fail(case.reason, pytrace=False)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run all checks of one case after each other: what they have in common is then computed once."""
    first: dict[str, int] = {}
    for position, item in enumerate(items):
        first.setdefault(_group(item), position)
    items.sort(key=lambda item: first[_group(item)])
    part, n_parts = config.getoption("--shard")
    number = {group: position for position, group in enumerate(first)}
    dropped = [item for item in items if number[_group(item)] % n_parts != part - 1]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if number[_group(item)] % n_parts == part - 1]


def _group(item: pytest.Item) -> str:
    case = _case_of(item)
    return item.nodeid if case is None else f"{item.location[0]}[{case}]"


def _case_of(item: pytest.Item) -> Any:
    if item.get_closest_marker("conformance") is None:
        return None
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get("case")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Count tests and comparisons."""
    before = comparisons()
    try:
        return (yield)
    finally:
        if item.get_closest_marker("conformance") is not None:
            report = item.config.stash[_REPORT]
            report.tests[getattr(item, "originalname", item.name)] += 1
            report.comparisons += comparisons() - before
            spec = getattr(_case_of(item), "spec", None)
            report.functions.update([] if spec is None else [spec.name])
            backend = getattr(_case_of(item), "backend", None)
            if backend is not None and backend not in report.backends:
                report.backends.append(backend)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the counts of a worker to the process that started it."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["nn_core_conformance"] = session.config.stash[_REPORT].to_plain()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Add up the counts of a worker."""
    counts = getattr(node, "workeroutput", {}).get("nn_core_conformance")
    if counts is not None:
        node.config.stash[_REPORT].add(counts)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the support table and the number of checks."""
    report = config.stash[_REPORT]
    if not report.tests:
        return
    terminalreporter.section("conformance")
    for line in report.lines(sorted(report.backends)):
        terminalreporter.write_line(line)


__all__: Sequence[str] = ["backends_of", "missing_backends"]
