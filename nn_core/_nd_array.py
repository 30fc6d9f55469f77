"""NNabla's module of NdArray; see `nn_core.engine.arrays.ndarray`."""

from nn_core.engine.arrays.ndarray import NdArray as NdArray

__all__ = ["NdArray"]
