"""The workload resnet18_train in bfloat16, with float32 parameters; PyTorch by autocast."""

import functools

from benchmarks.workloads import resnet18_train


def nn_core():
    """Build a static graph."""
    import nn_core as nn
    from nn_core.ext_utils import get_extension_context

    nn.set_default_context(get_extension_context("cpu", type_config="bfloat16"))
    return resnet18_train.nn_core()


def torch():
    """Eager."""
    import torch as th

    return _torch(th, lambda net: net)


def torch_compile():
    """Compile the network."""
    import torch as th

    return _torch(th, th.compile)


def _torch(th, prepare):
    return resnet18_train.train_torch(th, prepare, functools.partial(th.autocast, "cpu", th.bfloat16))
