"""Networks as estimators: `NeuralClassifier` and `NeuralRegressor`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

import nn_core as nn
import nn_core.solvers as S
from nn_core.ext import ArgumentError
from nn_core.training import fit
from nn_ext_sklearn.networks import network_for, require_outputs, scores_of

#: Samples of a batch of predictions.
_PREDICTED = 256


class _Neural(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The training that both estimators share."""

    net: Any
    epochs: int
    batch_size: int
    solver: str | Callable[[], S.Solver]
    learning_rate: float | None
    schedule: Any
    patience: int | None
    validation_fraction: float
    loss: Callable[[Any, Any], Any] | None
    random_state: Any
    verbose: bool

    def _train(self, x: Any, t: Any, n_outputs: int, task: str, class_weight: Any = None) -> None:
        """Train a new network on samples of shape (N, D) and targets of shape (N, 1) or (N, K)."""
        random = check_random_state(self.random_state)
        network = network_for(self.net, n_outputs)
        x, t, validation = self._split(x, t, random)
        seed = int(random.randint(2**31 - 1))
        before = nn.random.get_state()
        try:
            nn.seed(seed)
            require_outputs(network, x.shape[1:], n_outputs)
            result = fit(
                network,
                (x, t),
                validation,
                task,
                epochs=self.epochs,
                batch_size=self.batch_size,
                solver=self._solver(),
                schedule=self.schedule,
                patience=self.patience,
                loss=self.loss,
                class_weight=class_weight,
                seed=seed,
                progress=self.verbose,
            )
        finally:
            nn.random.set_state(before)
        self.network_ = network
        self.history_ = result.history

    def _split(self, x: Any, t: Any, random: Any) -> tuple[Any, Any, tuple[Any, Any] | None]:
        """Put the last samples of a random order aside for validation."""
        if not 0 <= self.validation_fraction < 1:
            raise ArgumentError(f"validation_fraction must be at least 0 and less than 1, got {self.validation_fraction}")
        n_held = int(len(x) * self.validation_fraction)
        if not n_held:
            return x, t, None
        order = random.permutation(len(x))
        kept, held = order[:-n_held], order[-n_held:]
        return x[kept], t[kept], (x[held], t[held])

    def _solver(self) -> S.Solver:
        if callable(self.solver):
            solver = self.solver()
        else:
            known = {name.lower(): name for name in S.__all__}
            if not isinstance(self.solver, str) or self.solver.lower() not in known:
                raise ArgumentError(f"solver must be the name of a solver or a function that makes one, got {self.solver!r}")
            solver = getattr(S, known[self.solver.lower()])()
        if self.learning_rate is not None:
            solver.set_learning_rate(self.learning_rate)
        return solver

    def _scores(self, x: Any) -> Any:
        """Return what the network gives for samples, in float64."""
        check_is_fitted(self, "network_")
        x = validate_data(self, x, reset=False, dtype=np.float32)
        return scores_of(self.network_, x, _PREDICTED)


