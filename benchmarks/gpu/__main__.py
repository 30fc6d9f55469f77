"""Time workloads on a device in nn_core and in PyTorch, eager and compiled with mode="reduce-overhead", in one run.

    python -m benchmarks.gpu                                       every case on the backend cudnn
    python -m benchmarks.gpu resnet50 gpt2_small -P bfloat16       some
    python -m benchmarks.gpu --context cpu --tiny                  a trial of the benchmark itself, without a device

With an output folder the page and its figures are written after each case, and cases of the same day and context are added to
them: so a run may be interrupted, and the cases may be measured in several runs.

Each framework runs in a process of its own that waits while another one is measured. The inputs of PyTorch are on the
device, and so are nn_core's in the large networks; in the others nn_core copies them there in every step, as a training
does. float32 means that products are not rounded to TF32, in either framework.
"""

import argparse
import datetime
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu.worker import PRECISIONS
from benchmarks.measure import WARM_UP_STEPS, Worker
from benchmarks.report import BEST, EAGER, Figure, Row, machine, mean_ratio, row_of

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
#: Lines of what a worker has said that are shown when it fails.
MAX_LINES = 30


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
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- lives as the process
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

    def _answer(self):  # type: ignore[no-untyped-def]  # whatever the worker says
        try:
            return super()._answer()  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            self._errors.seek(0)
            lines = self._errors.read().splitlines()
            sys.stderr.write("".join(f"    {line}\n" for line in lines[-MAX_LINES:]))
            said = next((line for line in reversed(lines) if line[:1].strip()), "it said nothing")  # without hints
            raise RuntimeError(f"{error}: {said}") from error

    def recorded(self) -> str:
        """Return the report of recorded graphs; empty for other frameworks."""
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
    workers: list[DeviceWorker] = []
    failures: dict[str, str] = {}

    def failed(framework: str, error: RuntimeError) -> None:
        failures[framework] = str(error)
        print(f"  {case}: {framework}: {error}", file=sys.stderr)

    for framework in frameworks:
        try:
            workers.append(DeviceWorker(case, framework, context, tiny=tiny))
        except RuntimeError as error:
            failed(framework, error)
    for _ in range(rounds):
        for worker in list(workers):
            try:
                worker.measure()
            except RuntimeError as error:  # memory that runs out later, for example
                workers.remove(worker)
                failed(worker.framework, error)
    recorded = {worker.framework: text for worker in workers if (text := worker.recorded())}
    for worker in workers:
        worker.stop()
    facts = {worker.framework: worker.facts for worker in workers}
    return Result(row_of(str(case), workers), facts, recorded, failures)


def device_facts(results: Sequence[Result]) -> dict[str, str]:
    """Return the device, its driver, and versions of everything that took part."""
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


def write(folder: Path, results: Sequence[Result], context: str, rounds: int) -> None:
    """Write a page and its figures, with those of other cases that are there already."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{datetime.date.today()}-{context}.json"
    before = json.loads(path.read_text()) if path.exists() else {"facts": {}, "rows": []}
    own = {result.row.workload for result in results}
    others = [_read(row) for row in before["rows"] if row["workload"] not in own]
    facts = {**before["facts"], **device_facts(results)}
    every = [*others, *results]
    title = f"{datetime.date.today()}: {facts.get('device', facts['cpu'])}"
    rows = [{**result.row.as_json(), "recorded": result.recorded, "failures": result.failures} for result in every]
    figures = {"facts": facts, "context": context, "rounds": rounds, "rows": rows}
    path.write_text(json.dumps(figures, indent=1) + "\n")
    path.with_suffix(".md").write_text(page(title, facts, every, context, rounds))


def _read(row: dict[str, Any]) -> Result:
    """Return the result of a case that was measured before."""
    figures = {name: Figure(own["version"], own["ms"], tuple(own["spread_ms"])) for name, own in row["figures"].items()}
    return Result(Row(row["workload"], figures), {}, row["recorded"], row["failures"])


def page(title: str, facts: dict[str, str], results: Sequence[Result], context: str, rounds: int) -> str:
    """Return the figures as a page in Markdown."""
    names = [name for name in FRAMEWORKS if any(name in result.row.figures for result in results)]
    lines = [f"# {title}", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in facts.items()]
    lines += [f"| context | {context} |", f"| rounds | {rounds}, frameworks in turn |", ""]
    lines += ["Milliseconds a step: median of the rounds (smallest and largest). A round waits for the device at its ends."]
    lines += ['`nn_core_together` is nn_core inside `nn.launch_together()`; `torch_compile` has mode="reduce-overhead".', ""]
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
    """Return the row with the faster of our two as nn_core, so that it has one ratio to each peer."""
    ours = [row.figures[name] for name in ("nn_core", "nn_core_together") if name in row.figures]
    peers = {name: figure for name, figure in row.figures.items() if not name.startswith("nn_core")}
    best = {"nn_core": min(ours, key=lambda figure: figure.ms)} if ours else {}
    return Row(row.workload, {**best, **peers})


def cases(options: argparse.Namespace) -> list[Case]:
    """Return the cases that the command line asks for."""
    wanted = options.workloads or ([SMALL[0], *LARGE] if options.tiny else [*SMALL, *LARGE])
    precisions = options.precision or (["float32"] if options.tiny else PRECISIONS)
    return [
        Case(workload, precision) for workload in wanted for precision in (precisions if workload in LARGE else precisions[:1])
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
            write(options.output, results, options.context, options.rounds)
    if any(result.failures for result in results):
        sys.exit("some cases did not run")


if __name__ == "__main__":
    main()
