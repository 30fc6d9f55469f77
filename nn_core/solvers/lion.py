"""Lion, which uses only the sign of a mean of gradients."""

from collections.abc import Sequence

from nn_core.solvers.base import Solver
from nn_core.typing import Array, Namespace


class Lion(Solver, closed=True):
    """Step by the sign of a moving mean, the same length for every element.

    ``w <- w - lr * (sign(beta1 * m + (1 - beta1) * g) + decay * w)``, then
    ``m <- beta2 * m + (1 - beta2) * g``.

    Args:
        lr: Learning rate; about a tenth of Adam's.
        beta1: Part of the mean in the step.
        beta2: Part of the mean that is kept.

    Notes:
        ``weight_decay(rate)`` sets the decay for the next update; it is 0 otherwise.
        Hyper-parameters of an update kernel: lr, beta1, beta2, weight decay, t.

    References:
        Chen et al. (2023), Symbolic discovery of optimization algorithms, algorithm 2.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.Lion(lr=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.9]
    """

    lr: float
    beta1: float
    beta2: float

    hyper_names = ("lr", "beta1", "beta2")
    reads_t = False
    state_names = ("m",)
    decay_name = "weight_decay"

    def __init__(self, lr: float = 0.0001, beta1: float = 0.9, beta2: float = 0.99) -> None:
        super().__init__(lr, beta1, beta2)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and the mean in place."""
        (m,) = states
        lr, beta1, beta2, decay, _ = hyper
        mean = beta1 * m + (1 - beta1) * g
        # mean - mean is NaN where the mean is infinite: its sign would never change again.
        w -= lr * (xp.sign(mean) + (mean - mean) + decay * w)
        m[...] = beta2 * m + (1 - beta2) * g
