"""Python function."""

from collections.abc import Sequence

import nn_core as nn


class Double(nn.PythonFunction):
    @property
    def name(self) -> str:
        return "Double"

    def min_outputs(self) -> int:
        return 1

    def setup_impl(self, inputs: Sequence[nn.Variable], outputs: Sequence[nn.Variable]) -> None:
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs: Sequence[nn.Variable], outputs: Sequence[nn.Variable]) -> None:
        outputs[0].d = inputs[0].d * 2


with nn.auto_forward():
    y = Double()(nn.Variable((2,)))
