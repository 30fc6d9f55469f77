"""Everything that files say about training and inference, as objects; see `nn_core.utils.load`."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as solver_classes
from nn_core.ext import ArgumentError, FileFormatError
from nn_ext_nnp.document import Document, read_document
from nn_ext_nnp.network import Network, build, plan_network
from nn_ext_nnp.nnp_graph import put_unless_refused
from nn_ext_nnp.places import place
from nn_ext_nnp.schedules import Schedule, schedule_of
from nn_ext_nnp.schema import solvers
from nn_ext_nnp.settings import as_written
from nn_ext_nnp.states import states_of_entries, states_of_message


@dataclass(slots=True)
class GlobalConfig:
    """The section of a configuration that says where to run."""

    default_context: nn.Context


@dataclass(slots=True)
class TrainingConfig:
    """The section of a configuration that says how long to train."""

    max_epoch: int = 0
    iter_per_epoch: int = 0
    save_best: bool = True
    monitor_interval: int = 10


@dataclass(slots=True)
class Dataset:
    """A source of data; `data_iterator` makes an iterator over it."""

    name: str
    uri: str
    batch_size: int
    shuffle: bool
    no_image_normalization: bool
    cache_dir: str
    data_iterator: Callable[[], Any] | None = None

    @property
    def normalize(self) -> bool:
        """Whether numbers of images are divided by 255."""
        return not self.no_image_normalization


@dataclass(slots=True)
class Assign:
    """The variables that get columns or generated values, and those that are read.

    Attributes:
        data_iterators: by the name of a data set, what makes an iterator over it; None where none was prepared.
    """

    name: str = ""
    network: Network = field(default_factory=lambda: Network("", 0))
    dataset_assign: dict[nn.Variable, str] = field(default_factory=dict)
    generator_assign: dict[nn.Variable, tuple[str, float]] = field(default_factory=dict)
    data_iterators: dict[str, Callable[[], Any] | None] = field(default_factory=dict)
    _sinks: dict[tuple[nn.Variable, ...], nn.Variable] = field(default_factory=dict, repr=False, compare=False)

    def _whole(self, variables: Iterable[nn.Variable]) -> nn.Variable:
        """Return a variable that computes several: the same one each time, as another graph would need another plan."""
        key = tuple(variables)
        if key not in self._sinks:
            self._sinks[key] = F.sink(*key)
        return self._sinks[key]


@dataclass(slots=True)
class Optimizer(Assign):
    """One way to train a network."""

    solver: Any = None
    loss_variables: list[nn.Variable] = field(default_factory=list)
    weight_decay: float = 0.0
    update_interval: int = 1
    start_iter: int = 0
    end_iter: int = 0
    order: int = 0
    schedule: Schedule | None = None
    parameters: dict[str, nn.Variable] = field(default_factory=dict)
    parameter_learning_rate_multipliers: dict[nn.Variable, float] = field(default_factory=dict)

    @property
    def target(self) -> nn.Variable:
        """The variable that computes all losses: the loss itself if it is the only one."""
        return self.loss_variables[0] if len(self.loss_variables) == 1 else self._whole(self.loss_variables)

    @property
    def scheduler(self) -> Schedule | None:
        """The schedule, by NNabla's name."""
        return self.schedule


@dataclass(slots=True)
class Monitor(Assign):
    """Something to watch."""

    monitor_variables: list[nn.Variable] = field(default_factory=list)

    @property
    def target(self) -> nn.Variable:
        """The variable that computes all that is watched."""
        return self._whole(self.monitor_variables)


@dataclass(slots=True)
class Executor(Assign):
    """One way to run a network."""

    num_evaluations: int = 1
    repeat_evaluation_type: str = "mean"
    need_back_propagation: bool = False
    no_image_normalization: bool = False
    output_assign: dict[nn.Variable, tuple[str, str]] = field(default_factory=dict)
    loss_variables: list[nn.Variable] = field(default_factory=list)
    parameters: dict[nn.Variable, str] = field(default_factory=dict)
    parameter_learning_rate_multipliers: dict[nn.Variable, float] = field(default_factory=dict)

    @property
    def forward_target(self) -> nn.Variable:
        """The variable that computes all outputs."""
        return self._whole(self.output_assign)

    @property
    def backward_target(self) -> nn.Variable:
        """The variable that computes all losses."""
        return self._whole(self.loss_variables)


