"""The command ``nn-core``, also ``python -m nn_core``: what is installed, what works, and who runs a function."""

import os
import platform
import sys
import sysconfig
from collections.abc import Collection, Sequence
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from nn_core.cli.findings import as_json, as_text, wrapped
from nn_core.compat import unchanged
from nn_core.context import Context, get_current_context
from nn_core.engine.dispatch.admission import core_version
from nn_core.engine.dispatch.doctor import Finding, examine
from nn_core.engine.dispatch.explain import fusions_with
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.plugin_record import State, packages
from nn_core.engine.error_messages.synonyms import suggestion
from nn_core.engine.runtime import installed
from nn_core.engine.runtime.caches import caches
from nn_core.engine.runtime.terminal import say
from nn_core.errors import NNCoreError
from nn_core.operators.spec.builtin import SPECS
from nn_core.operators.spec.model import FunctionSpec
from nn_core.settings import cache_mb, num_threads, set_keep_values, settings, thread_limits

if TYPE_CHECKING:
    from nn_core.engine.dispatch.extension_registry import Offer


class PluginCommand(click.Command):
    """A subcommand of a plugin: described by its plugin, and imported when it is run or asked for help."""

    def __init__(self, offer: "Offer") -> None:
        super().__init__(offer.info.name, help=getattr(offer.info, "help", ""))
        self._offer = offer

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of the command itself, which is imported here."""
        try:
            command = PLUGINS.offers.load(self._offer)
        except NNCoreError as error:
            raise click.ClickException(str(error)) from error
        if not isinstance(command, click.Command):
            raise click.ClickException(f"{self._offer.label}: must be a click command, got {command!r}")
        return command.make_context(info_name, args, parent, **extra)


class Commands(click.Group):
    """The commands of the core, then those of plugins."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands; plugins that bring some are imported, and what the commands do is not."""
        own = super().list_commands(ctx)
        return [*own, *sorted({offer.info.name for offer in PLUGINS.offered("commands")} - set(own))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command called `cmd_name`."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        try:
            offer = PLUGINS.offer("commands", cmd_name)
        except NNCoreError as error:
            raise click.ClickException(str(error)) from error
        return None if offer is None else PluginCommand(offer)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(core_version(), "--version", prog_name="nn-core")
def main() -> None:
    """Look at an installation of nn_core, and run programs written for NNabla."""


@main.command(short_help="List functions and the backends that run them.")
@click.argument("pattern", default="*")
@click.option("--topic", help="Only those of this topic, also one that a plugin brings.")
@click.option("--tag", help="Only those with this tag, likewise.")
def ops(pattern: str, topic: str | None, tag: str | None) -> None:
    """List the functions whose name fits PATTERN, such as '*pooling', with their topic and the backends that have a kernel.

    Below them are the fusions of plugins that may run something else in their place.
    """
    backends = list(filter(_is_usable, PLUGINS.names()))
    fitting = _fitting(pattern, topic, tag)
    rows = [(api, spec.topic, _with_kernel(backends, spec.name) or "engine") for api, spec in fitting.items()]
    fusions = dict.fromkeys(sentence for spec in fitting.values() for sentence in fusions_with(spec))
    say("\n".join([_plain_table(rows, ("function", "topic", "backends")), *fusions]))


def _fitting(pattern: str, topic: str | None, tag: str | None) -> dict[str, FunctionSpec]:
    named = {spec.api: spec for spec in SPECS} | {added.key: added.spec for added in PLUGINS.registry}
    found = {api: spec for api, spec in sorted(named.items()) if fnmatch(api, pattern) and _is_listed(spec, topic, tag)}
    if not found:
        given = "".join(f", {what} {word!r}" for what, word in (("topic", topic), ("tag", tag)) if word is not None)
        raise click.ClickException(f"ops: PATTERN must fit a function, got {pattern!r}{given or _closest(pattern, named)}")
    return found


def _closest(pattern: str, names: Collection[str]) -> str:
    """Return the end of a message about a pattern that fits no function: one that does, or the closest name."""
    wider = f"*{pattern.strip('*')}*"
    return f"; did you mean {wider!r}?" if any(fnmatch(name, wider) for name in names) else suggestion(pattern, names)


def _is_listed(spec: FunctionSpec, topic: str | None, tag: str | None) -> bool:
    return topic in (None, spec.topic) and (tag is None or tag in spec.tags)


def _with_kernel(backends: Sequence[str], function: str) -> str:
    found = [
        name for name in backends if function in PLUGINS.backend(name).kernels or any(PLUGINS.extra_kernels(name, function))
    ]
    owners = {name: PLUGINS.registry.owner_of_overlay(name, function) for name in found}
    return " ".join(f"{name} (overlay of {owners[name]})" if owners[name] else name for name in found)


def _is_usable(name: str) -> bool:
    try:
        PLUGINS.backend(name)
    except NNCoreError:
        return False
    return True


@main.command(short_help="Try every installed plugin, and say what to do.")
@click.argument("names", nargs=-1)
@click.option("--test", "-t", is_flag=True, help="Compare ten functions on each of NAMES with the reference, in seconds.")
@click.option("--device-id", "-d", default="0", help="Number of the device to test.")
@click.option("--json", "is_json", is_flag=True, help="Write the findings as JSON.")
def doctor(names: Sequence[str], test: bool, device_id: str, is_json: bool) -> None:
    """Try every installed plugin, and those called NAMES, and say what came of it.

    The backend that programs use when they name none is shown even where it is missing. The exit status is 1 when a
    plugin is broken, one of NAMES cannot be used, or a function that was tested does not agree with the reference.
    """
    if test and not names:
        raise click.UsageError("--test must be given the names of backends, for example: nn-core doctor --test cpu")
    findings = examine([*names, *{installed.PREFERRED_BACKEND} - {*names, *installed.entry_points()}])
    say((_json if is_json else _text)(findings))
    if any(row.state is State.BROKEN or (row.name in names and row.state is not State.LOADED) for row in findings):
        sys.exit(1)
    agree = [_is_tested(name, device_id) for name in names if test]
    if not all(agree):
        sys.exit(1)


def _json(findings: Sequence[Finding]) -> str:
    limits = [{"threads": count, "limit": text} for count, text in thread_limits()]
    return as_json(findings, {"threads": num_threads(), "thread_limits": limits, "cache_mb": cache_mb()})


def _text(findings: Sequence[Finding]) -> str:
    limits = ", ".join(text for _, text in thread_limits())
    process = f"threads of native kernels: {num_threads()} ({limits}); caches: at most {cache_mb()} MB"
    return "\n".join([as_text(findings), "", *(part for line in (process, *unchanged.report()) for part in wrapped(line))])


def _is_tested(name: str, device_id: str) -> bool:
    """Print how functions on a backend compare with the reference; whether they agree."""
    from nn_core.testing.self_test import report  # the other commands do without the functions

    try:
        lines, passed = report(name, device_id)
    except NNCoreError as error:
        raise click.ClickException(str(error)) from error
    say("\n".join(lines))
    return passed


@main.command(short_help="Show versions, settings and installed plugins.")
def info() -> None:
    """Print versions, settings and installed plugins; imports none of them."""
    say(f"nn-core {core_version()}, Python {platform.python_version()}, numpy {np.__version__}")
    for name, value in asdict(settings()).items():
        say(f"NN_CORE_{name.upper()}: {value}")
    for cache in caches():
        entries = "" if cache.count is None else f"{cache.count} entries, "
        say(f"cache of {cache.name}: {entries}{cache.n_bytes / 2**20:.1f} MB of {cache_mb()} MB for all")
    for name, entry_points in installed.entry_points().items():
        say(f"plugin {name}: {' and '.join(packages(entry_points))}")
    say(f"default context: {get_current_context()}")


@main.command("explain", short_help="Show which backends run a function.")
@click.argument("function")
@click.option("--backend", "-b", multiple=True, help="An entry of the priority list, such as cpu:float; best first.")
def explain_function(function: str, backend: Sequence[str]) -> None:
    """Tell which backends run FUNCTION (Affine or affine) in the types of the list, in the order in which they are asked.

    Their kernels are offered sample calls of the function.
    """
    from nn_core.testing.support import explain_samples  # the other commands do without the samples

    try:
        for entry in backend:
            PLUGINS.info(entry.partition(":")[0])
        say(explain_samples(function, Context(backend)))
    except NNCoreError as error:
        raise click.ClickException(str(error)) from error


@main.command("summary", short_help="Print the functions of the networks of a file.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--network", "-n", multiple=True, help="Which network; all by default.")
@click.option(
    "--batch-size", "-b", type=click.IntRange(min=1), default=1, help="Number of samples, where the file leaves it open."
)
@click.option("--dimension", "-d", multiple=True, metavar="NAME=LENGTH", help="The length of an axis that the file names.")
def summary_of_file(file: Path, network: Sequence[str], batch_size: int, dimension: Sequence[str]) -> None:
    """Print shapes, parameters, multiply-adds and memory of the functions of the networks of FILE.

    A package that reads the file must be installed: nn-ext-nnp for .nnp, nn-ext-onnx for .onnx.
    """
    from nn_core.cli.networks import summaries  # the other commands do without graphs

    try:
        say(summaries(file, network, batch_size, dimension))
    except (NNCoreError, OSError) as error:
        raise click.ClickException(str(error)) from error


@main.command(short_help="Write type stubs with the operators of plugins.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=lambda: Path(sysconfig.get_path("purelib")),
    help="Where to write; by default beside the installed packages, where type checkers look.",
)
def stubs(folder: Path) -> None:
    """Write type stubs of nn_core.functions with the operators of the installed plugins."""
    from nn_core.scaffold.stubs import write_stubs  # the other commands do without the functions

    say(write_stubs(folder))


@main.command(short_help="Benchmark this machine beside other frameworks.")
@click.option("--quick", is_flag=True, help="Tiny sizes and a few steps: shows that everything runs, not how fast.")
@click.option(
    "--threads", "-t", type=click.IntRange(min=1), help="Threads of each framework; by default all CPUs of the process."
)
@click.option("--peer", "-p", "peers", multiple=True, help="A framework to compare with; by default all that are installed.")
@click.option("--latency", is_flag=True, help="Times of single calls of small networks, alone and beside two busy processes.")
def bench(quick: bool, threads: int | None, peers: Sequence[str], latency: bool) -> None:
    """Measure this machine for two minutes, beside the frameworks that are installed.

    A matrix product, a convolution, and training and inference of the network of the demo, in nn_core and in those of torch,
    jax, onnxruntime and nnabla that are installed. Each framework has a process of its own and the same number of threads.
    With --latency instead: the median and the 99th percentile of 10,000 calls of each of three small networks with one sample,
    in nn_core, alone and beside two processes that keep cores busy; NN_CORE_NUM_THREADS sets the threads.
    """
    from nn_core.cli.bench.command import run_bench  # the other commands do without it
    from nn_core.cli.bench.latency import run_latency

    try:
        say(run_latency(is_quick=quick) if latency else run_bench(peers, threads, is_quick=quick))
    except NNCoreError as error:
        raise click.ClickException(str(error)) from error


@main.command("new-extension", short_help="Write a package for a plugin, with its tests.")
@click.argument("name")
@click.option("--kind", default="operators", show_default=True, help="What the package brings; --kind=list lists the kinds.")
@click.option(
    "--folder", type=click.Path(path_type=Path, file_okay=False, exists=True), default=Path(), help="Where to write it."
)
def new_extension_command(name: str, kind: str, folder: Path) -> None:
    """Write a package for a plugin called NAME, with tests that pass as they are."""
    from nn_core.scaffold import KINDS, new_extension  # the other commands do without the templates

    if kind == "list":
        say("\n".join(f"{key:<14}{row.what}" for key, row in KINDS.items()))
        return
    try:
        target = new_extension(name, kind, folder)
    except NNCoreError as error:
        raise click.ClickException(str(error)) from error
    say(f"{target}\n  cd {target}\n  pip install --editable '.[test]'\n  python -m pytest")


@main.command("new-operator", short_help="Add an operator to such a package.")
@click.argument("name")
@click.option(
    "--folder", type=click.Path(path_type=Path, file_okay=False, exists=True), default=Path(), help="The package of operators."
)
def new_operator_command(name: str, folder: Path) -> None:
    """Add an operator called NAME (HardSwish) to a package that new-extension has written."""
    from nn_core.scaffold import new_operator

    try:
        changed = new_operator(name, folder)
    except NNCoreError as error:
        raise click.ClickException(str(error)) from error
    say("\n".join(map(str, changed)))


@main.command("check-extension", short_help="Check a package or an installed plugin.")
@click.argument("what")
@click.option("--fast", is_flag=True, help="One sample of each operator in float32, in place of all.")
@click.option("--json", "json_path", type=click.Path(path_type=Path, dir_okay=False), help="Write the report as JSON.")
@click.option("--badge", "badge_path", type=click.Path(path_type=Path, dir_okay=False), help="Write a badge (SVG).")
def check_extension_command(what: str, fast: bool, json_path: Path | None, badge_path: Path | None) -> None:
    """Check a package: WHAT is a folder with a pyproject.toml, or the name of an installed plugin.

    Looks at metadata, at what importing it does, at what it brings, and runs the conformance kit on that. The exit status is 1
    when something fails.
    """
    from nn_core.testing.checkup import check_extension  # the other commands do without the kit

    try:
        certificate = check_extension(what, fast=fast)
    except NNCoreError as error:
        raise click.ClickException(str(error)) from error
    if json_path is not None:
        json_path.write_text(certificate.to_json(), encoding="utf-8")
    if badge_path is not None:
        badge_path.write_text(certificate.badge(), encoding="utf-8")
    say("\n".join(certificate.lines()))
    sys.exit(0 if certificate.ok else 1)


@main.command(context_settings={"allow_interspersed_args": False}, short_help="Run a program that was written for NNabla.")
@click.option("-m", "is_module", is_flag=True, help="PROGRAM is the name of a module, as for python -m.")
@click.option("--keep-values", is_flag=True, help="Clear flags free nothing: for programs that read what NNabla leaves there.")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(program: str, arguments: Sequence[str], is_module: bool, keep_values: bool) -> None:
    """Run PROGRAM, a script written for NNabla, with ARGUMENTS; its imports of nnabla give nn_core.

    The program nnabla_cli stands for the commands here: nn-core run nnabla_cli train -c network.nnp -o results.
    """
    from nn_core.compat.command_line import PROGRAM, as_ours, is_command_line
    from nn_core.compat.program import run_program  # the other commands do without the import hook

    if is_command_line(program, is_module):
        try:
            given = as_ours(arguments)
        except NNCoreError as error:
            raise click.UsageError(str(error)) from error
        main.main(given, prog_name=PROGRAM)
    if not is_module and not Path(program).exists():
        raise click.UsageError(f"run: PROGRAM must be a file, got {program!r}")
    if keep_values:
        os.environ["NN_CORE_KEEP_VALUES"] = "1"  # for the processes that it starts
        set_keep_values(True)
    sys.exit(run_program(program, arguments, is_module=is_module))


def _plain_table(rows: Sequence[Sequence[str]], columns: Sequence[str]) -> str:
    lines = [[part.replace("\n", ", ") for part in row] for row in (columns, *rows)]
    widths = [max(len(row[column]) for row in lines) for column in range(len(columns))]
    return "\n".join("  ".join(part.ljust(width) for part, width in zip(row, widths, strict=True)).rstrip() for row in lines)


PLUGINS.offers.reserve("commands", main.commands)

if __name__ == "__main__":
    main()
