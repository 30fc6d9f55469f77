"""Reference kernels: what a function means with numbers, in plain array code over a namespace `xp`.

Importing the package fills the tables of ``reference.registry``.
"""

from nn_core.reference import activation as activation
from nn_core.reference import arithmetic as arithmetic
from nn_core.reference import attention as attention
from nn_core.reference import convolution as convolution
from nn_core.reference import image as image
from nn_core.reference import indexing as indexing
from nn_core.reference import linear as linear
from nn_core.reference import loss as loss
from nn_core.reference import normalization as normalization
from nn_core.reference import pooling as pooling
from nn_core.reference import quantization as quantization
from nn_core.reference import random as random
from nn_core.reference import recurrent as recurrent
from nn_core.reference import reduction as reduction
from nn_core.reference import shape as shape
