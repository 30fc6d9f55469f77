"""The door to the choice of a library for images."""

from nn_core.data.images import ImageUtilsBackendManager as ImageUtilsBackendManager
