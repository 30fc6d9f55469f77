"""Seeds: of parameters, of functions, of both."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core import random
from nn_core.errors import ArgumentError


def draws() -> tuple[float, list[float]]:
    y = F.rand(shape=(3,))
    y.forward()
    return random.prng.rand(), y.d.tolist()


def test_seed_repeats_both_sources():
    nn.seed(4)
    first = draws()
    assert draws() != first
    nn.seed(4)
    assert draws() == first


def test_each_source_can_be_left_alone():
    nn.seed(4)
    parameter, function = draws()
    nn.seed(4)
    random.prng.rand()
    nn.seed(4, set_parameter_seed=False)
    again = draws()
    assert again[0] != parameter
    assert again[1] == function
    nn.seed(4)
    nn.seed(5, set_function_seed=False)
    assert draws()[1] == function


def test_sources_are_seeded_on_their_own():
    random.set_parameter_seed(4)
    random.set_function_seed(4)
    first = draws()
    random.set_parameter_seed(4)
    random.set_function_seed(4)
    assert draws() == first


def test_the_generator_is_seeded_in_place():
    generator = random.prng
    nn.seed(7)
    assert random.prng is generator
    assert generator.rand() == np.random.RandomState(7).rand()


@pytest.mark.parametrize("value", [-1, 2**32, 1.5, "a", None, True])
def test_wrong_seeds_are_refused_and_change_nothing(value):
    nn.seed(4)
    first = draws()
    nn.seed(4)
    for seed in (nn.seed, random.set_parameter_seed, random.set_function_seed):
        with pytest.raises(ArgumentError, match=r"seed: the seed must be an integer from 0 to 2\*\*32 - 1, got"):
            seed(value)
    assert draws() == first
