"""The door to the choice of a library for sound."""

from typing import Final

from nn_core.data.sound import MANAGER
from nn_core.data.sound import AudioUtilsBackendManager as AudioUtilsBackendManager

backend_manager: Final[AudioUtilsBackendManager] = MANAGER
