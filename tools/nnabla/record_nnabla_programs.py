"""Record what NNabla prints for the programs in tests/nnabla_programs, each beside its program as a file ``.out``.

    python tools/nnabla/record_nnabla_programs.py --nnabla-python /path/to/python3.10 [graphs/hooks.py ...]

NNabla needs an interpreter of its own, because it has no release for newer Pythons: any environment where
``import nnabla`` works. The first line of a file names the versions. tests/integration/test_nnabla_programs.py compares
the files with what ``nn-core run`` prints.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click

PROGRAMS = Path(__file__).parents[2] / "tests" / "nnabla_programs"

_VERSIONS = """
import platform, nnabla, numpy
print(f"# NNabla {nnabla.__version__}, numpy {numpy.__version__}, Python {platform.python_version()}")
"""

#: How a remark starts that NNabla's libraries write to the output of the program.
_REMARK = "Inconsistent shape in input "


def record(python: str, program: Path, versions: str) -> None:
    """Run `program` in an empty folder and write what it printed; a failing program ends the recording."""
    with TemporaryDirectory() as folder:
        result = subprocess.run([python, str(program)], cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        raise click.ClickException(f"{program.relative_to(PROGRAMS)} failed\n{result.stderr}")
    lines = [line for line in result.stdout.splitlines() if not line.startswith(_REMARK)]
    program.with_suffix(".out").write_text("\n".join([versions, *lines]) + "\n", encoding="utf-8")


@click.command()
@click.option("--nnabla-python", required=True, help="An interpreter in which `import nnabla` works.")
@click.argument("programs", nargs=-1)
def main(nnabla_python: str, programs: Sequence[str]) -> None:
    """Record PROGRAMS, or all of them."""
    result = subprocess.run([nnabla_python, "-c", _VERSIONS], capture_output=True, text=True, check=False)
    if result.returncode:
        raise click.ClickException(f"{nnabla_python} cannot import nnabla\n{result.stderr}")
    chosen = [PROGRAMS / name for name in programs] or sorted(PROGRAMS.glob("*/*.py"))
    for program in chosen:
        record(nnabla_python, program.resolve(), result.stdout.strip())
        click.echo(program.relative_to(PROGRAMS))


if __name__ == "__main__":
    sys.exit(main())
