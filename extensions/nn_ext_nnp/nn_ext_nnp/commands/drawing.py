"""Draw curves of monitors, and graphs of networks."""

import io
import tempfile
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import click

import nn_core as nn
import nn_core.functions as F
from nn_core.experimental.viewers import SimpleGraph
from nn_core.ext import ArgumentError, FileFormatError, PluginError, atomic_writer, axis_lengths, one_line, path_below, say
from nn_core.monitor import plot_series as draw_series
from nn_core.monitor import plot_time_elapsed as draw_times
from nn_ext_nnp.commands.dimensions import dimension_option
from nn_ext_nnp.commands.failing import clean_failures
from nn_ext_nnp.commands.networks import networks_of

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_OPTIONS: Final = (
    click.argument("infile", nargs=-1, required=True, type=_FILE),
    click.option("-l", "--label", multiple=True, help="Label of a curve; once for each file."),
    click.option("-o", "--outfile", type=click.Path(dir_okay=False, path_type=Path), help="Picture to write; else a window."),
    click.option("-x", "--xlabel", help="Label of the horizontal axis."),
    click.option("-y", "--ylabel", help="Label of the vertical axis."),
    click.option("-t", "--title", help="Title."),
    click.option("-T", "--ylim-max", type=float, help="End of the vertical axis."),
    click.option("-B", "--ylim-min", type=float, help="Start of the vertical axis."),
    click.option("-R", "--xlim-max", type=float, help="End of the horizontal axis."),
    click.option("-L", "--xlim-min", type=float, help="Start of the horizontal axis."),
)


def _plot_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("plot_series")
@_plot_options
@clean_failures
def plot_series(infile: tuple[Path, ...], **settings: Any) -> None:
    """Plot files that MonitorSeries has written.

    Example: nn-core plot_series -x Epochs -l A -l B -o loss.png a/loss.series.txt b/loss.series.txt
    """
    _plot(draw_series, infile, **settings)


@click.command("plot_timer")
@_plot_options
@click.option("-e", "--elapsed", is_flag=True, help="Plot the time since the start, not that of an iteration.")
@click.option("-u", "--time-unit", type=click.Choice(["s", "m", "h", "d"]), default="s", help="Unit of time.")
@clean_failures
def plot_timer(infile: tuple[Path, ...], elapsed: bool, time_unit: str, **settings: Any) -> None:
    """Plot files that MonitorTimeElapsed has written.

    Example: nn-core plot_timer -e -u m -o time.png results/epoch.timer.txt
    """

    def draw(path: Path, plot_kwargs: dict[str, Any]) -> None:
        draw_times(path, elapsed, time_unit, plot_kwargs)

    _plot(draw, infile, **settings)


def _plot(
    draw: Callable[[Path, dict[str, Any]], None],
    files: Sequence[Path],
    label: Sequence[str],
    outfile: Path | None,
    xlabel: str | None,
    ylabel: str | None,
    title: str | None,
    **limits: float | None,
) -> None:
    if len(label) > len(files):
        raise ArgumentError(f"--label must be given once for each of the {len(files)} files, got {len(label)}")
    pyplot = _pyplot(for_file=outfile is not None)
    figure = pyplot.figure()
    try:
        for path, name in zip_longest(files, label):
            try:
                draw(path, {"label": name or str(path)})
            except (ValueError, IndexError) as error:
                raise FileFormatError(
                    f"{path}: must have lines of numbers that a monitor writes, got: {one_line(error)}"
                ) from error
        axes = figure.gca()
        axes.set(**{key: value for key, value in (("xlabel", xlabel), ("ylabel", ylabel), ("title", title)) if value})
        axes.set_xlim(limits["xlim_min"], limits["xlim_max"])
        axes.set_ylim(limits["ylim_min"], limits["ylim_max"])
        axes.legend()
        _show(figure, outfile, pyplot)
    finally:
        pyplot.close(figure)


def _pyplot(*, for_file: bool) -> Any:
    """Return the module that plots, which is an extra."""
    try:
        import matplotlib as mpl
        from matplotlib import pyplot
    except ImportError as error:
        raise PluginError(
            f"plots: matplotlib must be installed, got: {error}\n  hint: pip install 'nn-ext-nnp[plots]'"
        ) from error
    if for_file:
        mpl.use("agg")  # a file needs no display
    return pyplot


def _show(figure: Any, outfile: Path | None, pyplot: Any) -> None:
    if outfile is None:
        pyplot.show()
        return
    known = sorted(figure.canvas.get_supported_filetypes())
    kind = outfile.suffix.lower().removeprefix(".") or "png"
    if kind not in known:
        raise ArgumentError(f"--outfile must have one of the extensions {', '.join(known)}, got {outfile.suffix!r}")
    content = io.BytesIO()
    figure.savefig(content, format=kind)
    with atomic_writer(outfile) as file:
        file.write(content.getvalue())


@click.command("draw_graph")
@click.argument("config", metavar="INPUT", type=_FILE)
@click.option("-o", "--output-dir", default="draw_out", type=click.Path(file_okay=False, path_type=Path), help="Folder.")
@click.option("-n", "--network", multiple=True, help="Which network; all by default.")
@click.option("-f", "--format", "kind", default="png", help="Format: html and dot need no Graphviz; png, pdf, svg, ... do.")
@dimension_option
@clean_failures
def draw_graph(config: Path, output_dir: Path, network: tuple[str, ...], kind: str, dimensions: tuple[str, ...]) -> None:
    """Draw the networks of INPUT, one file each.

    Example: nn-core draw_graph -o pictures -f html network.nnp
    """
    with nn.parameter_scope("", {}):
        networks = networks_of(config, "draw_graph", network, axis_lengths("draw_graph", dimensions))
        pictures = _pictures(list(networks), output_dir, kind)
        output_dir.mkdir(parents=True, exist_ok=True)
        for name, picture in pictures.items():
            outputs = list(networks[name].outputs.values())
            root = outputs[0] if len(outputs) == 1 else F.sink(*outputs)
            with tempfile.TemporaryDirectory(dir=output_dir, prefix=".") as folder:
                Path(SimpleGraph(format=kind).save(root, f"{folder}/{picture.stem}")).replace(picture)
                say(str(picture))


def _pictures(names: Sequence[str], output_dir: Path, kind: str) -> dict[str, Path]:
    """Return the path of the picture of each network, or refuse names that no file or more than one would have."""
    pictures = {name: path_below(output_dir, f"{name.replace('/', '_')}.{kind}") for name in names}
    seen: dict[str, str] = {}
    for name, path in pictures.items():
        other = seen.setdefault(path.name.casefold(), name)
        if other != name:
            raise ArgumentError(
                f"draw_graph: networks must have names of different files, got {other!r} and {name!r}\n"
                "  hint: draw them one by one, with -n and another folder for each"
            )
    return pictures
