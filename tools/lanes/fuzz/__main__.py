"""The command ``python -m tools.lanes.fuzz``."""

import sys
import time
from pathlib import Path

import click

from tools.lanes.reliability import record, report_option

from .runner import COUNTS
from .watch import Report as CallReport


@click.group()
def main() -> None:
    """Fuzz nn_core; the exit status is 1 if there is a finding."""


@main.command()
@click.option("--seed", default=0, help="Which programs: those of numbers 1000000 * seed and following.")
@click.option("--count", default=150, help="How many.")
@click.option("--minutes", default=1e9, help="Stop after this time.")
@click.option("--minimize/--no-minimize", default=True, help="Make the programs that differ small.")
@click.option("--most", default=1000, help="Stop after so many findings.")
@click.option(
    "--leave-out", default="", help="Kinds of actions, with commas: batch, policies, dtypes, types, write, switch, flag."
)
@click.option("--pattern", type=click.IntRange(0, 255), help="Fill fresh memory with this byte; 255 makes NaN of it.")
@report_option
def programs(
    seed: int,
    count: int,
    minutes: float,
    minimize: bool,
    most: int,
    leave_out: str,
    pattern: int | None,
    report: Path | None,
) -> None:
    """Run random programs in many ways, and compare them with a slow truth.

    Every program has 5 to 40 operations. It is run static, dynamic and imperative, on the CPU and the reference
    backend, in single, double and half precision, with optimizations on and off, clear flags, hooks, data in other dtypes, NaN
    and infinities, other shapes and solver steps.
    """
    from tools.lanes.perturbed import perturb

    from .lane import check_programs

    if pattern is not None:
        perturb(pattern)
    start, n_findings = time.monotonic(), 0
    for finding in check_programs(seed, count, 60 * minutes, minimize=minimize, leave_out=leave_out.split(",")):
        n_findings += 1
        click.echo(f"--- finding {n_findings}, program {finding.seed}: {finding.title}\n{finding.script}")
        if n_findings >= most:
            break
    click.echo(
        f"{COUNTS.programs} programs, {COUNTS.runs} runs, {COUNTS.compared} comparisons, {COUNTS.rounding} arrays "
        f"decided by rounding, {COUNTS.undecided} runs that do not fit another batch size, "
        f"{time.monotonic() - start:.0f} s, {n_findings} findings"
    )
    note = f"{COUNTS.compared:,} comparisons"
    part = "all ways" if pattern is None else "all ways, perturbed memory"
    record(report, "programs", part, count=COUNTS.programs, findings=n_findings, seed=seed, note=note)
    sys.exit(n_findings > 0)


@main.command()
@click.option("--seed", default=0, help="Which calls.")
@click.option("--count", default=2000, help="How many.")
@click.option("--minutes", default=1e9, help="Stop after this time.")
@report_option
def api(seed: int, count: int, minutes: float, report: Path | None) -> None:
    """Call every public callable with odd values, in odd orders.

    A call may give a result, an exception of nn_core.errors, TypeError, MemoryError or OSError; a crash, a hang, a warning
    or another exception is a finding. Of the findings at one place the shortest is printed.
    """
    from .watch import check_calls

    start = time.monotonic()
    done = check_calls(seed, count, 60 * minutes)
    _print_calls(done, time.monotonic() - start)
    record(report, "API", "all public callables", count=done.calls, findings=len(done.findings), seed=seed)
    sys.exit(bool(done.findings))


@main.command()
@click.option("--part", default="1/1", help="Which part of all sessions: 2/3 is the second third.")
@report_option
def sweep(part: str, report: Path | None) -> None:
    """Replace every argument of every public callable by each odd value; the rules are those of `api`."""
    from .sweep import targets
    from .watch import check_sweep

    start = time.monotonic()
    number, parts = (int(text) for text in part.split("/"))
    total = len(targets())
    done = check_sweep(range(total * (number - 1) // parts, total * number // parts))
    _print_calls(done, time.monotonic() - start)
    record(report, "API", "every argument of every public callable", count=done.calls, findings=len(done.findings))
    sys.exit(bool(done.findings))


@main.command()
@click.option("--count", default=20, show_default=True, help="Functions to try; 0: all.")
@click.option("--seed", default=0, show_default=True, help="Which functions.")
@click.option("--backend", "-b", multiple=True, default=("cpu", "reference"), show_default=True)
@report_option
def elements(count: int, seed: int, backend: tuple[str, ...], report: Path | None) -> None:
    """Replace single numbers of the inputs of samples by NaN, infinities and numbers out of any range."""
    from .elements import check, drawn

    findings, n_calls = [], 0
    for spec in drawn(count, seed):
        for name in backend:
            for text in check(spec, name):
                n_calls += 1
                findings += [text] if text else []
    for text in findings:
        click.echo(f"--- {text}")
    record(report, "API", "single numbers of inputs", count=n_calls, findings=len(findings), seed=seed)
    sys.exit(bool(findings))


def _print_calls(done: CallReport, seconds: float) -> None:
    for n, finding in enumerate(done.findings.values()):
        click.echo(f"--- finding {n + 1}: {finding['kind']} at {finding['place']}: {finding['text']}\n{finding['source']}")
    click.echo(f"{done.calls} calls, {seconds:.0f} s, {len(done.findings)} findings")


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.fuzz")
