"""The door to the choice of a library for sound."""

from nn_core.data.sound import AudioUtilsBackendManager as AudioUtilsBackendManager
