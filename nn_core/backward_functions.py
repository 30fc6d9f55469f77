"""The registry of gradients that ``nn_core.grad`` uses."""

from nn_core.graph.grad import register as register
from nn_core.graph.grad import show_registry as show_registry
