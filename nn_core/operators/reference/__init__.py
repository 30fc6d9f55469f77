"""Reference kernels: what a function means with numbers, in plain array code over a namespace `xp`.

Importing the package fills the tables of ``reference.registry``.
"""

from nn_core.operators.reference import activation as activation
from nn_core.operators.reference import arithmetic as arithmetic
from nn_core.operators.reference import attention as attention
from nn_core.operators.reference import convolution as convolution
from nn_core.operators.reference import image as image
from nn_core.operators.reference import indexing as indexing
from nn_core.operators.reference import linear as linear
from nn_core.operators.reference import loss as loss
from nn_core.operators.reference import normalization as normalization
from nn_core.operators.reference import pooling as pooling
from nn_core.operators.reference import quantization as quantization
from nn_core.operators.reference import random as random
from nn_core.operators.reference import recurrent as recurrent
from nn_core.operators.reference import reduction as reduction
from nn_core.operators.reference import shape as shape
