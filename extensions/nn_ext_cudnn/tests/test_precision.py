"""The engines that settings of the process allow."""

import pytest

from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_ext_cuda.gemm.precision import allow_tf32
from nn_ext_cudnn import precision
from nn_ext_cudnn.precision import allow_nondeterministic, excluded_notes


@pytest.fixture
def settings():
    """Settings are put back."""
    yield
    allow_tf32(False)
    allow_nondeterministic(False)


def test_exact_and_deterministic_by_default(settings):
    everything = set(range(9))
    assert excluded_notes("float32") == everything
    for dtype in ("float16", "bfloat16", "float64"):
        assert excluded_notes(dtype) == everything - {precision.TENSOR_CORE}


def test_tf32_concerns_float32_alone(settings):
    before = excluded_notes("float16")
    allow_tf32()
    assert excluded_notes("float32") == {precision.NONDETERMINISTIC, precision.REDUCED_PRECISION_REDUCTION}
    assert excluded_notes("float16") == before


def test_sums_in_half_precision_are_never_allowed(settings):
    allow_tf32()
    allow_nondeterministic()
    assert excluded_notes("float32") == {precision.REDUCED_PRECISION_REDUCTION}
    assert precision.REDUCED_PRECISION_REDUCTION in excluded_notes("float16")


@pytest.mark.parametrize("allow", [allow_tf32, allow_nondeterministic])
def test_a_change_of_a_setting_is_told_to_the_core(settings, monkeypatch, allow):
    told = []
    monkeypatch.setattr(PLUGINS, "when_refreshed", [lambda: told.append(True)])
    allow(True)
    allow(True)
    assert told == [True], "nothing is forgotten where nothing changes"
    allow(False)
    assert told == [True, True]
