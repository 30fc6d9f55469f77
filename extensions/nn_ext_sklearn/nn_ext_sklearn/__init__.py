"""Networks of nn_core as estimators of scikit-learn."""

from nn_ext_sklearn.estimators import NeuralClassifier as NeuralClassifier
from nn_ext_sklearn.estimators import NeuralRegressor as NeuralRegressor

__all__ = ["NeuralClassifier", "NeuralRegressor"]
