"""The common part of hooks of forward and backward passes."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any


class FunctionHookCallbackBase(ABC):
    """An object whose `pre_hook` and `post_hook` are given to a pass, to be called before and after each function."""

    @property
    @abstractmethod
    def pre_hook(self) -> Callable[[Any], None]:
        """To be called before a function."""

    @property
    @abstractmethod
    def post_hook(self) -> Callable[[Any], None]:
        """To be called after a function."""
