"""The conformance kit: the admission test of every backend and every operator, ours and others'.

A package that brings a backend called ``acme`` has one file of tests::

    from nn_core.testing.conformance import *

    BACKENDS = ("acme",)

and runs it with one command::

    pytest -p nn_core.testing.pytest_plugin --backend=acme test_conformance.py

A package that brings functions names them, ``FUNCTIONS = ("acme.SwishBeta",)``, and leaves BACKENDS out: they are run
on every installed backend. A package that brings fusions alone names those: ``FUSIONS = ("acme.fast_gelu",)``.

Each function runs on its samples, which are data: `sample` and `error` add those of new operators. Failures that are
known are listed in ``xfails.txt`` next to the file, one a line: id, date, reason. See docs/conformance.md.
"""

from nn_core.testing.assertions import assert_allclose as assert_allclose
from nn_core.testing.fusions import chain_sample as chain_sample
from nn_core.testing.gradients import check_gradients as check_gradients
from nn_core.testing.samples.registry import ErrorSample as ErrorSample
from nn_core.testing.samples.registry import Sample as Sample
from nn_core.testing.samples.registry import constant as constant
from nn_core.testing.samples.registry import convention as convention
from nn_core.testing.samples.registry import error as error
from nn_core.testing.samples.registry import sample as sample

__all__ = [
    "ErrorSample",
    "Sample",
    "assert_allclose",
    "chain_sample",
    "check_gradients",
    "constant",
    "convention",
    "error",
    "sample",
]
