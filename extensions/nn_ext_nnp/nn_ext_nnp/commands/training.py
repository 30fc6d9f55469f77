"""Train networks as files describe it."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core.ext import ArgumentError, atomic_writer, say
from nn_core.graph_rewriting import functions_of
from nn_core.utils.data_iterator import data_iterator_cache, data_iterator_csv_dataset
from nn_ext_nnp.commands.context import choose_context, watched
from nn_ext_nnp.commands.failing import clean_failures, refused_options
from nn_ext_nnp.initial import generated
from nn_ext_nnp.loading import Assign, Dataset, Info, Monitor, Optimizer, load
from nn_ext_nnp.saving import save_proto
from nn_ext_nnp.states import state_members

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
#: Of the order of samples, and of random functions in each epoch: a run that is resumed draws what it would have drawn.
_SEED: Final = 313
#: Monitors run after the first epochs, and then at an interval.
_FIRST_EPOCHS: Final = 5
_NO_OUT_OF_CORE: Final = "values are not moved from the memory of a device to the host; nn_core.recompute() saves memory"
_CURRENT: Final = re.compile(r"results_current_(\d+)\.nnp")


@click.command()
@click.option("-c", "--config", required=True, type=_FILE, help="File of networks, data sets and optimizers.")
@click.option("-o", "--outdir", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder to write to.")
@click.option("-p", "--param", type=_FILE, help="File of parameters to start from, over those of the configuration.")
@click.option("-r", "--resume", is_flag=True, help="Go on from the latest results_current_<epoch>.nnp of the folder.")
@click.option("-C", "--context", help="Where to run, such as cpu or cudnn:0.")
@refused_options(_NO_OUT_OF_CORE, ("-m", "--ooc-gpu-memory-size"), ("-w", "--ooc-window-length"))
@refused_options(_NO_OUT_OF_CORE, ("-O", "--enable-ooc"), are_flags=True)
@clean_failures
def train(config: Path, outdir: Path, param: Path | None, resume: bool, context: str | None) -> None:
    """Train the networks of a configuration.

    The folder gets results.nnp, the best network by the monitor valid_error (the latest without it, or without save_best),
    results_current_<epoch>.nnp with everything to resume from, and monitoring_report.yml. It ends with 1 when the cost is
    no number any more.

    Example: nn-core train -c training.nnp -o results
    """
    choose_context(context)
    outdir.mkdir(parents=True, exist_ok=True)
    latest = _latest(outdir) if resume else None
    sources = [config] if param is None else [config, param]
    # The configuration stays the one that is given; the file of the last run has parameters and states.
    info = load(sources, prepare_data_iterator=False)
    trainer = Trainer(info, config, outdir)
    if latest is not None:
        trainer.restore(latest)
    trainer.run(say)


def _latest(outdir: Path) -> Path | None:
    found = [(int(match[1]), path) for path in outdir.iterdir() if (match := _CURRENT.fullmatch(path.name))]
    return max(found)[1] if found else None


@dataclass(slots=True)
class Progress:
    """The progress of training: iterations are counted from 0, epochs that are over from 1."""

    iteration: int = 0
    epoch: int = 0
    best: float = math.inf


@dataclass(slots=True)
class Trainer:
    """The run of one configuration."""

    info: Info
    config: Path
    outdir: Path
    progress: Progress = field(default_factory=Progress)
    iterators: dict[str, Any] = field(default_factory=dict)
    losses: dict[str, nn.Variable] = field(default_factory=dict)

    def run(self, say: Callable[[str], None]) -> None:
        """Train to the end.

        Raises:
            ArgumentError: when the configuration lacks something, or the cost is no number any more.
        """
        config = self.info.training_config
        if not self.info.optimizers:
            raise ArgumentError("train: the configuration must have an optimizer, got none")
        for optimizer in self.info.optimizers.values():
            self.losses[optimizer.name] = total_loss(optimizer)
            require_fed("optimizer", optimizer, optimizer.loss_variables)
        for monitor in self.info.monitors.values():
            require_fed("monitor", monitor, monitor.monitor_variables)
        self._open()
        while self.progress.epoch < config.max_epoch:
            nn.seed(_SEED + self.progress.epoch)
            cost = self._epoch()
            self.progress.epoch += 1
            if not math.isfinite(cost):
                raise ArgumentError(f"train: the cost must be a number, got {cost} in epoch {self.progress.epoch}")
            self._finish_epoch(cost, say)
        if not config.max_epoch:
            self._save(self.outdir / "results.nnp")

    def restore(self, path: Path) -> None:
        """Go on from a file that `run` has written."""
        again = load(path, prepare_data_iterator=False)
        for name, optimizer in self.info.optimizers.items():
            if name in again.optimizers:
                optimizer.solver.set_states(again.optimizers[name].solver.get_states())
        match = _CURRENT.fullmatch(path.name)
        self.progress.epoch = int(match[1]) if match else 0
        self.progress.best = _best_in(self.outdir / "monitoring_report.yml", self.progress.epoch)
        self.progress.iteration = self.progress.epoch * self.info.training_config.iter_per_epoch

    # -- one epoch -----------------------------------------------------------------------------------------------------

    def _epoch(self) -> float:
        costs: list[float] = []
        count = self.info.training_config.iter_per_epoch
        for _ in watched(range(count), count, f"epoch {self.progress.epoch + 1}"):
            batches: dict[str, Mapping[str, Any]] = {}
            found = [self._step(o, batches) for o in self._active()]
            costs.append(sum(found))
            self.progress.iteration += 1
        return sum(costs) / len(costs) if costs else 0.0

    def _active(self) -> list[Optimizer]:
        number = self.progress.iteration + 1
        return [
            o for o in self.info.optimizers.values() if o.start_iter <= number and (not o.end_iter or number <= o.end_iter)
        ]

    def _step(self, optimizer: Optimizer, batches: dict[str, Mapping[str, Any]]) -> float:
        for name in optimizer.data_iterators:
            if name not in batches:
                batches[name] = _columns(self.iterators[name])
        self._feed(optimizer, [batches[name] for name in optimizer.data_iterators])
        loss, solver = self.losses[optimizer.name], optimizer.solver
        loss.forward(clear_no_need_grad=True)
        iteration = self.progress.iteration
        if iteration % optimizer.update_interval == 0:
            solver.zero_grad()
        loss.backward(clear_buffer=True)
        if iteration % optimizer.update_interval == optimizer.update_interval - 1:
            if optimizer.weight_decay > 0:
                solver.weight_decay(optimizer.weight_decay)
            if optimizer.schedule is not None:
                solver.set_learning_rate(optimizer.schedule.get_learning_rate(iteration))
            solver.update()
        return float(loss.d)

    def _feed(self, part: Assign, batches: list[Mapping[str, Any]]) -> None:
        for variable, name in part.dataset_assign.items():
            values = self._number(name) if name.startswith("%") else _column(name, batches)
            variable.d = values if np.ndim(values) == 0 else np.asarray(values).reshape(variable.shape)
        for variable, (kind, multiplier) in part.generator_assign.items():
            variable.d = generated(kind, multiplier, variable.shape)

    def _number(self, name: str) -> float:
        config, iteration = self.info.training_config, self.progress.iteration
        per_epoch = max(config.iter_per_epoch, 1)
        numbers = {
            "%iter": iteration,
            "%max_iter": config.max_epoch * per_epoch,
            "%epoch": iteration // per_epoch,
            "%epochf": iteration / per_epoch,
            "%max_epoch": config.max_epoch,
            "%progress": iteration / max(config.max_epoch * per_epoch, 1),
        }
        if name not in numbers:
            raise ArgumentError(f"train: data names with % must be one of {', '.join(numbers)}, got {name!r}")
        return float(numbers[name])

    # -- after an epoch ------------------------------------------------------------------------------------------------

    def _finish_epoch(self, cost: float, say: Callable[[str], None]) -> None:
        config, epoch = self.info.training_config, self.progress.epoch
        errors: dict[str, float] = {}
        if epoch <= _FIRST_EPOCHS or epoch % config.monitor_interval == 0 or epoch == config.max_epoch:
            errors = {name: self.watch(monitor) for name, monitor in self.info.monitors.items()}
        self._report(cost, errors)
        shown = "".join(f" {name}={value:.6f}" for name, value in errors.items())
        say(f"epoch {epoch} of {config.max_epoch} cost={cost:.6f}{shown}")
        self._save_current()
        error = errors.get("valid_error")
        if "valid_error" not in self.info.monitors or not config.save_best:
            self._save(self.outdir / "results.nnp")
        elif error is not None and error <= self.progress.best:
            self.progress.best = error
            self._save(self.outdir / "results.nnp")

    def _save_current(self) -> None:
        """Save the network of this epoch in place of that of the last one."""
        epoch = self.progress.epoch
        self._save(self.outdir / f"results_current_{epoch}.nnp")
        for path in self.outdir.iterdir():
            match = _CURRENT.fullmatch(path.name)
            if match and int(match[1]) != epoch:
                path.unlink()

    def watch(self, monitor: Monitor) -> float:
        """Return the mean of a monitor over its data, from the first sample on."""
        iterators = {name: _iterator(self._dataset(name), self.config, shuffle=False) for name in monitor.data_iterators}
        try:
            n_batches = max((max(it.size // it.batch_size, 1) for it in iterators.values()), default=1)
            outputs = [variable.apply(persistent=True) for variable in monitor.monitor_variables]
            root = outputs[0] if len(outputs) == 1 else F.sink(*outputs)
            total = 0.0
            for _ in range(n_batches):
                self._feed(monitor, [_columns(iterator) for iterator in iterators.values()])
                root.forward(clear_buffer=True)
                total += sum(float(np.mean(output.d)) for output in outputs)
            return total / n_batches
        finally:
            for iterator in iterators.values():
                iterator.close()

    def _report(self, cost: float, errors: Mapping[str, float]) -> None:
        path = self.outdir / "monitoring_report.yml"
        kept = _sections(path, self.progress.epoch - 1)
        kept.append(f"{self.progress.epoch - 1}:\n  cost: {cost!r}\n" + "".join(f"  {n}: {v!r}\n" for n, v in errors.items()))
        with atomic_writer(path) as file:
            file.write("".join(kept).encode())

    def _save(self, path: Path) -> None:
        kept = nn.get_parameters(grad_only=False)
        parts = [{"name": name, "solver": optimizer.solver} for name, optimizer in self.info.optimizers.items()]
        save_proto(path, self.info.proto, kept, False, states=state_members(parts, kept, ".h5"))

    # -- data ----------------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Open all data sets, and go to where training is."""
        names = dict.fromkeys(name for optimizer in self.info.optimizers.values() for name in optimizer.data_iterators)
        for name in names:
            self.iterators[name] = _iterator(self._dataset(name), self.config)
        done, self.progress.iteration = self.progress.iteration, 0
        while self.progress.iteration < done:
            for name in dict.fromkeys(name for optimizer in self._active() for name in optimizer.data_iterators):
                self.iterators[name].next()
            self.progress.iteration += 1

    def _dataset(self, name: str) -> Dataset:
        if name not in self.info.datasets:
            raise ArgumentError(f"train: data sets must be one of {list(self.info.datasets)}, got {name!r}")
        return self.info.datasets[name]


