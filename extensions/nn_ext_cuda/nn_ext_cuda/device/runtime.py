"""CuPy, for the modules that run something; everything else of this package does without it."""

import cupy as cupy

__all__ = ["cupy"]
