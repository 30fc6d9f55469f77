"""The table of kernels by name of the function."""

from collections.abc import Mapping
from typing import Final

from nn_core.ext import Kernel
from nn_ext_cpu.activation import ACTIVATION
from nn_ext_cpu.arithmetic import ARITHMETIC
from nn_ext_cpu.linear import LINEAR
from nn_ext_cpu.loss import LOSS
from nn_ext_cpu.reduction import REDUCTION

KERNELS: Final[Mapping[str, Kernel]] = {**ACTIVATION, **ARITHMETIC, **LINEAR, **LOSS, **REDUCTION}
