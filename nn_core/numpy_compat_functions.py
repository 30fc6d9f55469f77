"""Functions with the semantics of NumPy, under the name of the module where NNabla has them."""

from nn_core.functions import dot as dot
