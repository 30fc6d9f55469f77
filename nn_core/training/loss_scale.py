"""Loss scaling: keep the gradients of half-precision training within the range of float16."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from nn_core.engine.error_messages.refusal import fitted, fitted_methods
from nn_core.engine.runtime.schemas import checked_state
from nn_core.errors import ArgumentError


@fitted_methods("step")
class LossScale:
    """A factor of the loss that is halved when gradients overflow, and doubled after a number of good steps.

    A step whose gradients are not finite is skipped: the parameters stay as they are, and training continues with the next
    batch. Constant with ``interval=None``.

    Args:
        scale: The factor at first.
        factor: Factor by which it grows and shrinks.
        interval: Good steps until it grows; None: it never does.
        least: It does not fall below this.
        most: It does not grow above this. The backward pass starts from it, in float16 at most 65504.

    Attributes:
        scale: The present factor.
        skipped: Number of steps that were skipped.

    Raises:
        ArgumentError: when the numbers are not in order.

    Example:
        >>> from nn_core.training import LossScale, fit
        >>> scale = LossScale(1024.0, interval=5)
        >>> x, t = np.eye(4), np.arange(4)
        >>> _ = fit(lambda x: PF.affine(x, 4), (x, t), epochs=10, progress=False, loss_scale=scale)
        >>> scale.scale, scale.skipped
        (4096.0, 0)
    """

    #: A step is taken exactly if its gradients are finite; a subclass whose `step` decides otherwise says False.
    follows_finiteness: ClassVar[bool] = True

    @fitted
    def __init__(
        self,
        scale: float = 2.0**15,
        factor: float = 2.0,
        interval: int | None = 2000,
        least: float = 1.0,
        most: float = 2.0**15,
    ) -> None:
        if not 0 < least <= scale <= most or factor <= 1 or (interval is not None and interval < 1):
            raise ArgumentError(
                "LossScale: there must be 0 < least <= scale <= most, factor > 1 and interval >= 1, "
                f"got {least}, {scale}, {most}, {factor}, {interval}"
            )
        self.scale = float(scale)
        self.skipped = 0
        self._factor = factor
        self._interval = interval
        self._least, self._most = least, most
        self._good = 0

    def step(self, is_finite: bool) -> bool:
        """Take note of a step; whether it is to be taken."""
        if not is_finite:
            self.skipped += 1
            self._good = 0
            self.scale = max(self.scale / self._factor, self._least)
            return False
        self._good += 1
        if self._interval is not None and self._good >= self._interval:
            self._good = 0
            self.scale = min(self.scale * self._factor, self._most)
        return True

    def get_state(self) -> dict[str, Any]:
        """Return the present factor and the counters."""
        return {"scale": float(self.scale), "skipped": self.skipped, "good": self._good}

    @checked_state
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        scale, skipped, good = state["scale"], state["skipped"], state["good"]
        if scale is None or not 0 < scale < math.inf or min(skipped, good) < 0:
            raise ArgumentError(f"LossScale.set_state: scale must be a positive number and counters not negative, got {state}")
        self.scale, self.skipped, self._good = scale, skipped, good


def constant(scale: float) -> LossScale:
    """Return a loss scale that never grows; a step that overflows is skipped, and halves it."""
    return LossScale(scale, interval=None, least=min(scale, 1.0), most=scale)
