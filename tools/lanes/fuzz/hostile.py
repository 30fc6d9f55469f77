"""Values that programs should not pass, and some that they may: all as Python source, so that a call can be printed."""

from typing import Final

#: The names that the texts use.
HEAD: Final = """\
import os, tempfile
from math import inf, nan

import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.initializer as I
import nn_core.parametric_functions as PF
import nn_core.solvers as S
import nn_core.utils.data_iterator as D
from nn_core.context import Context
from nn_core.ext_utils import get_extension_context
from nn_core.settings import Settings, without
"""

#: Arrays of odd shapes and dtypes.
ARRAYS: Final = (
    "np.float32(1.5)", "np.int64(3)", "np.array(2)", "np.array([1, 2])", "np.array([0.5, -1.0, nan])", "np.array(['a'])",
    "np.array([None, 1])", "np.zeros((2, 3), 'float32')", "np.zeros((0,))", "np.zeros((2, 0, 3))", "np.array([1 + 2j])",
    "np.array([True, False])", "np.zeros((2, 3), 'float16')", "np.full((2, 3), inf)", "np.array([2**62])",
    "np.arange(6).reshape(2, 3)[:, ::-1]", "np.array([[1], [2]], 'uint8')", "np.array(nan)", "np.zeros((1,) * 20)",
    "np.zeros((2, 3, 4, 4), 'float32')", "np.array('2020-01-01', 'datetime64[D]')", "np.zeros(3, [('a', 'f4')])",
)  # fmt: skip

#: Numbers at the ends of their ranges.
NUMBERS: Final = (
    "0", "1", "-1", "2", "3", "-2", "7", "2**31", "2**63", "-2**63", "10**30", "0.5", "-0.0", "nan", "inf", "-inf", "1e308",
    "1e-320", "True", "False", "10**400", "64", "-7", "1.5",
)  # fmt: skip

#: Values that no function takes for a number.
OTHERS: Final = (
    "None", "''", "'x'", "'relu'", "b'x'", "()", "[]", "{}", "(1,)", "(1, 1)", "(2, -1)", "(0,)", "(-1,)", "(10**12,)",
    "(2**62, 2**62)", "[1, 'a']", "(1.5,)", "(nan,)", "[[1, 2], [3]]", "{1: 2}", "object()", "(lambda *a, **k: None)",
    "slice(None)", "slice(5, 1, -2)", "slice(0, 3, 0)", "...", "range(3)", "int", "'\\0'", "'a' * 5000", "(1,) * 40",
    "(2, 3)", "(3, 3)", "(0, 0)", "(1, 1, 1)", "(2, 2)", "[None]", "(None, 1)", "'same'", "'SAME'", "'constant'", "'linear'",
    "'cpu'", "{'a': 1}", "set()", "frozenset([1])", "iter([1, 2])", "'nested/name'", "np.random.RandomState(1)", "1j",
    "(True, False)", "('a', 'b')", "[0, 1]", "[0, 0]", "(2**63,)", "(-2**63, 1)", "NotImplemented",
)  # fmt: skip

#: Expressions that a session starts from.
SEEDS: Final = (
    "nn.Variable.from_numpy_array(np.linspace(-1, 1, 6).reshape(2, 3), need_grad=True)",
    "nn.Variable((2, 3), need_grad=True)", "nn.Variable(())", "nn.Variable((0, 3), need_grad=True)", "nn.Variable((4,))",
    "nn.Variable.from_numpy_array(np.linspace(-1, 1, 96).reshape(2, 3, 4, 4), need_grad=True)",
    "nn.Variable.from_numpy_array(np.array([nan, inf, -inf, 0.0]), need_grad=True)",
    "nn.Variable.from_numpy_array(np.array([1, 2, 0]))", "nn.Variable.from_numpy_array(np.array([[5], [-3]]))",
    "nn.Variable.from_numpy_array(np.array([True, False]))", "nn.Variable.from_numpy_array(np.eye(3) * 2, need_grad=True)",
    "nn.Variable((1, 2, 5))", "nn.Variable((2, 3, 3, 4, 4))", "nn.Variable((1,) * 7)",
    "nn.NdArray.from_numpy_array(np.linspace(-1, 1, 6).reshape(2, 3))", "nn.NdArray((2, 3))", "nn.NdArray(())",
    "nn.NdArray((0, 3))", "nn.NdArray.from_numpy_array(np.array([0, 1, 1]))", "nn.NdArray((2, 3, 4, 4))",
    "nn.NdArray.from_numpy_array(np.zeros((2, 3), 'float16'))", "nn.NdArray((2, 3)).narrow(0, 1, 1)",
)  # fmt: skip

#: Objects with methods of their own.
OBJECTS: Final = (
    "S.Adam()", "S.Sgd(0.1)", "S.Momentum()", "S.Lars()", "nn.Sequential()", "Context()", "I.NormalInitializer()",
    "I.UniformInitializer()", "I.OrthogonalInitializer()", "I.RangeInitializer()", "I.ConstantInitializer()",
    "I.UniformIntInitializer()", "D.data_iterator_simple(lambda i: (np.zeros(2), i), 5, 2, stop_exhausted=True)",
    "F.tanh(nn.Variable((2, 3), need_grad=True)).parent", "nn.Module()",
)  # fmt: skip
