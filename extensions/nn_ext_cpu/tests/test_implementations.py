"""Names of implementations: those that `nn.explain` and the profiler show."""

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core.utils.profiler import Profiler


def images(*shape: int) -> nn.Variable:
    """Normal numbers."""
    return nn.Variable.from_numpy_array(np.random.default_rng(0).standard_normal(shape).astype(np.float32), need_grad=True)


def is_fast(name: str) -> bool:
    """Return whether it is one of the methods for convolutions."""
    return name in ("Winograd", "unfolded product", "sliding kernel") or (name.startswith("oneDNN ") and "ref" not in name)


def test_explain_and_the_profiler_name_the_implementation() -> None:
    x, w = images(2, 3, 20, 20), images(8, 3, 5, 5)
    context = nn.Context(["cpu:float"])
    with nn.context_scope(context):
        narrow = F.convolution(x, w)
        y = F.sum(narrow)
        wide = F.convolution(x, w)
    explanation = nn.explain(narrow, context)
    assert is_fast(explanation.implementation)
    assert f", by {explanation.implementation}" in str(explanation)
    assert nn.explain(wide, nn.Context(["cpu:double"])).implementation == "unfolded product"
    with Profiler() as profiler:
        for _ in range(2):
            x.grad.zero()
            w.grad.zero()
            y.forward(clear_no_need_grad=True)
            y.backward(clear_buffer=True)
    rows = {(row.name, row.pass_name): row.implementation for row in profiler.rows()}
    for pass_name in ("forward", "backward"):
        name = rows["Convolution", pass_name]
        assert is_fast(name.split(" + ")[0]), name
        assert name in profiler.table()
    assert "slow:" not in profiler.table()
