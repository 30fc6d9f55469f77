"""Pure functions as kernels: what is copied, cast, repeated and refused."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from nn_core.errors import DTypeError, ShapeError
from nn_core.operators.reference import adapter, registry
from nn_core.operators.reference.adapter import ReferenceKernel, ReferenceKernels
from nn_core.operators.reference.plugin import ReferenceBackend, numpy_dtype
from nn_core.operators.spec.model import FunctionSpec, InputSpec, OutputSpec
from nn_core.typing import ArrayDesc, Call


def make_spec(inputs=("x",), outputs=("y",), **fields):
    """A specification with these inputs and outputs."""
    names = tuple(InputSpec(name, "") for name in inputs), tuple(OutputSpec(name, "") for name in outputs)
    return FunctionSpec("Test", "test", "activation", "", *names, **fields)


def run(function, spec, inputs, outputs, *, args=None, key=()):
    """Run `function` as the kernel of `spec` on arrays."""
    descs = [tuple(None if a is None else ArrayDesc(a.shape, str(a.dtype)) for a in arrays) for arrays in (inputs, outputs)]
    call = Call(spec, args or {}, *descs, "float32")
    return ReferenceKernel(function, np).forward(call)(*inputs, *outputs, *key)


def test_results_are_cast_into_the_outputs():
    y, z = np.empty(2, np.float32), np.empty((), np.int64)
    spec = make_spec(outputs=("y", "z"))
    assert run(lambda xp, x: (xp.exp(x), x.size), spec, [np.zeros(2)], [y, z]) is None
    np.testing.assert_array_equal(y, [1, 1])
    assert z == 2


def test_args_and_absent_inputs_are_passed_on():
    y = np.empty(1, np.float32)
    run(lambda xp, x, b, *, k: x * k if b is None else b, make_spec(("x", "b")), [np.ones(1), None], [y], args={"k": 3})
    assert y == 3


def test_updates_are_written_into_the_inputs_unless_none():
    mean, variance, y = np.zeros(1), np.zeros(1), np.empty(1)
    spec = make_spec(("x", "mean", "variance"), updates=("mean", "variance"))
    run(lambda xp, x, m, v: (x, m + x, None), spec, [np.ones(1), mean, variance], [y])
    assert (y, mean, variance) == (1, 1, 0)


def test_a_seeded_function_gets_the_key():
    y, key = np.empty(2), np.array([7, 9], np.uint64)
    run(lambda xp, x, *, key: x + key, make_spec(tags=("seeded",)), [np.zeros(2)], [y], key=[key])
    np.testing.assert_array_equal(y, key)


def test_a_function_of_dynamic_shape_returns_its_results():
    def function(xp, x):
        return xp.nonzero(x)[0], x[x > 0]

    spec = make_spec(outputs=("indices", "values"), tags=("dynamic_shape",))
    outputs = [np.empty(0, np.int64), np.empty(0, np.float32)]
    indices, values = run(function, spec, [np.array([0.0, 2.0, 3.0])], outputs)
    np.testing.assert_array_equal(indices, [1, 2])
    np.testing.assert_array_equal(values, [2, 3])
    assert (indices.dtype, values.dtype) == (np.int64, np.float32)


def test_infinities_and_nan_come_without_warnings():
    y = np.empty(2, np.float16)
    run(lambda xp, x: xp.log(x), make_spec(), [np.array([0.0, -1.0])], [y])
    assert y[0] == -np.inf
    assert np.isnan(y[1])


def test_a_result_of_another_shape_is_not_broadcast():
    with pytest.raises(ShapeError, match=r"test: the reference kernel must return the shape \(2,\) of the rule, got \(1,\)"):
        run(lambda xp, x: x[:1], make_spec(), [np.zeros(2)], [np.empty(2)])


def test_there_is_no_fused_gradient():
    assert ReferenceKernel(np.exp, np).backward(None, (True,)) is None


def bfloat16_call():
    desc = (ArrayDesc((1,), "bfloat16"),)
    return Call(make_spec(), {}, desc, desc, "bfloat16")


def test_bfloat16_is_refused_where_nothing_knows_it(monkeypatch):
    monkeypatch.setattr(adapter, "find_spec", lambda name: None)
    refusal = ReferenceKernel(np.exp, np).refuse(bfloat16_call())
    assert refusal.reason == "bfloat16 needs the package ml_dtypes: pip install ml-dtypes"
    monkeypatch.setattr(adapter, "find_spec", lambda name: object())
    assert ReferenceKernel(np.exp, np).refuse(bfloat16_call()) is None


def test_bfloat16_inputs_are_widened():
    seen = []
    desc = (ArrayDesc((1,), "bfloat16"),)
    runner = ReferenceKernel(lambda xp, x: seen.append(x.dtype) or x, np).forward(
        Call(make_spec(), {}, desc, desc, "bfloat16")
    )
    runner(np.ones(1, np.float16), np.empty(1, np.float16))  # float16 in the place of bfloat16
    assert seen == [np.float32]


def test_kernels_registered_later_are_seen(monkeypatch):
    kernels = ReferenceKernels(np)
    monkeypatch.setitem(registry.KERNELS, "acme.Late", lambda xp, x: x)
    assert "acme.Late" in kernels
    assert set(kernels) == set(registry.KERNELS)
    assert len(kernels) == len(registry.KERNELS)
    assert kernels.get("acme.Never") is None


def test_the_backend_makes_arrays():
    backend = ReferenceBackend()
    assert backend.empty((2, 3), "float16").dtype == np.float16
    source = np.arange(6.0).reshape(2, 3).T
    copy = backend.from_numpy(source)
    assert copy.flags.c_contiguous
    assert not np.shares_memory(copy, source)
    assert backend.to_numpy(copy) is copy
    assert backend.over(backend) is backend.kernels


def test_bfloat16_arrays_come_from_ml_dtypes(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", SimpleNamespace(bfloat16=np.float16))  # a stand-in
    assert numpy_dtype("bfloat16") == np.float16


def test_bfloat16_arrays_need_ml_dtypes(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(DTypeError, match=r"(?s)bfloat16: ml_dtypes must be installed, got none.*pip install ml-dtypes"):
        numpy_dtype("bfloat16")
