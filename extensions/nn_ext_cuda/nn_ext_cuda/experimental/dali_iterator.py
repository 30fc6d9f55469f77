"""NNabla's iterator over a pipeline of NVIDIA DALI, which is refused when it is made."""

from typing import Any, NoReturn

from nn_core.ext import ArgumentError

__all__ = ["DaliIterator"]


class DaliIterator:
    """An iterator that cannot be made, so that programs which import it run as long as they do without.

    Raises:
        ArgumentError: always; the message says what loads images instead.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ArgumentError(
            "DaliIterator: batches must come from a data iterator of nn_core, got a pipeline of DALI\n"
            "  hint: a data iterator of nn_core reads ahead, and nn_core.data.DevicePrefetcher copies to the device"
        )