class NeuralClassifier(ClassifierMixin, _Neural):  # type: ignore[misc]
    """A network that tells classes apart.

    Args:
        net: A function with an argument `n_outputs` that makes a module; a module, which is copied with new initial values; a
            function of a Variable; None: one hidden layer of 64 units. It gives a score for each class.
        epochs: Number of epochs.
        batch_size: Number of samples of a step.
        solver: Name of a solver, or a function that makes one, such as ``functools.partial(S.Momentum, 0.1)``.
        learning_rate: Learning rate; None: that of the solver.
        schedule: Scheduler of the learning rate, or a function of the iteration.
        patience: Number of epochs without a smaller loss after which training ends; None: it does not end early.
        validation_fraction: Fraction of the samples on which nothing is trained, and whose loss `patience` watches.
        loss: ``loss(y, t)`` of scores and numbers of classes; None: cross entropy of the softmax.
        class_weight: Weights by class, or "balanced"; None: 1 each.
        random_state: Seed of initial weights, orders of samples and random functions.
        verbose: Show a progress bar.

    Attributes:
        classes_: The classes in the order of the scores.
        network_: The trained module.
        history_: The means of each epoch, as of `nn_core.training.Fit`.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> from nn_ext_sklearn import NeuralClassifier
        >>> x, y = load_iris(return_X_y=True)
        >>> model = make_pipeline(StandardScaler(), NeuralClassifier(epochs=20, learning_rate=0.01, random_state=0))
        >>> model.fit(x, y).score(x, y) > 0.9
        True
    """

    def __init__(
        self,
        net: Any = None,
        *,
        epochs: int = 100,
        batch_size: int = 64,
        solver: str | Callable[[], S.Solver] = "adam",
        learning_rate: float | None = None,
        schedule: Any = None,
        patience: int | None = None,
        validation_fraction: float = 0.0,
        loss: Callable[[Any, Any], Any] | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.net = net
        self.epochs = epochs
        self.batch_size = batch_size
        self.solver = solver
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.loss = loss
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> "NeuralClassifier":
        """Train a new network.

        Args:
            X: Samples. Shape (N, D).
            y: Classes: numbers, strings or booleans. Shape (N,).

        Returns:
            The estimator.

        Raises:
            ValueError: when samples are not finite, there is only one class, or the network does not give a score for each
                class.
        """
        X, y = validate_data(self, X, y, dtype=np.float32)
        check_classification_targets(y)
        self.classes_, t = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        if len(self.classes_) < 2:
            raise ArgumentError(f"NeuralClassifier: y must have at least 2 classes, got 1 class, {self.classes_[0]!r}")
        weights = None
        if self.class_weight is not None:
            weights = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        self._train(X, t.reshape(-1, 1), len(self.classes_), "classification", weights)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes; shape (N, classes)."""
        scores = self._scores(X)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """Return the class of the highest score of each sample; shape (N,)."""
        scores = self._scores(X)
        return self.classes_[scores.argmax(axis=1)]


class NeuralRegressor(RegressorMixin, _Neural):  # type: ignore[misc]
    """A network that predicts numbers.

    Args:
        net: A function with an argument `n_outputs` that makes a module; a module, which is copied with new initial values; a
            function of a Variable; None: one hidden layer of 64 units. It gives a number for each target.
        epochs: Number of epochs.
        batch_size: Number of samples of a step.
        solver: Name of a solver, or a function that makes one, such as ``functools.partial(S.Momentum, 0.1)``.
        learning_rate: Learning rate; None: that of the solver.
        schedule: Scheduler of the learning rate, or a function of the iteration.
        patience: Number of epochs without a smaller loss after which training ends; None: it does not end early.
        validation_fraction: Fraction of the samples on which nothing is trained, and whose loss `patience` watches.
        loss: ``loss(y, t)`` of predictions and targets; None: squared error.
        random_state: Seed of initial weights, orders of samples and random functions.
        verbose: Show a progress bar.

    Attributes:
        network_: The trained module.
        history_: The means of each epoch, as of `nn_core.training.Fit`.

    Example:
        >>> from nn_ext_sklearn import NeuralRegressor
        >>> x = np.linspace(-1, 1, 200)[:, None]
        >>> model = NeuralRegressor(epochs=60, learning_rate=0.02, random_state=0).fit(x, x[:, 0] ** 2)
        >>> model.score(x, x[:, 0] ** 2) > 0.9
        True
    """

    def __init__(
        self,
        net: Any = None,
        *,
        epochs: int = 100,
        batch_size: int = 64,
        solver: str | Callable[[], S.Solver] = "adam",
        learning_rate: float | None = None,
        schedule: Any = None,
        patience: int | None = None,
        validation_fraction: float = 0.0,
        loss: Callable[[Any, Any], Any] | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.net = net
        self.epochs = epochs
        self.batch_size = batch_size
        self.solver = solver
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.loss = loss
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> "NeuralRegressor":
        """Train a new network.

        Args:
            X: Samples. Shape (N, D).
            y: Targets. Shape (N,), or (N, K) for several.

        Returns:
            The estimator.

        Raises:
            ValueError: when samples or targets are not finite, or the network does not give a number for each target.
        """
        X, y = validate_data(self, X, y, dtype=np.float32, y_numeric=True, multi_output=True)
        self._has_one_target = y.ndim == 1
        targets = np.asarray(y, np.float32).reshape(len(y), -1)
        self._train(X, targets, targets.shape[1], "regression")
        return self

    def predict(self, X: Any) -> Any:
        """Return predictions; shape (N,), or (N, K) after a fit to several targets."""
        scores = self._scores(X)
        return scores[:, 0] if self._has_one_target else scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
