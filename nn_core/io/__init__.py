"""Files: parameters, states, networks."""

from nn_core.io.pytorch import load_pytorch_parameters as load_pytorch_parameters
