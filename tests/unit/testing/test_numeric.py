"""Central differences."""

import numpy as np
import pytest

from nn_core.testing.numeric import KinkError, central_difference, some_places


def test_the_slope_of_a_smooth_function():
    x = np.array([0.5, -1.0])
    slopes = central_difference(lambda x, y: float(np.sum(np.sin(x) * y)), [x, np.array([2.0, 3.0])], 0)
    assert slopes == pytest.approx({(0,): 2 * np.cos(0.5), (1,): 3 * np.cos(-1.0)})


@pytest.mark.parametrize("function", [np.abs, np.sign])
def test_kinks_and_jumps_are_refused(function):
    with pytest.raises(KinkError, match=r"slopes .* beside \(0,\) of input 0"):
        central_difference(lambda x: float(np.sum(function(x))), [np.zeros(1)], 0)


def test_kinks_may_be_allowed():
    assert central_difference(lambda x: float(np.sum(np.abs(x))), [np.zeros(1)], 0, kinks=True) == {(0,): 0.0}


def test_inputs_are_left_alone():
    x = np.ones((2, 2))
    central_difference(lambda x: float(x.sum()), [x], 0, [(0, 1)])
    assert np.array_equal(x, np.ones((2, 2)))


def test_some_places_are_different_and_few():
    places = some_places((5, 4), 6, np.random.default_rng(0))
    assert len(set(places)) == 6
    assert some_places((), 3, np.random.default_rng(0)) == [()]
    assert some_places((0, 3), 3, np.random.default_rng(0)) == []
