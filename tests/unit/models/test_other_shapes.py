"""Networks that were built for one shape and are fed another compute what networks built for that shape do."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.models.imagenet import ShuffleNet05
from nn_core.models.transformer import GPT, VisionTransformer

_RNG = np.random.RandomState(5)


def _images(shape):
    return _RNG.uniform(-1, 1, shape).astype(np.float32)


def _tokens(shape):
    return _RNG.randint(0, 11, shape).astype(np.int32)


class _Shuffled:
    """A ShuffleNet up to its last convolution, which takes images of any size."""

    def __init__(self, training=False):
        self._network, self._training = ShuffleNet05(weights=None), training

    def __call__(self, x):
        return self._network(x, use_up_to="lastconv", training=self._training)

    def get_parameters(self):
        return nn.get_parameters(grad_only=True)


CASES = {
    "VisionTransformer, batch": (
        lambda: VisionTransformer(16, 8, n_layers=2, n_features=8, n_heads=2, n_hidden=16, n_classes=3),
        [_images((2, 3, 16, 16)), _images((5, 3, 16, 16)), _images((1, 3, 16, 16))],
    ),
    "GPT, length": (
        lambda: GPT(n_tokens=11, n_positions=12, n_layers=2, n_features=8, n_heads=2),
        [_tokens((2, 5)), _tokens((2, 12)), _tokens((3, 1))],
    ),
    "ShuffleNet, size": (_Shuffled, [_images((1, 3, 32, 32)), _images((2, 3, 64, 32))]),
}


@pytest.mark.parametrize("case", CASES)
def test_forward(case):
    make, values = CASES[case]
    network = make()
    x = nn.Variable.from_numpy_array(values[0])
    y = network(x)
    for array in values:
        x.reset_shape(array.shape, True)
        x.d = array
        y.forward(clear_buffer=True)
        fresh = network(nn.Variable.from_numpy_array(array))
        fresh.forward(clear_buffer=True)
        assert y.shape == fresh.shape
        np.testing.assert_array_equal(y.d, fresh.d)


@pytest.mark.parametrize(
    "case", [case if "Shuffle" not in case else pytest.param(case, marks=pytest.mark.slow) for case in CASES]
)
def test_training(case):
    make, values = CASES[case]
    network = make() if make is not _Shuffled else _Shuffled(training=True)
    x = nn.Variable.from_numpy_array(values[0])
    loss = F.mean(network(x) ** 2)
    parameters = network.get_parameters()
    for array in values:
        x.reset_shape(array.shape, True)
        x.d = array
        found = []
        for start in (loss, F.mean(network(nn.Variable.from_numpy_array(array)) ** 2)):
            for parameter in parameters.values():
                parameter.grad.zero()
            start.forward(clear_no_need_grad=True)
            start.backward(clear_buffer=True)
            found.append({name: parameter.g.copy() for name, parameter in parameters.items()})
        for name in parameters:
            np.testing.assert_array_equal(found[0][name], found[1][name], err_msg=name)
