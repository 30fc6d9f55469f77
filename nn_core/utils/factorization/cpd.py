"""The door ``utils.factorization.cpd``; see ``nn_core.parametric_functions.decomposition``."""

from nn_core.parametric_functions.decomposition import ALS as ALS