@dataclass(slots=True)
class Info:
    """The result of `load`: what the files say, and how they were read."""

    proto: Any
    global_config: GlobalConfig
    training_config: TrainingConfig
    batch_size: int | None = None
    exclude_parameter: bool = False
    parameter_only: bool = False
    prepare_data_iterator: bool = True
    datasets: dict[str, Dataset] = field(default_factory=dict)
    networks: dict[str, Network] = field(default_factory=dict)
    optimizers: dict[str, Optimizer] = field(default_factory=dict)
    monitors: dict[str, Monitor] = field(default_factory=dict)
    executors: dict[str, Executor] = field(default_factory=dict)
    parameter_scope: dict[str, Any] = field(default_factory=nn.get_current_parameter_scope)

    @property
    def default_context(self) -> nn.Context:
        """The context to run in."""
        return self.global_config.default_context


def load(
    filenames: Any,
    prepare_data_iterator: bool = True,
    batch_size: int | None = None,
    exclude_parameter: bool = False,
    parameter_only: bool = False,
    extension: str = ".nntxt",
    context: nn.Context | None = None,
    dimensions: Mapping[str, int] | None = None,
) -> Info:
    """Read files of networks; see `nn_core.utils.load.load`. `dimensions`: lengths of axes that other formats name."""
    document = read_document(filenames, extension, not exclude_parameter, batch_size, dimensions)
    proto = document.proto
    config = GlobalConfig(_context(context)), _training(proto)
    info = Info(proto, *config, batch_size, exclude_parameter, parameter_only, prepare_data_iterator)
    with put_unless_refused({} if exclude_parameter else document.parameters, document.name):
        if not parameter_only:
            with nn.context_scope(info.global_config.default_context):
                _load_parts(info, document, prepare_data_iterator, batch_size)
    return info


def _load_parts(info: Info, document: Document, prepare_data_iterator: bool, batch_size: int | None) -> None:
    """Build everything that the document has besides parameters: networks first, since the others name them."""
    proto = document.proto
    for network in proto.network:
        info.networks[network.name] = build(plan_network(network, document.name), batch_size)
    for dataset in proto.dataset:
        info.datasets[dataset.name] = _dataset(dataset, prepare_data_iterator, batch_size)
    for optimizer in proto.optimizer:
        if optimizer.network_name:
            info.optimizers[optimizer.name] = _optimizer(optimizer, info, document)
    for monitor in proto.monitor:
        info.monitors[monitor.name] = _monitor(monitor, info, document)
    for executor in proto.executor:
        info.executors[executor.name] = _executor(executor, info, document)


def _context(context: nn.Context | None) -> nn.Context:
    """Return the given context, else the current one: files name backends of the machine that wrote them."""
    return nn.get_current_context() if context is None else context


def _training(proto: Any) -> TrainingConfig:
    config = proto.training_config
    return TrainingConfig(config.max_epoch, config.iter_per_epoch, config.save_best, config.monitor_interval or 10)


def _dataset(dataset: Any, prepare: bool, batch_size: int | None) -> Dataset:
    made = Dataset(
        dataset.name,
        dataset.uri,
        batch_size or dataset.batch_size,
        dataset.shuffle,
        dataset.no_image_normalization,
        dataset.cache_dir,
    )
    if prepare:
        made.data_iterator = lambda: _iterator(made)
    return made


def _iterator(dataset: Dataset) -> Any:
    from nn_core.utils.data_iterator import data_iterator_cache, data_iterator_csv_dataset  # only for training

    normalize = not dataset.no_image_normalization
    if dataset.uri.endswith(".cache") or os.path.isdir(dataset.uri):  # noqa: PTH112  # a URI
        return data_iterator_cache(dataset.uri, dataset.batch_size, dataset.shuffle, normalize=normalize)
    return data_iterator_csv_dataset(
        dataset.uri, dataset.batch_size, dataset.shuffle, normalize=normalize, with_file_cache=False
    )


def _network_of(part: Any, info: Info, document: Document) -> Network:
    if part.network_name not in info.networks:
        at, known = _place(part, document), list(info.networks)
        raise FileFormatError(f"{at}: {part.name!r} must name one of the networks {known}, got {part.network_name!r}")
    return info.networks[part.network_name]


def _place(part: Any, document: Document) -> str:
    """Return the line of an optimizer, a monitor or an executor."""
    return place(document.name, part.DESCRIPTOR.name.lower(), part.name)


def _variable(network: Network, name: str, part: Any, document: Document) -> nn.Variable:
    if name not in network.variables:
        raise FileFormatError(f"{_place(part, document)}: variables must be in network {network.name!r}, got {name!r}")
    return network.variables[name]


