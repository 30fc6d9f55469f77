"""Modules from what an estimator was given as its network."""

import inspect
from typing import Any

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core import layers
from nn_core.ext import ArgumentError


def network_for(given: Any, n_outputs: int) -> nn.Module:
    """Return a new module for a number of outputs; what was given stays as it is.

    Args:
        given: None: one hidden layer of 64 units. A module, which is copied with new initial values. A function with an
            argument `n_outputs`, which returns a module. Any other function of a Variable, whose parameters the module keeps.
        n_outputs: Number of scores, or of targets.

    Raises:
        ArgumentError: when `given` is something else.
    """
    if given is None:
        return nn.Sequential(layers.Affine(64), F.relu, layers.Affine(n_outputs))
    if isinstance(given, nn.Module):
        copied: nn.Module = given.copy("init")
        return copied
    if not callable(given):
        raise ArgumentError(f"net must be a module, a function that makes one, or None, got {type(given).__name__}")
    if "n_outputs" not in inspect.signature(given).parameters:
        return layers.Lambda(given)
    made = given(n_outputs=n_outputs)
    if not isinstance(made, nn.Module):
        raise ArgumentError(f"net(n_outputs={n_outputs}) must return a module, got {type(made).__name__}")
    return made


def require_outputs(network: nn.Module, shape: tuple[int, ...], n_outputs: int) -> None:
    """Refuse a network that does not give `n_outputs` numbers for a sample of a shape; makes its parameters.

    Raises:
        ArgumentError: when it gives something else.
    """
    found = _evaluated(network, nn.Variable((1, *shape)))
    if found.shape != (1, n_outputs):
        raise ArgumentError(
            f"net must give one number for each of {n_outputs} classes or targets, got shape {tuple(found.shape)[1:]} for a "
            "sample\n  hint: net may be a function with an argument n_outputs that makes the module"
        )


def _evaluated(network: nn.Module, x: nn.Variable) -> nn.Variable:
    """Build the graph of a network that does not train."""
    mode = network.training
    try:
        made: nn.Variable = network.eval()(x)
        return made
    finally:
        network.train(mode)


def scores_of(network: nn.Module, x: Any, batch_size: int) -> Any:
    """Return what a network that evaluates gives for all samples, computed in batches of one size.

    Args:
        network: The module.
        x: Samples. Shape (N, D), N at least 1; float32.
        batch_size: Number of samples of a batch; the last one is filled with the last sample.

    Returns:
        Array of shape (N, K), float64.
    """
    inputs = nn.Variable((batch_size, *x.shape[1:]))
    outputs = _evaluated(network, inputs)
    found = []
    for start in range(0, len(x), batch_size):
        batch = x[start : start + batch_size]
        missing = batch_size - len(batch)
        inputs.d = np.concatenate([batch, np.repeat(batch[-1:], missing, 0)]) if missing else batch
        outputs.forward(clear_buffer=True)
        found.append(outputs.d[: len(batch)].astype(np.float64))
    return np.concatenate(found)
