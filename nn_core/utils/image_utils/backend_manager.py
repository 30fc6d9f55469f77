"""The door to the choice of a library for images."""

from nn_core.data.images import ImageUtilsBackendManager as ImageUtilsBackendManager
from nn_core.utils.image_utils import get_available_backends as get_available_backends
from nn_core.utils.image_utils import get_backend as get_backend
from nn_core.utils.image_utils import imread as imread
from nn_core.utils.image_utils import imresize as imresize
from nn_core.utils.image_utils import imsave as imsave
from nn_core.utils.image_utils import set_backend as set_backend