def require_fed(kind: str, part: Optimizer | Monitor, results: Sequence[nn.Variable]) -> None:
    """Check that each input that `results` depend on gets values: a column, generated ones, or those of an initializer.

    Raises:
        ArgumentError: when one gets none, and would be zeros throughout.
    """
    network = part.network
    read = {variable for function in functions_of(results) for variable in function.inputs}
    planned = () if network.plan is None else network.plan.inputs
    fed = {network.inputs[v.name] for v in planned if v.name in network.inputs and v.proto.HasField("initializer")}
    fed.update(part.dataset_assign, part.generator_assign)
    missing = [name for name, variable in network.inputs.items() if variable in read - fed]
    if missing:
        raise ArgumentError(
            f"train: each input of the network of {kind} {part.name!r} must be a data_variable or a generator_variable, "
            f"got neither for {', '.join(missing)}"
        )


def total_loss(optimizer: Optimizer) -> nn.Variable:
    """Return the sum of all losses, over the number of elements of the first."""
    if not optimizer.loss_variables:
        raise ArgumentError(f"train: optimizer {optimizer.name!r} must have a loss variable, got none")
    parts = [F.sum(loss) for loss in optimizer.loss_variables]
    whole: nn.Variable = parts[0] if len(parts) == 1 else F.add_n(*parts)
    mean: nn.Variable = F.mul_scalar(whole, 1.0 / optimizer.loss_variables[0].size)
    return mean.apply(persistent=True)


