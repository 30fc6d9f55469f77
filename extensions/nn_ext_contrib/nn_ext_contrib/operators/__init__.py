"""Shape rules, gradient rules and reference kernels of the operators that functions.yaml specifies."""

from nn_ext_contrib.operators import arithmetic, crf, ctc, pooling

__all__ = ["arithmetic", "crf", "ctc", "pooling"]
