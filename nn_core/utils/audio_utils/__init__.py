"""Read, write, resize and scale sound; see `nn_core.data.sound`."""

from typing import Final

from nn_core.data.sound import MANAGER
from nn_core.data.sound import read_sound as auread
from nn_core.data.sound import resize_sound as auresize
from nn_core.data.sound import write_sound as auwrite
from nn_core.utils.audio_utils.backend_manager import AudioUtilsBackendManager
from nn_core.utils.audio_utils.common import minmax_auto_scale as minmax_auto_scale

auload = auread
ausave = auwrite

#: The choice itself: `backend_manager.backend = "soundfile"`. The module of the name has its class.
backend_manager: Final[AudioUtilsBackendManager] = MANAGER

__all__ = [
    "auload",
    "auread",
    "auresize",
    "ausave",
    "auwrite",
    "get_available_backends",
    "get_backend",
    "minmax_auto_scale",
    "set_backend",
]


def get_available_backends() -> list[str]:
    """Names of the backends whose library is installed: "wave", "soundfile"."""
    return MANAGER.get_available_backends()


def get_backend() -> str | None:
    """Name of the chosen backend; None: "wave" for WAV files, "soundfile" for others."""
    return MANAGER.backend


def set_backend(backend: str | None) -> None:
    """Choose a backend for all files; None: by the names of the files.

    Raises:
        ArgumentError: when its library is not installed, or there is none of the name.
    """
    MANAGER.backend = backend
