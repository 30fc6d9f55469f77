"""Launching a whole training step at once, where backends can."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.typing import extra


@contextmanager
def launch_together() -> Iterator[None]:
    """Let backends launch what is computed in the block as a whole, when the block ends.

    Worth it on devices where a launch costs more than what it computes; on others the block changes nothing. Results are
    the same: whoever reads an array in the block, or computes anything that was not computed before, waits as usual for
    what comes before it. Arrays must not be touched without nn_core's knowledge in the block, through DLPack or pointers.

    Example:
        >>> import numpy as np
        >>> import nn_core as nn
        >>> import nn_core.functions as F
        >>> import nn_core.parametric_functions as PF
        >>> import nn_core.solvers as S
        >>> x = nn.Variable.from_numpy_array(np.ones((4, 3)))
        >>> loss = F.mean(PF.affine(x, 2) ** 2)
        >>> solver = S.Sgd(0.1)
        >>> solver.set_parameters(nn.get_parameters())
        >>> for step in range(3):
        ...     with nn.launch_together():
        ...         loss.forward(clear_no_need_grad=True)
        ...         solver.zero_grad()
        ...         loss.backward(clear_buffer=True)
        ...         solver.update()
    """
    with ExitStack() as stack:
        # what is not loaded has nothing to launch, and must not be loaded for this
        for backend in PLUGINS.loaded():
            hold = extra(backend, "launch_together")
            if hold is not None:
                stack.enter_context(hold())
        yield
