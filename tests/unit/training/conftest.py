import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.training import Updater
from nn_core.utils.data_iterator import data_iterator_simple


@pytest.fixture
def make_updater():
    """Makes a small regression: 12 samples in batches of 4, always the same."""
    iterators = []

    def make(solver="Sgd", batch_size=4, dynamic=False, **settings):
        nn.clear_parameters()
        nn.seed(7)
        random = np.random.RandomState(1)
        samples = random.randn(12, 3).astype(np.float32)
        targets = (samples @ random.randn(3, 1) + 0.5).astype(np.float32)
        x, t = nn.Variable((batch_size, 3)), nn.Variable((batch_size, 1))

        def loss(x, t):
            return F.mean(F.squared_error(PF.affine(x, 1), t))

        graph = loss(x, t)
        solver = getattr(S, solver)(0.05)
        solver.set_parameters(nn.get_parameters())
        data = data_iterator_simple(lambda index: (samples[index], targets[index]), 12, batch_size, shuffle=True)
        iterators.append(data)
        return Updater(data, None if dynamic else [x, t], loss if dynamic else graph, solver, **settings)

    yield make
    for iterator in iterators:
        iterator.close()
