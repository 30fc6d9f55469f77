"""Networks as objects: modules that own their parameters."""

from typing import TYPE_CHECKING

from nn_core.engine.error_messages.attributes import submodules

if not TYPE_CHECKING:  # so that checkers report names that do not exist
    __getattr__ = submodules(__name__)
