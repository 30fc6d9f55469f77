"""The layers that the networks of this package consist of, under the names that their weights have in files."""

from collections.abc import Sequence
from typing import Any

import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.engine.graph.lazy_subgraph import follows_shapes
from nn_core.variable import Variable

#: Length of a kernel, a stride or a padding along both axes, or one for each.
Size = int | Sequence[int]


class Layers:
    """Layers of one call of a network.

    Args:
        training: Normalize by the batch, drop, and train all parameters; if not, all are fixed.
        eps: Added to variances.
    """

    def __init__(self, training: bool, eps: float = 1e-5) -> None:
        self.training = training
        self.eps = eps

    def conv(
        self,
        x: Variable,
        name: str,
        maps: int,
        kernel: Size,
        stride: Size = 1,
        pad: Size | None = None,
        group: int = 1,
        dilation: int = 1,
        bias: bool = True,
    ) -> Variable:
        """Return a convolution; without `pad` kernels of odd lengths keep the size, up to the stride."""
        if pad is None:
            pad = [dilation * (k // 2) for k in _pair(kernel)]
        options: dict[str, Any] = {
            "kernel": _pair(kernel),
            "pad": _pair(pad),
            "stride": _pair(stride),
            "dilation": (dilation, dilation),
            "with_bias": bias,
            "fix_parameters": not self.training,
            "name": name,
        }
        if group == maps == x.shape[1] > 1:
            return PF.depthwise_convolution(x, **options)
        return PF.convolution(x, maps, group=group, **options)

    def norm(self, x: Variable, name: str) -> Variable:
        """Batch normalization."""
        fixed = not self.training
        return PF.batch_normalization(x, eps=self.eps, batch_stat=self.training, fix_parameters=fixed, name=name)

    def conv_norm(
        self, x: Variable, names: tuple[str, str], maps: int, kernel: Size, stride: Size = 1, **options: Any
    ) -> Variable:
        """Return a convolution without bias, and batch normalization; `names` are those of the two."""
        return self.norm(self.conv(x, names[0], maps, kernel, stride, bias=False, **options), names[1])

    def affine(self, x: Variable, name: str, n_outputs: int) -> Variable:
        """Return an affine layer on all values of a sample."""
        return PF.affine(x, n_outputs, fix_parameters=not self.training, name=name)

    def dropout(self, x: Variable, p: float = 0.5) -> Variable:
        """Dropout while training."""
        return F.dropout(x, p) if self.training else x


def concatenated(*branches: Variable) -> Variable:
    """Return the channels of all branches."""
    return F.concatenate(*branches, axis=1)


@follows_shapes  # whether to pad depends on the shape
def max_pool(x: Variable, kernel: int, stride: int, pad: int = 0, ceil: bool = False) -> Variable:
    """Maxima of windows; with `ceil` the last window may reach beyond an image without negative values."""
    if ceil:
        beyond = [-(length - kernel) % stride for length in x.shape[2:]]
        if any(beyond):
            x = F.pad(x, (0, beyond[0], 0, beyond[1]))
    return F.max_pooling(x, (kernel, kernel), (stride, stride), pad=(pad, pad))


def average_pool(x: Variable, kernel: int, stride: int, pad: int = 0) -> Variable:
    """Means of windows; a padding counts as zeros."""
    return F.average_pooling(x, (kernel, kernel), (stride, stride), pad=(pad, pad))


def _pair(size: Size) -> tuple[int, ...]:
    return (size, size) if isinstance(size, int) else tuple(size)
