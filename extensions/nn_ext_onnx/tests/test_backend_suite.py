"""ONNX's own suite for backends: every case gives the expected result or is refused, none gives another one."""

import re

import numpy as np
import onnx
import pytest

from nn_core.ext import NNCoreError
from nn_ext_onnx.backend import prepare

#: Random numbers: there is no expected result.
RANDOM = "test_bernoulli"


#: Zeros that the suite has as 1.9e-7, a step of float32 of the numbers whose difference they are; ours are 7e-16.
INEXACT = re.compile(r"test_dft_inverse(_opset19)?$")
#: Sums that the suite rounds to bfloat16 after each addition: its own numbers are exact to two steps of that type.
ROUNDED = re.compile(r"test_attention_.*_bf16")


def arrays(values):
    return [numpy_of(value) for value in values]


def numpy_of(value):
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def difference(found, wanted, rtol, atol):
    """Return what is different, None where nothing is."""
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return f"{found} for a sequence of {len(wanted)}"
        parts = [difference(a, b, rtol, atol) for a, b in zip(found, wanted, strict=True)]
        return next((text for text in parts if text), None)
    if wanted is None or found is None:
        return None if found is wanted else f"{found} for {wanted}"
    wanted = np.asarray(wanted)
    if wanted.dtype.kind in "OU":
        return None if found.tolist() == wanted.tolist() else f"{found} for {wanted}"
    if found.dtype != wanted.dtype:
        return f"dtype {found.dtype}"
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)
    return None


def outcome(case):
    """ "passed", "refused", or what is different."""
    try:
        prepared = prepare(case.model)
        for inputs, expected in case.data_sets:
            wanted = arrays(expected)
            rtol = 2**-6 if ROUNDED.match(case.name) else case.rtol
            atol = 2e-7 if INEXACT.match(case.name) else case.atol
            text = difference(list(prepared.run(arrays(inputs))), wanted, rtol, atol)
            if text is not None:
                return text
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
    assert sum(text == "passed" for text in found.values()) >= 1872
