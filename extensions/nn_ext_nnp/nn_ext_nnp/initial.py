"""Initial values that networks of files ask for."""

from math import prod, sqrt
from typing import Any

import numpy as np

from nn_core.ext import ArgumentError, FileFormatError, budget

Array = np.ndarray[Any, Any]


def initial_values(variable: Any, shape: tuple[int, ...], rng: np.random.Generator | None) -> Array:
    """Values for a Variable message; zeros when it has no initializer.

    Raises:
        FileFormatError: when its initializer is none of NNabla's.
    """
    kind, multiplier = variable.initializer.type, variable.initializer.multiplier
    if min((0, *shape)) < 0:
        raise FileFormatError(f"{variable.name!r} must have a shape without negative lengths, got {shape}")
    budget().require("drawn_values", prod(shape), f"values to be drawn for {variable.name!r}")
    if not kind:
        return np.zeros(shape, np.float32)
    generator = np.random.default_rng() if rng is None else rng
    if kind == "Constant":
        values = np.full(shape, multiplier)
    elif kind == "Range":
        values = np.arange(prod(shape)).reshape(shape) * 1.0
    elif kind == "Normal":
        values = generator.normal(0, multiplier or 1.0, shape)
    elif kind == "Uniform":
        values = generator.uniform(-multiplier, multiplier, shape)
    else:
        values = multiplier * _by_law(variable, kind, shape, generator)
    return np.asarray(values, np.float32)


def _by_law(variable: Any, kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Values by the laws of Glorot and He, such as NormalAffineGlorot and NormalConvolutionHeBackward."""
    distribution, rest = next(((d, kind[len(d) :]) for d in ("Normal", "Uniform") if kind.startswith(d)), ("", ""))
    layer = next((name for name in ("Affine", "Convolution", "CLConvolution", "CLConv") if rest.startswith(name)), "")
    law = rest[len(layer) :]
    if not distribution or not layer or law not in ("Glorot", "He", "HeForward", "HeBackward") or len(shape) < 2:
        raise FileFormatError(f"initializer of {variable.name!r} must be one of NNabla's, got {kind!r} for shape {shape}")
    scale = _scale(distribution, law, *_fans(layer, shape))
    return rng.uniform(-scale, scale, shape) if distribution == "Uniform" else rng.normal(0, scale, shape)


def _scale(distribution: str, law: str, n_in: int, n_out: int, kernel: int) -> float:
    if law == "Glorot":
        return sqrt((6 if distribution == "Uniform" else 2) / (kernel * n_in + n_out))
    return sqrt(2 / (n_out if law == "HeBackward" else kernel * n_in))


def _fans(layer: str, shape: tuple[int, ...]) -> tuple[int, int, int]:
    if layer == "Affine":
        return shape[0], prod(shape[1:]), 1
    if layer == "Convolution":
        return (shape[-3] if len(shape) > 2 else shape[1]), shape[0], prod(shape[-2:]) if len(shape) > 2 else 1
    return shape[-1], shape[0], prod(shape[1:3])


def generated(kind: str, multiplier: float, shape: tuple[int, ...]) -> Array:
    """Values for a generator variable.

    Raises:
        ArgumentError: when the kind is unknown.
    """
    if kind == "Normal":
        return np.random.default_rng().normal(0, multiplier, shape)
    if kind == "Uniform":
        return np.random.default_rng().uniform(-multiplier, multiplier, shape)
    if kind == "Range":
        return np.arange(np.prod(shape, dtype=int)).reshape(shape) * 1.0
    if kind == "Constant":
        return np.full(shape, multiplier)
    raise ArgumentError(f"generator variables must be Normal, Uniform, Range or Constant, got {kind!r}")
