"""Shape rules, gradient rules and default arguments: what a function means without numbers.

Importing the package fills the tables of ``rules.registry``.
"""

from nn_core.operators.rules import activation as activation
from nn_core.operators.rules import arithmetic as arithmetic
from nn_core.operators.rules import attention as attention
from nn_core.operators.rules import convolution as convolution
from nn_core.operators.rules import image as image
from nn_core.operators.rules import indexing as indexing
from nn_core.operators.rules import linear as linear
from nn_core.operators.rules import loss as loss
from nn_core.operators.rules import normalization as normalization
from nn_core.operators.rules import pooling as pooling
from nn_core.operators.rules import quantization as quantization
from nn_core.operators.rules import random as random
from nn_core.operators.rules import recurrent as recurrent
from nn_core.operators.rules import reduction as reduction
from nn_core.operators.rules import shape as shape
