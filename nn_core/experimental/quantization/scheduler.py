"""The course of a quantization-aware training."""

from collections.abc import Sequence
from typing import Any

from nn_core.errors import ArgumentError
from nn_core.experimental.graph_converters import batch_normalization_self_folding as self_folding
from nn_core.experimental.graph_converters.batch_norm_batchstat import BatchNormBatchStatModifier
from nn_core.experimental.graph_converters.batch_normalization_folding import BatchNormalizationFoldingModifier
from nn_core.experimental.graph_converters.graph_converter import GraphConverter
from nn_core.experimental.graph_converters.quantize import (
    QuantizeNonQNNToRecordingModifier,
    QuantizeRecordingToTrainingModifier,
)
from nn_core.experimental.quantization.choices import QNNState
from nn_core.experimental.quantization.config import QATConfig, QATTensorRTConfig
from nn_core.experimental.quantization.ranks import FunctionsRankRecorder
from nn_core.graph_rewriting import functions_of
from nn_core.logger import logger
from nn_core.parametric_functions.scope import get_parameters
from nn_core.utils.save import save as save_network
from nn_core.variable import Variable


class QATScheduler:
    """Turns graphs into such that record ranges, and later into such that compute with quantized values.

    The variables that were given stay the results: what is built on them, such as a loss, follows. After each change the
    solver gets the parameters that the graphs for training have now.

    Args:
        config: What is done, and when; None: QATTensorRTConfig().
        solver: The solver of the training.

    Attributes:
        state: The step that was reached, a QNNState.
        counter: Number of calls of ``step()``.

    Example:
        >>> import nn_core.parametric_functions as PF
        >>> import nn_core.solvers as S
        >>> with nn.parameter_scope("qat"):
        ...     y = PF.affine(F.relu(PF.affine(nn.Variable((8, 4)), 5, name="first")), 3, name="second")
        ...     solver = S.Sgd(0.1)
        ...     config = QATTensorRTConfig()
        ...     config.niter_to_training = 10
        ...     scheduler = QATScheduler(config, solver)
        ...     scheduler(y)
        ...     for _ in range(11):
        ...         scheduler.step()  # in each iteration, before forward
        ...         y.forward()
        >>> scheduler.state.name
        'TRAINING'
    """

    def __init__(self, config: QATConfig | None = None, solver: Any = None) -> None:
        self.config = QATTensorRTConfig() if config is None else config
        self.config.require_supported("QATScheduler")
        self.solver = solver
        self.state = QNNState.NON_QNN
        self.counter = 0
        self._graphs: list[tuple[Variable, bool]] = []

    def __call__(self, pred: Variable, training: bool = True) -> None:
        """Take care of the graph of a variable.

        Args:
            pred: The result of a network.
            training: Whether its forward passes change the ranges; False for one that evaluates.

        Raises:
            ArgumentError: when it is no result of functions, or recording has begun.
        """
        if not isinstance(pred, Variable) or pred.parent is None:
            raise ArgumentError(f"QATScheduler: pred must be the result of a function, got {pred!r}")
        if self.state is not QNNState.NON_QNN:
            raise ArgumentError(f"QATScheduler: graphs must be given before recording begins, got one in {self.state}")
        self._graphs.append((pred, bool(training)))

    def step(self) -> None:
        """Count an iteration, and change the graphs when the configuration says so."""
        if self.counter == self.config.niter_to_recording:
            self._begin_recording()
        elif self.counter == self.config.niter_to_training:
            self._begin_training()
        self.counter += 1

    def save(
        self, fname: str, inputs: Sequence[Variable], batch_size: int = 1, net_name: str = "net", deploy: bool = False
    ) -> None:
        """Write the network for evaluation, or else that for training, to a file that ends in .nnp.

        Args:
            fname: Path of the file.
            inputs: The inputs of the network, which become x0, x1, ...; its result becomes y0.
            batch_size: Number of samples.
            net_name: Name of the network.
            deploy: False: values are written as floating-point numbers.

        Raises:
            ArgumentError: when `deploy` is set, or no graph was given.
            BackendNotFoundError: when nn-ext-nnp is not installed.
        """
        if deploy:
            raise ArgumentError(
                "QATScheduler.save: deploy must be False, got True\n"
                "  hint: nn_ext_c.quantize of the package nn-ext-c makes networks of integers"
            )
        if not self._graphs:
            raise ArgumentError("QATScheduler.save: a graph must have been given, got none")
        pred = min(self._graphs, key=lambda graph: graph[1])[0]
        names = {f"x{index}": variable for index, variable in enumerate(inputs)}
        network = {"name": net_name, "batch_size": batch_size, "outputs": {"y0": pred}, "names": names}
        executor = {"name": "runtime", "network": net_name, "data": list(names), "output": ["y0"]}
        save_network(fname, {"networks": [network], "executors": [executor]})

    def _begin_recording(self) -> None:
        self._replace(GraphConverter(self._folding()).convert([pred for pred, _ in self._graphs]))
        for pred, training in self._graphs:
            ranks = FunctionsRankRecorder()
            pred.visit(ranks)
            modifier = QuantizeNonQNNToRecordingModifier(ranks.functions_ranks, self.config, training)
            pred.rewire_on(GraphConverter(modifier).convert(pred))
        self._enter(QNNState.RECORDING)

    def _begin_training(self) -> None:
        if self.state is not QNNState.RECORDING:
            raise ArgumentError(
                "QATScheduler: niter_to_training must be greater than niter_to_recording, got "
                f"{self.config.niter_to_training} and {self.config.niter_to_recording}"
            )
        modifier = QuantizeRecordingToTrainingModifier(config=self.config)
        self._replace(GraphConverter(modifier).convert([pred for pred, _ in self._graphs]))
        self._enter(QNNState.TRAINING)
        if self.solver is not None:
            self.solver.set_learning_rate(self.solver.learning_rate() * self.config.learning_rate_scale)

    def _folding(self) -> list[Any]:
        modifiers: list[Any] = []
        if self.config.bn_folding:
            modifiers += [BatchNormBatchStatModifier(), BatchNormalizationFoldingModifier(opposite=True)]
            modifiers += [BatchNormalizationFoldingModifier(opposite=False)]
        if self.config.bn_self_folding:
            modifiers += [BatchNormBatchStatModifier(), self_folding.BatchNormalizationSelfFoldingModifier()]
        return modifiers

    def _replace(self, graphs: Sequence[Variable]) -> None:
        for (pred, _), graph in zip(self._graphs, graphs, strict=True):
            if graph is not pred:
                pred.rewire_on(graph)

    def _enter(self, state: QNNState) -> None:
        logger.info("QATScheduler: %s follows %s", state.name, self.state.name)
        self.state = state
        if self.solver is not None:
            used = {v for f in functions_of([pred for pred, training in self._graphs if training]) for v in f.inputs}
            trained = {name: parameter for name, parameter in get_parameters().items() if parameter in used}
            self.solver.set_parameters(trained, reset=True, retain_state=True)
