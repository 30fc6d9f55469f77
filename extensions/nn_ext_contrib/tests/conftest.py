"""A scope of parameters for each test, and the comparison of functions with NumPy and with central differences."""

import numpy as np
import pytest

import nn_core as nn
from nn_core.testing import assert_allclose
from nn_core.testing.numeric import central_difference, some_places


@pytest.fixture(autouse=True)
def _own_scope():
    with nn.parameter_scope("", {}):
        yield


def _listed(result):
    return [part for item in result for part in _listed(item)] if isinstance(result, (list, tuple)) else [result]


def _computed(function, arrays, need_grad=False):
    variables = [nn.Variable.from_numpy_array(a, need_grad=need_grad and a.dtype.kind == "f") for a in arrays]
    results = _listed(function(*variables))
    nn.forward_all(results)
    return variables, results


@pytest.fixture
def check():
    """Compare a function of Variables with one of arrays, and its gradients with central differences, in float64."""

    def check(function, expected, *arrays, gradient=True, places=4):
        arrays = [np.asarray(a, np.float64) if np.asarray(a).dtype.kind == "f" else np.asarray(a) for a in arrays]
        with nn.context_scope(nn.Context(["reference:double"])):
            variables, results = _computed(function, arrays, need_grad=gradient)
            wanted = _listed(expected(*arrays))
            assert len(results) == len(wanted)
            for result, truth in zip(results, wanted, strict=True):
                assert result.shape == np.shape(truth)
                assert_allclose(result.d, truth, 1e-10, 1e-12)
            if not gradient:
                return
            rng = np.random.default_rng(len(arrays))
            weights = [rng.normal(size=r.shape) for r in results]
            sources = [v for v in variables if v.need_grad]
            given = nn.grad(results, sources, [nn.Variable.from_numpy_array(w) for w in weights])
            nn.forward_all(given)

            slopes_found = [part.d.copy() for part in given]

            def total(*values):
                for variable, value in zip(variables, values, strict=True):
                    variable.d = value
                nn.forward_all(results)
                return sum(float((w * r.d).sum()) for w, r in zip(weights, results, strict=True))

            moved = [position for position, v in enumerate(variables) if v.need_grad]
            for position, found in zip(moved, slopes_found, strict=True):
                slopes = central_difference(total, arrays, position, some_places(found.shape, places, rng))
                for place, slope in slopes.items():
                    assert_allclose(found[place], slope, 1e-5, 1e-7)

    return check
