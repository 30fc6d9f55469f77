"""Kernels of this package on the emulated device, run on arrays of NumPy."""

import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.engine.dispatch.registry import spec_of
from nn_core.engine.graph.infer import infer, input_entries, made_outputs
from nn_core.ext import ArrayDesc, Call
from nn_core.operators.rules.arguments import resolve_args
from nn_core.settings import without
from nn_ext_cuda.codegen.dtypes import STATISTICS


def call_of(name, inputs, dtype="float32", **args):
    """The call of a function for these arrays."""
    spec = spec_of(name)
    shapes = tuple(None if array is None else array.shape for array in inputs)
    args = resolve_args(spec, args, shapes)
    kinds = {"float": dtype, "parameter": dtype, "statistic": STATISTICS.get(dtype, dtype), "index": "int64"}
    descs = tuple(
        None if array is None else ArrayDesc(array.shape, kinds.get(entry.dtype) or str(array.dtype))
        for entry, array in zip(input_entries(spec, len(inputs)), inputs, strict=True)
    )
    outputs = made_outputs(spec, infer(spec, args, shapes))
    same = next((str(array.dtype) for array in inputs if array is not None), dtype)
    return Call(spec, args, descs, tuple(ArrayDesc(shape, kinds.get(entry.dtype) or same) for entry, shape in outputs), dtype)


def forward(cupy, kernel, call, inputs):
    """The results of a kernel, as NumPy arrays."""
    arrays = [None if array is None else cupy.asarray(array) for array in inputs]
    outputs = [cupy.asarray(np.full(desc.shape, -7, desc.dtype)) for desc in call.outputs]
    kernel.forward(call)(*arrays, *outputs)
    return [output.get() for output in outputs]


def backward(cupy, kernel, call, inputs, dy, outputs=None):
    """The gradients of all floating inputs that a kernel computes, as NumPy arrays; None where there is none."""
    wanted = [desc is not None and desc.dtype == call.dtype for desc in call.inputs]
    needs = call.spec.backward.needs
    names = [entry.name for entry in input_entries(call.spec, len(inputs))]
    arrays = [cupy.asarray(a) if a is not None and name in needs else None for name, a in zip(names, inputs, strict=True)]
    for k, entry in enumerate(call.spec.outputs[: len(call.outputs)]):
        arrays.append(cupy.asarray(outputs[k]) if outputs is not None and entry.name in needs else None)
    gradients = [
        cupy.asarray(np.full(desc.shape, -7, desc.dtype)) if want else None
        for desc, want in zip(call.inputs, wanted, strict=True)
    ]
    kernel.backward(call, wanted)(*arrays, cupy.asarray(dy), *gradients)
    return [None if gradient is None else gradient.get() for gradient in gradients]


def check_recorded(y, x=None):
    """Passes over `y`, forward and, for the gradient of `x`, backward, become CUDA graphs that leave no function out."""
    from nn_ext_cuda import graph_report

    before = graph_report()
    for _ in range(4):
        y.forward()
        if x is not None:
            x.grad.zero()
            y.backward()
    after = graph_report()
    assert after.n_graphs == before.n_graphs + (1 if x is None else 2)
    assert sum(after.apart.values()) == sum(before.apart.values())
    assert not nn.fallback_report()


def compare_with_reference(build, shapes, tolerance, *, positive=False):
    """The result of a function of random arrays and its gradients are those of the reference, without a fallback."""
    found = []
    for context in (nn.get_current_context(), nn.Context(["reference:double"])):
        draw = np.random.default_rng(0)
        with nn.context_scope(context):
            arrays = [draw.normal(size=shape).astype("float32") for shape in shapes]
            inputs = [nn.Variable.from_numpy_array(abs(a) if positive else a, need_grad=True) for a in arrays]
            y = build(*inputs)
            for variable in inputs:
                variable.grad.zero()
            y.forward()
            y.backward(draw.normal(size=y.shape).astype("float32"))
            found.append([y.d.copy(), *[variable.g.copy() for variable in inputs]])
            assert not nn.fallback_report()
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(np.abs(other).max(), 1))


def passes(build, x, change=None, n_passes=5, **options):
    """Losses, gradients and parameters of some steps with new inputs; `change` is called between the passes of each."""
    nn.clear_parameters()
    nn.seed(3)
    loss = F.mean(build(x) ** 2)
    solver = S.Sgd(0.1)
    solver.set_parameters(nn.get_parameters())
    found = []
    for number in range(n_passes):
        x.d = np.random.default_rng(number).normal(size=x.shape)
        loss.forward(**(options or {"clear_no_need_grad": True}))
        if change is not None:
            change(number, x, loss)
        solver.zero_grad()
        x.grad.zero()
        loss.backward(clear_buffer=True)
        solver.update()
        found += [np.array(loss.d), x.g.copy()]
    return [*found, *[p.d.copy() for p in nn.get_parameters().values()]]


def inferred(build, x, switch):
    """The result of a network in inference, without the optimization `switch`."""
    nn.clear_parameters()
    nn.seed(3)
    y = build(x)
    with without(switch):
        for _ in range(3):
            y.forward(clear_buffer=True)
    return y.d.copy()
