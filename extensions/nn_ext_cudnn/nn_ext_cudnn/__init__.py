"""The cuDNN backend of nn_core: ``nn_core.ext_utils.get_extension_context("cudnn")``.

Importing it is free. What concerns devices and memory is offered by `nn_ext_cuda`, and passed on here.
"""

from typing import Any

import nn_ext_cuda
from nn_ext_cudnn.plugin import context as context
from nn_ext_cudnn.precision import allow_autotuning as allow_autotuning
from nn_ext_cudnn.precision import allow_nondeterministic as allow_nondeterministic
from nn_ext_cudnn.precision import is_autotuning_allowed as is_autotuning_allowed
from nn_ext_cudnn.precision import is_nondeterministic_allowed as is_nondeterministic_allowed

__all__ = [
    "allow_autotuning",
    "allow_nondeterministic",
    "context",
    "is_autotuning_allowed",
    "is_nondeterministic_allowed",
]


def __getattr__(name: str) -> Any:
    if name in nn_ext_cuda.__all__:
        return getattr(nn_ext_cuda, name)
    raise AttributeError(f"module 'nn_ext_cudnn' has no attribute {name!r}")
