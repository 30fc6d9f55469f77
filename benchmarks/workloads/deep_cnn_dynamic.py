"""The network of deep_cnn, built anew in each step."""

from benchmarks.workloads.deep_cnn import dynamic
from benchmarks.workloads.deep_cnn import torch as torch
from benchmarks.workloads.deep_cnn import torch_compile as torch_compile


def nn_core():
    """Dynamic graph."""
    import nn_core as nn
    import nn_core.functions as F
    import nn_core.parametric_functions as PF
    import nn_core.solvers as S

    return dynamic(nn, F, PF, S)


def nnabla():
    """Dynamic graph."""
    import nnabla as nn
    import nnabla.functions as F
    import nnabla.parametric_functions as PF
    import nnabla.solvers as S

    return dynamic(nn, F, PF, S)
