"""Time workloads on a device in nn_core and in PyTorch, eager and compiled with mode="reduce-overhead", in one run.

    python -m benchmarks.gpu                                       every case on the backend cudnn
    python -m benchmarks.gpu resnet50 gpt2_small -P bfloat16       some
    python -m benchmarks.gpu --context cpu --tiny                  a trial of the benchmark itself, without a device

Each framework runs in a process of its own that waits while another one is measured. nn_core copies its inputs to the
device in every step, as a training does; those of PyTorch are there already. float32 means that products are not rounded
to TF32, in either framework.
"""

import argparse
import datetime
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu.worker import PRECISIONS
from benchmarks.measure import WARM_UP_STEPS, Worker
from benchmarks.report import BEST, EAGER, Row, machine, mean_ratio, row_of

FRAMEWORKS = ("nn_core", "nn_core_together", "torch", "torch_compile")
#: Workloads of the CPU that are run as they are, in float32.
SMALL = (
    "mlp_tiny",
    "tiny_dynamic",
    "deep_cnn",
    "deep_cnn_dynamic",
    "resnet18_train",
    "resnet18_infer",
    "lstm_train",
    "lstm_cell_train",
    "transformer_train",
    "elementwise_chain",
)
LARGE = ("resnet50", "gpt2_small")
SECONDS_A_ROUND = 1.0
RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True)
class Case:
    """A workload in one precision."""

    workload: str
    precision: str

    def __str__(self) -> str:
        return self.workload if self.precision == "float32" else f"{self.workload} {self.precision}"


