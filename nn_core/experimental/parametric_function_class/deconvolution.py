"""Deconvolution layers as objects, in any number of dimensions."""

from collections.abc import Sequence

import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.experimental.parametric_function_class.module import Module
from nn_core.functions.operand import Operand
from nn_core.initializer import Rng
from nn_core.parametric_functions.scope import Initializer
from nn_core.variable import Variable


class Deconvolution(Module):
    """A deconvolution layer; see `nn_core.parametric_functions.deconvolution`.

    Args:
        inmaps: Number of channels of an input, C.
        outmaps: Number of channels of an output, K.
        kernel: Lengths of the kernel, which give the number of spatial axes.
        pad: Elements cut off on both sides of each spatial axis. Default: 0.
        stride: Distance in the output of neighbouring inputs along each spatial axis. Default: 1.
        dilation: Distance of neighbouring kernel elements along each spatial axis. Default: 1.
        group: Number of groups of channels that are not connected.
        w_init: Initial values of `W`: an initializer, or an array of shape (C, K / group, *kernel).
        b_init: Initial values of `b`, shape (K).
        base_axis: Axis of the channels.
        fix_parameters: Do not train the parameters.
        rng: Generator of the usual initial values.
        with_bias: Add a bias.
    """

    W: Variable
    b: Variable | None = None

    def __init__(
        self,
        inmaps: int,
        outmaps: int,
        kernel: int | Sequence[int],
        pad: int | Sequence[int] | None = None,
        stride: int | Sequence[int] | None = None,
        dilation: int | Sequence[int] | None = None,
        group: int = 1,
        w_init: Initializer | None = None,
        b_init: Initializer | None = None,
        base_axis: int = 1,
        fix_parameters: bool = False,
        rng: Rng | None = None,
        with_bias: bool = True,
    ) -> None:
        lengths = (kernel,) if isinstance(kernel, int) else tuple(kernel)
        self.base_axis, self.pad, self.stride, self.dilation, self.group = base_axis, pad, stride, dilation, group
        settings = {
            "outmaps": outmaps,
            "kernel": lengths,
            "group": group,
            "w_init": w_init,
            "b_init": b_init,
            "base_axis": base_axis,
            "fix_parameters": fix_parameters,
            "rng": rng,
            "with_bias": with_bias,
        }
        # Without dilation, a sample of the size of the kernel is enough to make the parameters.
        self._make(PF.deconvolution, Variable((1,) * base_axis + (inmaps, *lengths)), settings)

    def __call__(self, inp: Operand) -> Operand:
        """Return the layer applied to an input of shape (N, C, *spatial)."""
        return F.deconvolution(inp, self.W, self.b, self.base_axis, self.pad, self.stride, self.dilation, self.group)


Deconv1d = Deconv2d = Deconv3d = DeconvNd = Deconvolution
