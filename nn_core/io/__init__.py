"""Files: parameters, states, networks."""

from nn_core.io.keras import load_keras_parameters as load_keras_parameters
from nn_core.io.pytorch import load_pytorch_parameters as load_pytorch_parameters
