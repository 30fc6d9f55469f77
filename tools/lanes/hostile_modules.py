"""Run commands and readers in a folder of modules called like those that Python, its packages and nn_core import.

    python -m tools.lanes.hostile_modules --count 60 --seed 0

Each module leaves its name in a file when it is imported, and ends the process. A step is a command of nn-core, a reader of
files, or a child process of one; steps run in processes without switches, with -P and with -I, as users start them from a
folder that somebody else has filled. A finding is a module that was imported, or a step that did not come to its end.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click
import h5py
import numpy as np

import nn_core as nn
import nn_core.parametric_functions as PF
from nn_core.utils.save import save

from .reliability import record, report_option

#: Packages of others that are imported, by us or by what we use, and modules that Python itself looks for.
_PACKAGES: Final = (
    *(
        "numpy",
        "h5py",
        "yaml",
        "pluggy",
        "click",
        "mpi4py",
        "nn_core",
        "nn_ext_cpu",
        "nn_ext_mpi",
        "nn_ext_onnx",
        "nn_ext_nnp",
    ),
    *("google", "onnx", "PIL", "packaging", "torch", "tqdm", "importlib_metadata", "pytest", "scipy", "pyarrow"),
    *("ml_dtypes", "sitecustomize", "usercustomize", "tomllib", "resource", "tensorboard", "matplotlib", "sklearn"),
)
#: Modules that no interpreter starts without, or that cannot be hidden.
_NEVER: Final = frozenset({"__main__", "_frozen_importlib", "sys", "builtins", "this", "antigravity", "idlelib", "turtledemo"})
NAMES: Final = sorted({*(sys.stdlib_module_names - _NEVER), *_PACKAGES})

COMMANDS: Final[tuple[tuple[str, ...], ...]] = tuple(
    tuple(line.split())
    for line in """
    info
    ops tanh
    explain Tanh
    doctor nnp
    dump foreign.h5
    dump m.nnp
    dump m.nntxt
    summary m.nnp
    convert m.nnp o.onnx
    convert m.nnp o.nnb
    convert m.nnp csrc -O CSRC
    export-c m.nnp c
    forward -c m.nnp -d t.csv -o out
    infer -c m.nnp -o oi in.bin
    decode_param -p p.h5 -o texts
    encode_param -i texts -p e.h5
    draw_graph m.nnp -o drawn -f dot
    compare -c m.nnp
    profile -c m.nnp -r 1
    function_info
    nnb_template m.nnp t.yaml
    conv_dataset -F t.csv d.cache
    stubs stubs
    new-extension acme --kind functions
    plot_series s.series.txt -o s.png
    plot_timer s.series.txt -o u.png
    evaluate -c m.nnp
    train -c m.nntxt -o trained
    optimize
    bench --help
    launch --root -n 2 {elsewhere}/program.py
    run {elsewhere}/program.py
    serve m.nnp --check
    """.strip().splitlines()
)
READERS: Final = (
    *(f"nn.load_parameters({name!r})" for name in ("foreign.h5", "p.h5", "p.npz", "p.safetensors", "m.nnp")),
    "import nn_core.utils.load as u; u.load(['m.nnp'])",
    "import nn_core.utils.load as u; u.load(['m.nntxt'])",
    "from nn_core.data.table import CsvDataSource as C; C('t.csv').next()",
    "from nn_core.data.array_sources import Hdf5DataSource as H; H('foreign.h5').next()",
    "from nn_core.utils.image_utils import imread; imread('i.png')",
    "nn.save_parameters('again.h5')",
)
_STEP: Final = """
import sys
words = {words!r}
try:
    if isinstance(words, tuple):
        from nn_core.__main__ import main
        sys.argv[1:] = words
        main()
    else:
        import nn_core as nn
        exec(words)
except SystemExit as end:
    if end.code not in (None, 0, 1, 2):
        raise
except Exception as error:
    print("RAISED", type(error).__name__, error)
