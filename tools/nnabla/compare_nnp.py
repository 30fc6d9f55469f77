"""Save a network of every function with nn_core and with NNabla, and let each package run the files of the other.

    python tools/nnabla/compare_nnp.py --nnabla-python /path/to/python3.10 [--cases 1] [--only affine,convolution]

Printed is, for both directions, how many functions were read with equal results (of random ones, equal shapes), and what
became of the others. The exit status is 1 if a file of the other package is read with another result.
"""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))

from compare_nnabla import write_cases
from nnabla_samples import SAMPLES

RUNNER = Path(__file__).with_name("run_nnp_cases.py")
TOLERANCE = 1e-5


def run_all(python: str, folder: Path, package: str, stage: str, n_cases: int) -> None:
    """Run the cases in an interpreter; after a case that ends the process continue with the next."""
    first = 0
    while first < n_cases:
        command = [python, str(RUNNER), str(folder), package, stage, str(first)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        at = folder / f"{package}.{stage}.at"
        if done.returncode == 0:
            return
        if not at.exists():
            raise click.ClickException(f"{python} must be able to run {package}, got:\n{done.stderr}")
        first = int(at.read_text()) + 1
        (folder / f"{first - 1}.{package}.{stage}.txt").write_text(f"the process ended: {done.stderr.strip()[-200:]}")


def outcome(folder: Path, number: int, writer: str, reader: str, case: dict, tolerance: float) -> str:
    """ "equal", or what happened to the file of `writer` in `reader`."""
    error = folder / f"{number}.{writer}.write.txt"
    if error.exists():
        return f"not written by {writer}: {error.read_text()}"
    error = folder / f"{number}.{reader}.read.txt"
    if error.exists():
        return f"not read by {reader}: {error.read_text()}"
    written, read = np.load(folder / f"{number}.{writer}.write.npz"), np.load(folder / f"{number}.{reader}.read.npz")
    if set(written.files) != set(read.files):
        return f"other outputs: {read.files} in place of {written.files}"
    for name in written.files:
        a, b = written[name], read[name]
        if a.shape != b.shape:
            return f"other shape: {b.shape} in place of {a.shape}"
        if not case.get("random") and a.size:
            scale = max(1.0, float(np.nanmax(np.abs(np.where(np.isfinite(a), a, 0)))))
            if not np.allclose(b.astype(float), a.astype(float), rtol=0, atol=tolerance * scale, equal_nan=True):
                return f"different: {name} by {np.nanmax(np.abs(b.astype(float) - a.astype(float))):.2e}"
    return "equal"


@click.command()
@click.option("--nnabla-python", required=True, help="An interpreter in which NNabla can be imported.")
@click.option("--cases", "n_cases", default=1, help="Cases of each function.")
@click.option("--only", default="", help="Functions to compare, separated by commas.")
@click.option("--seed", default=0, help="Seed of the cases.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to keep the files; by default they are removed.")
def main(nnabla_python: str, n_cases: int, only: str, seed: int, folder: Path | None) -> None:
    """Compare, print and exit."""
    names = [name for name in SAMPLES if not only or name in only.split(",")]
    with TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        cases = write_cases(place, names, n_cases, seed)
        for stage in ("write", "read"):
            run_all(sys.executable, place, "nn_core", stage, len(cases))
            run_all(nnabla_python, place, "nnabla", stage, len(cases))
        wrong = False
        for writer, reader in (("nn_core", "nnabla"), ("nnabla", "nn_core")):
            found = defaultdict(list)
            for number, case in enumerate(cases):
                found[case["api"]].append(outcome(place, number, writer, reader, case, TOLERANCE))
            equal = [api for api, results in found.items() if all(result == "equal" for result in results)]
            click.echo(f"written by {writer}, read by {reader}: {len(equal)} of {len(found)} functions equal")
            for api, results in found.items():
                for result in results:
                    if result != "equal":
                        click.echo(f"  {api}: {result}")
                        wrong = wrong or result.startswith(("different", "other"))
    sys.exit(int(wrong))


if __name__ == "__main__":
    main()
