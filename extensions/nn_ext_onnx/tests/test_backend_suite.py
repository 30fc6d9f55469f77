"""ONNX's own suite for backends: every case gives the expected result or is refused, none gives another one."""

import numpy as np
import onnx
import pytest

from nn_core.ext import NNCoreError
from nn_ext_onnx.backend import prepare

#: Random numbers: there is no expected result.
RANDOM = "test_bernoulli"
#: Sums of which most cancel: in float32 they are as exact as the largest of them, and the suite expects zeros to 1e-7.
CANCELLING = "test_dft"


def arrays(values):
    return [numpy_of(value) for value in values]


def numpy_of(value):
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def outcome(case):
    """ "passed", "refused", or what is different."""
    try:
        prepared = prepare(case.model)
        for inputs, expected in case.data_sets:
            for found, wanted in zip(prepared.run(arrays(inputs)), arrays(expected), strict=True):
                if found.dtype != np.asarray(wanted).dtype:
                    return f"dtype {found.dtype}"
                atol = 1e-7 * float(np.abs(wanted).max(initial=1)) if case.name.startswith(CANCELLING) else case.atol
                np.testing.assert_allclose(found, wanted, rtol=case.rtol, atol=atol)
    except NNCoreError:
        return "refused"
    except AssertionError as error:
        return str(error)
    return "passed"


def outcomes(kind=None):
    from onnx.backend.test.case import node

    with np.errstate(all="ignore"):
        node._NodeTestCases.clear()
        cases = node.collect_testcases(kind)
        return {case.name: outcome(case) for case in cases if not case.name.startswith(RANDOM)}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
def test_no_case_of_the_suite_gives_another_result():
    found = outcomes()
    wrong = {name: text for name, text in found.items() if text not in ("passed", "refused")}
    assert wrong == {}
    assert sum(text == "passed" for text in found.values()) >= 1734
