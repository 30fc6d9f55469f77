"""Draw small networks with loops and let NNabla compute them: data for the tests of nn_ext_nnp.

    python tools/lanes/network_values.py --nnabla-python PYTHON --output extensions/nn_ext_nnp/tests/data/networks.json.xz

The file has the texts, which give all parameters, and the results of NNabla's executors for two numbers of samples.
"""

import base64
import json
import lzma
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.lanes.drawn.files import Drawn, drawn_file
from tools.nnabla.compare_networks import results_of, run_all

#: Longer texts are left out.
_LONGEST = 24_000


def small_files(count: int) -> list[Drawn]:
    """Files whose numbers all follow from the text: no initializers, nothing random, loops."""
    found: list[Drawn] = []
    seed = 0
    while len(found) < count:
        drawn, seed = drawn_file(seed, given=True), seed + 1
        networks = drawn.about["networks"].values()
        is_plain = not any(more["random"] or more["generators"] for more in networks)
        if is_plain and len(drawn.text) < _LONGEST and any(more["loops"] for more in networks):
            found += [] if "initializer" in drawn.text or "重み" in drawn.text else [drawn]
    return found


def entry(array: Any) -> dict[str, Any]:
    """Return an array as JSON."""
    values = np.ascontiguousarray(array, np.float32)
    return {"shape": values.shape, "data": base64.b64encode(values.tobytes()).decode()}


@click.command()
@click.option("--nnabla-python", required=True, help="An interpreter in which NNabla can be imported.")
@click.option("--output", required=True, type=click.Path(path_type=Path), help="File to write.")
@click.option("--files", default=12, show_default=True, help="Number of texts.")
def main(nnabla_python: str, output: Path, files: int) -> None:
    """Draw, compute, write."""
    chosen = small_files(files)
    seeds = [drawn.about["seed"] for drawn in chosen]
    written = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "seeds").write_text(json.dumps(seeds))
        for drawn in chosen:
            (folder / f"{drawn.about['seed']}.json").write_text(json.dumps(drawn.about))
            (folder / f"{drawn.about['seed']}.nntxt").write_text(drawn.text, encoding="utf-8")
        run_all(nnabla_python, folder, "nnabla", seeds)
        for drawn in chosen:
            arrays, errors = results_of(folder, drawn.about["seed"], "nnabla")
            kept = {key: entry(array) for key, array in arrays.items() if key.startswith("run_executors")}
            written += [] if errors else [{"text": drawn.text, "about": drawn.about, "values": kept}]
    with lzma.open(output, "wb", preset=9) as file:
        file.write(json.dumps(written).encode())
    click.echo(f"{len(written)} files, {output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
