"""NNabla's scheduler for values that are larger than the memory of a device, which is refused when it is made."""

from typing import Any, NoReturn

from nn_core.errors import ArgumentError

__all__ = ["SwapInOutScheduler"]


class SwapInOutScheduler:
    """A scheduler that cannot be made, so that programs which import it run as long as they do without.

    Raises:
        ArgumentError: always; the message says what saves memory instead.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ArgumentError(
            "SwapInOutScheduler: values must fit into the memory of the device, got a request to move them to the host\n"
            "  hint: nn_core.recompute() and forward(clear_no_need_grad=True) keep fewer values"
        )
