"""Doors to what NNabla keeps under `utils`; what is here is mostly imported from where it belongs."""

from typing import TYPE_CHECKING

from nn_core.engine.error_messages.attributes import submodules

if not TYPE_CHECKING:  # so that checkers report names that do not exist
    __getattr__ = submodules(__name__)
