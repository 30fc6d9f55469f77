"""Install packages that misbehave beside a program that does not use them: its bits are the same, and doctor names them.

    python -m tools.lanes.packages --count 60 --seed 0

The packages are those of `nn_core.testing.hostile`, and others whose metadata is broken in some way. First a training with
the default context runs beside all of them at once. Then each is tried by itself, in processes of its own: the same training,
and ``nn-core doctor``, which may use no other plugin, since it would examine all that are installed here again and again.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import click
import numpy as np

import nn_core
from nn_core.testing.hostile import HOSTILE, Hostile, install

from .reliability import record, report_option

#: A program that uses what every program uses, and a plugin's name that nobody has.
PROGRAM: Final = """
import hashlib
import numpy as np
import nn_core as nn, nn_core.functions as F, nn_core.parametric_functions as PF, nn_core.solvers as S
nn.seed(3)
x = nn.Variable.from_numpy_array(np.arange(12.0, dtype=np.float32).reshape(4, 3))
loss = F.mean(F.relu(PF.affine(F.tanh(PF.affine(x, 5)), 2, name="b")))
solver = S.Adam()
solver.set_parameters(nn.get_parameters())
for _ in range(3):
    loss.forward()
    solver.zero_grad()
    loss.backward()
    solver.update()
F.relu(F.sigmoid(x)).forward(clear_buffer=True)
nn.save_parameters("w.npz")
nn.load_parameters("w.npz")
print(hashlib.sha256(b"".join(p.d.tobytes() for p in nn.get_parameters().values())).hexdigest(), nn.get_current_context())
"""
DOCTOR: Final = "import sys; sys.argv[1:] = ['doctor']; from nn_core.__main__ import main; main()"
#: Settings of the doctor: it examines no other plugin, and waits less than usual for one that hangs.
_EXAMINES: Final = {"NN_CORE_PLUGINS": "+hostile", "NN_CORE_PLUGIN_TIMEOUT": "2", "COLUMNS": "200"}
_ROOT: Final = str(Path(nn_core.__file__).parents[1])
_GROUP: Final = "[nn_core.extensions]\n"


def metadata_packages() -> dict[str, Callable[[Path], None]]:
    """Return packages that are nothing but metadata: a name, and a function that writes one into a folder."""

    def writer(entry_points: bytes, about: bytes | None = b"Name: nn-ext-hostile\nVersion: 1.0\n") -> Callable[[Path], None]:
        def write(folder: Path) -> None:
            place = folder / "nn_ext_hostile-1.0.dist-info"
            place.mkdir(parents=True)
            (place / "entry_points.txt").write_bytes(entry_points)
            if about is not None:
                (place / "METADATA").write_bytes(about)

        return write

    group, index = _GROUP.encode(), b"[nn_core.index]\n"
    return {
        "is not UTF-8": writer(b"[console_scripts]\ncaf\xe9 = a:b\n" + group + b"hostile = a\n"),
        "is UTF-16": writer((_GROUP + "hostile = a\n").encode("utf-16")),
        "names no module": writer(group + b"hostile = plug bad : x y\n"),
        "names nothing": writer(group + b"hostile =\n"),
        "has no METADATA": writer(group + b"hostile = a_module_that_nobody_has\n", None),
        "has binary METADATA": writer(group + b"hostile = a_module_that_nobody_has\n", bytes(range(256))),
        "is called reference": writer(group + b"reference = hostile\n"),
        "is called cpu": writer(group + b"cpu = hostile\n"),
        "calls itself nn-ext-cpu": writer(group + b"cpu = hostile\n", b"Name: nn-ext-cpu\nVersion: 9.0\n"),
        "is called onnx": writer(group + b"onnx = hostile\n"),
        "lists what others bring": writer(group + b"hostile = nobody\n" + index + b"solvers.X = cpu\noverlays.cpu = cpu\n"),
        "claims to overlay": writer(group + b"hostile = nobody\n" + index + b"overlays.cpu = hostile\npasses.a = hostile\n"),
    }


def packages() -> dict[str, Callable[[Path], None]]:
    """Return all packages by what they do."""

    def writer(hostile: Hostile) -> Callable[[Path], None]:
        return lambda folder: install(folder, hostile)

    found = {hostile.does: writer(hostile) for hostile in HOSTILE}
    return {**metadata_packages(), **found}


def check_together() -> Iterator[str]:
    """Run the program beside all packages at once, and give the findings as texts."""
    with tempfile.TemporaryDirectory() as folder:
        for number, write in enumerate(packages().values()):
            _write_renamed(write, Path(folder), f"hostile{number}")
        yield from _differences("all packages together: ", run(PROGRAM, folder), _undisturbed())


def _write_renamed(write: Callable[[Path], None], folder: Path, name: str) -> None:
    """Write a package into a folder of several, with `name` in place of its own in paths and files."""
    with tempfile.TemporaryDirectory() as alone:
        write(Path(alone))
        for path in Path(alone).rglob("*"):
            if path.is_file():
                target = folder / str(path.relative_to(alone)).replace("hostile", name)
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(path.read_bytes().replace(b"hostile", name.encode()))


def check(count: int, seed: int) -> Iterator[str]:
    """Try so many packages, each by itself, in an order that the seed decides, and give the findings as texts."""
    everything = packages()
    names = list(everything)
    for name in [names[i] for i in np.random.default_rng(seed).permutation(len(names))][:count]:
        with tempfile.TemporaryDirectory() as folder:
            everything[name](Path(folder))
            yield from _differences(f"a package that {name}: ", run(PROGRAM, folder), _undisturbed())
            told = run(DOCTOR, folder, **_EXAMINES)
            if told.returncode not in (0, 1) or "hostile" not in told.stdout:
                yield f"a package that {name}: doctor ends with {told.returncode}: {(told.stdout + told.stderr)[-500:]}"


Result: TypeAlias = "subprocess.CompletedProcess[str]"


@cache
def _undisturbed() -> Result:
    return run(PROGRAM, None)


def _differences(what: str, found: Result, expected: Result) -> Iterator[str]:
    """Give a finding if a program ended or printed otherwise."""
    if (found.returncode, found.stdout) != (expected.returncode, expected.stdout):
        yield f"{what}a program gives {found.stdout or found.stderr[-500:]}, {expected.stdout} without"


def run(program: str, folder: str | None, **variables: str) -> Result:
    """Run a program in an empty folder, with packages of another on the search path."""
    path = os.pathsep.join([*([folder] if folder else []), _ROOT])
    settings = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", **variables}
    with tempfile.TemporaryDirectory() as empty:
        return subprocess.run(
            [sys.executable, "-c", program], cwd=empty, env={**os.environ, **settings}, capture_output=True, text=True,
            check=False, timeout=300,
        )  # fmt: skip


@click.command()
@click.option("--count", default=2, show_default=True, help="Packages to try each by itself.")
@click.option("--seed", default=0, show_default=True)
@report_option
def main(count: int, seed: int, report: Path | None) -> None:
    """Install packages that misbehave; the exit status is 1 if there is a finding."""
    n_packages = len(packages())
    count = min(count, n_packages)
    together = list(check_together())
    record(report, "packages", "all at once", count=n_packages, findings=len(together))
    alone = list(check(count, seed))
    record(report, "packages", "each by itself, and nn-core doctor", count=count, findings=len(alone), seed=seed)
    findings = [*together, *alone]
    for text in findings:
        click.echo(f"--- {text}")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.packages")
