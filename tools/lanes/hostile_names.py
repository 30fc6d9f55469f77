"""Let files name things as no file should: nothing is written outside of the folder that a command was given.

    python -m tools.lanes.hostile_names --count 500 --seed 0

Every name that a file of networks or parameters has (of networks, inputs, outputs, losses, data sets, optimizers, monitors,
executors and parameters) is replaced by every name of `NAMES`, and every command and writer that takes names from such a file
runs; and every writer that a program hands such a name gets it (`named_writers`). Nothing outside of the folder of its results
may be touched, as audit events tell; a command ends with 0, 1 or 2 and no traceback; what it prints, and the names of files
that it makes, have no control characters.
"""

import contextlib
import io
import itertools
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import click
import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.__main__ import main as command_line
from nn_core.errors import NNCoreError
from nn_core.files.formats import FORMATS
from nn_core.utils.save import save

from .named_writers import NAMED_WRITERS
from .outside import Outside
from .reliability import record, report_option

#: Hostile names, as texts of protobuf write them.
NAMES: Final = {
    "a parent": "../../EVIL",
    "a parent within": "a/../../../EVIL",
    "a parent of Windows": r"..\\..\\EVIL",
    "an absolute path": "/tmp/nn_core_EVIL/x",
    "a drive": "C:\\\\\\\\EVIL",
    "a share": r"\\\\\\\\host\\\\EVIL",
    "a home": "~/EVIL",
    "a device": "CON",
    "a device of Linux": "/dev/stdout",
    "a link that leads out": "out_link/EVIL",
    "a parent at the end": "a/..",
    "a dot": ".",
    "nothing": "",
    "NUL": r"a\000b",
    "a line end": r"a\nEVIL: b",
    "an escape sequence": r"\033[31mEVIL\033]0;x\007",
    "a right-to-left mark": r"\342\200\256EVIL",
    "300 characters": "L" * 300,
    "a part in two cases": "Y/y",
    "a stream": "a:b:$DATA",
    "a substitution": "$(touch EVIL)`touch EVIL`%s%n{0}",
    "an option": "--output=EVIL",
    "no UTF-8": r"\377\376EVIL",
    "a comma": "a,b",
    "a quote": r"\"a",
    "a carriage return": r"a\rb",
    "a name that differs in case": "loss",
}
#: Stands for a name that a program hands a writer.
ARGUMENT: Final = "the argument"
#: Fields with names in `_write_text`.
FIELDS: Final = ("NETW", "OUTP", "INPT", "LOSS", "DSET", "OPTI", "MONI", "EXEC", "PARAM")
_SHOWN: Final = re.compile(r"[^\n\t\x20-\x7e\u00a0-\ud7ff\ue000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def _write_text(folder: Path) -> str:
    """Return a file of networks as text, with all kinds of names; its data set lies beside it."""
    (folder / "t.csv").write_text("x__0,x__1,x__2,y\n1,2,3,0\n4,5,6,1\n1,2,3,0\n4,5,6,1\n")
    np.ones(6, np.float32).tofile(folder / "in.bin")
    with nn.parameter_scope("", {}):
        x, t = nn.Variable((2, 3)), nn.Variable((2, 1))
        y = PF.affine(x, 2, name="PARAM")
        loss = F.mean(F.softmax_cross_entropy(y, t))
        solver = S.Sgd()
        solver.set_parameters(nn.get_parameters())
        names = {"INPT": x, "TGT": t}
        contents = {
            "networks": [{"name": "NETW", "batch_size": 2, "outputs": {"OUTP": y, "LOSS": loss}, "names": names}],
            "datasets": [{"name": "DSET", "uri": "t.csv", "batch_size": 2, "variables": {"x": x, "y": t}}],
            "optimizers": [
                {
                    "name": "OPTI", "solver": solver, "network": "NETW", "dataset": "DSET", "loss_variables": ["LOSS"],
                    "data_variables": {"INPT": "x", "TGT": "y"},
                }
            ],
            "monitors": [
                {
                    "name": "MONI", "network": "NETW", "dataset": "DSET", "monitor_variables": ["LOSS"],
                    "data_variables": {"INPT": "x", "TGT": "y"},
                }
            ],
            "training_config": {"max_epoch": 1, "iter_per_epoch": 2, "save_best": True},
            "executors": [{"name": "EXEC", "network": "NETW", "data": ["INPT"], "output": ["OUTP"]}],
        }  # fmt: skip
        save(folder / "m.nntxt", contents)
    return (folder / "m.nntxt").read_text()


def _command(*words: str) -> Callable[[], None]:
    return lambda: command_line(list(words), standalone_mode=True)


def _loaded(write: Callable[[], object]) -> Callable[[], None]:
    """Return a writer of the parameters of the file."""

    def run() -> None:
        with nn.parameter_scope("", {}):
            nn.load_parameters("h.nntxt")
            write()

    return run


#: Everything that takes names from a file, with what it writes into ``o``.
WRITERS: Final[dict[str, Callable[[], None]]] = {
    "forward": _command("forward", "-c", "h.nntxt", "-d", "t.csv", "-o", "o/f"),
    "infer": _command("infer", "-c", "h.nntxt", "-o", "o/i/", "in.bin"),
    "draw_graph": _command("draw_graph", "h.nntxt", "-o", "o/d", "-f", "dot"),
    "profile": _command("profile", "-c", "h.nntxt", "-o", "o/p", "-r", "1"),
    "convert to .nnb": _command("convert", "h.nntxt", "o/n.nnb"),
    "convert to C": _command("convert", "h.nntxt", "o/c", "-O", "CSRC"),
    "convert to .nnp": _command("convert", "h.nntxt", "o/n.nnp"),
    "convert to .onnx": _command("convert", "h.nntxt", "o/n.onnx"),
    "export-c": _command("export-c", "h.nntxt", "o/x"),
    "nnb_template": _command("nnb_template", "h.nntxt", "o/t.yaml"),
    "dump": _command("dump", "h.nntxt"),
    "summary": _command("summary", "h.nntxt"),
    "train": _command("train", "-c", "h.nntxt", "-o", "o/t"),
    "evaluate": _command("evaluate", "-c", "h.nntxt", "-o", "o/e.csv"),
    "compare": _command("compare", "-c", "h.nntxt", "-o", "o/m"),
    **{f"parameters to {name}": _loaded(lambda name=name: nn.save_parameters(f"o/p{name}")) for name in FORMATS},  # type: ignore[misc]
    "parameters as texts": _loaded(
        lambda: (nn.save_parameters("o/p.npz"), command_line(["decode_param", "-p", "o/p.npz", "-o", "o/texts"]))
    ),
}


class Case(NamedTuple):
    """The field that has a name, the name, and the writer."""

    field: str
    name: str
    writer: str


def cases() -> list[Case]:
    """Return all cases."""
    of_files = itertools.product(FIELDS, NAMES, WRITERS)
    of_programs = itertools.product([ARGUMENT], NAMES, NAMED_WRITERS)
    return [Case(*names) for names in itertools.chain(of_files, of_programs)]


class Lane:
    """Tries cases in a folder; its hook on audit events stays in the process for good."""

    def __init__(self, folder: Path) -> None:
        self._work = folder / "l1" / "l2" / "work"
        (self._work / "o").mkdir(parents=True)
        self._text = _write_text(self._work)
        self._outside = Outside()

    def check(self, case: Case) -> str:
        """Return what is wrong with a case; empty where nothing is."""
        shutil.rmtree(self._work / "o")
        (self._work / "o").mkdir()
        (self._work / "out_link").unlink(missing_ok=True)
        (self._work / "o" / "out_link").symlink_to(self._work.parent)
        text = re.sub(rf"\b{case.field}\b", lambda _: NAMES[case.name], self._text)
        (self._work / "h.nntxt").write_text(text, encoding="utf-8")
        before = self._files()
        heard = io.StringIO()
        with (
            _inside(self._work), contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard),
            self._outside.of(self._work),
        ):  # fmt: skip
            ended = _run(_writer(case))
        return ended or self._finding(before, heard.getvalue())

    def _files(self) -> dict[Path, int]:
        """Return the files that a writer may not change, with the times of their last changes."""
        results = self._work / "o"
        everything = [path for path in self._work.parents[1].rglob("*") if not path.is_relative_to(results)]
        return {path: path.stat().st_mtime_ns for path in everything if path.is_file()}

    def _finding(self, before: dict[Path, int], told: str) -> str:
        if self._outside.touched:
            return f"touches {', '.join(self._outside.touched)[:300]}"
        changed = [path for path, time in self._files().items() if before.get(path) != time]
        if changed:
            return f"writes {changed[0]}"
        if "Traceback" in told:
            return f"prints a traceback: {told[-300:]!r}"
        if _SHOWN.search(told):
            return f"prints control characters: {_SHOWN.findall(told)[:3]!r}"
        odd = [path.name for path in (self._work / "o").rglob("*") if _CONTROL.search(path.name)]
        return f"makes the file {odd[0]!r}" if odd else ""