def _iterator(dataset: Dataset, config: Path, shuffle: bool | None = None) -> Any:
    path = Path(dataset.uri)
    if not path.exists() and not path.is_absolute():
        path = config.parent / path
    if not path.exists():
        raise ArgumentError(f"train: the data set {dataset.name!r} must be at {dataset.uri}, got nothing there")
    order = dataset.shuffle if shuffle is None else shuffle
    rng, normalize = np.random.RandomState(_SEED), not dataset.no_image_normalization
    if path.is_dir():
        return data_iterator_cache(path, dataset.batch_size, order, rng, normalize=normalize)
    return data_iterator_csv_dataset(
        path, dataset.batch_size, order, rng, use_thread=False, normalize=normalize, with_file_cache=False
    )


def _columns(iterator: Any) -> Mapping[str, Any]:
    return dict(zip(iterator.variables, iterator.next(), strict=True))


def _column(name: str, batches: list[Mapping[str, Any]]) -> Any:
    for batch in batches:
        if name in batch:
            return batch[name]
    raise ArgumentError(f"train: data must have a column {name!r}, got {[key for batch in batches for key in batch]}")


def _sections(report: Path, epochs: int) -> list[str]:
    """Return the parts of a report about the first `epochs` epochs."""
    if not report.exists():
        return []
    parts = re.split(r"(?m)^(?=\d+:)", report.read_text())
    return [part for part in parts if part and int(part.partition(":")[0]) < epochs]


def _best_in(report: Path, epochs: int) -> float:
    """Return the smallest valid_error of the first `epochs` epochs."""
    found = [re.search(r"valid_error: (\S+)", part) for part in _sections(report, epochs)]
    return min((float(match[1]) for match in found if match), default=math.inf)
