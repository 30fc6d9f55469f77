"""The functions that have a CUDA kernel, compared with the documentation."""

import re
from pathlib import Path

from nn_core.operators.spec.builtin import SPECS
from nn_ext_cuda.kernels import KERNELS

PAGE = Path(__file__).parents[3] / "docs" / "cuda.md"
#: Its result is the same memory in another shape.
VIEWS = {"reshape"}


def test_the_documentation_names_the_functions_without_a_kernel():
    (sentence,) = re.findall(r"These have none: (.*?)\. The contexts", PAGE.read_text(), re.DOTALL)
    without = {spec.api for spec in SPECS if spec.name not in KERNELS} - VIEWS
    assert set(re.findall(r"`(\w+)`", sentence)) == without


def test_kernels_are_those_of_functions():
    assert set(KERNELS) <= {spec.name for spec in SPECS}
