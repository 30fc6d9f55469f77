"""NNabla's module of passes over several variables; see `nn_core.variable`."""

from nn_core.variable import forward_all as forward_all

__all__ = ["forward_all"]