def _writer(case: Case) -> Callable[[], object]:
    """Return what a case runs."""
    if case.field != ARGUMENT:
        return WRITERS[case.writer]
    name = eval(f'b"{NAMES[case.name]}"').decode(errors="surrogateescape")  # as texts of protobuf are read
    return lambda: NAMED_WRITERS[case.writer](name)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _run(write: Callable[[], object]) -> str:
    try:
        write()
    except SystemExit as end:
        return "" if end.code in (None, 0, 1, 2) else f"ends with {end.code!r}"[:300]
    except NNCoreError as error:
        return f"says {str(error)[:200]!r}" if _SHOWN.search(str(error)) else ""
    except Exception as error:
        return f"ends in {type(error).__name__}: {error}"[:300]
    return ""


def check(count: int, seed: int) -> Iterator[tuple[Case, str]]:
    """Try so many cases, chosen by the seed, and give those with findings."""
    everything = cases()
    order = np.random.default_rng(seed).permutation(len(everything))[:count]
    with tempfile.TemporaryDirectory() as folder:
        lane = Lane(Path(folder).resolve())
        for number in order:
            finding = lane.check(everything[number])
            if finding:
                yield everything[number], finding


@click.command()
@click.option("--count", default=150, show_default=True, help="Cases; 0: all.")
@click.option("--seed", default=0, show_default=True)
@report_option
def main(count: int, seed: int, report: Path | None) -> None:
    """Write what hostile files name; the exit status is 1 if there is a finding."""
    count = min(count or len(cases()), len(cases()))
    logging.disable(logging.CRITICAL)
    os.environ["HOME"] = tempfile.gettempdir()
    findings = 0
    for case, text in check(count, seed):
        findings += 1
        click.echo(f"--- {case.writer}, {case.field} is {case.name}: {text}")
    record(report, "names in files", "writers of what they name", count=count, findings=findings, seed=seed)
    sys.exit(bool(findings))


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.hostile_names")