def _assign(target: Assign, part: Any, info: Info, document: Document) -> None:
    for data in part.data_variable:
        target.dataset_assign[_variable(target.network, data.variable_name, part, document)] = data.data_name
    for generator in part.generator_variable:
        variable = _variable(target.network, generator.variable_name, part, document)
        target.generator_assign[variable] = (generator.type, generator.multiplier)
    for name in getattr(part, "dataset_name", ()):
        target.data_iterators[name] = info.datasets[name].data_iterator if name in info.datasets else None


def _optimizer(part: Any, info: Info, document: Document) -> Optimizer:
    network = _network_of(part, info, document)
    made = Optimizer(part.name, network)
    _assign(made, part, info, document)
    made.loss_variables = [_variable(network, v.variable_name, part, document) for v in part.loss_variable]
    made.order, made.start_iter, made.end_iter = part.order, part.start_iter, part.end_iter
    made.update_interval = max(part.update_interval, 1)
    made.weight_decay = as_written(part.solver.weight_decay, "f")
    for variable in part.parameter_variable:
        _rate(made, variable)
        if variable.learning_rate_multiplier > 0:
            made.parameters[variable.variable_name] = _variable(network, variable.variable_name, part, document)
        elif variable.variable_name in network.variables:
            network.variables[variable.variable_name].need_grad = False
    made.solver = solver_of(part.solver, _place(part, document))
    made.solver.set_parameters(made.parameters)
    made.schedule = schedule_of(part.solver, made.solver.learning_rate(), _place(part, document))
    _restore(made, document)
    return made


def solver_of(part: Any, file: str) -> Any:
    """Return the solver that a Solver message describes, without parameters.

    Raises:
        FileFormatError: when its type is unknown, or its parameter field is that of another one.
    """
    name = {"SGD": "Sgd"}.get(part.type, part.type)
    kind = solvers().get(name)
    if kind is None:
        raise FileFormatError(f"{file}: solvers must be one of {', '.join(solvers())}, got {part.type!r}")
    given = part.WhichOneof("parameter")
    if given is None:
        return getattr(solver_classes, name)()
    if given != kind.field:
        raise FileFormatError(f"{file}: solver {part.type} must have {kind.field}, got {given}")
    values = getattr(part, given)
    hyper = {key: as_written(getattr(values, key), code) for key, code in kind.settings.items()}
    return getattr(solver_classes, name)(**hyper)


def _restore(made: Optimizer, document: Document) -> None:
    for file, entries in document.states.items():
        if file.rpartition("/")[2] == f"{made.name}_{made.solver.name}_optimizer.h5.optimizer":
            states = states_of_entries(entries, file)
            made.solver.set_states({name: state for name, state in states.items() if name in made.parameters})
    for other in document.proto.optimizer:
        if other.name == made.name and other.solver.states:
            states = states_of_message(other.solver, document.name)
            made.solver.set_states({name: state for name, state in states.items() if name in made.parameters})


def _monitor(part: Any, info: Info, document: Document) -> Monitor:
    network = _network_of(part, info, document)
    made = Monitor(part.name, network)
    _assign(made, part, info, document)
    made.monitor_variables = [_variable(network, v.variable_name, part, document) for v in part.monitor_variable]
    return made


def _executor(part: Any, info: Info, document: Document) -> Executor:
    network = _network_of(part, info, document)
    made = Executor(part.name, network)
    _assign(made, part, info, document)
    made.num_evaluations = max(part.num_evaluations, 1)
    made.repeat_evaluation_type = part.repeat_evaluation_type or "mean"
    made.need_back_propagation, made.no_image_normalization = part.need_back_propagation, part.no_image_normalization
    for output in part.output_variable:
        made.output_assign[_variable(network, output.variable_name, part, document)] = (output.type, output.data_name)
    made.loss_variables = [_variable(network, v.variable_name, part, document) for v in part.loss_variable]
    for variable in part.parameter_variable:
        _rate(made, variable)
        if variable.variable_name in network.variables:
            made.parameters[network.variables[variable.variable_name]] = variable.variable_name
    return made


def _rate(made: Optimizer | Executor, variable: Any) -> None:
    """Note how much faster than others a parameter learns, if the network has it."""
    if variable.variable_name in made.network.variables:
        parameter = made.network.variables[variable.variable_name]
        made.parameter_learning_rate_multipliers[parameter] = variable.learning_rate_multiplier


def load_networks(path: str | os.PathLike[str] | IO[bytes], **settings: Any) -> Info:
    """Read a file of networks for the extension door."""
    unknown: Sequence[str] = sorted(set(settings) - {"batch_size", "exclude_parameter", "extension"})
    if unknown:
        raise ArgumentError(f"load: settings must be batch_size, exclude_parameter or extension, got {unknown}")
    return load(path, prepare_data_iterator=False, **settings)
