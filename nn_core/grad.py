"""Gradients as a part of the graph."""

from nn_core.graph.grad import grad as grad
