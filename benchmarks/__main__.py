"""Time the workloads in nn_core and in the peers that are installed, interleaved, and print medians and ratios.

    python -m benchmarks                                    every workload, every peer found
    python -m benchmarks mlp_tiny deep_cnn -p torch         some
    python -m benchmarks --nnabla-python ~/nnabla/bin/python --json results.json --markdown results.md

Each framework runs in a process of its own that waits while another one is measured. A round runs every framework
for about the same time; several rounds show the spread. The ratio is our median divided by the best peer's: below 1
we are faster. All frameworks get the same number of threads.
"""

import argparse
import datetime
import importlib.util
import json
import os
import sys
from pathlib import Path

from benchmarks.measure import measure
from benchmarks.report import BEST, EAGER, Row, machine, markdown, mean_ratio, means, row_of

FRAMEWORKS = ("nn_core", "torch", "torch_compile", "jax", "nnabla", "onnxruntime", "openvino")
WORKLOADS = sorted(path.stem for path in (Path(__file__).parent / "workloads").glob("[a-z]*.py"))


def pythons(options: argparse.Namespace) -> dict[str, str]:
    """Return the interpreter for each framework that can be measured."""
    found = {}
    for framework in options.peers or FRAMEWORKS:
        if framework == "nnabla":
            if options.nnabla_python:
                found[framework] = options.nnabla_python
        elif importlib.util.find_spec(framework.partition("_compile")[0]):
            found[framework] = sys.executable
    return {"nn_core": sys.executable, **found}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", choices=[[], *WORKLOADS], default=[])
    parser.add_argument("-p", "--peers", action="append", choices=FRAMEWORKS)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("-t", "--threads", type=int, default=os.cpu_count())
    nnabla = os.environ.get("NNABLA_PYTHON")
    parser.add_argument("--nnabla-python", default=nnabla, help="interpreter of an environment with the package nnabla")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--markdown", type=Path, help="write the figures to this file as a table too")
    options = parser.parse_args()
    print(f"{machine()['cpu']}; {options.threads} threads; median ms a step (range of rounds)")
    interpreters = pythons(options)
    rows: list[Row] = []
    for workload in options.workloads or WORKLOADS:
        rows.append(row_of(workload, measure(workload, interpreters, options.rounds, options.threads)))
        print(rows[-1], flush=True)
    print(means(rows))
    if options.json:
        figures = {"machine": machine(), "threads": options.threads, "rounds": options.rounds}
        figures |= {"rows": [row.as_json() for row in rows]}
        figures |= {f"geometric mean to {other}": mean_ratio(rows, other) for other in (BEST, EAGER)}
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.markdown:
        title = f"{datetime.date.today()}: {machine()['cpu']}"
        options.markdown.write_text(markdown(title, rows, options.threads, options.rounds))


if __name__ == "__main__":
    main()