class DeviceWorker(Worker):
    """A process that measures one case in one framework."""

    def __init__(self, case: Case, framework: str, context: str, *, tiny: bool) -> None:
        command = [sys.executable, "-m", "benchmarks.gpu.worker", case.workload, framework, case.precision, context]
        self._errors = open(os.devnull, "w") if not tiny else None  # noqa: SIM115, PTH123 -- lives as the process
        self._process = subprocess.Popen(
            [*command, *(["--tiny"] if tiny else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self.framework = framework
        self.rounds = []
        self.facts: dict[str, Any] = self._answer()
        self.version = self.facts["version"]
        self.run(WARM_UP_STEPS)  # compiles, tries kernels, records graphs
        seconds = self.run(WARM_UP_STEPS)[0]
        self._steps = 2 if tiny else max(3, round(SECONDS_A_ROUND / seconds))

    def recorded(self) -> str:
        """The report of recorded graphs; empty for other frameworks."""
        assert self._process.stdin is not None
        self._process.stdin.write("report\n")
        self._process.stdin.flush()
        text: str = self._answer()
        return text


@dataclass(frozen=True)
class Result:
    """The figures of a case, facts about the frameworks, what was recorded, and why a framework is missing."""

    row: Row
    facts: dict[str, Any]
    recorded: dict[str, str]
    failures: dict[str, str]


def measure(case: Case, frameworks: list[str], context: str, *, rounds: int, tiny: bool) -> Result:
    """Time one case; a framework that cannot run it is left out with a word."""
    workers, failures = [], {}
    for framework in frameworks:
        try:
            workers.append(DeviceWorker(case, framework, context, tiny=tiny))
        except RuntimeError as error:
            failures[framework] = str(error)
            print(f"  {case}: {framework}: {error}", file=sys.stderr)
    for _ in range(rounds):
        for worker in workers:
            worker.measure()
    recorded = {worker.framework: text for worker in workers if (text := worker.recorded())}
    for worker in workers:
        worker.stop()
    facts = {worker.framework: worker.facts for worker in workers}
    return Result(row_of(str(case), workers), facts, recorded, failures)


def device_facts(results: list[Result]) -> dict[str, str]:
    """The device, its driver, and versions of everything that took part."""
    facts = dict(machine())
    tool = shutil.which("nvidia-smi")
    if tool is not None:
        command = [tool, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        facts["device"] = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    for result in results:
        for framework, own in result.facts.items():
            facts[framework] = own["version"]
            facts.update({name: str(version) for name, version in own.get("libraries", {}).items()})
    return facts


def page(title: str, results: list[Result], context: str, rounds: int) -> str:
    """The figures as a page in Markdown."""
    names = [name for name in FRAMEWORKS if any(name in result.row.figures for result in results)]
    lines = [f"# {title}", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in device_facts(results).items()]
    lines += [f"| context | {context} |", f"| rounds | {rounds}, frameworks in turn |", ""]
    lines += ["Milliseconds a step: median of the rounds (smallest and largest). A round waits for the device at its ends."]
    lines += ["`nn_core_together` is nn_core inside `nn.launch_together()`; `torch_compile` has mode=\"reduce-overhead\".", ""]
    lines += ["| case | " + " | ".join([*names, "nn_core to torch", "nn_core to the best peer"]) + " |"]
    lines += ["|---|" + "---|" * (len(names) + 2)]
    for result in results:
        row = ours_beside_peers(result.row)
        cells = [str(result.row.figures.get(name, result.failures.get(name, ""))) for name in names]
        cells += [f"{ratio:.2f}" if (ratio := row.ratio(other)) else "" for other in (EAGER, BEST)]
        lines.append(f"| {result.row.workload} | " + " | ".join(cells) + " |")
    for other in (EAGER, BEST):
        mean = mean_ratio([ours_beside_peers(result.row) for result in results], other)
        if mean is not None:
            lines += ["", f"Geometric mean of the ratios to {'the ' * (other == BEST)}{other}: {mean:.2f}"]
    return "\n".join(lines) + "\n"


def ours_beside_peers(row: Row) -> Row:
    """The row with the faster of our two as nn_core, so that it has one ratio to each peer."""
    ours = [row.figures[name] for name in ("nn_core", "nn_core_together") if name in row.figures]
    peers = {name: figure for name, figure in row.figures.items() if not name.startswith("nn_core")}
    best = {"nn_core": min(ours, key=lambda figure: figure.ms)} if ours else {}
    return Row(row.workload, {**best, **peers})


def cases(options: argparse.Namespace) -> list[Case]:
    """Return the cases that the command line asks for."""
    wanted = options.workloads or ([SMALL[0], *LARGE] if options.tiny else [*SMALL, *LARGE])
    precisions = options.precision or (["float32"] if options.tiny else PRECISIONS)
    return [
        Case(workload, precision)
        for workload in wanted
        for precision in (precisions if workload in LARGE else precisions[:1])
    ]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", choices=[[], *SMALL, *LARGE], default=[])
    parser.add_argument("-c", "--context", default="cudnn", help="backend of nn_core: cudnn, cuda, cpu, reference")
    parser.add_argument("-p", "--frameworks", action="append", choices=FRAMEWORKS)
    parser.add_argument("-P", "--precision", action="append", choices=PRECISIONS)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("--tiny", action="store_true", help="small networks, few steps: a trial of this program")
    parser.add_argument("-o", "--output", type=Path, help="folder for a page and its figures; usually benchmarks/results")
    options = parser.parse_args()
    has_torch = importlib.util.find_spec("torch") is not None
    frameworks = options.frameworks or [name for name in FRAMEWORKS if has_torch or not name.startswith("torch")]
    results = []
    for case in cases(options):
        results.append(measure(case, frameworks, options.context, rounds=options.rounds, tiny=options.tiny))
        print(ours_beside_peers(results[-1].row), flush=True)
        for framework, text in results[-1].recorded.items():
            print(f"  {framework}: {text}", flush=True)
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        facts = device_facts(results)
        title = f"{datetime.date.today()}: {facts.get('device', facts['cpu'])}"
        name = f"{datetime.date.today()}-{options.context}"
        (options.output / f"{name}.md").write_text(page(title, results, options.context, options.rounds))
        rows = [{**result.row.as_json(), "recorded": result.recorded, "failures": result.failures} for result in results]
        figures = {"facts": facts, "context": options.context, "rounds": options.rounds, "rows": rows}
        (options.output / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")
    if any(result.failures for result in results):
        sys.exit("some cases did not run")


if __name__ == "__main__":
    main()
