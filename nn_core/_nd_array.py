"""NNabla's module of NdArray; see `nn_core.arrays.ndarray`."""

from nn_core.arrays.ndarray import NdArray as NdArray

__all__ = ["NdArray"]