print("DONE")
"""


def steps() -> list[tuple[str, ...] | str]:
    """Return commands as words, and readers as statements."""
    return [*COMMANDS, *READERS]


def _write_files(folder: Path, elsewhere: Path) -> None:
    elsewhere.mkdir()
    (elsewhere / "program.py").write_text("import nn_core\n")
    with nn.parameter_scope("", {}):
        x = nn.Variable((1, 3))
        y = PF.affine(x, 2, name="a")
        for name in ("p.h5", "p.npz", "p.safetensors"):
            nn.save_parameters(folder / name)
        contents: dict[str, Any] = {
            "networks": [{"name": "n", "batch_size": 1, "outputs": {"y": y}, "names": {"x": x}}],
            "executors": [{"name": "runtime", "network": "n", "data": ["x"], "output": ["y"]}],
        }
        for name in ("m.nnp", "m.nntxt"):
            save(folder / name, contents)
    with h5py.File(folder / "foreign.h5", "w") as file:  # read on trial, in a process of its own
        file.create_dataset("conv/W", data=np.ones((2, 3), np.float32), chunks=(1, 3), compression="gzip")
    np.ones(3, np.float32).tofile(folder / "in.bin")
    (folder / "t.csv").write_text("x__0,x__1,x__2\n1,2,3\n4,5,6\n")
    (folder / "s.series.txt").write_text("0 1.0\n1 2.0\n")


class Lane:
    """A folder of hostile modules with files among them."""

    def __init__(self, folder: Path) -> None:
        self._hostile, self._elsewhere, self._ran = folder / "hostile", folder / "elsewhere", folder / "ran"
        self._hostile.mkdir()
        _write_files(self._hostile, self._elsewhere)
        for name in NAMES:
            text = f"import sys\nopen({str(self._ran)!r}, 'a').write('{name} ')\nraise SystemExit(9)\n"
            (self._hostile / f"{name}.py").write_text(text)

    def check(self, step: tuple[str, ...] | str, switches: Sequence[str]) -> str:
        """Return what is wrong with a step in a process of these switches; empty where nothing is."""
        self._ran.unlink(missing_ok=True)
        words = tuple(word.format(elsewhere=self._elsewhere) for word in step) if isinstance(step, tuple) else step
        (self._elsewhere / "step.py").write_text(_STEP.format(words=words))
        done = subprocess.run(
            [sys.executable, *switches, str(self._elsewhere / "step.py")],
            cwd=self._hostile, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        if self._ran.exists():
            return f"imports {self._ran.read_text()}from the current directory"
        return "" if "DONE" in done.stdout else f"ends with {done.returncode}: {(done.stdout + done.stderr)[-300:]}"


def check(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Try so many steps and switches, chosen by the seed, and give those with findings."""
    everything = [(step, switches) for step in steps() for switches in ((), ("-P",), ("-I",))]
    if sys.version_info < (3, 11):
        everything = [(step, switches) for step, switches in everything if switches != ("-P",)]
    order = np.random.default_rng(seed).permutation(len(everything))[:count]
    with tempfile.TemporaryDirectory() as folder:
        lane = Lane(Path(folder).resolve())
        for number in order:
            finding = lane.check(*everything[number])
            if finding:
                yield " ".join(map(str, everything[number])), finding


@click.command()
@click.option("--count", default=4, show_default=True, help="Steps and switches; 0: all.")
@click.option("--seed", default=0, show_default=True)
@report_option
def main(count: int, seed: int, report: Path | None) -> None:
    """Run steps in a folder of hostile modules; the exit status is 1 if there is a finding."""
    n_all = len(steps()) * (2 if sys.version_info < (3, 11) else 3)
    count = min(count or n_all, n_all)
    findings = 0
    for step, text in check(count, seed):
        findings += 1
        click.echo(f"--- {step}: {text}")
    note = f"{len(NAMES)} modules"
    record(report, "current directory", "commands and readers", count=count, findings=findings, seed=seed, note=note)
    sys.exit(bool(findings))


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.hostile_modules")
