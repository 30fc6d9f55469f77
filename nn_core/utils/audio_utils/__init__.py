"""Read, write and resize sound; see `nn_core.data.sound`."""

from nn_core.data.sound import read_sound as auread
from nn_core.data.sound import resize_sound as auresize
from nn_core.data.sound import write_sound as auwrite

auload = auread
ausave = auwrite

__all__ = ["auload", "auread", "auresize", "ausave", "auwrite"]
