"""The network of deep_cnn, built anew in each step."""

from benchmarks.peers.same_names import modules
from benchmarks.workloads.deep_cnn import dynamic
from benchmarks.workloads.deep_cnn import torch as torch
from benchmarks.workloads.deep_cnn import torch_compile as torch_compile


def nn_core():
    """Dynamic graph."""
    return dynamic(*modules("nn_core"))


def nnabla():
    """Dynamic graph."""
    return dynamic(*modules("nnabla"))
